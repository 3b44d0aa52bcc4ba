#!/usr/bin/env bash
# Fuzzes requests of any bytes, reads in all their notations, the bodies of uploads, role files, and binary logs (tests/fuzz).
#
# Usage: tools/fuzz.sh [TARGET…]      FUZZ_SECONDS (60) are shared out among the targets, all by default
#
# Inputs that reach new code are kept in tests/fuzz/corpus for the next run, failing inputs in
# tests/fuzz/artifacts/TARGET; neither folder is committed. Must not know what is checked.
set -euo pipefail
cd "$(dirname "$0")/.."

FOLDER=tests/fuzz
ALL=(requests spellings uploads roles binlog)
# Bytes of an input: more than a URL may have.
INPUT_MAX_BYTES=20000
# Maximum seconds and megabytes for one input; the targets themselves have stricter limits of memory.
INPUT_MAX_SECONDS=5
MEMORY_MAX_MB=1024

targets=("${@:-${ALL[@]}}")
seconds=$((${FUZZ_SECONDS:-60} / ${#targets[@]}))

# Sanitizers are off: the stable toolchain has none, and there is no unsafe code that they could
# check. The targets have a build directory of their own, since every crate is instrumented.
fuzz() {
  CARGO_PROFILE_RELEASE_LTO=off .tools/bin/cargo-fuzz fuzz "$1" --fuzz-dir "$FOLDER" --sanitizer none \
    --target-dir target/fuzz --codegen-units 16 "${@:2}"
}

for target in "${targets[@]}"; do
  corpus=("$FOLDER/corpus/$target")
  export SELKIE_FUZZ_SEEDS=$PWD/target/fuzz/seeds/$target
  mkdir -p "${corpus[0]}" "$SELKIE_FUZZ_SEEDS"
  corpus+=("$SELKIE_FUZZ_SEEDS")
  fuzz run "$target" "${corpus[@]}" -- -dict="$FOLDER/words.dict" -max_len="$INPUT_MAX_BYTES" \
    -timeout="$INPUT_MAX_SECONDS" -rss_limit_mb="$MEMORY_MAX_MB" -max_total_time="$seconds" -print_final_stats=1
done
