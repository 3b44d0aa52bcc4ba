//! `/api/v1/schema`: changes of tables, and their definitions.

mod algorithms;
mod changes;
mod definitions;

use crate::host::{Call, Host};
use crate::test_db::TestDb;
use serde_json::{Value, json};

/// Builds a change of a table. `change` has the keys of the body beside `database` and `table`.
fn change(db: &TestDb, table: &str, change: &Value) -> Call {
    at(db, "/api/v1/schema", table, change)
}

fn dry_run(db: &TestDb, table: &str, change: &Value) -> Call {
    at(db, "/api/v1/schema?dryRun=true", table, change)
}

fn at(db: &TestDb, path: &str, table: &str, change: &Value) -> Call {
    let mut body = json!({"database": db.name, "table": table});
    for (key, value) in change.as_object().expect("an object") {
        body[key] = value.clone();
    }
    db.host.post(path, &body)
}

async fn definition(db: &TestDb, table: &str) -> Value {
    let path = db.path(table).replacen("/crud/", "/schema/", 1);
    db.host.get(&path).send().await.payload()
}

async fn table(host: Host) -> TestDb {
    let statements = [
        "CREATE TABLE authors (id INT PRIMARY KEY, name VARCHAR(40)) ENGINE=InnoDB",
        "CREATE TABLE posts (id INT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(50) NOT NULL DEFAULT 'x') ENGINE=InnoDB",
        "INSERT INTO posts (title) VALUES ('a'), ('b')",
    ];
    TestDb::new(host, &statements).await
}
