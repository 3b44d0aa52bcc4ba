#!/usr/bin/env bash
# Changes the pure code, one function at a time, and runs the unit tests of its crate: a change that no test notices is missed.
# Fails if less than 90 % are noticed.
#
# Usage: [SHARD=3/16] tools/mutants.sh [FILE…]      files or globs, by default all of `shared` and `binlog`, the edge's core
# and the origin's queries: some 7,000 changes. With SHARD, only that part of the changes, counted from 0.
#
# The changes that were missed are in target/mutants/mutants.out/missed.txt. Must not know what the tests check.
set -euo pipefail
cd "$(dirname "$0")/.."

NOTICED_MIN_PERCENT=90
ALL=('shared/src/**' 'binlog/src/**' 'edge/src/core/**' 'origin/src/query/**')
# Seconds that the tests of a changed crate may take: a change may loop forever.
TESTS_MAX_SECONDS=180

# The code is changed in a copy, with the files that git ignores and the origin embeds.
root=$PWD/target/mutants
tree=$root/tree
rm -rf "$tree" "$root/mutants.out"
mkdir -p "$tree/pages/build"
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -cf - -T - | tar -xf - -C "$tree"
cp -r pages/build/. "$tree/pages/build/"

files=()
for file in "${@:-${ALL[@]}}"; do files+=(--file "$file"); done
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=$root/build
# Its status counts a single missed change as a failure; the percentage below decides.
.tools/bin/cargo-mutants mutants --dir "$tree" --in-place --output "$root" --no-times \
  --package selkie-shared --package selkie-binlog --package selkie-edge --package selkie-origin --timeout "$TESTS_MAX_SECONDS" ${SHARD:+--shard "$SHARD"} "${files[@]}" || [ $? -le 3 ]

count() { wc -l < "$root/mutants.out/$1.txt"; }
missed=$(count missed) noticed=$(($(count caught) + $(count timeout)))
[ $((noticed + missed)) -gt 0 ] || { echo "no change was tested: the tests fail without one" >&2; exit 1; }
percent=$((noticed * 100 / (noticed + missed)))
echo "$noticed of $((noticed + missed)) changes were noticed: $percent % (at least $NOTICED_MIN_PERCENT %)"
[ "$percent" -ge "$NOTICED_MIN_PERCENT" ]
