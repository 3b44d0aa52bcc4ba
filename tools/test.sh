#!/usr/bin/env bash
# Runs the end-to-end suite and, beside it, all other tests: many of these wait for timeouts and for processes.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --locked --workspace --no-run
others=$(mktemp)
trap 'rm -f "$others"' EXIT
{
  cargo test --locked --workspace --no-fail-fast --lib --bins --test '[!e]*' &&
    cargo test --locked --workspace --doc
} >"$others" 2>&1 &
others_id=$!
outcome=0
cargo test --locked --workspace --test e2e || outcome=$?
wait "$others_id" || outcome=$?
cat "$others"
exit "$outcome"
