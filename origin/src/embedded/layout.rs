//! The paths of the private MariaDB.
//!
//! ```text
//! <data_dir>/mariadb/data/           the databases
//!                   /data.new/       a data directory that is being created
//!                   /tmp/            MariaDB's temporary tables
//!                   /files/          empty: the only directory whose files SQL may read or write
//!                   /lock            locked by the Selkie process that runs MariaDB; contains the process's id and
//!                                    role, and the path of the socket
//!                   /mariadbd.pid
//!                   /mariadbd.log    MariaDB's log
//!                   /mariadbd.log.1  the previous log
//!                   /admin.sql       SQL that MariaDB runs at its start, removed afterwards
//!                   /mariadb.sock    in another directory if this path is too long for a socket
//! ```

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use shared::fingerprint::hex;

/// Maximum bytes of a Unix socket's path: `sun_path` has 108 bytes with its NUL.
const SOCKET_PATH_MAX_BYTES: usize = 107;

const DIGEST_BYTES: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct DataLayout {
    root: PathBuf,
    runtime_dir: PathBuf,
}

impl DataLayout {
    pub(super) fn new(data_dir: &Path) -> Self {
        let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR").filter(|text| !text.is_empty());
        Self { root: data_dir.join("mariadb"), runtime_dir: runtime_dir.map_or_else(std::env::temp_dir, PathBuf::from) }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// The data directory that is being created, renamed to [`Self::data`] once complete.
    pub(super) fn staged_data(&self) -> PathBuf {
        self.root.join("data.new")
    }

    /// The directory of temporary tables of this MariaDB alone: a starting server removes all temporary tables in it,
    /// even those of another running server.
    pub(super) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// The only directory whose files SQL may read or write, such as by LOAD_FILE. It stays empty.
    pub(super) fn files(&self) -> PathBuf {
        self.root.join("files")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub(super) fn pid(&self) -> PathBuf {
        self.root.join("mariadbd.pid")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.root.join("mariadbd.log")
    }

    pub(super) fn old_log(&self) -> PathBuf {
        self.root.join("mariadbd.log.1")
    }

    /// The SQL that MariaDB runs at its start, removed once it has started.
    pub(super) fn init_file(&self) -> PathBuf {
        self.root.join("admin.sql")
    }

    /// Returns the argument by which a process is recognised as running in this data directory.
    pub(super) fn data_argument(&self) -> OsString {
        let mut argument = OsString::from("--datadir=");
        argument.push(self.data());
        argument
    }

    /// Returns the socket's path: beside the data or, if that path is too long, in a directory of `$XDG_RUNTIME_DIR` or
    /// the system's directory for temporary files, named by a hash of the data directory's path.
    pub(super) fn socket(&self) -> PathBuf {
        let near = self.root.join("mariadb.sock");
        if near.as_os_str().len() <= SOCKET_PATH_MAX_BYTES {
            return near;
        }
        let digest = Sha256::digest(self.root.as_os_str().as_bytes());
        self.runtime_dir.join(format!("selkie-{}", hex(&digest[..DIGEST_BYTES]))).join("mariadb.sock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_data_directory_gets_a_short_socket_of_its_own() {
        let near = DataLayout::new(Path::new("/srv/selkie")).socket();
        assert_eq!(near, Path::new("/srv/selkie/mariadb/mariadb.sock"));
        let [one, two] = ["a", "b"].map(|end| {
            let long = format!("/srv/{}/{end}", "x".repeat(120));
            DataLayout::new(Path::new(&long)).socket()
        });
        assert_ne!(one, two);
        assert!(one.as_os_str().len() <= SOCKET_PATH_MAX_BYTES);
    }
}
