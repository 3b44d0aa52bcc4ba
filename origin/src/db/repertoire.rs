//! What characters the character sets hold, asked of MariaDB itself: once for each, since it never changes.

use crate::catalog::Repertoire;
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The character sets met so far; MariaDB has about forty, of 8 KiB each here.
#[derive(Debug, Default)]
pub(super) struct Repertoires {
    known: Mutex<HashMap<String, Arc<Repertoire>>>,
}

impl Repertoires {
    /// That of a character set as `information_schema` names it; `None` if it holds all of Unicode.
    pub(super) async fn of(
        &self,
        conn: &mut Conn,
        charset: &str,
    ) -> mysql_async::Result<Option<Arc<Repertoire>>> {
        if matches!(charset, "utf8mb4" | "utf16" | "utf16le" | "utf32") {
            return Ok(None);
        }
        let known = self.known().get(charset).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let repertoire = match charset {
            "utf8mb3" | "utf8" | "ucs2" => Repertoire::first_plane(charset),
            _ => asked(conn, charset).await?,
        };
        let repertoire = Arc::new(repertoire);
        self.known()
            .insert(charset.to_owned(), Arc::clone(&repertoire));
        Ok(Some(repertoire))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Repertoire>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn asked(conn: &mut Conn, charset: &str) -> mysql_async::Result<Repertoire> {
    let sample = Repertoire::sample();
    let is_name = charset
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let converted: Option<String> = if is_name {
        let query = format!("SELECT CONVERT(CONVERT(? USING {charset}) USING utf8mb4)");
        conn.exec_first(query, (sample.as_str(),)).await?
    } else {
        None
    };
    let converted = converted.unwrap_or_default();
    Ok(Repertoire::compared(charset, &sample, &converted))
}
