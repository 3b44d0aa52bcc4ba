//! Bounds the size of a private MariaDB's binary log, which MariaDB itself does only from 11.4 on.

use crate::database::typed_rows;
use mysql_async::prelude::Queryable;

use super::{Admin, AdminError};

/// Maximum bytes of all files of the log, plus those of the file that is being written.
pub const LOG_MAX_BYTES: u64 = 1024 * 1024 * 1024;

impl Admin {
    /// Deletes the oldest files of the binary log until all together have `max_bytes` at most. MariaDB keeps the file that
    /// is being written, and those that are being read.
    pub async fn bound_log(&self, max_bytes: u64) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        let files: Vec<(String, u64)> = self.within(typed_rows::all(conn.query_iter("SHOW BINARY LOGS"))).await?;
        match first_kept(&files, max_bytes) {
            Some(name) => self.within(conn.query_drop(format!("PURGE BINARY LOGS TO '{name}'"))).await,
            None => Ok(()),
        }
    }
}

/// Returns the first file that stays, of names and bytes in the log's order; `None` if all stay.
fn first_kept(files: &[(String, u64)], max_bytes: u64) -> Option<&str> {
    let (last, older) = files.split_last()?;
    let mut total = last.1;
    let fits = |file: &&(String, u64)| {
        total = total.saturating_add(file.1);
        total <= max_bytes
    };
    let kept = older.iter().rev().take_while(fits).count();
    (kept < older.len()).then(|| files[older.len() - kept].0.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_files_go_until_the_rest_fits() {
        let files = [("a".to_owned(), 30), ("b".to_owned(), 20), ("c".to_owned(), 10)];
        for (max_bytes, kept) in [(60, None), (59, Some("b")), (30, Some("b")), (29, Some("c")), (0, Some("c"))] {
            assert_eq!(first_kept(&files, max_bytes), kept, "{max_bytes}");
        }
        assert_eq!(first_kept(&files[..1], 0), None);
        assert_eq!(first_kept(&[], 0), None);
    }
}
