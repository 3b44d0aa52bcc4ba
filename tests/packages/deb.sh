#!/bin/bash
# Tests the Debian package inside a clean Debian that runs systemd. Called by
# tools/test-packages.sh, with two packages beside this file: selkie.deb, and next.deb, the same
# package with a greater version; and with port, on which the service listens. The last line is printed
# only if everything passed.
set -euo pipefail
cd "$(dirname "$0")"

trap 'fail "line $LINENO"' ERR
step() { printf '\n== %s\n' "$*"; }
fail() { echo "FAILED: $*"; journalctl -u selkie --no-pager -n 40; exit 1; }
expect() { [ "$2" = "$3" ] || fail "$1 is '$2' and not '$3'"; }
# until_true SECONDS COMMAND…: repeats the command until it succeeds; fails after SECONDS.
until_true() {
  local seconds=$1 end=$((SECONDS + $1)); shift
  until "$@" > /dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "not within $seconds s: $*"
    sleep 0.2
  done
}
selkie() { (cd /tmp && runuser -u selkie -- env SELKIE_CONFIG=/etc/selkie/selkie.toml /usr/bin/selkie "$@"); }
show() { systemctl show selkie --property "$1" --value; }
origin=http://127.0.0.1:$(cat port)
api=$origin/api/v1
call() { curl -sS --fail-with-body -H "Authorization: Bearer $key" "$@"; }

export DEBIAN_FRONTEND=noninteractive
step install
apt-get update -q > /dev/null
apt-get install -yq ./selkie.deb > install.log 2>&1 || { cat install.log; fail "the installation"; }
grep 'not started yet' install.log
dpkg-query -W -f '${Package} ${Version} ${Architecture}: ${Installed-Size} KiB installed\n' selkie
dpkg --verify selkie
expect "the unit" "$(systemctl is-enabled selkie || true)" disabled
expect "the unit" "$(systemctl is-active selkie || true)" inactive
expect "the owner of the configuration" "$(stat -c '%U:%G %a' /etc/selkie/selkie.toml)" "root:selkie 640"
expect "the owner of the data" "$(stat -c '%U:%G %a' /var/lib/selkie)" "selkie:selkie 700"
/usr/bin/selkie --version
bash -n /usr/share/bash-completion/completions/selkie
# A minimal Debian does not unpack man pages, so this looks for them in the package's list of files.
[ "$(dpkg -L selkie | grep -c '/man1/selkie.*\.1\.gz$')" -gt 40 ] || fail "man pages are missing"
systemd-analyze verify --man=no selkie.service
systemd-analyze security selkie.service --no-pager | tail -n 1
systemd-analyze security selkie.service --threshold=20 > /dev/null || fail "the unit's exposure is above 2.0"

step start
systemctl start selkie
# With Type=notify, `systemctl start` waits until the service is ready, so the first call is
# answered.
curl -sS --fail "$origin/readyz"; echo
expect "the service's type" "$(show Type) $(show StatusText)" "notify "
expect "the owner of the processes" "$(ps -o user= -p "$(pgrep -d, -x 'selkie|mariadbd')" | sort -u)" selkie
key=$(selkie key create --access full)
selkie database create shop
call "$api/sql" --json '{"database": "shop", "query": "CREATE TABLE items (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50))"}'; echo
expect "an insert" "$(call "$api/crud/shop/items" --json '{"name": "kelp"}')" '{"success":true,"payload":1}'
# MemoryDenyWriteExecute forbids code that is generated at run time. REGEXP must work all the same.
call "$api/sql" --json '{"database": "shop", "query": "SELECT name FROM items WHERE name REGEXP \"^k(e)lp$\""}' | grep -q kelp || fail REGEXP
printf 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==' | base64 -d > dot.png
call "$api/media" -F type=image -F 'files=@dot.png;type=image/png'; echo
curl -sS --fail -L "$origin/console" > /dev/null
selkie doctor

step "read secrets from systemd's credentials"
mv /var/lib/selkie/secret /etc/selkie/secret
chown root:root /etc/selkie/secret; chmod 600 /etc/selkie/secret
mkdir -p /etc/systemd/system/selkie.service.d
printf '[Service]\nLoadCredential=secret:/etc/selkie/secret\nEnvironment=SELKIE_SECRET_FILE=%%d/secret\nWatchdogSec=3\n' > /etc/systemd/system/selkie.service.d/secret.conf
systemctl daemon-reload
systemctl restart selkie
expect "a read with the key" "$(call "$api/crud/shop/items/1")" '{"success":true,"payload":{"id":1,"name":"kelp"}}'

step "restart by the watchdog"
before=$(show MainPID)
kill -STOP "$before"
restarted() { [ "$(show NRestarts)" -ge 1 ] && [ "$(show ActiveState)" = active ]; }
until_true 60 restarted
journalctl -u selkie --no-pager | grep -i 'watchdog timeout' | tail -n 1
expect "a read after the restart" "$(call "$api/crud/shop/items/1")" '{"success":true,"payload":{"id":1,"name":"kelp"}}'

step "a wrong configuration is not started again and again"
echo 'pool_sise = 5' >> /etc/selkie/selkie.toml
! systemctl restart selkie 2>&1 || fail "the restart"
expect "the unit" "$(systemctl is-failed selkie)" failed
journalctl -u selkie --no-pager -n 20 | grep 'did you mean `pool_size`'
sed -i 's/^pool_sise = 5/pool_size = 5/' /etc/selkie/selkie.toml
systemctl start selkie

step upgrade
before=$(show MainPID)
apt-get install -yq ./next.deb > upgrade.log 2>&1 || { cat upgrade.log; fail "the upgrade"; }
dpkg-query -W -f '${Package} ${Version}\n' selkie
! grep -q 'not started yet' upgrade.log || fail "an upgrade says that the service is not started"
grep -q '^pool_size = 5$' /etc/selkie/selkie.toml || fail "the configuration was overwritten"
expect "the owner of the configuration" "$(stat -c '%U:%G %a' /etc/selkie/selkie.toml)" "root:selkie 640"
expect "the unit" "$(systemctl is-active selkie)" active
[ "$(show MainPID)" != "$before" ] || fail "the upgrade did not restart the service"
expect "a read after the upgrade" "$(call "$api/crud/shop/items/1")" '{"success":true,"payload":{"id":1,"name":"kelp"}}'

step remove
apt-get remove -yq selkie > /dev/null 2>&1
! pgrep -x 'selkie|mariadbd' || fail "a process is left"
[ ! -e /usr/bin/selkie ] && [ -e /etc/selkie/selkie.toml ] && [ -d /var/lib/selkie/mariadb ]
apt-get purge -yq selkie 2>&1 | grep 'are left'
[ ! -e /etc/selkie/selkie.toml ] && [ -d /var/lib/selkie/mariadb ] || fail "purge"

step "install again, on the data that are there"
apt-get install -yq ./selkie.deb > /dev/null 2>&1
systemctl start selkie
expect "a read after the reinstallation" "$(call "$api/crud/shop/items/1")" '{"success":true,"payload":{"id":1,"name":"kelp"}}'
systemctl stop selkie
expect "the unit" "$(systemctl is-active selkie || true)" inactive
! pgrep -x 'selkie|mariadbd' || fail "a process is left"
printf '\nthe Debian package is well\n'
