//! What `selkie dev` prints once all of it answers: where it is, the keys, and calls to paste.

use super::Running;

/// The text for a person.
#[must_use]
pub fn welcome(running: &Running) -> String {
    let edge = running.edge_url.as_deref();
    let door = edge.unwrap_or(&running.origin_url);
    let Running {
        full_key,
        read_key,
        database,
        ..
    } = running;
    let records = format!("{door}/api/v1/crud/{database}");
    let read = format!("-H 'Authorization: Bearer {read_key}'");
    let full = format!("-H 'Authorization: Bearer {full_key}' -H 'Content-Type: application/json'");
    format!(
        "\n\
Selkie runs. Ctrl-C stops it.\n\
\n\
  origin     {origin}\n\
  edge       {edge}\n\
  full key   {full_key}\n\
  read key   {read_key}\n\
  all this   {file}\n\
\n\
# the three most read posts\n\
curl -G '{records}/posts' {read} --data-urlencode 'query={{\"is_published\":1,\"views\":{{\"value\":100,\"equality\":\">\"}}}}' --data-urlencode 'order={{\"field\":\"views\",\"strategy\":\"DESC\"}}' -d selectFields=id,title,views -d limit=3\n\
\n\
# one author\n\
curl '{records}/authors/1' {read}\n\
\n\
# a new comment; the answer is its id\n\
curl -X POST '{records}/comments' {full} -d '{{\"post_id\":1,\"author_name\":\"A visitor\",\"body\":\"Good to read.\",\"rating\":5}}'\n\
\n\
# SQL\n\
curl -X POST '{door}/api/v1/sql' {full} -d '{{\"database\":\"{database}\",\"query\":\"SELECT category, COUNT(*) AS posts, SUM(views) AS views FROM posts WHERE is_published = ? GROUP BY category ORDER BY posts DESC\",\"params\":[1]}}'\n\
\n\
# what a table holds, and what this key may do with it\n\
curl -X OPTIONS '{records}/posts' {read}\n\
\n",
        origin = running.origin_url,
        edge = edge.unwrap_or("(left out)"),
        file = running.environment_file.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(edge_url: Option<&str>) -> Running {
        Running {
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
    fn it_gives_both_addresses_both_keys_and_five_calls_through_the_edge() {
        let text = welcome(&running(Some("http://127.0.0.1:2")));
        for part in ["http://127.0.0.1:1", "FULL", "READ", "/x/dev.env"] {
            assert!(text.contains(part), "{text}");
        }
        let calls: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("curl "))
            .collect();
        assert_eq!(calls.len(), 5);
        assert!(
            calls
                .iter()
                .all(|call| call.contains("http://127.0.0.1:2/")),
            "{text}"
        );
    }

    #[test]
    fn without_an_edge_the_calls_go_to_the_origin() {
        let text = welcome(&running(None));
        assert_eq!(text.matches("http://127.0.0.1:1/").count(), 5, "{text}");
    }
}
