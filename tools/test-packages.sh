#!/usr/bin/env bash
# Tests the Debian package in a clean Debian, booted with systemd in a container: installs, starts, upgrades, removes and
# purges the package (tests/packages/deb.sh). Called by `make test-packages`, as root: takes some minutes. It must not know
# what is tested.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || { echo "make test-packages boots a container: run it as root" >&2; exit 1; }
root=target/test-packages/root
base=target/test-packages/base
mkdir -p target/test-packages

# A Debian with nothing but systemd and curl, made once. It is that of the machine, since a package runs on the libc of
# the Debian where it was built, and on later ones.
if [ ! -e "$base/etc/os-release" ]; then
  rm -rf "$base" "$base.new"
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,curl,procps "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$base.new"
  mv "$base.new" "$base"
fi

# The package, and the same one as the next version.
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
cp --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"
# As Debian's installer writes it: mariadb-install-db looks localhost up.
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
