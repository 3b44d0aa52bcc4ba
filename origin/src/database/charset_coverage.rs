//! Asks MariaDB which characters a character set can hold, and caches the answer.

use crate::database::typed_rows;
use crate::query::catalog::CharsetCoverage;
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Coverages by the name of the character set. A coverage takes 8 KiB; MariaDB has about 40 character sets.
#[derive(Debug, Default)]
pub(super) struct CharsetCoverages {
    known: Mutex<HashMap<String, Arc<CharsetCoverage>>>,
}

impl CharsetCoverages {
    /// Returns which characters `charset` (its name in `information_schema`) can hold; `None` for all of Unicode.
    pub(super) async fn of(&self, conn: &mut Conn, charset: &str) -> mysql_async::Result<Option<Arc<CharsetCoverage>>> {
        if matches!(charset, "utf8mb4" | "utf16" | "utf16le" | "utf32") {
            return Ok(None);
        }
        let known = self.known().get(charset).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let conversion = CONVERSIONS.iter().find(|(name, _)| *name == charset);
        let coverage = match conversion {
            Some((_, query)) => asked(conn, charset, query).await?,
            // utf8mb3, ucs2 and character sets not listed here: assumes the first 65,536 characters of Unicode. MariaDB
            // itself refuses characters that an unlisted set lacks.
            None => CharsetCoverage::first_plane(charset),
        };
        let coverage = Arc::new(coverage);
        self.known().insert(charset.to_owned(), Arc::clone(&coverage));
        Ok(Some(coverage))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<CharsetCoverage>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn asked(conn: &mut Conn, charset: &str, query: &'static str) -> mysql_async::Result<CharsetCoverage> {
    let sample = CharsetCoverage::sample();
    let converted: Option<String> = typed_rows::first(conn.exec_iter(query, (sample.as_str(),))).await?;
    let converted = converted.unwrap_or_default();
    Ok(CharsetCoverage::compared(charset, &sample, &converted))
}

macro_rules! conversions {
    ($($charset:literal)*) => {
        &[$((
            $charset,
            concat!("SELECT CONVERT(CONVERT(? USING ", $charset, ") USING utf8mb4)"),
        )),*]
    };
}

const CONVERSIONS: &[(&str, &str)] = conversions![
    "armscii8" "ascii" "big5" "cp1250" "cp1251" "cp1256" "cp1257" "cp850" "cp852" "cp866" "cp932"
    "dec8" "eucjpms" "euckr" "gb2312" "gbk" "geostd8" "greek" "hebrew" "hp8" "keybcs2" "koi8r"
    "koi8u" "latin1" "latin2" "latin5" "latin7" "macce" "macroman" "sjis" "swe7" "tis620" "ujis"
];
