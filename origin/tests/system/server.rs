//! A MariaDB in a temporary directory, for tests. It ends with the test process, even if that is killed: the shell that
//! runs MariaDB waits for the end of a pipe.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};
use origin::address::{DatabaseAddress, Endpoint, Tls};
use origin::config::{Account, Config, Sources};
use origin::secret::InstallationSecret;
use origin::system::System;
use secrecy::{ExposeSecret, SecretString};
use tempfile::TempDir;

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Installs and runs MariaDB until standard input ends, then kills it and removes its directory `$1`. MariaDB has a
/// temporary directory of its own, since a starting server removes all temporary tables in a shared one.
const SCRIPT: &str = r#"
cd "$1"
mkdir tmp
mariadb-install-db --no-defaults --datadir="$1/data" --tmpdir="$1/tmp" --skip-test-db \
    --auth-root-authentication-method=normal --user="$(id -un)" >log 2>&1 </dev/null || exit 1
mariadbd --no-defaults --user="$(id -un)" --datadir="$1/data" --tmpdir="$1/tmp" --socket="$1/s" \
    --pid-file="$1/pid" $2 --innodb-buffer-pool-size=16M --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=0 \
    --performance-schema=OFF >log 2>&1 </dev/null &
cat >/dev/null
kill -9 $!
wait
rm -rf "$1"
"#;

pub(crate) struct Server {
    pub(crate) directory: PathBuf,
    port: Option<u16>,
    _guard: Child,
}

impl Server {
    /// Returns the server that all tests of this program share, without TCP.
    pub(crate) fn shared() -> &'static Server {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(|| Server::start(None))
    }

    /// Starts a server for one test, with TCP if a port is given.
    pub(crate) fn start(port: Option<u16>) -> Self {
        let network = match port {
            Some(port) => format!("--bind-address=127.0.0.1 --port={port}"),
            None => "--skip-networking".to_owned(),
        };
        Self::start_with(&network, port)
    }

    pub(crate) fn start_with(options: &str, port: Option<u16>) -> Self {
        let directory = tempfile::Builder::new().prefix("sk").tempdir().unwrap().keep();
        let mut guard = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(&directory)
            .arg(options)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + START_TIMEOUT;
        while std::os::unix::net::UnixStream::connect(directory.join("s")).is_err() {
            let gone = guard.try_wait().unwrap().is_some();
            let log = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
            assert!(!gone && Instant::now() < deadline, "MariaDB does not start: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { directory, port, _guard: guard }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("s")
    }

    pub(crate) fn address(&self) -> DatabaseAddress {
        DatabaseAddress {
            endpoint: Endpoint::Socket(self.socket()),
            others: Vec::new(),
            admin_user: "root".to_owned(),
            admin_password: SecretString::from(""),
        }
    }

    pub(crate) fn tcp_address(&self, user: &str, password: &str) -> DatabaseAddress {
        let endpoint = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: self.port.unwrap(), tls: Tls::Off };
        DatabaseAddress {
            endpoint,
            others: Vec::new(),
            admin_user: user.to_owned(),
            admin_password: SecretString::from(password.to_owned()),
        }
    }

    pub(crate) async fn connect(&self, user: &str, password: &str) -> mysql_async::Result<Conn> {
        let options = OptsBuilder::default()
            .user(Some(user))
            .pass(Some(password))
            .socket(Some(self.directory.join("s").display().to_string()));
        Conn::new(options).await
    }

    pub(crate) async fn login(&self, account: &Account) -> mysql_async::Result<Conn> {
        self.connect(&account.user, account.password.expose_secret()).await
    }

    pub(crate) async fn root(&self) -> Conn {
        self.connect("root", "").await.unwrap()
    }

    pub(crate) async fn sql(&self, statements: &[&str]) {
        let mut root = self.root().await;
        for statement in statements {
            root.query_drop(*statement).await.unwrap();
        }
    }
}

pub(crate) struct Installation {
    pub(crate) config: Config,
    pub(crate) secret: Arc<InstallationSecret>,
    _directory: TempDir,
}

impl Installation {
    /// Creates an installation with `toml` as the text of its configuration file.
    pub(crate) fn new(toml: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("selkie.toml");
        std::fs::write(&file, toml).unwrap();
        let config =
            Config::load(Sources { directory: directory.path().to_owned(), file: Some(file), ..Sources::default() })
                .unwrap();
        let secret = Arc::new(InstallationSecret::load_or_create(config.secret.as_ref(), &config.data_dir).unwrap());
        Self { config, secret, _directory: directory }
    }

    pub(crate) fn system(&self, address: &DatabaseAddress) -> System {
        System::new(address, Arc::clone(&self.secret), &self.config)
    }
}

pub(crate) async fn shared() -> (&'static Server, &'static Installation, System) {
    static INSTALLATION: OnceLock<Installation> = OnceLock::new();
    let installation = INSTALLATION.get_or_init(|| Installation::new(""));
    let server = Server::shared();
    let system = installation.system(&server.address());
    system.prepare().await.unwrap();
    (server, installation, system)
}

pub(crate) fn errno<T: std::fmt::Debug>(outcome: mysql_async::Result<T>) -> u16 {
    match outcome.unwrap_err() {
        mysql_async::Error::Server(error) => error.code,
        other => panic!("not refused by the server: {other}"),
    }
}
