CREATE TABLE authors (
  id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(80) NOT NULL, email VARCHAR(120) NULL, UNIQUE KEY authors_email (email)
);
INSERT INTO authors (name, email) VALUES ('Ann', 'ann@example.org'), ('Ben', 'ben@example.org'), ('Cleo', NULL);
CREATE TABLE books (
  id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, author_id INT UNSIGNED NULL, title VARCHAR(80) NOT NULL, price DECIMAL(30,20) NULL,
  big BIGINT UNSIGNED NULL, note VARCHAR(200) NULL, kind ENUM('novel', 'poem', 'play') NOT NULL DEFAULT 'novel', sold_on DATE NULL, meta JSON NULL,
  cover VARBINARY(16) NULL, FULLTEXT KEY books_title (title), CONSTRAINT books_author FOREIGN KEY (author_id) REFERENCES authors (id)
);
INSERT INTO books (author_id, title, price, big, note, kind, sold_on, meta, cover)
  SELECT 1 + n.seq MOD 3, CONCAT('Book ', LPAD(n.seq, 3, '0')), n.seq, n.seq, 'some', ELT(1 + n.seq MOD 3, 'novel', 'poem', 'play'), '2026-01-01', '{"pages": 9}', 'abc'
  FROM seq_1_to_350 AS n;
UPDATE books SET title = 'The white whale', price = 0.10000000000000000001, big = 18446744073709551615, note = NULL, cover = 0x0001ff WHERE id = 1;
UPDATE books SET note = '', sold_on = NULL, meta = NULL WHERE id = 2;
UPDATE books SET meta = '{"n": 9007199254740993, "pages": 9}' WHERE id = 4;
CREATE TABLE logs (id INT PRIMARY KEY, word VARCHAR(5) NOT NULL) ENGINE = Aria;
INSERT INTO logs VALUES (1, 'a'), (2, 'b'), (3, 'c');
CREATE TABLE tickets (id INT PRIMARY KEY);
INSERT INTO tickets VALUES (123456), (-2147483648);
CREATE VIEW cheap AS SELECT id, title FROM books WHERE price < 3;
CREATE VIEW later AS SELECT id, title FROM books WHERE id BETWEEN 101 AND 350;
CREATE VIEW many AS SELECT seq, CONCAT('word ', seq) AS word FROM seq_1_to_100001
