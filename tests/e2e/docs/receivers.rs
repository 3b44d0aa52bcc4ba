//! Runs the receivers of `docs/webhooks.md`, where their interpreter is installed: each takes a delivery of a webhook, and
//! refuses forged and old ones.

use crate::case::eventually;
use crate::forged::hmac_sha256;
use crate::host::Call;
use crate::service::{Edge, Service, free_port, workspace};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::{Client, Method};
use serde_json::json;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

const WAIT_MAX: Duration = Duration::from_secs(60);

struct Language {
    /// As the page's fence names it.
    fence: &'static str,
    program: &'static str,
    file: &'static str,
}

const LANGUAGES: [Language; 3] = [
    Language { fence: "js", program: "node", file: "receiver.mjs" },
    Language { fence: "python", program: "python3", file: "receiver.py" },
    Language { fence: "php", program: "php", file: "receiver.php" },
];

pub(super) async fn run_each() {
    let page = fs::read_to_string(workspace().join("docs/webhooks.md")).expect("a readable page");
    let service = Service::start(Edge::Without, &[("SELKIE_WEBHOOK_ALLOW", "127.0.0.1/32")]).expect("a service");
    for language in &LANGUAGES {
        let (_, rest) = page.split_once(&format!("```{}\n", language.fence)).expect("a receiver");
        let (script, _) = rest.split_once("```\n").expect("its end");
        let version = std::process::Command::new(language.program).arg("--version").output();
        if version.is_ok_and(|output| output.status.success()) {
            run(&service, language, script).await;
        }
    }
    service.stop().expect("an end in order");
}

async fn run(service: &Service, language: &Language, script: &str) {
    let (dir, port) = (tempfile::tempdir().expect("a directory"), free_port());
    fs::write(dir.path().join(language.file), script).expect("a file");
    let url = format!("http://127.0.0.1:{port}/");
    let subscription = json!({"database": service.database, "table": "tags"});
    let webhook = json!({"name": language.fence, "url": url, "subscriptions": [subscription]});
    let path = "/api/v1/webhooks";
    let call = |method, path: &str| Call::new(&service.origin, method, path).key(&service.full_key);
    let made = call(Method::POST, path).json(&webhook).send().await.payload();
    let secret = made["secret"].as_str().expect("a secret");

    let mut command = Command::new(language.program);
    if language.program == "php" {
        command.args(["-S", &format!("127.0.0.1:{port}")]);
    }
    command.arg(language.file).current_dir(dir.path()).env("PORT", port.to_string()).env("WEBHOOK_SECRET", secret);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut receiver = command.spawn().expect("it runs");
    let mut lines = BufReader::new(receiver.stdout.take().expect("a pipe")).lines();
    eventually("the receiver listens", WAIT_MAX, async || TcpStream::connect(("127.0.0.1", port)).await.ok()).await;

    let status = async |sent_at: u64, signatures: &str| {
        let request = Client::new().post(&url).header("webhook-id", "msg_1").header("webhook-timestamp", sent_at);
        let request = request.header("webhook-signature", signatures).body(BODY);
        request.send().await.expect("an answer").status().as_u16()
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    let genuine = |sent_at| signature(secret, sent_at);
    for (sent_at, signatures, expected) in [
        (now, genuine(now), 204),
        (now, format!("v1,AAAA {}", genuine(now)), 204),
        (now, genuine(now - 1), 401),
        (now, "v1,".to_owned(), 401),
        (now, String::new(), 401),
        (now - 301, genuine(now - 301), 401),
    ] {
        assert_eq!(status(sent_at, &signatures).await, expected, "{} {signatures}", language.fence);
    }
    let insert =
        format!("INSERT INTO {}.tags (name) VALUES ('{}'); SELECT LAST_INSERT_ID()", service.database, language.fence);
    let key = service.root_sql(&insert).expect("a row");
    let told = tokio::time::timeout(WAIT_MAX, lines.next_line()).await.expect("a line in time").expect("a line");
    assert_eq!(told.as_deref(), Some(format!("insert {}", key.trim()).as_str()), "{}", language.fence);
    eventually("it is delivered", WAIT_MAX, async || {
        let listed = call(Method::GET, &format!("{path}/{}/deliveries", language.fence)).send().await.payload();
        (listed[0]["state"] == "delivered" && listed[0]["attempts"] == 1).then_some(())
    })
    .await;
    call(Method::DELETE, &format!("{path}/{}", language.fence)).send().await.payload();
}

const BODY: &str = r#"{"changes":[],"test":true}"#;

fn signature(secret: &str, sent_at: u64) -> String {
    let secret = BASE64_STANDARD.decode(secret.trim_start_matches("whsec_")).expect("Base64");
    let mac = hmac_sha256(&secret, format!("msg_1.{sent_at}.{BODY}").as_bytes());
    format!("v1,{}", BASE64_STANDARD.encode(mac))
}
