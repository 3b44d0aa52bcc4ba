//! Types of the tables: checks `GET /api/v1/types.ts` and `selkie types` with compilers.

use super::{TABLES, node};
use crate::host::{Call, Host};
use crate::service::{shared, workspace};
use reqwest::Method;
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// The Rust types of the case's tables, compiled with this test. `SELKIE_BLESS=1` writes the file again.
#[allow(dead_code, unreachable_pub, reason = "compiled only to see that they can be")]
#[rustfmt::skip]
mod golden;

const PROJECT: &str = "typed";
const DATABASE: &str = "typed_shop";

/// TypeScript code that uses the types: lines that must compile, and lines that must not.
const USE: &str = r#"
import type { Database } from "./types.js";
type Shop = Database["typed_shop"];
export const post: Shop["posts"]["row"] = {
  id: "18446744073709551615", author_id: 1, title: "Sea", body: null, price: "1.50", views: 3, doubled: 6, state: "out", secret_note: null,
};
export const inserted: Shop["posts"]["insert"] = { author_id: 1, title: "Sea" };
export const updated: Shop["posts"]["update"] = { state: "draft" };
export const key: Shop["authors"]["key"] = 1;
export const composite: Shop["post_tags"]["key"] = "1,2";
export const table: Shop["posts"]["relations"]["author"]["table"] = "typed_shop.authors";
export const kind: Shop["posts"]["relations"]["tags"]["kind"] = "many";
export const odd: Shop["odd names"]["row"] = { "the key": "k", class: 1, "a-b": 2, größe: 3, "1st": null };
export const values: Pick<Shop["kinds"]["row"], "extra" | "place" | "hidden" | "day"> = {
  extra: { a: [1, null] }, place: { type: "Point", coordinates: [1, 2] }, day: "2026-11-20",
};
// @ts-expect-error a DECIMAL is a string
export const price: Shop["posts"]["row"]["price"] = 1.5;
// @ts-expect-error the title is required
export const untitled: Shop["posts"]["insert"] = { author_id: 1 };
// @ts-expect-error a generated field can't be written
export const generated: Shop["posts"]["update"] = { doubled: 2 };
// @ts-expect-error no such member
export const state: Shop["posts"]["row"]["state"] = "lost";
// @ts-expect-error a view that can't be written
export const total: Shop["totals"]["insert"] = {};
// @ts-expect-error a table without a key
export const keyless: Shop["keyless"]["key"] = 1;
"#;

cases! {
    Origin: [
        types_are_stable_and_compile_in_each_language,
        types_are_of_a_projects_databases_only,
    ],
}

fn types(language: &str) -> String {
    shared().cli_ok(&["types", "--lang", language, "--project", PROJECT, "--database", DATABASE])
}

async fn types_are_stable_and_compile_in_each_language(host: Host) {
    shared().create_project(PROJECT);
    let key = shared().create_key(PROJECT, "full", &[]).token;
    let call = |method, path: &str| Call::new(host.url(), method, path).key(&key);
    let create = format!("CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4");
    for query in [create.as_str()].iter().chain(TABLES) {
        call(Method::POST, "/api/v1/sql")
            .json(&json!({"query": query, "database": if *query == create { None } else { Some(DATABASE) }}))
            .send()
            .await
            .payload();
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a path").to_owned()
    };
    let [ts, python, rust] = ["ts", "python", "rust"].map(|language| {
        let text = types(language);
        assert_eq!(text, types(language), "{language}");
        text
    });
    for (language, extension, text) in [("ts", "ts", &ts), ("python", "py", &python), ("rust", "rs", &rust)] {
        let served = call(Method::GET, &format!("/api/v1/types.{extension}")).send().await.text();
        assert_eq!(served.trim_end(), text.trim_end());
        for host in [Host::Origin, Host::Edge] {
            let mut command = shared().cli_command(&["types", "--lang", language, "--url", host.url()]);
            let output = command.env("SELKIE_KEY", &key).output().expect("it runs");
            assert_eq!(String::from_utf8_lossy(&output.stdout), *text, "{}", String::from_utf8_lossy(&output.stderr));
        }
    }

    file("types.ts", &ts);
    file("use.ts", USE);
    let options = json!({"noEmit": true, "strict": true, "module": "nodenext", "types": []});
    let project = file("tsconfig.json", &json!({"compilerOptions": options, "files": ["use.ts"]}).to_string());
    let output = node("tsc", vec!["--project".to_owned(), project]).await;
    assert!(output.status.success(), "{}\n{ts}", String::from_utf8_lossy(&output.stdout));

    let module = file("types.py", &python);
    let output = Command::new("python3").args(["-W", "error", &module]).output().expect("python3");
    assert!(output.status.success(), "{}\n{python}", String::from_utf8_lossy(&output.stderr));

    let golden = workspace().join("tests/e2e/openapi/types/golden.rs");
    if std::env::var_os("SELKIE_BLESS").is_some() {
        std::fs::write(&golden, &rust).expect("a file");
    }
    assert_eq!(rust, read(&golden), "SELKIE_BLESS=1 writes {}", golden.display());
    let row = r#"{"id":"18446744073709551615","author_id":1,"title":"Sea","body":null,"price":"1.50","views":3,"doubled":6,
        "state":"it's \"off\"","secret_note":null}"#;
    let post: golden::TypedShopPosts = serde_json::from_str(row).expect("a record");
    assert_eq!((post.price.as_str(), post.state), ("1.50", golden::TypedShopPostsState::ItSOff));
    let update =
        golden::TypedShopPostsUpdate { secret_note: Some(None), ..serde_json::from_str("{}").expect("no field") };
    assert_eq!(serde_json::to_string(&update).expect("JSON"), r#"{"secret_note":null}"#);
}

async fn types_are_of_a_projects_databases_only(_: Host) {
    let refused = |arguments: &[&str]| {
        let output = shared().cli(&[&["types", "--lang", "ts"], arguments].concat());
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["--project", "nobody"]).contains("nobody"));
    assert!(refused(&["--database", "mysql"]).contains("has no database mysql"));
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}
