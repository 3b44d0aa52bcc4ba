//! Where the private MariaDB keeps its things.
//!
//! ```text
//! <data_dir>/mariadb/data/          the databases
//!                   /tmp/          its temporary tables
//!                   /lock           held by the process that runs it; says which that is, and the socket
//!                   /mariadbd.pid
//!                   /mariadbd.log   its own log, one generation kept
//!                   /mariadb.sock   unless that path is too long for a socket
//! ```

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Bytes of the longest path that a Unix socket can have: `sun_path` holds 108 with its NUL.
const SOCKET_PATH_MAX_BYTES: usize = 107;

/// Bytes of a digest that tell two data directories apart.
const DIGEST_BYTES: usize = 8;

/// The paths of one installation.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    root: PathBuf,
    runtime_dir: PathBuf,
}

impl Layout {
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

    /// Where a new data directory is prepared before it becomes [`Self::data`].
    pub(super) fn staged_data(&self) -> PathBuf {
        self.root.join("data.new")
    }

    /// Of its own: a server that starts removes what looks like temporary tables from this place, also
    /// those of another that runs.
    pub(super) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
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

    /// Statements that run at each start; gone once it is up.
    pub(super) fn init_file(&self) -> PathBuf {
        self.root.join("admin.sql")
    }

    /// The argument that tells our server from any other.
    pub(super) fn data_argument(&self) -> OsString {
        let mut argument = OsString::from("--datadir=");
        argument.push(self.data());
        argument
    }

    /// Beside the data; where that path is too long, in `$XDG_RUNTIME_DIR` or `/tmp`, in a directory
    /// named after the data directory.
    pub(super) fn socket(&self) -> PathBuf {
        let near = self.root.join("mariadb.sock");
        if near.as_os_str().len() <= SOCKET_PATH_MAX_BYTES {
            return near;
        }
        let digest = Sha256::digest(self.root.as_os_str().as_bytes());
        let mut name = String::from("selkie-");
        for byte in digest.iter().take(DIGEST_BYTES) {
            // Writing to a string can't fail.
            let _ = write!(name, "{byte:02x}");
        }
        self.runtime_dir.join(name).join("mariadb.sock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_data_directory_gets_a_short_socket_of_its_own() {
        let near = Layout::new(Path::new("/srv/selkie")).socket();
        assert_eq!(near, Path::new("/srv/selkie/mariadb/mariadb.sock"));
        let [one, two] = ["a", "b"].map(|end| {
            let long = format!("/srv/{}/{end}", "x".repeat(120));
            Layout::new(Path::new(&long)).socket()
        });
        assert_ne!(one, two);
        assert!(one.as_os_str().len() <= SOCKET_PATH_MAX_BYTES);
    }
}
