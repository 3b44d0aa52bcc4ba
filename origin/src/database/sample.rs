//! Rows as the driver returns them, made without a database, for the benchmarks in `benches`.

use super::json::Decoder;
use super::run::{CHUNK_BYTES, CHUNK_ROOM_BYTES, bind, write_cells};
use crate::query::sql::Statement;
use mysql_async::{Params, Value};
use shared::envelope::{ColumnLabels, Encoder, Shape};
use shared::format::Format;

pub fn bound(statement: Statement) -> (String, Params) {
    let (text, params) = statement.into_parts();
    (text, bind(params))
}

#[derive(Debug)]
pub struct Sample {
    keys: ColumnLabels,
    decoders: Vec<Decoder>,
    rows: Vec<Vec<Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prose {
    Plain,
    Unicode,
    Quoted,
}

impl Sample {
    pub fn posts(count: u32, prose: Prose) -> Self {
        let (title, paragraph) = match prose {
            Prose::Plain => (
                "Three mistakes with the Sunday roast and how to avoid them",
                "The sea was flat that morning and nobody on the pier had much to say about it. ",
            ),
            Prose::Unicode => (
                "Três erros com o assado de domingo — und wie man sie vermeidet",
                "Море было спокойным в то утро; 桟橋の誰もあまり話さなかった – naïve, oui, mais vrai. ",
            ),
            Prose::Quoted => (
                "\"Three mistakes\" with the Sunday roast\\and how to avoid them",
                "\"The sea was flat,\" he said,\n\"and nobody had much to say.\"\n",
            ),
        };
        let meta = r#"{"lang":"en","place":"the Dolomites","readingMinutes":3,"featured":true,"tags":["sea",17,null]}"#;
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        Self {
            keys: ColumnLabels::new([
                "id",
                "author_id",
                "category",
                "title",
                "body",
                "price",
                "rating",
                "views",
                "is_published",
                "published_at",
                "meta",
                "deleted_at",
            ]),
            decoders: vec![
                Decoder::Integer,
                Decoder::Integer,
                Decoder::Text,
                Decoder::Text,
                Decoder::Text,
                Decoder::Text,
                Decoder::Float,
                Decoder::Integer,
                Decoder::Integer,
                Decoder::DateTime(0),
                Decoder::Json,
                Decoder::DateTime(0),
            ],
            rows: (0..count)
                .map(|n| {
                    vec![
                        Value::UInt(u64::from(n)),
                        Value::UInt(u64::from(n % 97)),
                        text("railways"),
                        text(title),
                        text(&paragraph.repeat(4)),
                        text(&format!("{}.{:02}", n % 50, n % 100)),
                        Value::Double(f64::from(n) / 7.0),
                        Value::Int(i64::from(n) * 31),
                        Value::Int(1),
                        Value::Date(2026, 11, 20, 8, 36, 16, 0),
                        text(meta),
                        Value::NULL,
                    ]
                })
                .collect(),
        }
    }

    pub fn numbers(count: u32) -> Self {
        const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
        Self {
            keys: ColumnLabels::new(NAMES),
            decoders: vec![Decoder::Integer; NAMES.len()],
            rows: (0..i64::from(count)).map(|n| (0..8).map(|at| Value::Int(n * (1 << (at * 4)))).collect()).collect(),
        }
    }

    pub fn encode(&self, format: Format) -> usize {
        let mut bytes = 0;
        let mut encoder = Encoder::begin_as(format, Shape::Rows, &self.keys, CHUNK_ROOM_BYTES);
        for row in &self.rows {
            write_cells(&mut encoder, &self.keys, &self.decoders, |at| &row[at]);
            if encoder.len() >= CHUNK_BYTES {
                bytes += encoder.take().len();
            }
        }
        bytes + encoder.finish().len()
    }
}
