//! The further steps of a soak's callers, beside the durable writes of [`crate::work`]: reads with
//! related records, exports, images, private files, revoked keys, wrong keys, slow readers, and
//! clients that disconnect before the answer.

use std::{
    io::Cursor,
    time::{Duration, Instant},
};

use image::{ImageFormat, RgbImage};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    caller::{Answer, Refusal, Request},
    work::{DATABASE, PRIVATE, Worker, path_of, sql},
};

/// Indexes of the edge and the origin in the list of URLs that a soak's callers have.
pub(crate) const EDGE: usize = 0;
pub(crate) const ORIGIN: usize = 1;

/// Number of records in `things`: ten for each of 1,000 prices.
const THINGS: usize = 10_000;
/// Number of records in an export. An export for a slow reader has all records instead.
const EXPORTED: usize = 2_000;
/// Maximum time until a revoked key is refused, even if the database is restarted meanwhile.
const REVOKED_MAX: Duration = Duration::from_secs(30);
/// Pause of a slow reader between two chunks, and pause between two requests with a revoked key.
const READ_PAUSE: Duration = Duration::from_millis(20);
const REVOKED_PAUSE: Duration = Duration::from_millis(200);
/// Maximum pause between two steps, and maximum time until a client disconnects, in milliseconds.
const PAUSE_MAX_MS: u64 = 60;
const LEAVE_MAX_MS: u64 = 150;

pub(crate) fn tables() -> [String; 4] {
    [
        "CREATE TABLE authors (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL)".to_owned(),
        "INSERT INTO authors SELECT seq, CONCAT('Author ', seq) FROM seq_1_to_100".to_owned(),
        "CREATE TABLE things (id INT PRIMARY KEY, author_id INT NOT NULL REFERENCES authors (id), \
         title VARCHAR(300) NOT NULL, price DECIMAL(8, 2) NOT NULL, KEY (price))"
            .to_owned(),
        format!(
            "INSERT INTO things SELECT seq, 1 + seq MOD 100, REPEAT(CONCAT('Thing ', seq, ' '), 20), seq MOD 1000 \
             FROM seq_1_to_{THINGS}"
        ),
    ]
}

impl Worker {
    /// Runs a random step other than an upload, at the edge or at the origin, then pauses.
    pub(crate) async fn mixed_step(&mut self) -> Result<(), Refusal> {
        self.choose_host();
        let (name, result) = match self.random.below(40) {
            0..=17 => ("steps on the caller's own records", self.step().await),
            18..=22 => ("filtered reads with the records' authors", self.things_with_authors().await),
            23..=25 => ("reads of authors with their records", self.authors_with_things().await),
            26..=28 => ("SQL statements", self.count_by_sql().await),
            29..=30 => ("NDJSON exports", self.export().await),
            31..=32 => ("keys created, used and revoked", self.key_and_its_end().await),
            33..=35 => ("wrong keys refused", self.wrong_key().await),
            36..=38 => ("requests left by their caller", self.leave().await),
            _ => ("exports read slowly", self.read_slowly().await),
        };
        self.end_step(name, result).await
    }

    /// Uploads a file of a random kind and reads it, at the edge or at the origin, then pauses.
    pub(crate) async fn files_step(&mut self) -> Result<(), Refusal> {
        self.choose_host();
        let (name, result) = match self.random.below(4) {
            0..=1 => ("uploads of files", self.upload().await),
            2 => ("uploads of pictures with thumbnails", self.picture().await),
            _ => ("uploads of private files", self.private_file().await),
        };
        self.end_step(name, result).await
    }

    fn choose_host(&mut self) {
        self.caller.edge = if self.random.below(2) == 0 { EDGE } else { ORIGIN };
    }

    fn count(&self, name: &'static str) {
        self.caller.tally.tell(|told| *told.steps.entry(name).or_default() += 1);
    }

    async fn end_step(&mut self, name: &'static str, result: Result<(), Refusal>) -> Result<(), Refusal> {
        if result.is_ok() {
            self.count(name);
        }
        sleep(Duration::from_millis(self.random.below(PAUSE_MAX_MS))).await;
        result
    }

    fn tell_wrong(&self, text: String) {
        self.caller.tally.tell(|told| told.wrong.add(text));
    }

    /// Checks that an answer is a refusal with this code. Records a success as wrong, and returns
    /// any other refusal.
    fn must_refuse(&self, what: &str, answer: Result<Answer, Refusal>, code: &str) -> Result<(), Refusal> {
        match answer {
            Err(refusal) if refusal.code == code => {}
            Err(refusal) => return Err(refusal),
            Ok(_) => self.tell_wrong(format!("{what} is not refused with {code}")),
        }
        Ok(())
    }

    async fn things_with_authors(&mut self) -> Result<(), Refusal> {
        let price = self.random.below(1_000);
        let path = format!(
            "/api/v1/crud/{DATABASE}/things?include=author&order=-id&limit=10\
             &query=%7B%22price%22%3A%7B%22value%22%3A{price}%2C%22equality%22%3A%22%3E%3D%22%7D%7D"
        );
        let things = self.caller.look(path).await?.payload();
        let things = things.as_array().map(Vec::as_slice).unwrap_or_default();
        if things.len() != 10 || things.iter().any(|thing| thing["author"]["id"] != thing["author_id"]) {
            self.tell_wrong(format!("{} things from price {price}, or not with their authors", things.len()));
        }
        Ok(())
    }

    async fn authors_with_things(&mut self) -> Result<(), Refusal> {
        let page = 1 + self.random.below(10);
        let include = "%7B%22relation%22%3A%22things%22%2C%22limit%22%3A3%7D";
        let path = format!("/api/v1/crud/{DATABASE}/authors?include={include}&order=id&limit=10&page={page}");
        let authors = self.caller.look(path).await?.payload();
        let authors = authors.as_array().map(Vec::as_slice).unwrap_or_default();
        let is_whole = |author: &Value| author["things"].as_array().is_some_and(|things| things.len() == 3);
        if authors.len() != 10 || !authors.iter().all(is_whole) {
            self.tell_wrong(format!("page {page} has {} authors, or not three things of each", authors.len()));
        }
        Ok(())
    }

    async fn count_by_sql(&mut self) -> Result<(), Refusal> {
        let mut body = sql("SELECT COUNT(*) AS things FROM things WHERE price = ?");
        body["params"] = json!([self.random.below(1_000)]);
        let request = Request::new(Method::POST, "/api/v1/sql".to_owned()).json(body);
        let rows = self.caller.write(&request).await?.payload();
        if rows[0]["things"] != THINGS / 1_000 {
            self.tell_wrong(format!("a count answers {rows}"));
        }
        Ok(())
    }

    async fn export(&mut self) -> Result<(), Refusal> {
        let answer = self.caller.get(&export_of(EXPORTED)).await?;
        let lines = lines_in(&answer.body);
        if lines != EXPORTED {
            self.tell_cut(lines, EXPORTED);
        }
        Ok(())
    }

    /// Records that an export is incomplete although its body ended without an error. At the edge
    /// this is only counted: unlike a deployed worker, a local workerd ends a body properly even if
    /// the origin broke it off (docs/troubleshooting.md, "Limits of the local edge").
    fn tell_cut(&self, lines: usize, expected: usize) {
        if self.caller.edge == EDGE {
            self.count("exports that a fault cut off and the local workerd ended in order");
        } else {
            self.tell_wrong(format!("an export ends with {lines} lines of {expected}, and no error"));
        }
    }

    /// Reads an export slowly, in one of three cases only its first quarter. A fault may break the
    /// export off, but the body must not end as if it were complete.
    async fn read_slowly(&mut self) -> Result<(), Refusal> {
        let leaves_after = if self.random.below(3) == 0 { THINGS / 4 } else { THINGS };
        let Ok(mut answer) = self.caller.builder_of_slow(&export_of(THINGS)).send().await else { return Ok(()) };
        if !answer.status().is_success() {
            return Ok(());
        }
        let mut lines = 0;
        while lines < leaves_after {
            match answer.chunk().await {
                Ok(Some(piece)) => lines += lines_in(&piece),
                Ok(None) => {
                    self.tell_cut(lines, THINGS);
                    break;
                }
                Err(_) => break,
            }
            sleep(READ_PAUSE).await;
        }
        Ok(())
    }

    async fn leave(&mut self) -> Result<(), Refusal> {
        let request = match self.random.below(3) {
            0 => Request::new(Method::POST, "/api/v1/sql".to_owned()).json(sql("SELECT SLEEP(5)")),
            1 => export_of(THINGS),
            _ => {
                self.number += 1;
                Request::new(Method::POST, format!("/api/v1/crud/{DATABASE}/events"))
                    .json(json!({"caller": self.caller.number, "number": self.number, "note": "left"}))
            }
        };
        let received = async { self.caller.builder_of_slow(&request).send().await?.bytes().await };
        let _ = timeout(Duration::from_millis(self.random.below(LEAVE_MAX_MS)), received).await;
        Ok(())
    }

    async fn wrong_key(&mut self) -> Result<(), Refusal> {
        let key = self.caller.key();
        // The signature differs each time.
        let unsigned = key.get(..key.len().saturating_sub(8)).unwrap_or_default();
        let wrong = format!("{unsigned}{:08x}", self.random.below(1 << 32));
        let answer = self.caller.read_as(&wrong, self.counter_path()).await;
        self.must_refuse("a wrong key", answer, "invalid_key")
    }

    async fn key_and_its_end(&mut self) -> Result<(), Refusal> {
        let body = json!({"access": "read", "name": format!("caller {}", self.caller.number)});
        let request = Request::new(Method::POST, "/api/v1/keys".to_owned()).json(body);
        let created = self.caller.write(&request).await?.payload();
        let text = |member: &str| created[member].as_str().unwrap_or_default().to_owned();
        let (id, key) = (text("id"), text("key"));
        self.caller.read_as(&key, self.counter_path()).await?;
        self.caller.write(&Request::new(Method::DELETE, format!("/api/v1/keys/{id}"))).await?;
        let revoked = Instant::now();
        loop {
            let answer = self.caller.read_as(&key, self.counter_path()).await;
            if answer.is_err() || revoked.elapsed() > REVOKED_MAX {
                return self.must_refuse("a revoked key", answer, "revoked_key");
            }
            sleep(REVOKED_PAUSE).await;
        }
    }

    fn counter_path(&self) -> String {
        format!("/api/v1/crud/{DATABASE}/counters/{}", self.caller.number)
    }

    async fn picture(&mut self) -> Result<(), Refusal> {
        let colour = [(); 3].map(|()| u8::try_from(self.random.below(256)).unwrap_or_default());
        let picture = RgbImage::from_fn(640, 480, |x, y| {
            let [red, green, blue] = colour;
            image::Rgb([red.wrapping_add(x.to_le_bytes()[0]), green.wrapping_add(y.to_le_bytes()[0]), blue])
        });
        let mut bytes = Vec::new();
        if let Err(error) = picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png) {
            self.tell_wrong(format!("no picture can be made: {error}"));
        }
        let stored = self.upload_as("png", "image/png", &bytes).await?;
        let thumbnail = path_of(stored["thumbnailUrl"].as_str().unwrap_or_default());
        let answer = self.caller.look(thumbnail.clone()).await?;
        if !image::load_from_memory(&answer.body).is_ok_and(|picture| picture.width() == 256) {
            self.tell_wrong(format!("{thumbnail} is no picture of 256 pixels"));
        }
        Ok(())
    }

    async fn private_file(&mut self) -> Result<(), Refusal> {
        let bytes = self.random.below(u64::MAX).to_string().into_bytes();
        let stored = self.upload_as(PRIVATE, "application/octet-stream", &bytes).await?;
        let url = stored["url"].as_str().unwrap_or_default();
        self.fetch(url, &bytes).await?;
        let answer = self.caller.read_as("", path_of(url)).await;
        self.must_refuse("a private file without a key", answer, "media_not_found")
    }
}

fn export_of(records: usize) -> Request {
    Request::new(Method::GET, format!("/api/v1/crud/{DATABASE}/things?order=id&limit={records}"))
        .header("Accept", "application/x-ndjson".to_owned())
}

fn lines_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}
