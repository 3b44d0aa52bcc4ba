//! TLS on the origin's own port: loads the certificate and its key, reloads changed files, and does the handshakes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::config::TlsFiles;

/// The maximum number of handshakes under way. There is no limit per project, since the API key is not known yet. A new
/// handshake ends the oldest one, so that a client that finishes its handshakes is let in even at the limit.
pub(crate) const HANDSHAKES_MAX_COUNT: usize = 1_024;

const WARNING_INTERVAL: Duration = Duration::from_secs(60);

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause between two checks of the files. Polling also notices replaced symbolic links and changes of mounts.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

const HANDSHAKE_RECORD: u8 = 22;

const H2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{setting}: {path} can't be read: {source}", path = path.display())]
    Unreadable { setting: &'static str, path: PathBuf, source: io::Error },
    #[error("tls_certificate: {path} holds no certificate in PEM form: {reason}", path = path.display())]
    NoCertificate { path: PathBuf, reason: String },
    #[error("tls_key: {path} holds no unencrypted private key in PEM form: {reason}", path = path.display())]
    NoKey { path: PathBuf, reason: String },
    #[error("tls_key: {key} is not the private key of the certificate in {certificate}: {reason}", key = key.display(), certificate = certificate.display())]
    NoPair { certificate: PathBuf, key: PathBuf, reason: rustls::Error },
    #[error("TLS can't be set up: {0}")]
    Setup(#[source] rustls::Error),
}

#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    opened: Arc<PemBytes>,
    current: Arc<Current>,
    acceptor: TlsAcceptor,
    handshakes: Arc<Mutex<Handshakes>>,
}

/// The handshakes under way, by the order in which they began.
#[derive(Default)]
struct Handshakes {
    begun_count: u64,
    under_way: BTreeMap<u64, CancellationToken>,
    warned: Option<Instant>,
}

/// A handshake's entry in [`Handshakes`], which is removed on drop.
struct Turn<'a> {
    handshakes: &'a Mutex<Handshakes>,
    number: u64,
    ended: CancellationToken,
}

impl<'a> Turn<'a> {
    /// Begins a handshake, and ends the oldest one if there are too many.
    fn begin(handshakes: &'a Mutex<Handshakes>) -> Self {
        let mut all = locked(handshakes);
        if all.under_way.len() >= HANDSHAKES_MAX_COUNT
            && let Some((_, oldest)) = all.under_way.pop_first()
        {
            oldest.cancel();
            if all.warned.is_none_or(|warned| warned.elapsed() > WARNING_INTERVAL) {
                all.warned = Some(Instant::now());
                tracing::warn!(
                    limit = HANDSHAKES_MAX_COUNT,
                    "connections are closed: too many TLS handshakes are under way"
                );
            }
        }
        all.begun_count += 1;
        let (number, ended) = (all.begun_count, CancellationToken::new());
        all.under_way.insert(number, ended.clone());
        Self { handshakes, number, ended }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        locked(self.handshakes).under_way.remove(&self.number);
    }
}

fn locked(handshakes: &Mutex<Handshakes>) -> MutexGuard<'_, Handshakes> {
    handshakes.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

#[derive(Clone, PartialEq, Eq)]
struct PemBytes {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

pub enum Handshake<S> {
    Done(Box<TlsStream<S>>),
    NotTls(TcpStream),
    /// The handshake failed or took too long, or was the oldest of too many. The connection is closed.
    Failed,
}

impl Tls {
    pub fn open(files: &TlsFiles) -> Result<Self, TlsError> {
        let opened = Arc::new(PemBytes::read(files)?);
        let current = Arc::new(Current(ArcSwap::from_pointee(parse(files, &opened)?)));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Current>::clone(&current));
        config.alpn_protocols = vec![H2.to_vec(), HTTP1.to_vec()];
        Ok(Self {
            files: files.clone(),
            opened,
            current,
            acceptor: TlsAcceptor::from(Arc::new(config)),
            handshakes: Arc::default(),
        })
    }

    /// Does the handshake. If the first byte is not TLS, returns the stream unread as [`Handshake::NotTls`].
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: TcpStream,
        wrap: impl FnOnce(TcpStream) -> S,
    ) -> Handshake<S> {
        let turn = Turn::begin(&self.handshakes);
        let handshake = async {
            let mut first = [0];
            match stream.peek(&mut first).await {
                Ok(1) if first[0] == HANDSHAKE_RECORD => {}
                Ok(1) => return Handshake::NotTls(stream),
                _ => return Handshake::Failed,
            }
            match self.acceptor.accept(wrap(stream)).await {
                Ok(stream) => Handshake::Done(Box::new(stream)),
                Err(error) => {
                    tracing::debug!(%error, "a TLS handshake failed");
                    Handshake::Failed
                }
            }
        };
        let handshake = turn.ended.run_until_cancelled(tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake));
        handshake.await.and_then(Result::ok).unwrap_or(Handshake::Failed)
    }

    /// Loads changed files until stopped. If the new pair can't be used, logs the error and keeps the old pair.
    pub async fn watch(self, stop: CancellationToken) {
        let mut used = Some(PemBytes::clone(&self.opened));
        let mut seen = used.clone();
        let mut tick = tokio::time::interval(CHECK_INTERVAL);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = tick.tick() => {}
            }
            let found = PemBytes::read(&self.files);
            // The two files can't be replaced in one step: a change is used when two checks in a row found the same
            // contents.
            let is_settled = found.as_ref().ok() == seen.as_ref();
            seen = found.as_ref().ok().cloned();
            if !is_settled || seen == used {
                continue;
            }
            used.clone_from(&seen);
            match found.and_then(|bytes| parse(&self.files, &bytes)) {
                Ok(pair) => {
                    self.current.0.store(Arc::new(pair));
                    tracing::info!(certificate = %self.files.certificate.display(), "the new TLS certificate is in use");
                }
                Err(error) => {
                    tracing::error!(%error, "the new TLS certificate can't be used; the old one stays in use");
                }
            }
        }
    }
}

impl PemBytes {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |setting, path: &Path| {
            std::fs::read(path).map_err(|source| TlsError::Unreadable { setting, path: path.to_owned(), source })
        };
        Ok(Self { certificate: read("tls_certificate", &files.certificate)?, key: read("tls_key", &files.key)? })
    }
}

fn parse(files: &TlsFiles, bytes: &PemBytes) -> Result<CertifiedKey, TlsError> {
    let no_certificate =
        |error: pem::Error| TlsError::NoCertificate { path: files.certificate.clone(), reason: error.to_string() };
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(&bytes.certificate).collect::<Result<_, _>>().map_err(no_certificate)?;
    if chain.is_empty() {
        return Err(no_certificate(pem::Error::NoItemsFound));
    }
    let key = PrivateKeyDer::from_pem_slice(&bytes.key)
        .map_err(|error| TlsError::NoKey { path: files.key.clone(), reason: error.to_string() })?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|reason| TlsError::NoPair {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn write_pair(directory: &Path) -> TlsFiles {
        let files = TlsFiles { certificate: directory.join("cert.pem"), key: directory.join("key.pem") };
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&files.certificate, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        files
    }

    #[tokio::test]
    async fn a_pair_that_is_written_before_the_watch_begins_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let tls = Tls::open(&write_pair(directory.path())).unwrap();
        let first = tls.current.0.load_full();
        write_pair(directory.path());
        let stop = CancellationToken::new();
        let watch = tokio::spawn(tls.clone().watch(stop.clone()));
        let changed = async {
            while Arc::ptr_eq(&first, &tls.current.0.load_full()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), changed).await.unwrap();
        stop.cancel();
        watch.await.unwrap();
    }

    #[tokio::test]
    async fn the_oldest_of_too_many_handshakes_ends() {
        let directory = tempfile::tempdir().unwrap();
        let tls = Tls::open(&write_pair(directory.path())).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut turns: Vec<_> = (0..HANDSHAKES_MAX_COUNT).map(|_| Turn::begin(&tls.handshakes)).collect();
        let client = TcpStream::connect(address).await.unwrap();
        client.try_write(b"GET").unwrap();
        let stream = listener.accept().await.unwrap().0;
        assert!(matches!(tls.accept(stream, |stream| stream).await, Handshake::NotTls(_)));
        assert!(turns.remove(0).ended.is_cancelled());
        assert!(turns.iter().all(|turn| !turn.ended.is_cancelled()));
        drop(turns);
        assert!(locked(&tls.handshakes).under_way.is_empty());
    }
}
