#!/usr/bin/env bash
# Builds the Debian package into target/packages/ from the release binary, which itself writes its man pages, completions and
# sample configuration. Called by `make deb`.
set -euo pipefail
cd "$(dirname "$0")/.."

selkie=$(realpath "${CARGO_TARGET_DIR:-target}/release/selkie")
parts=target/package
rm -rf "$parts"
mkdir -p "$parts/completions" target/packages
# The images take the package that is there.
rm -f target/packages/selkie_*.deb
"$selkie" man "$parts/man"
gzip -9n "$parts"/man/*.1
"$selkie" completions bash > "$parts/completions/selkie"
"$selkie" completions zsh > "$parts/completions/_selkie"
"$selkie" completions fish > "$parts/completions/selkie.fish"
gzip -9nc CHANGELOG.md > "$parts/NEWS.md.gz"
# Debian's own form, which says only when the package was made of which version.
cat > "$parts/changelog" <<CHANGELOG
selkie ($("$selkie" --version | cut -d' ' -f2)-1) stable; urgency=medium

  * See NEWS.md.gz.

 -- $(sed -n 's/^maintainer = "\(.*\)"/\1/p' origin/Cargo.toml)  $(date -R -u -r CHANGELOG.md)
CHANGELOG
# The one setting that differs from the default: the service's data lie where systemd lets it write.
(cd "$parts" && "$selkie" config --sample) |
  sed 's|^# data_dir = .*|data_dir = "/var/lib/selkie"|' > "$parts/selkie.toml"
grep -q '^data_dir = "/var/lib/selkie"$' "$parts/selkie.toml"
.tools/bin/cargo-deb --quiet -p selkie-origin --no-build --locked --output target/packages/
