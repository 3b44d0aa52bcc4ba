//! The demo's tables, with columns and keys of many kinds.

/// CREATE TABLE statements. Each table follows the tables that its foreign keys reference.
pub(super) const TABLES: [&str; 5] = [AUTHORS, TAGS, POSTS, POST_TAGS, COMMENTS];

const AUTHORS: &str = "CREATE TABLE authors (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  name VARCHAR(80) NOT NULL,
  email VARCHAR(120) NOT NULL COMMENT 'unique, shown to nobody',
  country CHAR(2) NULL COMMENT 'ISO 3166-1 alpha-2',
  bio TEXT NULL,
  joined_on DATE NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY authors_email (email)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci COMMENT='people who write posts'";

const TAGS: &str = "CREATE TABLE tags (
  id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT,
  name VARCHAR(40) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY tags_name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci";

const POSTS: &str = "CREATE TABLE posts (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  author_id INT UNSIGNED NULL,
  title VARCHAR(200) NOT NULL,
  body TEXT NOT NULL,
  category VARCHAR(40) NOT NULL DEFAULT 'notes',
  licence ENUM('all-rights-reserved','cc-by','cc-by-sa') NOT NULL DEFAULT 'all-rights-reserved',
  price DECIMAL(8,2) NOT NULL DEFAULT 0.00 COMMENT 'in euro, 0.00 is free to read',
  is_published TINYINT(1) NOT NULL DEFAULT 0,
  views INT UNSIGNED NOT NULL DEFAULT 0,
  meta JSON NULL COMMENT 'reading time, language, places',
  published_at DATETIME NULL COMMENT 'UTC, null for a draft',
  created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (id),
  KEY posts_listing (is_published, category, id),
  FULLTEXT KEY posts_text (title, body),
  CONSTRAINT posts_author FOREIGN KEY (author_id) REFERENCES authors (id) ON DELETE SET NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci";

const POST_TAGS: &str = "CREATE TABLE post_tags (
  post_id INT UNSIGNED NOT NULL,
  tag_id SMALLINT UNSIGNED NOT NULL,
  PRIMARY KEY (post_id, tag_id),
  KEY post_tags_tag (tag_id),
  CONSTRAINT post_tags_post FOREIGN KEY (post_id) REFERENCES posts (id) ON DELETE CASCADE,
  CONSTRAINT post_tags_tag FOREIGN KEY (tag_id) REFERENCES tags (id) ON DELETE RESTRICT
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci";

const COMMENTS: &str = "CREATE TABLE comments (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  post_id INT UNSIGNED NOT NULL,
  parent_id INT UNSIGNED NULL COMMENT 'the comment that this one answers',
  author_name VARCHAR(80) NOT NULL,
  body TEXT NOT NULL,
  rating TINYINT UNSIGNED NULL COMMENT '1 to 5',
  created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (id),
  KEY comments_post (post_id, id),
  FULLTEXT KEY comments_text (body),
  CONSTRAINT comments_post FOREIGN KEY (post_id) REFERENCES posts (id) ON DELETE CASCADE,
  CONSTRAINT comments_parent FOREIGN KEY (parent_id) REFERENCES comments (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci";
