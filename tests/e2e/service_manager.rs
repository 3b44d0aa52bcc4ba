//! Tests the messages of an origin to its service manager (systemd's `Type=notify` and
//! `WatchdogSec=`), on a socket in place of systemd's. Also tests secrets that are read from files,
//! such as systemd's credentials.

use crate::host::Host;
use crate::second_origin::SecondOrigin;
use crate::service::{find_socket, shared};
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

cases! {
    Origin: [
        an_origin_reports_that_it_is_ready_alive_and_stopping,
        an_origin_reads_its_secrets_from_files,
    ],
}

/// Maximum wait for a message. It is long because an origin that starts waits for the
/// installation's lock.
const MESSAGE_MAX: Duration = Duration::from_secs(60);

struct Manager {
    socket: UnixDatagram,
    directory: tempfile::TempDir,
}

impl Manager {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = UnixDatagram::bind(directory.path().join("notify")).expect("a socket");
        socket.set_read_timeout(Some(MESSAGE_MAX)).expect("a timeout");
        Self { socket, directory }
    }

    fn path(&self) -> String {
        self.directory.path().join("notify").display().to_string()
    }

    fn message(&self) -> String {
        let mut buffer = [0; 256];
        let length = self.socket.recv(&mut buffer).expect("a message");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }
}

async fn an_origin_reports_that_it_is_ready_alive_and_stopping(_: Host) {
    let manager = Manager::new();
    let path = manager.path();
    let origin = |watchdog: &str| {
        let settings = [("NOTIFY_SOCKET", &*path), ("WATCHDOG_USEC", watchdog)];
        SecondOrigin::launch(shared(), &settings).expect("an origin")
    };

    let mut watched = origin("60000");
    assert_eq!(manager.message(), "READY=1\n");
    // An origin that has reported `READY=1` accepts connections.
    assert!(crate::service::is_alive(&watched.origin), "{}", watched.log());
    for _ in 0..3 {
        assert_eq!(manager.message(), "WATCHDOG=1\n");
    }
    watched.terminate();
    // While the origin stops, it still reports that it is alive.
    let last = std::iter::repeat_with(|| manager.message()).find(|message| message != "WATCHDOG=1\n");
    assert_eq!(last.as_deref(), Some("STOPPING=1\n"));
    watched.wait_until_dead().expect("an end");

    // Without a watchdog, no message comes between `READY=1` and `STOPPING=1`.
    manager.socket.set_nonblocking(true).expect("a mode");
    while manager.socket.recv(&mut [0; 256]).is_ok() {}
    manager.socket.set_nonblocking(false).expect("a mode");
    let mut unwatched = origin("");
    assert_eq!(manager.message(), "READY=1\n");
    unwatched.terminate();
    assert_eq!(manager.message(), "STOPPING=1\n");
    unwatched.wait_until_dead().expect("an end");

    // An origin that can't start sends no message.
    let mut failed =
        SecondOrigin::launch(shared(), &[("NOTIFY_SOCKET", &path), ("SELKIE_DATABASE_URL", "mysql://a:b@127.0.0.1:1")])
            .expect("an origin");
    failed.wait_until_dead().expect("an end");
    manager.socket.set_nonblocking(true).expect("a mode");
    assert!(manager.socket.recv(&mut [0; 256]).is_err(), "a message of an origin that did not start");
}

async fn an_origin_reads_its_secrets_from_files(_: Host) {
    let credentials = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = credentials.path().join(name);
        fs::write(&path, format!("{text}\n")).expect("a file");
        path.display().to_string()
    };
    let service = shared();
    let secret = fs::read_to_string(service.data_dir().join("secret")).expect("a secret");
    let socket = find_socket(&service.data_dir()).expect("a socket");
    let url = format!("mysql://second-admin:second-admin@localhost?socket={}", socket.display());
    let (secret, url) = (file("secret", secret.trim()), file("url", &url));
    let elsewhere = credentials.path().join("data").display().to_string();
    let settings = [
        ("SELKIE_DATABASE_URL", ""),
        ("SELKIE_DATABASE_URL_FILE", &*url),
        ("SELKIE_SECRET_FILE", &*secret),
        ("SELKIE_MEDIA_STORE", &*format!("file://{elsewhere}")),
    ];
    let mut origin = SecondOrigin::launch(service, &settings).expect("an origin");
    origin.wait_until_ready().expect("an origin that answers");
    let answer = reqwest::Client::new()
        .get(format!("{}/api/v1/crud/{}/posts/1", origin.origin, service.database))
        .bearer_auth(&service.read_key)
        .send()
        .await
        .expect("an answer");
    // The key was signed with the secret of the shared service.
    assert_eq!(answer.status(), 200, "{}", origin.log());

    let twice = [("SELKIE_SECRET", "hunter2"), ("SELKIE_SECRET_FILE", &*secret)];
    let mut refused = SecondOrigin::launch(service, &twice).expect("an origin");
    refused.wait_until_dead().expect("an end");
    let log = refused.log();
    assert!(log.contains("SELKIE_SECRET and SELKIE_SECRET_FILE are both set; set one of them"), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
}
