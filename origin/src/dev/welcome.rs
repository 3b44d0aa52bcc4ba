//! The text that `selkie dev` prints once all services answer.

use serde_json::json;

use super::DevAddresses;

pub fn welcome(running: &DevAddresses) -> String {
    let file = running.environment_file.display().to_string();
    let mut text = String::from("\nSelkie runs. Ctrl-C stops it.\n\n");
    let base_url = running.edge_url.as_ref().unwrap_or(&running.origin_url);
    let [console, docs] = ["console", "docs"].map(|page| format!("{base_url}/{page}"));
    let facts = [
        ("origin", running.origin_url.as_str()),
        ("edge", running.edge_url.as_deref().unwrap_or("(left out)")),
        ("console", &console),
        ("docs", &docs),
        ("full key", &running.full_key),
        ("read key", &running.read_key),
        ("all this", &file),
    ];
    for (name, value) in facts {
        text += &format!("  {name:<9} {value}\n");
    }
    for (purpose, call) in calls(running) {
        text += &format!("\n# {purpose}\n{call}\n");
    }
    text
}

fn calls(running: &DevAddresses) -> [(&'static str, String); 6] {
    let base_url = running.edge_url.as_ref().unwrap_or(&running.origin_url);
    let database = &running.database;
    let records = format!("{base_url}/api/v1/crud/{database}");
    let read = format!("-H 'Authorization: Bearer {}'", running.read_key);
    let full = format!("-H 'Authorization: Bearer {}' -H 'Content-Type: application/json'", running.full_key);
    let filter = r#"query={"is_published":1,"views":{"value":100,"equality":">"}}"#;
    let order = r#"order={"field":"views","strategy":"DESC"}"#;
    let comment = r#"{"post_id":1,"author_name":"A visitor","body":"Good to read.","rating":5}"#;
    let sql = json!({
        "database": database,
        "query": "SELECT category, COUNT(*) AS posts FROM posts WHERE is_published = ? GROUP BY category",
        "params": [1],
    });
    [
        (
            "the three most read posts",
            format!(
                "curl -G '{records}/posts' {read} --data-urlencode '{filter}' \
                 --data-urlencode '{order}' -d selectFields=id,title,views -d limit=3"
            ),
        ),
        ("one author", format!("curl '{records}/authors/1' {read}")),
        ("a new comment; the answer is its id", format!("curl -X POST '{records}/comments' {full} -d '{comment}'")),
        ("SQL", format!("curl -X POST '{base_url}/api/v1/sql' {full} -d '{sql}'")),
        (
            "comments that change, until Ctrl-C",
            format!("curl -N '{base_url}/api/v1/changes/{database}/comments' {read} -H 'Accept: text/event-stream'"),
        ),
        ("what a table holds, and what this key may do with it", format!("curl -X OPTIONS '{records}/posts' {read}")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(edge_url: Option<&str>) -> DevAddresses {
        DevAddresses {
            origin_url: "http://127.0.0.1:1".to_owned(),
            edge_url: edge_url.map(str::to_owned),
            full_key: "FULL".to_owned(),
            read_key: "READ".to_owned(),
            project: "default".to_owned(),
            database: "demo".to_owned(),
            environment_file: "/x/dev.env".into(),
        }
    }

    #[test]
    fn it_gives_both_addresses_both_keys_and_six_calls_through_the_edge() {
        let text = welcome(&running(Some("http://127.0.0.1:2")));
        for part in ["http://127.0.0.1:1", "FULL", "READ", "/x/dev.env"] {
            assert!(text.contains(part), "{text}");
        }
        let calls: Vec<&str> = text.lines().filter(|line| line.starts_with("curl ")).collect();
        assert_eq!(calls.len(), 6);
        assert!(calls.iter().all(|call| call.contains("http://127.0.0.1:2/")), "{text}");
    }

    #[test]
    fn without_an_edge_the_pages_and_the_calls_are_the_origins() {
        let text = welcome(&running(None));
        assert_eq!(text.matches("http://127.0.0.1:1/").count(), 2 + 6, "{text}");
    }
}
