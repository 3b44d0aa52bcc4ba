CREATE USER IF NOT EXISTS 'selkie-admin'@'localhost';
ALTER USER 'selkie-admin'@'localhost' IDENTIFIED VIA mysql_native_password USING PASSWORD('{password}');
GRANT ALL PRIVILEGES ON *.* TO 'selkie-admin'@'localhost' WITH GRANT OPTION;
DELETE FROM mysql.global_priv WHERE User = '';
FLUSH PRIVILEGES;
