#!/bin/sh
# Starts MariaDB with the account root@'%'. The variable MARIADB_ROOT_PASSWORD_FILE names the file
# with its password.
set -e
install -d -o mysql -g mysql /run/mysqld
[ -d /var/lib/mysql/mysql ] || mariadb-install-db --user=mysql --skip-test-db > /dev/null
umask 077
cat > /run/init.sql <<SQL
CREATE USER IF NOT EXISTS root@'%' IDENTIFIED BY '$(cat "$MARIADB_ROOT_PASSWORD_FILE")';
GRANT ALL PRIVILEGES ON *.* TO root@'%' WITH GRANT OPTION;
SQL
chown mysql /run/init.sql
exec mariadbd --user=mysql --bind-address=0.0.0.0 --skip-name-resolve --init-file=/run/init.sql
