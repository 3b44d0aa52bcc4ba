#!/usr/bin/env bash
# Builds the Debian package into target/packages/ from the release binary. The binary itself prints
# its man pages, completions and sample configuration. Called by `make deb`.
set -euo pipefail
cd "$(dirname "$0")/.."

selkie=$(realpath "${CARGO_TARGET_DIR:-target}/release/selkie")
parts=target/package
rm -rf "$parts"
mkdir -p "$parts/completions" target/packages
# Removes older packages, since the container images install every package in this directory.
rm -f target/packages/selkie_*.deb
"$selkie" man "$parts/man"
gzip -9n "$parts"/man/*.1
"$selkie" completions bash > "$parts/completions/selkie"
"$selkie" completions zsh > "$parts/completions/_selkie"
"$selkie" completions fish > "$parts/completions/selkie.fish"
gzip -9nc CHANGELOG.md > "$parts/NEWS.md.gz"
# A changelog in Debian's format, with only the version and the date.
cat > "$parts/changelog" <<CHANGELOG
selkie ($("$selkie" --version | cut -d' ' -f2)-1) stable; urgency=medium

  * See NEWS.md.gz.

 -- $(sed -n 's/^maintainer = "\(.*\)"/\1/p' origin/Cargo.toml)  $(date -R -u -r CHANGELOG.md)
CHANGELOG
# data_dir is the only setting with another value than the default: the directory that the unit lets
# the service write to.
(cd "$parts" && "$selkie" config --sample) |
  sed 's|^# data_dir = .*|data_dir = "/var/lib/selkie"|' > "$parts/selkie.toml"
grep -q '^data_dir = "/var/lib/selkie"$' "$parts/selkie.toml"
.tools/bin/cargo-deb --quiet -p selkie-origin --no-build --locked --output target/packages/
