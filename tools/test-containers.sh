#!/usr/bin/env bash
# Tests the images and the compose file of packaging/container by the steps of docs/deploy.md:
# builds and starts them, calls through origin and edge, stops the database, restarts everything.
# Called by `make test-packages`, as root, after the Debian package was built.
#
# Uses podman with a storage of its own, and no registry: debootstrap makes the base image, and an
# image with Debian's MariaDB replaces MariaDB's official one; it takes the same variables and
# health check.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || { echo "make test-packages starts containers: run it as root" >&2; exit 1; }
repository=$PWD
work=$PWD/target/test-packages
slim=$work/slim
site=$work/site/packaging/container
mkdir -p "$work/bin"
if [ ! -e "$slim/etc/os-release" ]; then
  rm -rf "$slim" "$slim.new"
  debootstrap --variant=minbase bookworm "$slim.new"
  mv "$slim.new" "$slim"
fi

# Makes a wrapper for podman, so that this also runs without systemd (--cgroup-manager cgroupfs) and
# where limits can't be raised (--ulimit).
cat > "$work/bin/podman" <<SH
#!/bin/bash
[ "\$1" != run ] && [ "\$1" != create ] || set -- "\$1" --ulimit nofile=8192:8192 --ulimit nproc=8192:8192 "\${@:2}"
exec /usr/bin/podman --root $work/storage --runroot $work/run --network-config-dir $work/networks --cgroup-manager cgroupfs --runtime runc "\$@"
SH
chmod +x "$work/bin/podman"
export PATH=$work/bin:$PATH BUILDAH_FORMAT=docker BUILDAH_ISOLATION=chroot DISABLE_HC_SYSTEMD=true

step() { printf '\n== %s\n' "$*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }
expect() { [ "$2" = "$3" ] || fail "$1 is '$2' and not '$3'"; }
name() { echo "selkie_$1_1"; }
compose() { (cd "$site" && podman-compose -p selkie "$@") > "$work/compose.log" 2>&1 || { cat "$work/compose.log"; fail "compose $*"; }; }
selkie() { podman exec "$(name origin)" selkie "$@"; }
# healthy PART: waits until the health check of the container succeeds; fails after 120 s.
healthy() {
  local end=$((SECONDS + 120))
  until podman healthcheck run "$(name "$1")" > /dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "$1 is not healthy within 120 s"
    sleep 0.5
  done
}
call() { curl -sS --fail-with-body -H "Authorization: Bearer $key" "$@"; }
cleanup() {
  local status=$?
  [ $status -eq 0 ] || for part in database origin edge; do podman logs --tail 20 "$(name $part)" 2>&1 || true; done
  podman rm --all --force --volumes > /dev/null 2>&1 || true
  podman pod rm --all --force > /dev/null 2>&1 || true
  podman volume rm --all --force > /dev/null 2>&1 || true
  podman network prune --force > /dev/null 2>&1 || true
  rm -rf "$work/site"
}
trap cleanup EXIT

step "make the base images"
podman image exists docker.io/library/debian:bookworm-slim ||
  tar -C "$slim" -c . | podman import --quiet - docker.io/library/debian:bookworm-slim
podman build --quiet --tag docker.io/library/mariadb:11.8 tests/packages/mariadb

step build
mkdir -p "$site" "$work/site/target"
cp packaging/container/* "$site/"
ln -s ../../../packages "$work/site/target/packages"
cd "$site"
# The steps of docs/deploy.md.
install -d -m 0700 secrets
openssl rand -hex 24 > secrets/database-password
echo "mysql://root:$(cat secrets/database-password)@database:3306" > secrets/database-url
openssl rand -hex 32 > secrets/secret
chmod 0444 secrets/*
compose build
podman images --format '{{.Repository}} {{.Size}}' | grep selkie

step start
ORIGIN_PORT=$("$repository/tools/free-port.sh")
EDGE_PORT=$("$repository/tools/free-port.sh")
export ORIGIN_PORT EDGE_PORT
compose up -d database origin
healthy database
healthy origin
echo "JWKS='$(selkie key jwks)'" > .env
compose up -d
healthy edge
expect "the origin's user" "$(podman exec "$(name origin)" id -un)" selkie
expect "the edge's user" "$(podman exec "$(name edge)" id -un)" nobody
expect "the secret in the volume" "$(podman exec "$(name origin)" ls /var/lib/selkie | grep -c secret || true)" 0

step "call through origin and edge"
origin=http://127.0.0.1:$ORIGIN_PORT/api/v1
edge=http://127.0.0.1:$EDGE_PORT/api/v1
key=$(selkie key create --access full)
selkie database create shop
call "$origin/sql" --json '{"database": "shop", "query": "CREATE TABLE items (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50))"}'; echo
expect "an insert through the origin" "$(call "$origin/crud/shop/items" --json '{"name": "kelp"}')" '{"success":true,"payload":1}'
expect "an insert through the edge" "$(call "$edge/crud/shop/items" --json '{"name": "dulse"}')" '{"success":true,"payload":2}'
expect "a read through the edge" "$(call "$edge/crud/shop/items/1")" '{"success":true,"payload":{"id":1,"name":"kelp"}}'
expect "a read through the origin" "$(call "$origin/crud/shop/items/2")" '{"success":true,"payload":{"id":2,"name":"dulse"}}'
expect "a wrong key at the edge" "$(curl -s -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer x' "$edge/crud/shop/items/1")" 401
printf 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==' | base64 -d > dot.png
call "$edge/media" -F type=image -F 'files=@dot.png;type=image/png'; echo
selkie doctor
selkie backup /var/lib/selkie/backup

step "lose the database"
podman stop "$(name database)" > /dev/null
! podman healthcheck run "$(name origin)" > /dev/null 2>&1 || fail "the origin is healthy without its database"
podman start "$(name database)" > /dev/null
healthy database
healthy origin

step "stop and start again"
podman stop "$(name edge)" "$(name origin)" > /dev/null
expect "the origin's exit code" "$(podman inspect --format '{{.State.ExitCode}}' "$(name origin)")" 0
podman inspect --format 'the edge exits with {{.State.ExitCode}}' "$(name edge)"
compose down
compose up -d
healthy edge
healthy origin
expect "a read after the restart" "$(call "$edge/crud/shop/items/1")" '{"success":true,"payload":{"id":1,"name":"kelp"}}'
printf '\nthe images are well\n'
