//! The limits of requests, each with its unit in its name. Inputs are checked against them before they are parsed.

/// Bytes of a JSON body; more is 413. Bounds memory.
pub const JSON_BODY_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of a JSON body that the edge reads whole and parses; larger ones stream to the origin unread. An isolate has
/// 128 MiB for all its requests.
pub const EDGE_CHECKED_BODY_MAX_BYTES: usize = 1024 * 1024;

/// Origins of one edge: one for each region that Cloudflare names, and some more. Every request loops over them.
pub const ORIGINS_MAX_COUNT: usize = 16;

/// Bytes of a request's path and query; more is 414, whose hint names the POST alternative.
pub const URL_MAX_BYTES: usize = 16 * 1024;

/// Headers of a request, without those that proxies add; more is 431. The origin's HTTP parser reads 100 lines, of
/// which the rest is for proxies.
pub const HEADERS_MAX_COUNT: usize = 75;

/// Bytes of the names and values of a request's headers; more is 431. Together with the longest URL and what proxies
/// add, they fit the 128 KiB that workerd and the origin read of a head.
pub const HEADERS_MAX_BYTES: usize = 64 * 1024;

/// Pairs of one query string. Each is compared with those before it: a URL full of names would take a tenth of a
/// second. Pairs such as `query[id][value][]=12345` fill the longest URL with this many.
pub const QUERY_MAX_PAIRS: usize = 640;

/// Levels of `[` and `{` in a JSON text. Bounds recursion; MariaDB's own JSON stops at 32 too.
pub const JSON_NESTING_MAX_LEVELS: usize = 32;

/// Keys of one parsed JSON object: MariaDB's tables have at most 4,096 columns. Bounds memory.
pub const JSON_MEMBERS_MAX_COUNT: usize = 4_096;

/// Names in `selectFields` or `omitFields`: the most columns that a MariaDB table can have.
pub const FIELDS_MAX_COUNT: usize = 4_096;

pub const ORDER_MAX_STEPS: usize = 64;

pub const BATCH_MAX_ROWS: usize = 10_000;

/// Cells of one `batchData`: its rows, times the distinct fields that they name. 10,000 rows of 200 fields. Without it,
/// rows that each name a new field would turn 200 KB of text into gigabytes of empty cells.
pub const BATCH_MAX_CELLS: usize = 2_000_000;

/// Operations of one `/batch`. Each takes at least one round trip to MariaDB, during which the locks of those before it
/// are held.
pub const BATCH_OPERATIONS_MAX_COUNT: usize = 1_000;

/// Commas in one `/batch`, a bound on the values of all its operations together. Also the limit of cells of all its
/// inserts together.
pub const BATCH_COMMAS_MAX_COUNT: usize = BATCH_MAX_CELLS;

/// Rows that the reads of one `/batch` return together: the answer is buffered until the commit.
pub const BATCH_ANSWER_MAX_ROWS: usize = 10_000;

pub const BATCH_ANSWER_MAX_BYTES: usize = JSON_BODY_MAX_BYTES;

pub const IDEMPOTENCY_KEY_MAX_BYTES: usize = 255;

/// Seconds for which the answer of an insert is stored under its `Idempotency-Key`: a day.
pub const IDEMPOTENCY_LIFETIME_SECONDS: u64 = 24 * 60 * 60;

pub const JOIN_MAX_ITEMS: usize = 16;

/// Conditions of one join: an index of MariaDB has at most 32 columns.
pub const JOIN_MATCH_MAX_COUNT: usize = 32;

/// Bytes of a page's cursor, which holds the sort values of one row.
pub const PAGE_TOKEN_MAX_BYTES: usize = 256 * 1024;

/// Conditions in one `query`, `updateKeyValues` or `deleteKeyValues`, nested ones included. Bounds the statement's text
/// and the time MariaDB takes to optimise it.
pub const CONDITION_MAX_COUNT: usize = 1_000;

/// Values of one list (`IN`, a list operand). MariaDB turns long lists into a temporary table.
pub const LIST_MAX_VALUES: usize = 10_000;

/// Commas in one `query`, `updateKeyValues` or `deleteKeyValues`, a bound on the values of all its lists together:
/// MariaDB counts a statement's parameters in 16 bits, and each condition takes some more of them.
pub const CONDITION_COMMAS_MAX_COUNT: usize = 100_000;

/// Reads by key that one statement coalesces. Larger batches save nothing more per caller, and make callers wait
/// longer.
pub const COALESCED_READ_MAX_RECORDS: usize = 64;

/// Inserts that one statement coalesces. Larger batches save nothing more per row, and one refused row makes more
/// others be inserted again.
pub const COALESCED_INSERT_MAX_ROWS: usize = 64;

/// Values that one statement of coalesced inserts has: MariaDB keeps about 300 bytes for each in the prepared
/// statement.
pub const COALESCED_INSERT_MAX_VALUES: usize = 2_048;

/// Bytes of a row that is coalesced with others: 64 of them take 1 MiB, an eighth of MariaDB's default
/// `max_allowed_packet`. Larger rows gain nothing.
pub const COALESCED_ROW_MAX_BYTES: usize = 16 * 1024;

/// Characters of an identifier: MariaDB's own limit.
pub const IDENTIFIER_MAX_CHARS: usize = 64;

/// Characters of a project's name: with `-rw`, `_` and `selkie-` it fits MariaDB's 80 for an account and 64 for a
/// database.
pub const PROJECT_NAME_MAX_CHARS: usize = 32;

/// Bytes of an `Authorization` header. Selkie's tokens take about 350.
pub const AUTHORIZATION_MAX_BYTES: usize = 2_048;

/// Valid public signing keys at once. Rotation needs two.
pub const SIGNING_KEYS_MAX_COUNT: usize = 4;

/// Seconds that a key's `iat` may lie ahead of the verifier's clock.
pub const CLOCK_SKEW_MAX_SECONDS: u64 = 300;

/// Bytes of a caller's `X-Request-Id`.
pub const REQUEST_ID_MAX_BYTES: usize = 128;

/// Requests per period of one rate limit: more than any installation answers.
pub const RATE_REQUESTS_MAX_COUNT: u32 = 10_000_000;

/// Seconds of a rate limit's period: the longest that a refused caller waits.
pub const RATE_PERIOD_MAX_SECONDS: u32 = 60 * 60;

/// Keys whose requests are counted at once, at about 150 bytes each: 10 MB. Beyond it, the counters of the least busy
/// keys are reset.
pub const RATED_KEYS_MAX_COUNT: usize = 65_536;

/// Concurrent uploads, until they are validated. Each has two buffers of 256 KiB and a parser of 64 KiB: 150 MB in
/// total.
pub const UPLOADS_MAX_COUNT: u64 = 256;

/// Concurrent uploads of one project: half of all, so that other projects can upload too.
pub const UPLOADS_PER_PROJECT_MAX_COUNT: u64 = 128;

/// Minimum average rate of a request body over `body_read_timeout`, less than the slowest mobile networks send. Keeps a
/// slow body from holding a slot for days.
pub const BODY_MIN_BYTES_PER_SECOND: u64 = 1_024;

/// Parameters of one `/sql` statement: MariaDB counts them in 16 bits.
pub const SQL_PARAMS_MAX_COUNT: usize = 65_535;

/// Bytes of a medium's name, and of its folder's path: the limit of common file systems.
pub const MEDIA_NAME_MAX_BYTES: usize = 255;

/// Bytes of an `Upload-Metadata`: a name and a folder of 255 bytes each in base64, and as much for what clients add.
/// Stored with the upload and repeated in answers to `HEAD`.
pub const TUS_METADATA_MAX_BYTES: usize = 4_096;

/// Unfinished resumable uploads of one project: each may hold disk space until it expires.
pub const TUS_OPEN_MAX_COUNT: usize = 100;

/// Bytes of all unfinished resumable uploads of one project, as a multiple of the largest allowed (`tus_max_bytes`): 64
/// GiB by default. Keeps one project from filling the staging disk.
pub const TUS_OPEN_MAX_LARGEST: u64 = 4;

/// Seconds for which a finished resumable upload can still be queried for its file, by a client that lost the last
/// answer.
pub const TUS_FINISHED_SECONDS: u64 = 60 * 60;

/// Entries of one page of a media listing, which is buffered.
pub const MEDIA_LIST_MAX_ITEMS: u64 = 10_000;

/// Seconds for which a signed URL may be valid: a week. It can't be revoked before.
pub const SIGNED_URL_MAX_SECONDS: u64 = 7 * 24 * 60 * 60;

/// Bytes of an upload's request body. Base64 makes a file a third larger: 190 MB of files.
pub const UPLOAD_BODY_MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Files of one upload.
pub const UPLOAD_MAX_ITEMS: usize = 64;

/// Files that one response tells the edge to purge: four times the default of an upload's files. Their names take 8.5
/// kB of a header, of which Cloudflare accepts 128 kB and other proxies 16 kB.
pub const PURGED_MAX_COUNT: usize = 256;

/// Bytes of a key or short text of an upload (a name, a folder) as it is written: a name of [`MEDIA_NAME_MAX_BYTES`]
/// takes 1,530 if each byte is an escape like `\u0061`.
pub const UPLOAD_TEXT_MAX_BYTES: usize = 2_048;

/// Bytes before the comma of a data URL: a type has at most 255 (RFC 6838), and some programs add the file's name,
/// percent-encoded.
pub const UPLOAD_LABEL_MAX_BYTES: usize = 1_024;

/// Bytes of the header lines of one part of a multipart body: a name twice, percent-encoded, and a type.
pub const UPLOAD_PART_HEAD_MAX_BYTES: usize = 8 * 1024;

/// Bytes of a multipart boundary, by RFC 2046.
pub const UPLOAD_BOUNDARY_MAX_BYTES: usize = 70;

/// Bytes of a file decoded from base64 at once, the parser's only large buffer. A multiple of 3, the bytes that four
/// characters encode.
pub const UPLOAD_CHUNK_BYTES: usize = 65_535;

/// Pixels of an image that is decoded: the largest cameras make as many. A file of a few KB can claim billions.
pub const IMAGE_MAX_PIXELS: u64 = 100_000_000;

/// Pixels of one side of an image: JPEG's own limit.
pub const IMAGE_EDGE_MAX_PIXELS: u32 = 65_535;

pub const THUMBNAIL_EDGE_PIXELS: u32 = 256;

/// Bytes of one image file: 100 megapixels of four samples of 16 bits are 800 MB without compression.
pub const IMAGE_FILE_MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// Bytes of memory that all images take together while they are decoded; an image that needs more by itself is refused
/// before. A photograph takes 10 MB, 100 megapixels 300 MB where a format must be decoded whole at three bytes a pixel.
/// The rest of the process then fits a machine of 512 MB.
pub const IMAGE_MEMORY_MAX_BYTES: u64 = 380_000_000;

/// Images queued or being decoded: those of 16 requests of 64 files. A queued image is on disk and takes no memory.
pub const IMAGE_QUEUE_MAX_COUNT: usize = 1_024;

/// Images of one project queued or being decoded: half of all.
pub const IMAGE_QUEUE_PROJECT_MAX_COUNT: usize = IMAGE_QUEUE_MAX_COUNT / 2;

/// Seconds that an image waits in the queue before its upload gets a 503.
pub const IMAGE_WAIT_MAX_SECONDS: u64 = 60;

/// Seconds that decoding an image may take before its upload is refused. 100 megapixels take under ten.
pub const IMAGE_DECODE_MAX_SECONDS: u64 = 120;
