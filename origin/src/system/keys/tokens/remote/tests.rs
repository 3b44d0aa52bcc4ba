//! Tests fetches from a local server.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use shared::key::Token;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::super::tests::{NOW, Signer, set};
use super::*;

/// A server that gives every request the same response, which the tests change.
struct Issuer {
    url: Url,
    answer: Arc<Mutex<String>>,
    requests: Arc<AtomicUsize>,
}

impl Issuer {
    async fn start(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks", listener.local_addr().unwrap()).parse().unwrap();
        let issuer = Self { url, answer: Arc::new(Mutex::new(answer)), requests: Arc::default() };
        let (answer, requests) = (Arc::clone(&issuer.answer), Arc::clone(&issuer.requests));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                requests.fetch_add(1, Ordering::SeqCst);
                let answer = answer.lock().unwrap().clone();
                // Fails if the client closes the connection before it has read the whole response.
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        issuer
    }

    fn answer(&self, answer: String) {
        *self.answer.lock().unwrap() = answer;
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    fn remote(&self) -> Arc<RemoteKeys> {
        Arc::new(RemoteKeys::new(self.url.clone(), Reach::Any))
    }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

const DOWN: &str = "HTTP/1.1 503 Down\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn keys_are_fetched_once_for_all_who_ask_at_once() {
    let issuer = Issuer::start(ok(&set(&[Signer::new("EdDSA").jwk("a")]))).await;
    let remote = issuer.remote();
    let asking = (0..20).map(|_| remote.keys(NOW));
    for keys in futures_util::future::join_all(asking).await {
        assert_eq!(keys.unwrap().len(), 1);
    }
    remote.keys(NOW + JWKS_REFRESH_SECONDS - 1).await.unwrap();
    assert_eq!(issuer.requests(), 1);
}

#[tokio::test]
async fn an_unknown_key_is_looked_for_at_most_once_a_minute() {
    let (old, new) = (Signer::new("EdDSA"), Signer::new("EdDSA"));
    let issuer = Issuer::start(ok(&set(&[old.jwk("old")]))).await;
    let remote = issuer.remote();
    remote.keys(NOW).await.unwrap();
    issuer.answer(ok(&set(&[old.jwk("old"), new.jwk("new")])));
    assert_eq!(remote.newer(NOW + JWKS_FETCH_MIN_SECONDS - 1).await, None);
    let later = NOW + JWKS_FETCH_MIN_SECONDS;
    let asking = (0..20).map(|_| remote.newer(later));
    assert!(futures_util::future::join_all(asking).await.iter().flatten().all(|keys| keys.len() == 2));
    assert_eq!(remote.newer(later + 1).await, None);
    assert_eq!((issuer.requests(), remote.keys(later).await.unwrap().len()), (2, 2));
}

#[tokio::test]
async fn old_keys_are_fetched_again_in_the_background_and_kept_while_the_issuer_is_down() {
    let (old, new) = (Signer::new("EdDSA"), Signer::new("EdDSA"));
    let issuer = Issuer::start(ok(&set(&[old.jwk("a")]))).await;
    let remote = issuer.remote();
    let first = remote.keys(NOW).await.unwrap();
    issuer.answer(DOWN.to_owned());
    let late = NOW + JWKS_REFRESH_SECONDS;
    assert_eq!(remote.keys(late).await.unwrap(), first);
    settled(&remote).await;
    // The next attempt is made after a minute, and no call waits for it.
    assert_eq!((remote.keys(late + 59).await.unwrap(), issuer.requests()), (Arc::clone(&first), 2));
    assert_eq!(remote.newer(late + 60).await.unwrap(), first);
    issuer.answer(ok(&set(&[new.jwk("b")])));
    assert_eq!(remote.keys(late + 120).await.unwrap(), first);
    settled(&remote).await;
    let second = remote.keys(late + 121).await.unwrap();
    assert_ne!(second, first);
    assert_eq!(issuer.requests(), 4);
}

/// Waits until no fetch is in flight.
async fn settled(remote: &RemoteKeys) {
    let flight = remote.state().flight.clone();
    if let Some(flight) = flight {
        wait(flight).await;
    }
}

#[tokio::test]
async fn an_issuer_that_was_never_reached_is_asked_again_after_seconds() {
    let issuer = Issuer::start(DOWN.to_owned()).await;
    let remote = issuer.remote();
    assert_eq!(remote.keys(NOW).await, None);
    assert_eq!(remote.keys(NOW + JWKS_FIRST_FETCH_MIN_SECONDS - 1).await, None);
    assert_eq!(issuer.requests(), 1);
    issuer.answer(ok(&set(&[Signer::new("ES256").jwk("a")])));
    assert!(remote.keys(NOW + JWKS_FIRST_FETCH_MIN_SECONDS).await.is_some());
}

#[tokio::test]
async fn requests_do_not_wait_for_an_issuer_that_answers_no_more() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/jwks", silent.local_addr().unwrap()).parse().unwrap();
    let remote = Arc::new(RemoteKeys::new(url, Reach::Any));
    remote.state().has_failed = true;
    assert_eq!(remote.keys(NOW).await, None);
    assert!(remote.state().flight.is_some(), "the fetch is still under way");
}

#[tokio::test]
async fn what_is_no_jwk_set_of_a_fair_size_is_refused() {
    let fault = async |answer: String| {
        let issuer = Issuer::start(answer).await;
        fetch(&issuer.url, Reach::Any).await.unwrap_err()
    };
    assert_eq!(fault(DOWN.to_owned()).await, FetchFault::Status(503));
    assert_eq!(fault(ok("<html>")).await, FetchFault::Set(JwkSetFault::NotAJwkSet));
    let long = " ".repeat(JWKS_MAX_BYTES + 1);
    assert_eq!(fault(ok(&long)).await, FetchFault::Set(JwkSetFault::TooLarge));
    // A body without `Content-Length`.
    let unending = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{long}");
    assert_eq!(fault(unending).await, FetchFault::Set(JwkSetFault::TooLarge));
}

#[tokio::test]
async fn a_redirect_leads_to_no_other_scheme_and_to_no_other_machine_without_tls() {
    let target = Issuer::start(ok(&set(&[Signer::new("EdDSA").jwk("a")]))).await;
    let issuer = Issuer::start(redirect(target.url.as_str())).await;
    assert_eq!(fetch(&issuer.url, Reach::Any).await.unwrap().0.len(), 1);
    for (to, expected) in [
        ("https://127.0.0.1:1/", "another scheme"),
        ("http://192.0.2.1/", "another scheme"),
        // A redirect to a scheme other than HTTP is not followed.
        ("file:///etc/passwd", "status 302"),
        ("/again", "too many redirects"),
    ] {
        issuer.answer(redirect(to));
        let message = fetch(&issuer.url, Reach::Any).await.unwrap_err().to_string();
        assert!(message.contains(expected), "{to}: {message}");
    }
}

#[test]
fn a_url_is_https_unless_it_is_of_this_machine() {
    for text in
        ["https://id.example", "https://id.example/a?b", "http://127.0.0.1:1/", "http://[::1]/", "http://localhost"]
    {
        assert!(parse_url(text).is_ok(), "{text}");
    }
    for (text, expected) in [
        ("", UrlFault::Syntax),
        ("id.example", UrlFault::Syntax),
        ("http://id.example", UrlFault::Scheme),
        ("http://127.0.0.1.example", UrlFault::Scheme),
        ("http://localhost.example", UrlFault::Scheme),
        ("file:///keys.json", UrlFault::Scheme),
        ("ftp://id.example", UrlFault::Scheme),
        ("https://a:b@id.example", UrlFault::Credentials),
        ("https://a@id.example", UrlFault::Credentials),
        ("https://x,script-src", UrlFault::Host),
        ("https://x;frame-ancestors", UrlFault::Host),
        ("https://*", UrlFault::Host),
    ] {
        assert_eq!(parse_url(text), Err(expected), "{text}");
    }
}

#[tokio::test]
async fn a_token_of_a_new_key_is_accepted_as_soon_as_the_key_is_published() {
    let (old, new) = (Signer::new("EdDSA"), Signer::new("ES256"));
    let server = Issuer::start(ok(&set(&[old.jwk("old")]))).await;
    let row = super::super::tests::remote_row(server.url.as_str());
    let issuers = super::super::Issuers::new(vec![row], &super::super::Issuers::default());
    let check = async |signer: &Signer, kid: &str, now: u64| {
        let claims = json!({"iss": "https://id.example", "aud": "shop"});
        let text = signer.sign(&json!({"alg": signer.alg(), "kid": kid}), &claims);
        let token = Token::from_header(Some(&text)).unwrap().of_user().unwrap();
        let issuer = issuers.of(&token).unwrap();
        issuer.check_signature(&token, now).await.map_err(|problem| problem.code().as_str())
    };
    assert_eq!(check(&old, "old", NOW).await, Ok(()));
    server.answer(ok(&set(&[old.jwk("old"), new.jwk("new")])));
    assert_eq!(check(&new, "new", NOW + JWKS_FETCH_MIN_SECONDS).await, Ok(()));
    assert_eq!(check(&new, "other", NOW + JWKS_FETCH_MIN_SECONDS).await, Err("invalid_key"));
    assert_eq!(server.requests(), 2);
    // A key that was replaced under its id is fetched, and then the old one has no effect.
    let newest = Signer::new("ES256");
    server.answer(ok(&set(&[old.jwk("old"), newest.jwk("new")])));
    assert_eq!(check(&newest, "new", NOW + JWKS_FETCH_MIN_SECONDS).await, Err("invalid_key"), "within a minute");
    assert_eq!(check(&newest, "new", NOW + 2 * JWKS_FETCH_MIN_SECONDS).await, Ok(()));
    assert_eq!(check(&new, "new", NOW + 2 * JWKS_FETCH_MIN_SECONDS).await, Err("invalid_key"));
    // Also by a key of another type.
    server.answer(ok(&set(&[newest.jwk("old")])));
    assert_eq!(check(&newest, "old", NOW + 3 * JWKS_FETCH_MIN_SECONDS).await, Ok(()));
    assert_eq!(server.requests(), 4);
}

#[tokio::test]
async fn a_token_whose_issuer_was_never_reached_may_be_sent_again() {
    let server = Issuer::start(DOWN.to_owned()).await;
    let row = super::super::tests::remote_row(server.url.as_str());
    let issuers = super::super::Issuers::new(vec![row], &super::super::Issuers::default());
    let signer = Signer::new("EdDSA");
    let text = signer.sign(&json!({"alg": "EdDSA"}), &json!({"iss": "https://id.example", "aud": "shop"}));
    let token = Token::from_header(Some(&text)).unwrap().of_user().unwrap();
    let refused = issuers.of(&token).unwrap().check_signature(&token, NOW).await.unwrap_err();
    assert_eq!((refused.status(), refused.code().as_str()), (503, "issuer_unavailable"));
}
