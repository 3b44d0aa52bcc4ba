//! Tests TLS: on the origin's own port, with certificates that are replaced or wrong, and to a
//! MariaDB that requires a client certificate.

mod authority;
mod database;

use crate::case::eventually;
use crate::host::Host;
use crate::raw;
use crate::second_origin::SecondOrigin;
use crate::service::{binary, clear_settings, shared};
use authority::Authority;
use database::Mariadb;
use reqwest::{Certificate, Client, Version};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

cases! {
    Own: [
        the_origin_speaks_https,
        a_new_certificate_is_used_and_a_broken_one_is_not,
        a_wrong_pair_is_refused_at_the_start,
        mariadb_may_ask_for_a_certificate,
    ],
}

/// Maximum time until the origin answers, or notices a new file. Long enough for a loaded machine.
const CHANGE_MAX: Duration = Duration::from_secs(60);

fn start(directory: &Path) -> (SecondOrigin, String) {
    let path = |name: &str| directory.join(name).display().to_string();
    let (certificate, key) = (path("cert.pem"), path("key.pem"));
    let settings = [("SELKIE_TLS_CERTIFICATE", certificate.as_str()), ("SELKIE_TLS_KEY", key.as_str())];
    let origin = SecondOrigin::launch(shared(), &settings).expect("an origin");
    let url = origin.origin.replace("http://", "https://");
    (origin, url)
}

/// Returns a client that trusts only this authority and keeps no connections.
fn client(authority: &Authority) -> reqwest::ClientBuilder {
    let root = Certificate::from_pem(authority.pem().as_bytes()).expect("a certificate");
    Client::builder().tls_certs_only([root]).pool_max_idle_per_host(0).no_proxy()
}

async fn answers(client: &Client, url: &str) -> bool {
    let answer = client.get(format!("{url}/healthz")).send().await;
    answer.is_ok_and(|answer| answer.status() == 200)
}

async fn wait_until_ready(client: &Client, url: &str) {
    eventually("the origin answers", CHANGE_MAX, || async { answers(client, url).await.then_some(()) }).await;
}

async fn the_origin_speaks_https(_: Host) {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("first");
    authority.issue(directory.path());
    let (origin, url) = start(directory.path());
    let h2 = client(&authority).build().unwrap();
    wait_until_ready(&h2, &url).await;
    let h1 = client(&authority).http1_only().build().unwrap();
    for (client, version) in [(&h2, Version::HTTP_2), (&h1, Version::HTTP_11)] {
        let item =
            json!({"name": format!("{version:?}.txt").replace('/', "-"), "base64": "data:text/plain;base64,YQ=="});
        let upload = json!({"type": "file", "media": [item]});
        let key = &shared().full_key;
        let answer = client.post(format!("{url}/api/v1/media")).bearer_auth(key).json(&upload).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
        let answer: Value = answer.json().await.unwrap();
        let file = answer["payload"][0]["url"].as_str().unwrap_or_else(|| panic!("no URL: {answer}"));
        assert!(file.starts_with(&format!("{url}/")), "{file}");
        let read = client.get(file).send().await.unwrap();
        assert_eq!(read.bytes().await.unwrap(), "a");
    }
    let stranger = client(&Authority::new("other")).build().unwrap();
    let error = stranger.get(format!("{url}/healthz")).send().await.unwrap_err();
    assert!(format!("{error:?}").contains("UnknownIssuer"), "{error:?}");
    let plain = raw::exchange(&origin.origin, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("an answer");
    assert_eq!(plain.status, 400);
    assert!(String::from_utf8_lossy(&plain.body).contains("https://"));
    let is_logged = || origin.log().contains("a client sent plain HTTP to the HTTPS port");
    eventually("the client is logged", CHANGE_MAX, || async { is_logged().then_some(()) }).await;
}

async fn a_new_certificate_is_used_and_a_broken_one_is_not(_: Host) {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    first.issue(directory.path());
    let (origin, url) = start(directory.path());
    // Each check uses a new client, since a known client may resume its TLS session, in which the
    // server sends no certificate.
    let fresh = |authority: &Authority| client(authority).build().unwrap();
    wait_until_ready(&fresh(&first), &url).await;
    assert!(!answers(&fresh(&second), &url).await);
    second.issue(directory.path());
    wait_until_ready(&fresh(&second), &url).await;
    assert!(!answers(&fresh(&first), &url).await);
    let good = fs::read(directory.path().join("key.pem")).unwrap();
    for broken in [first.key(), "no key".to_owned()] {
        let told = || origin.log().matches("the new TLS certificate can't be used").count();
        let before = told();
        fs::write(directory.path().join("key.pem"), broken).unwrap();
        eventually("the fault is logged", CHANGE_MAX, || async { (told() == before + 1).then_some(()) }).await;
        assert!(answers(&fresh(&second), &url).await, "the old certificate is not in use any more");
    }
    let told = || origin.log().matches("the new TLS certificate is in use").count();
    let before = told();
    fs::write(directory.path().join("key.pem"), good).unwrap();
    eventually("the mended pair is in use", CHANGE_MAX, || async { (told() == before + 1).then_some(()) }).await;
    assert!(answers(&fresh(&second), &url).await);
}

async fn a_wrong_pair_is_refused_at_the_start(_: Host) {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("first");
    authority.issue(directory.path());
    fs::write(directory.path().join("other.pem"), authority.key()).unwrap();
    fs::write(directory.path().join("empty.pem"), "").unwrap();
    for (certificate, key, message) in [
        ("cert.pem", "other.pem", "is not the private key of the certificate in"),
        ("cert.pem", "missing.pem", "missing.pem can't be read"),
        ("cert.pem", "cert.pem", "holds no unencrypted private key"),
        ("empty.pem", "key.pem", "holds no certificate in PEM form"),
        ("cert.pem", "", "tls_key must be set together with tls_certificate"),
    ] {
        let mut command = Command::new(binary().unwrap());
        clear_settings(&mut command);
        command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(directory.path()).stdin(Stdio::null());
        command.env("SELKIE_TLS_CERTIFICATE", certificate).env("SELKIE_TLS_KEY", key);
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{certificate} {key}: {told}");
        assert!(told.contains(message), "{certificate} {key}: {told}");
        assert!(!directory.path().join(".selkie").exists(), "an installation was made");
    }
}

async fn mariadb_may_ask_for_a_certificate(_: Host) {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("database");
    authority.issue(directory.path());
    fs::write(directory.path().join("ca.pem"), authority.pem()).unwrap();
    fs::write(directory.path().join("other.pem"), Authority::new("other").pem()).unwrap();
    let mariadb = Mariadb::start(directory.path());
    mariadb.root_sql(
        "CREATE USER boss@'127.0.0.1' IDENTIFIED BY 'hush-hush-7' REQUIRE X509; \
         GRANT ALL PRIVILEGES ON *.* TO boss@'127.0.0.1' WITH GRANT OPTION",
    );
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (ca, client) = (path("ca.pem"), format!("&ssl_cert={}&ssl_key={}", path("cert.pem"), path("key.pem")));
    let selkie = |arguments: &[&str], parameters: &str| -> Output {
        let url = format!("mysql://boss:hush-hush-7@127.0.0.1:{}?require_ssl=true{parameters}", mariadb.port);
        let mut command = Command::new(binary().unwrap());
        clear_settings(&mut command);
        command.args(arguments).arg("--data-dir").arg(mariadb.data_dir()).env("SELKIE_DATABASE_URL", url);
        command.current_dir(directory.path()).stdin(Stdio::null()).output().unwrap()
    };
    let told = |output: &Output| {
        let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        String::from_utf8_lossy(&text).into_owned()
    };
    let whole = format!("&ssl_ca={ca}{client}");
    let init = selkie(&["init"], &whole);
    assert!(init.status.success(), "{}", told(&init));
    for (parameters, part) in [
        (format!("&ssl_ca={ca}"), "Access denied for user 'boss'"),
        (format!("&ssl_ca={}{client}", path("other.pem")), "UnknownIssuer"),
        (format!("&ssl_ca=system{client}"), "UnknownIssuer"),
        (client, "UnknownIssuer"),
    ] {
        let output = selkie(&["key", "list"], &parameters);
        assert_eq!(output.status.code(), Some(1), "{parameters}: {}", told(&output));
        assert!(told(&output).contains(part), "{parameters}: {}", told(&output));
        assert!(!told(&output).contains("hush-hush-7"), "{}", told(&output));
    }
    let backup = selkie(&["backup", &path("backup")], &whole);
    assert!(backup.status.success(), "{}", told(&backup));
    // MariaDB prefers an anonymous account at this host to a named account at any host, so the
    // projects' accounts, which have the host `%`, can no longer log in.
    mariadb.root_sql("CREATE USER ''@'127.0.0.1'");
    let doctor = selkie(&["doctor"], &whole);
    assert_eq!(doctor.status.code(), Some(1), "{}", told(&doctor));
    let text = told(&doctor);
    assert!(text.contains("the account ''@'127.0.0.1', which has no name, shadows selkie-default-rw"), "{text}");
    assert!(text.contains("DROP USER ''@'127.0.0.1'"), "{text}");
}
