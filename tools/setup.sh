#!/usr/bin/env bash
# Installs the programs that building, running and testing Selkie need, if they are missing.
#
# Usage: [MARIADB=VERSION] tools/setup.sh [compile|build|run|test|audit|fuzz|mutants|count|package|test-packages]
#   compile        compilers
#   build          compilers, and the tools of worker and client
#   run            as build, and MariaDB (default)
#   test           as run, and Galera, MariaDB's client programs, a browser, Python and a generator of Python clients;
#                  with MARIADB, that version in .tools/ instead of this machine's
#   package        compilers and cargo-deb
#   test-packages  as package, and debootstrap, systemd-nspawn and podman
#   audit          compilers and cargo-deny
#   fuzz           compilers and the programs of `make fuzz`
#   mutants        compilers and cargo-mutants
#   count          compilers and the programs of `make bench-check`
#
# Must not know how anything is built. Each step says which program is missing, why it is needed, and, if the step can't
# install it, what to do.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO_DEB_VERSION=3.8.0
CARGO_DENY_VERSION=0.20.2
CARGO_FUZZ_VERSION=0.13.2
CARGO_MUTANTS_VERSION=27.1.0
OPENAPI_PYTHON_CLIENT_VERSION=0.29.1
NODE_MIN_MAJOR=20            # what wrangler in package.json asks for

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
stop() { printf '\033[1;31mset-up stopped:\033[0m %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# install_packages WHY PACKAGE…: from apt, as root or through sudo.
install_packages() {
  local why=$1 root=()
  shift
  local by_hand="apt-get install --no-install-recommends $*"
  have apt-get || stop "$why. There is no apt-get here: install what Debian calls '$*' by your system's means, then run this again."
  if [ "$(id -u)" -ne 0 ]; then
    have sudo || stop "$why. Neither root nor sudo is at hand: have an administrator run '$by_hand', then run this again."
    root=(sudo)
  fi
  say "$why: installing $* with apt"
  "${root[@]}" apt-get update -q >&2 || say "apt-get update failed: going on with the lists that are there"
  # Stops rather than let apt remove a package of this machine.
  if apt-get install -s --no-install-recommends "$@" | grep -q '^Remv '; then
    stop "apt would remove other packages to install $*. See '$by_hand' and decide yourself."
  fi
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >&2 ||
    stop "$why, and apt failed (see above). Once '$by_hand' works, run this again."
}

compiler() {
  have cc || install_packages "Rust needs a C compiler and linker" gcc libc6-dev
  { have cmake && have make; } ||
    install_packages "libjpeg-turbo, which decodes uploaded pictures, is built with CMake" cmake make
  # On other processors, the fast paths are in C, or the C compiler assembles them.
  case $(uname -m) in
    x86_64 | i?86) have nasm || have yasm || install_packages "libjpeg-turbo's fast paths are in NASM's assembler" nasm ;;
  esac
}

rust() {
  local cargo_home=${CARGO_HOME:-$HOME/.cargo} channel sysroot
  [ -d "$cargo_home/bin" ] && PATH=$PATH:$cargo_home/bin
  have rustup || stop "rustup is missing. Install it from https://rustup.rs, then run this again."
  channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
  for sysroot in "${RUSTUP_HOME:-$HOME/.rustup}"/toolchains/"$channel"-*; do
    if [ -x "$sysroot/bin/cargo-clippy" ] && [ -x "$sysroot/bin/rustfmt" ] &&
      [ -d "$sysroot/lib/rustlib/wasm32-unknown-unknown/lib" ]; then
      return
    fi
  done
  say "Rust $channel with its wasm32 target is missing: installing it with rustup"
  rustup toolchain install "$channel" --profile minimal --component clippy,rustfmt \
    --target wasm32-unknown-unknown ||
    stop "rustup could not install Rust $channel (see above)."
}

# tool CRATE VERSION WHY: installs a crate into .tools/ from its published lock file; cargo's own record says what is
# installed. Compiles without optimisation: it would take three times as long, for tools that run
# for seconds.
tool() {
  if [ -f .tools/.crates.toml ] && grep -q "^\"$1 $2 " .tools/.crates.toml; then
    return
  fi
  say "$1 $2 is missing: $3. Compiling it into .tools/ (once, 1 to 2 minutes)"
  CARGO_PROFILE_DEV_DEBUG=false cargo install --debug --locked --root .tools --target-dir .tools/target "$1@$2" ||
    stop "cargo could not install $1 $2 (see above)."
  rm -rf .tools/target
}

node_packages() {
  have node || stop "Node is missing. Install Node $NODE_MIN_MAJOR or later with npm (https://nodejs.org), then run this again."
  local version
  version=$(node -p 'process.versions.node')
  [ "${version%%.*}" -ge "$NODE_MIN_MAJOR" ] || stop "Node is $version here; wrangler needs $NODE_MIN_MAJOR or later."
  if cmp -s package-lock.json node_modules/.installed-from; then
    return
  fi
  have npm || stop "npm is missing (Debian has it in a package of its own). Install it, then run this again."
  say "packages of Node (wrangler, esbuild, typescript …) are missing or of another version: installing them with npm into node_modules/"
  # No package needs an install script, so none is run.
  npm ci --ignore-scripts --no-audit --no-fund || stop "npm could not install the packages of package-lock.json (see above)."
  cp package-lock.json node_modules/.installed-from
}

# Only the core package: it has no service, so nothing is started at boot and an existing service is not touched.
mariadb() {
  PATH=$PATH:/usr/sbin:/usr/local/sbin have mariadbd && return
  [ -n "${SELKIE_DATABASE_URL:-}" ] && return
  install_packages "Selkie's private database needs MariaDB's server program (set SELKIE_DATABASE_URL to use a server of yours)" \
    mariadb-server-core mariadb-client-core
}

# other_mariadb VERSION: unpacks the MariaDB of another Debian, with its libraries, into .tools/mariadb-VERSION. A program in
# bin/ runs with the loader and the libc of that Debian: no chroot, no rights of root.
other_mariadb() {
  local root=.tools/mariadb-$1 suite program
  case $1 in
    11.8) suite=trixie ;;
    *) stop "MARIADB=$1 is unknown: 11.8 is known. Without MARIADB, the tests run with this machine's MariaDB." ;;
  esac
  if [ ! -e "$root/bin/mariadbd" ]; then
    { have mmdebstrap && [ -e /usr/share/keyrings/debian-archive-keyring.gpg ]; } ||
      install_packages "Debian $suite's MariaDB is unpacked with mmdebstrap" mmdebstrap debian-archive-keyring
    say "MariaDB $1 is missing: unpacking it from Debian $suite into $root (once, 200 MB)"
    rm -rf "$root" "$root.new"
    mkdir -p .tools
    mmdebstrap --quiet --variant=extract --include=mariadb-server-core,mariadb-client,galera-4 "$suite" "$root.new" ||
      stop "mmdebstrap could not unpack Debian $suite's MariaDB (see above)."
    # MariaDB finds its files and Galera's below the directory that contains bin/.
    mkdir "$root.new/bin"
    ln -s bin "$root.new/sbin"
    ln -sfn usr/lib "$root.new/lib"
    ln -s usr/share "$root.new/share"
    ln -s ../sbin/mariadbd "$root.new/usr/bin/mariadbd"
    cat >"$root.new/bin/run" <<'RUN'
#!/bin/bash
root=${0%/*bin/*} name=${0##*/}
[ "$name" != mariadb-install-db ] || exec "$root/usr/bin/$name" "$@" --basedir="$root"
loader=("$root"/usr/lib/*/ld-linux-*.so.*)
export MY_BASEDIR_VERSION=$root
exec -a "$name" "${loader[0]}" --argv0 "$name" --library-path "${loader[0]%/*}" "$root/usr/bin/$name" "$@"
RUN
    chmod +x "$root.new/bin/run"
    for program in mariadbd mariadb-install-db mariadb mariadb-dump mariadb-binlog mariadb-admin my_print_defaults resolveip; do
      ln -s run "$root.new/bin/$program"
    done
    mv "$root.new" "$root"
  fi
  "$root/bin/mariadbd" --version | grep -q "Ver $1\." || stop "$root does not contain MariaDB $1: remove it, then run this again."
}

packager() {
  have dpkg-shlibdeps || install_packages "dpkg-shlibdeps finds the libraries that the package depends on" dpkg-dev
  tool cargo-deb "$CARGO_DEB_VERSION" "it makes the Debian package"
}

containers() {
  { have debootstrap && have systemd-nspawn; } ||
    install_packages "the packages are tested in a clean Debian" debootstrap systemd-container
  { have podman && have podman-compose && have runc && have iptables && [ -e /usr/lib/podman/netavark ] && [ -e /usr/lib/podman/aardvark-dns ]; } ||
    install_packages "the images are tested with podman" podman podman-compose runc netavark aardvark-dns iptables
  { have curl && have openssl; } || install_packages "the tests of the packages call the API" curl openssl
}

fuzzer() {
  have c++ || install_packages "libFuzzer, the fuzzer's engine, is C++" g++
  tool cargo-fuzz "$CARGO_FUZZ_VERSION" "it builds and runs the fuzz targets"
}

testers() {
  if [ -n "${MARIADB:-}" ]; then
    other_mariadb "$MARIADB"
  else
    mariadb
    [ -e /usr/lib/galera/libgalera_smm.so ] || [ -e /usr/lib64/galera-4/libgalera_smm.so ] || install_packages "the tests start clusters of MariaDB" galera-4
    have mariadb || install_packages "the tests run SQL with MariaDB's client" mariadb-client-core
  fi
  have chromium || install_packages "the tests open pages in a browser" chromium
  have python3 || install_packages "the tests run the documents' examples in Python" python3
  python_generator
}

python_generator() {
  local wanted="openapi-python-client==$OPENAPI_PYTHON_CLIENT_VERSION" folder=.tools/python
  [ "$(cat $folder/.installed 2>/dev/null)" = "$wanted" ] && return
  python3 -c 'import ensurepip' 2>/dev/null || install_packages "the tests install a generator of Python clients" python3-venv
  say "$wanted is missing: installing it with pip into $folder/"
  python3 -m venv --clear $folder && $folder/bin/pip install --quiet --disable-pip-version-check "$wanted" ||
    stop "pip could not install $wanted (see above)."
  echo "$wanted" > $folder/.installed
}

counter() {
  have valgrind || install_packages "valgrind counts instructions" valgrind
}

compiler
rust
case ${1:-run} in
  compile | audit | mutants) ;;
  package) packager ;;
  test-packages)
    packager
    containers
    ;;
  fuzz) fuzzer ;;
  count) counter ;;
  build | run | test) node_packages ;;
  *) stop "there is no $1 to set up: see the head of tools/setup.sh." ;;
esac
case ${1:-run} in
  run) mariadb ;;
  test) testers ;;
  audit) tool cargo-deny "$CARGO_DENY_VERSION" "it audits the dependencies" ;;
  mutants) tool cargo-mutants "$CARGO_MUTANTS_VERSION" "it changes the code to see whether a test fails" ;;
esac
