//! Checks rules of the source code: which file may use what, and how files are formatted.
//!
//! This is the only module here that reads the sources. `docs/architecture.md` has the rules.

use crate::host::Host;
use crate::service::workspace;
use std::fs;
use std::path::{Path, PathBuf};

cases! {
    Own: [
        only_the_edges_host_knows_the_worker_crate,
        only_the_database_stage_knows_the_driver,
        only_media_know_the_object_store_and_images,
        no_folder_of_the_origin_imports_upwards,
        the_pure_crates_do_no_io,
        only_the_builder_writes_sql,
        nothing_unwraps_outside_tests,
        a_500_has_a_cause,
        anyhow_stays_in_main,
        no_file_is_longer_than_500_lines,
        no_file_has_a_name_without_meaning,
        each_file_says_what_it_is_for,
        every_crate_takes_the_workspaces_lints,
        make_run_builds_what_the_readme_calls,
    ],
}

const CRATES: [&str; 5] = ["shared", "edge", "origin", "binlog", "tests"];
const LINES_MAX: usize = 500;

struct Source {
    path: String,
    text: String,
}

impl Source {
    /// Returns the text without its test module, which is at the end.
    fn code(&self) -> &str {
        self.text.split("\n#[cfg(test)]").next().unwrap_or_default()
    }

    /// Returns the code without comments and literals, and separately its string literals.
    fn split(&self) -> (String, Vec<String>) {
        split_literals(self.code())
    }
}

fn sources(folders: &[&str]) -> Vec<Source> {
    let root = workspace();
    let mut found = Vec::new();
    for folder in folders {
        collect(&root.join(folder), &root, &mut found);
    }
    assert!(!found.is_empty(), "no sources in {folders:?}");
    found
}

fn collect(dir: &Path, root: &Path, found: &mut Vec<Source>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, root, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(root).expect("inside").to_string_lossy().replace('\\', "/");
            found.push(Source { path: relative, text: fs::read_to_string(&path).expect("a readable source") });
        }
    }
}

/// Separates code from comments and literals. Knows enough of Rust's grammar for sources that rustfmt has formatted.
fn split_literals(code: &str) -> (String, Vec<String>) {
    let (mut bare, mut literals) = (String::new(), Vec::new());
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let taken = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_literal(rest) {
            literals.push(rest[..length].to_owned());
            length
        } else if first == '"' {
            let length = plain_literal(rest);
            literals.push(rest[..length].to_owned());
            length
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("'\\\"'") {
            4
        } else {
            bare.push(first);
            first.len_utf8()
        };
        rest = &rest[taken..];
    }
    (bare, literals)
}

fn plain_literal(text: &str) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

fn raw_literal(text: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = 1 + hashes + 1;
    text[start..].find(&end).map(|index| start + index + end.len())
}

/// Returns whether `name` occurs in the code as a whole word.
fn mentions(code: &str, name: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name)
        .any(|(index, _)| !code[..index].ends_with(inside) && !code[index + name.len()..].starts_with(inside))
}

fn must_be_empty(rule: &str, breaches: &[String]) {
    assert!(breaches.is_empty(), "{rule}:\n  {}", breaches.join("\n  "));
}

async fn only_the_edges_host_knows_the_worker_crate(_: Host) {
    let inside =
        |path: &str| matches!(path, "edge/src/lib.rs" | "edge/src/host.rs") || path.starts_with("edge/src/host/");
    let knows = |source: &Source| {
        let (code, _) = source.split();
        code.contains("worker::")
            || mentions(&code, "web_sys")
            || mentions(&code, "js_sys")
            || mentions(&code, "wasm_bindgen")
    };
    let others = sources(&["shared/src", "edge/src", "origin/src"]);
    let breaches: Vec<String> =
        others.into_iter().filter(|source| !inside(&source.path) && knows(source)).map(|s| s.path).collect();
    must_be_empty("only the edge's host knows `worker`", &breaches);
}

async fn only_the_database_stage_knows_the_driver(_: Host) {
    let inside = |path: &str| path == "origin/src/database.rs" || path.starts_with("origin/src/database/");
    let knows = |source: &Source| ["mysql_async", "mysql_common"].iter().any(|name| mentions(&source.split().0, name));
    let others = sources(&["shared/src", "edge/src", "origin/src"]);
    let breaches: Vec<String> = others.into_iter().filter(|s| !inside(&s.path) && knows(s)).map(|s| s.path).collect();
    must_be_empty("only origin/src/database knows the driver", &breaches);
}

async fn only_media_know_the_object_store_and_images(_: Host) {
    let crates =
        ["object_store", "image", "turbojpeg", "fast_image_resize", "webpx", "gif", "png", "tiff", "moxcms", "infer"];
    let inside = |path: &str| path == "origin/src/media.rs" || path.starts_with("origin/src/media/");
    let knows = |source: &Source| {
        let (code, _) = source.split();
        // `image` is also a module of the origin, so only a path that begins with the crate's name counts.
        crates.iter().any(|name| code.contains(&format!("use {name}::")) || code.contains(&format!(" {name}::")))
    };
    let breaches: Vec<String> = sources(&["shared/src", "edge/src", "origin/src"])
        .into_iter()
        .filter(|s| !inside(&s.path) && knows(s))
        .map(|s| s.path)
        .collect();
    must_be_empty("only origin/src/media knows the object store and the image crates", &breaches);
}

/// The folders and single files of `origin/src`, the highest layer first: each imports only from later ones. Names on
/// one line are one layer.
const LAYERS: [&[&str]; 22] = [
    &["cli"],
    &["transfer"],
    &["dev"],
    &["backup", "doctor"],
    &["serve"],
    &["http"],
    &["service_state"],
    &["metrics", "rates", "activity", "traces"],
    &["webhooks"],
    &["changes"],
    &["system"],
    &["media"],
    &["database"],
    &["query"],
    &["embedded"],
    &["demo"],
    &["signal"],
    &["logging", "tls"],
    &["config"],
    &["address", "secret"],
    &["project_quota", "process", "systemd", "recent"],
    &["clock", "histogram", "crash_points", "files", "networks"],
];

async fn no_folder_of_the_origin_imports_upwards(_: Host) {
    let layer = |name: &str| LAYERS.iter().position(|names| names.contains(&name));
    let mut breaches = Vec::new();
    for source in sources(&["origin/src"]) {
        let file = source.path.trim_start_matches("origin/src/");
        let folder = file.split(['/', '.']).next().unwrap_or_default();
        let stands_above_all = matches!(folder, "lib" | "main") || file.contains("tests");
        if stands_above_all {
            continue;
        }
        let own = layer(folder);
        let (code, _) = source.split();
        let imports = code.split("crate::").skip(1).flat_map(|path| match path.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default().split(',').collect(),
            None => vec![path],
        });
        for path in imports {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let name = path.trim().split(|c| !is_part(c)).next().unwrap_or_default();
            if own.is_none() || layer(name) < own {
                breaches.push(format!("{} imports {name}", source.path));
            }
        }
    }
    must_be_empty("a folder of origin/src imports only from those behind it in LAYERS", &breaches);
}

async fn the_pure_crates_do_no_io(_: Host) {
    let foreign = [
        "std::fs",
        "std::net",
        "std::env",
        "std::process",
        "std::thread",
        "std::io",
        "SystemTime",
        "Instant",
        "tokio",
        "rand",
        "getrandom",
        "reqwest",
        "async",
        "println",
        "eprintln",
    ];
    let mut breaches = Vec::new();
    for source in sources(&["shared/src", "binlog/src"]).iter().filter(|source| !is_test(&source.path)) {
        let (code, _) = source.split();
        // The file may await, because the caller passes the function that authenticates.
        let waits = source.path == "shared/src/admission.rs";
        breaches.extend(
            foreign
                .iter()
                .filter(|name| mentions(&code, name) && !(waits && **name == "async"))
                .map(|name| format!("{}: {name}", source.path)),
        );
    }
    must_be_empty("shared and binlog have no clock, randomness, environment, runtime or I/O", &breaches);
}

/// Files that may contain SQL: the folder that renders SQL, constant statements of the folder that runs SQL, the demo's
/// tables, and a printed example call.
const MAY_HOLD_SQL: [&str; 5] = [
    "origin/src/query/sql/",
    "origin/src/database/",
    "origin/src/demo.rs",
    "origin/src/demo/",
    "origin/src/dev/welcome.rs",
];

/// Files outside `origin/src/query/sql/` that compose statements. They use only numbers and Selkie's own quoted names.
const PUT_TOGETHER: [&str; 3] = ["origin/src/database/admin", "origin/src/database/media", "KILL CONNECTION {id}"];

fn is_sql(literal: &str) -> bool {
    let verbs = [
        "SELECT ",
        "INSERT ",
        "UPDATE ",
        "DELETE ",
        "CREATE ",
        "ALTER ",
        "DROP ",
        "GRANT ",
        "REVOKE ",
        "SET SESSION",
        "KILL ",
        "REPLACE INTO",
        "TRUNCATE ",
    ];
    let text = literal.trim_start_matches(['r', '#']).trim_matches(['"', '#']);
    verbs.iter().any(|verb| text.starts_with(verb))
        || [" WHERE ", " FROM `", " ORDER BY "].iter().any(|part| text.contains(part))
}

async fn only_the_builder_writes_sql(_: Host) {
    let mut breaches = Vec::new();
    for source in sources(&["shared/src", "edge/src", "origin/src"]).iter().filter(|source| !is_test(&source.path)) {
        let (_, literals) = source.split();
        let inside = MAY_HOLD_SQL.iter().any(|place| source.path.starts_with(place));
        for literal in literals.iter().filter(|literal| is_sql(literal)) {
            let constant = !literal.contains('{')
                || source.path.starts_with("origin/src/query/sql/")
                || source.path.starts_with("origin/src/demo");
            let known = PUT_TOGETHER.iter().any(|place| source.path.starts_with(place) || literal.contains(place));
            if !inside || !(constant || known) {
                breaches.push(format!("{}: {literal}", source.path));
            }
        }
    }
    must_be_empty(
        "only origin/src/query/sql writes SQL; elsewhere stand constant statements of origin/src/database, and demo data",
        &breaches,
    );
}

/// Returns whether a file contains only tests.
fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("/golden.rs") || path.contains("/tests/")
}

async fn nothing_unwraps_outside_tests(_: Host) {
    let mut breaches = Vec::new();
    for source in sources(&["shared/src", "edge/src", "origin/src", "binlog/src", "tests/bench"])
        .iter()
        .filter(|source| !is_test(&source.path))
    {
        let (code, _) = source.split();
        for word in [".unwrap()", "unsafe ", "todo!(", "unimplemented!(", "dbg!("] {
            if code.contains(word) {
                breaches.push(format!("{}: {word}", source.path));
            }
        }
    }
    must_be_empty("no unwrap outside tests", &breaches);
}

async fn a_500_has_a_cause(_: Host) {
    for source in sources(&["edge/src", "origin/src"]) {
        let (code, _) = source.split();
        assert!(!code.contains("ErrorCode::Internal"), "{}", source.path);
    }
}

async fn anyhow_stays_in_main(_: Host) {
    let knows = |source: &Source| source.path != "origin/src/main.rs" && mentions(&source.split().0, "anyhow");
    let breaches: Vec<String> =
        sources(&["shared/src", "edge/src", "origin/src"]).into_iter().filter(knows).map(|s| s.path).collect();
    must_be_empty("anyhow stays in main.rs and tests", &breaches);
}

async fn no_file_is_longer_than_500_lines(_: Host) {
    let lines = |source: &Source| source.text.lines().count();
    let long = sources(&CRATES).into_iter().filter(|source| lines(source) > LINES_MAX);
    let breaches: Vec<String> = long.map(|source| format!("{}: {} lines", source.path, lines(&source))).collect();
    must_be_empty("500 lines to a file at most", &breaches);
}

async fn no_file_has_a_name_without_meaning(_: Host) {
    let names = ["mod.rs", "utils.rs", "util.rs", "helpers.rs", "helper.rs", "common.rs", "misc.rs"];
    let folders = ["/utils/", "/util/", "/helpers/", "/common/", "/misc/"];
    let nameless = |path: &str| {
        path.rsplit('/').next().is_some_and(|name| names.contains(&name))
            || folders.iter().any(|folder| path.contains(folder))
    };
    let breaches: Vec<String> =
        sources(&CRATES).into_iter().map(|source| source.path).filter(|path| nameless(path)).collect();
    must_be_empty("no mod.rs, utils, helpers or common", &breaches);
}

async fn each_file_says_what_it_is_for(_: Host) {
    let silent = sources(&CRATES).into_iter().filter(|source| !source.text.starts_with("//!"));
    let breaches: Vec<String> = silent.map(|source| source.path).collect();
    must_be_empty("each file begins with what it is for", &breaches);
}

async fn every_crate_takes_the_workspaces_lints(_: Host) {
    let manifest = |name: &&str| fs::read_to_string(workspace().join(name).join("Cargo.toml")).expect("a manifest");
    let loose: Vec<String> = CRATES
        .iter()
        .filter(|name| !manifest(name).contains("[lints]\nworkspace = true"))
        .map(ToString::to_string)
        .collect();
    must_be_empty("every crate takes the workspace's lints", &loose);
}

/// The README's examples run right after `make run`; one of them imports the client.
async fn make_run_builds_what_the_readme_calls(_: Host) {
    let read = |file: &str| fs::read_to_string(workspace().join(file)).expect("a file");
    let (makefile, readme) = (read("Makefile"), read("README.md"));
    let run = makefile.lines().find_map(|line| line.strip_prefix("run:")).expect("a target run");
    let needs: Vec<&str> = run.split("##").next().unwrap_or_default().split_whitespace().collect();
    assert!(readme.contains("make run") && readme.contains("\"@selkie/client\""), "the README has other examples");
    assert!(needs.contains(&"setup") && needs.contains(&"client") && needs.contains(&"pages"), "{run}");
}
