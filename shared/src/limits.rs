//! Every number that bounds what a caller may ask for, with its unit in its name.
//!
//! A limit wraps its input before the input is parsed; each entry names what it keeps away.

/// Bytes of a JSON body: a larger one is 413. Keeps a caller from filling memory.
pub const JSON_BODY_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of a JSON body that the edge reads whole; of larger ones it checks the form while they stream
/// through to the origin. An isolate has 128 MiB for all its requests.
pub const EDGE_CHECKED_BODY_MAX_BYTES: usize = 1024 * 1024;

/// Origins that one edge knows: one for each region that Cloudflare names, with some to spare. Keeps the choice
/// among them, which every request makes, a short loop.
pub const ORIGINS_MAX_COUNT: usize = 16;

/// Bytes of a request's path and query: a longer one is 414, which names the POST twin.
pub const URL_MAX_BYTES: usize = 16 * 1024;

/// Headers of a request, those that proxies add not counted: a request with more is 431. The origin's HTTP parser reads 100
/// lines, of which proxies have the rest.
pub const HEADERS_MAX_COUNT: usize = 75;

/// Bytes of the names and values of a request's headers: more are 431. With the longest URL and what proxies add, they
/// are within the 128 KiB that workerd and the origin read of a head.
pub const HEADERS_MAX_BYTES: usize = 64 * 1024;

/// Pairs of one query string. Each is compared with those before it, so that a URL of nothing but names
/// would take a tenth of a second to be refused. `query[id][value][]=12345` fills a URL with as many.
pub const QUERY_MAX_PAIRS: usize = 640;

/// Levels of `[` and `{` in a JSON text. Keeps recursion shallow; MariaDB's own JSON stops at 32 too.
pub const JSON_NESTING_MAX_LEVELS: usize = 32;

/// Keys of one object that is taken apart: MariaDB's tables have 4,096 columns at most. Keeps a body
/// of nothing but keys from filling memory.
pub const JSON_MEMBERS_MAX_COUNT: usize = 4_096;

/// Names in `selectFields` or `omitFields`: all columns that a MariaDB table can have.
pub const FIELDS_MAX_COUNT: usize = 4_096;

/// Steps of one `order`: more than anybody sorts by.
pub const ORDER_MAX_STEPS: usize = 64;

/// Rows of one `batchData`.
pub const BATCH_MAX_ROWS: usize = 10_000;

/// Rows of one `batchData`, times the fields that any of them names: a row has a cell for each. 10,000
/// rows of 200 fields. Keeps away rows that name a new field each, of which 200 KB of text would make
/// gigabytes of empty cells.
pub const BATCH_MAX_CELLS: usize = 2_000_000;

/// Operations of one `/batch`: each takes a round trip to MariaDB or more, while the locks of those
/// before it are held.
pub const BATCH_OPERATIONS_MAX_COUNT: usize = 1_000;

/// Commas in one `/batch`, which bound the values of all its operations together; as many as the cells
/// of one `batchData`, which bound the cells of all its inserts together too.
pub const BATCH_COMMAS_MAX_COUNT: usize = BATCH_MAX_CELLS;

/// Rows that the reads of one `/batch` give together: its answer is held until all is committed.
pub const BATCH_ANSWER_MAX_ROWS: usize = 10_000;

/// Bytes of the answer of one `/batch`: as many as its body may have.
pub const BATCH_ANSWER_MAX_BYTES: usize = JSON_BODY_MAX_BYTES;

/// Bytes of an `Idempotency-Key`.
pub const IDEMPOTENCY_KEY_MAX_BYTES: usize = 255;

/// Seconds for which an insert's answer is kept under its `Idempotency-Key`: a day.
pub const IDEMPOTENCY_LIFETIME_SECONDS: u64 = 24 * 60 * 60;

/// Items of one `join` list.
pub const JOIN_MAX_ITEMS: usize = 16;

/// Conditions of one join: a key of MariaDB has 32 columns at most.
pub const JOIN_MATCH_MAX_COUNT: usize = 32;

/// Bytes of the token of a page: a longer one is none of ours, which hold the sort values of one row.
pub const PAGE_TOKEN_MAX_BYTES: usize = 256 * 1024;

/// Conditions in one `query`, `updateKeyValues` or `deleteKeyValues`, nested ones included. Keeps the statement's text
/// and its optimisation in MariaDB short.
pub const CONDITION_MAX_COUNT: usize = 1_000;

/// Values of one list (`IN`, a list operand). MariaDB turns long lists into a temporary table.
pub const LIST_MAX_VALUES: usize = 10_000;

/// Commas in one `query`, `updateKeyValues` or `deleteKeyValues`, which bound the values of all its lists together:
/// MariaDB counts a statement's parameters in 16 bits, and each condition has some parts more.
pub const CONDITION_COMMAS_MAX_COUNT: usize = 100_000;

/// Records that one statement reads for as many callers: beyond it, a larger one costs each of them as
/// much, and those who wait for its last row wait longer.
pub const COALESCED_READ_MAX_RECORDS: usize = 64;

/// Records that one statement inserts for as many callers: beyond it, a row costs no less, and more
/// neighbours pay for one that is refused.
pub const COALESCED_INSERT_MAX_ROWS: usize = 64;

/// Values that one statement inserts for as many callers, so that what MariaDB keeps of it, prepared, stays
/// small: some 300 bytes for each.
pub const COALESCED_INSERT_MAX_VALUES: usize = 2_048;

/// Bytes of a record's values that goes with others: with all of them it is within 1 MiB, an eighth of MariaDB's
/// default packet. What is larger gains nothing.
pub const COALESCED_ROW_MAX_BYTES: usize = 16 * 1024;

/// Characters of one identifier: MariaDB's own limit.
pub const IDENTIFIER_MAX_CHARS: usize = 64;

/// Characters of a project's name: with `-rw`, `_` and `selkie-` it stays within MariaDB's 80 for an
/// account and 64 for a database.
pub const PROJECT_NAME_MAX_CHARS: usize = 32;

/// Bytes of an `Authorization` header. Our tokens take about 350; verification never sees more.
pub const AUTHORIZATION_MAX_BYTES: usize = 2_048;

/// Live public signing keys at once. Rotation needs two; more leave room for a hand-over, and a token
/// must never choose among many.
pub const SIGNING_KEYS_MAX_COUNT: usize = 4;

/// Seconds that a key's `iat` may lie ahead of the clock that reads it: machines disagree a little,
/// but a key from next year is none of ours.
pub const CLOCK_SKEW_MAX_SECONDS: u64 = 300;

/// Bytes of an incoming `X-Request-Id` that is kept.
pub const REQUEST_ID_MAX_BYTES: usize = 128;

/// Requests of one rate limit: no more than any installation answers within its period.
pub const RATE_REQUESTS_MAX_COUNT: u32 = 10_000_000;

/// Seconds of the period of one rate limit: an hour. Who is refused must not have to wait for a day.
pub const RATE_PERIOD_MAX_SECONDS: u32 = 60 * 60;

/// Keys whose requests are counted at once: about 150 bytes each, so 10 MB at most. Of more keys that are in use at
/// the same time, the least busy begin to count anew.
pub const RATED_KEYS_MAX_COUNT: usize = 65_536;

/// Uploads that arrive or are examined at once. Each holds two pieces of a file of 256 KiB and a parser of 64: 150 MB at
/// most.
pub const UPLOADS_MAX_COUNT: u64 = 256;

/// Uploads of one project that arrive or are examined at once: half of all, so that it leaves room to the others, and a
/// hundred pictures at once are taken.
pub const UPLOADS_PER_PROJECT_MAX_COUNT: u64 = 128;

/// Bytes of a body that must arrive in each second for which its caller is waited for, on average over
/// `body_read_timeout`: less than the slowest mobile networks send. Keeps bodies that drip from holding a slot for days.
pub const BODY_MIN_BYTES_PER_SECOND: u64 = 1_024;

/// Parameters of one `/sql` statement: MariaDB's prepared statements count them in 16 bits.
pub const SQL_PARAMS_MAX_COUNT: usize = 65_535;

/// Bytes of a medium's name, and of its folder's path: what file systems take, should it ever be saved.
pub const MEDIA_NAME_MAX_BYTES: usize = 255;

/// Bytes of an `Upload-Metadata`: a name and a folder of 255 bytes each as base64, and as much again of what
/// clients add for themselves. It is stored, and repeated to whoever asks how far the upload is.
pub const TUS_METADATA_MAX_BYTES: usize = 4_096;

/// Resumable uploads of one project that are under way: each may hold a file's worth of disk until it expires.
pub const TUS_OPEN_MAX_COUNT: usize = 100;

/// Bytes of all resumable uploads of one project that are under way, as a multiple of the largest (`tus_max_bytes`): 64 GiB
/// unless that is changed. Keeps one project from filling the disk that all uploads arrive on.
pub const TUS_OPEN_MAX_LARGEST: u64 = 4;

/// Seconds for which a finished resumable upload tells which file it has become: an hour, in which a client whose
/// last answer was lost comes back.
pub const TUS_FINISHED_SECONDS: u64 = 60 * 60;

/// Entries of one listing of media: it is held whole before it is sent. More are read page by page.
pub const MEDIA_LIST_MAX_ITEMS: u64 = 10_000;

/// Seconds for which a signed URL may be valid: a week. It can't be taken back before.
pub const SIGNED_URL_MAX_SECONDS: u64 = 7 * 24 * 60 * 60;

/// Bytes of one upload's body, as it is sent. Base64 makes a file a third larger: 190 MB of files.
pub const UPLOAD_BODY_MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Files of one upload: each may have a decoder, a thumbnail and a row to itself.
pub const UPLOAD_MAX_ITEMS: usize = 64;

/// Files that one answer has an edge forget: four times the default of an upload's files. Their names are 8.5 kB of a
/// header then, of which Cloudflare takes 128 kB and other proxies 16.
pub const FORGOTTEN_MAX_COUNT: usize = 256;

/// Bytes of a key or short text of an upload (a name, a folder) as it is written: a name of
/// [`MEDIA_NAME_MAX_BYTES`] takes 1,530 where each is an escape like `\u0061`. Keeps a name without an end
/// out of memory.
pub const UPLOAD_TEXT_MAX_BYTES: usize = 2_048;

/// Bytes before the comma of a data URL: a type has 255 at most (RFC 6838), and some programs add the
/// file's name, percent-encoded.
pub const UPLOAD_LABEL_MAX_BYTES: usize = 1_024;

/// Bytes of the header lines of one part of a multipart body: a name twice, percent-encoded, and a type.
pub const UPLOAD_PART_HEAD_MAX_BYTES: usize = 8 * 1024;

/// Bytes of a multipart boundary: RFC 2046 allows as many.
pub const UPLOAD_BOUNDARY_MAX_BYTES: usize = 70;

/// Bytes of a file that are decoded from base64 at once: the parser's only large buffer. A multiple of 3,
/// the bytes of four characters.
pub const UPLOAD_CHUNK_BYTES: usize = 65_535;

/// Pixels of a picture that is decoded: what the largest cameras make. A file of a few KB can claim billions.
pub const IMAGE_MAX_PIXELS: u64 = 100_000_000;

/// Pixels of one side of a picture: JPEG's own limit.
pub const IMAGE_EDGE_MAX_PIXELS: u32 = 65_535;

/// Pixels of each side of a thumbnail, at most.
pub const THUMBNAIL_EDGE_PIXELS: u32 = 256;

/// Bytes of one image file: 100 megapixels of four samples of 16 bits are 800 MB without compression.
pub const IMAGE_FILE_MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// Bytes of memory that all images take together while they are decoded. An image that needs more by itself is refused
/// before it is decoded. A photograph takes 10 MB, and 100 megapixels 300 MB where a format is decoded whole at three bytes
/// a pixel. The rest of the process stays within the 512 MB of a small machine.
pub const IMAGE_MEMORY_MAX_BYTES: u64 = 380_000_000;

/// Images that wait to be decoded, or are: those of sixteen requests of 64 items. One that waits takes no
/// memory: it lies on the disk.
pub const IMAGE_QUEUE_MAX_COUNT: usize = 1_024;

/// Images of one project that wait to be decoded, or are: half of all.
pub const IMAGE_QUEUE_PROJECT_MAX_COUNT: usize = IMAGE_QUEUE_MAX_COUNT / 2;

/// Seconds for which an image waits in the queue: after them its upload is answered with 503.
pub const IMAGE_WAIT_MAX_SECONDS: u64 = 60;

/// Seconds for which an image is decoded: after them its upload is refused. 100 megapixels take under ten.
pub const IMAGE_DECODE_MAX_SECONDS: u64 = 120;
