//! Which commands may create an installation in a configured MariaDB, and the errors where there is none.

use std::path::Path;

use origin::config::{Config, Sources};
use origin::system::installation::{Installation as Opened, InstallationError, Purpose};
use origin::system::{Initialised, SystemSchemaError};

use crate::server::{Installation, Server};

/// Returns a configuration with this MariaDB server and a data directory that does not exist.
fn config(directory: &Path, server: &Server) -> Config {
    let url = format!("mysql://root@localhost?socket={}", server.socket().display());
    Config::load(Sources {
        environment: [("SELKIE_DATABASE_URL".to_owned(), url)].into(),
        directory: directory.to_owned(),
        ..Sources::default()
    })
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_makes_no_schema_and_a_second_machine_no_second_secret() {
    let server = Server::start(None);
    let first = Installation::new("");
    let system = first.system(&server.address());
    let refused = system.migrate().await.unwrap_err();
    assert!(matches!(refused, SystemSchemaError::NoSchema(_)), "{refused}");
    assert!(refused.to_string().contains(&server.socket().display().to_string()));
    assert_eq!(system.admin.schema_version().await.unwrap(), None);

    assert_eq!(system.init().await.unwrap(), Initialised::New);
    assert_eq!(system.init().await.unwrap(), Initialised::Existing);
    system.migrate().await.unwrap();

    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), &server);
    for purpose in [Purpose::Serve, Purpose::Init, Purpose::Command] {
        let refused = Opened::open(&config, purpose).await.unwrap_err();
        let fits = match purpose {
            Purpose::Command => matches!(refused, InstallationError::NoSecret { .. }),
            _ => matches!(refused, InstallationError::SecretLost { .. }),
        };
        assert!(fits && refused.is_misconfiguration(), "{purpose:?}: {refused}");
        assert!(!config.data_dir.exists(), "{purpose:?} made a data directory");
    }
    server.sql(&["DROP DATABASE selkie"]).await;
    Opened::open(&config, Purpose::Serve).await.unwrap();
    assert!(config.data_dir.join("secret").exists());
}
