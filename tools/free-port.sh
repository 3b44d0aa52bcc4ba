#!/usr/bin/env bash
# Prints a TCP port of this machine on which nothing listens. Outgoing connections of Linux use ports from 32768.
set -euo pipefail
for port in $(shuf -i 20000-29999 -n 100); do
  if ! (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; then
    echo "$port"
    exit
  fi
done
echo "no free port from 20000 to 29999" >&2
exit 1
