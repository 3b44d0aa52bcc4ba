#!/usr/bin/env bash
# Boots a clean Debian with systemd in a container and runs tests/packages/deb.sh in it, which
# installs, starts, upgrades, removes and purges the Debian package. Called by `make test-packages`,
# as root; takes some minutes. Must not know what is tested.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || { echo "make test-packages boots a container: run it as root" >&2; exit 1; }
root=target/test-packages/root
base=target/test-packages/base
mkdir -p target/test-packages

# A minimal Debian with systemd and curl, made once. It has the same version as this machine, since
# the package needs the libc of the Debian where it was built, or a later one.
if [ ! -e "$base/etc/os-release" ]; then
  rm -rf "$base" "$base.new"
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,curl,procps "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$base.new"
  mv "$base.new" "$base"
fi

# Builds the package, and makes a copy of it with a greater version.
tools/deb.sh
deb=$(echo target/packages/selkie_*.deb)
version=$(dpkg-deb --field "$deb" Version)
rm -rf "$root"
cp -a "$base" "$root"
mkdir "$root/packages"
cp "$deb" "$root/packages/selkie.deb"
dpkg-deb --raw-extract "$deb" target/test-packages/next
sed -i "s/^Version: .*/Version: ${version%-*}+next-1/" target/test-packages/next/DEBIAN/control
dpkg-deb --build -Zgzip -z1 target/test-packages/next "$root/packages/next.deb" > /dev/null
rm -rf target/test-packages/next
cp tests/packages/deb.sh "$root/packages/"
# The container uses the network of this machine, where port 8080 may be in use.
tools/free-port.sh > "$root/packages/port"
mkdir -p "$root/etc/systemd/system/selkie.service.d"
printf '[Service]\nEnvironment=SELKIE_LISTEN=127.0.0.1:%s\n' "$(cat "$root/packages/port")" > "$root/etc/systemd/system/selkie.service.d/port.conf"
cp --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"
# Debian's installer writes this line too: mariadb-install-db resolves localhost.
echo '127.0.0.1 localhost' > "$root/etc/hosts"
cat > "$root/etc/systemd/system/test.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c '/packages/deb.sh > /packages/log 2>&1 && touch /packages/passed; systemctl poweroff'
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../test.service "$root/etc/systemd/system/multi-user.target.wants/"
timeout 900 systemd-nspawn --quiet --register=no --keep-unit --resolv-conf=off --console=pipe -D "$root" -b \
  systemd.unit=multi-user.target > target/test-packages/boot.log < /dev/null || true
cat "$root/packages/log"
[ -e "$root/packages/passed" ] || { echo "the package's test failed: see above and target/test-packages/boot.log" >&2; exit 1; }
