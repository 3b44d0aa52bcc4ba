//! Limits of requests and of work, with their units in their names. Where possible, an input is checked against its
//! limit before it is parsed.

use std::time::Duration;

/// Maximum `Content-Length` of JSON, CSV or NDJSON that the edge accepts with an API key, and the default of the
/// origin's setting `json_body_max_bytes`; a larger body gets a 413. Bounds memory.
pub const JSON_BODY_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Maximum bytes of a body that the edge parses. Longer ones, and those of unknown length, are streamed to the origin:
/// all requests of a Cloudflare isolate share 128 MiB of memory.
pub const EDGE_CHECKED_BODY_MAX_BYTES: usize = 1024 * 1024;

/// Maximum number of origins. Choosing one loops over all of them, and the bit set of tried origins has 32 bits.
pub const ORIGINS_MAX_COUNT: usize = 16;

/// Maximum bytes of path and query; more get a 414, whose hint names the `POST` route for long queries.
pub const URL_MAX_BYTES: usize = 16 * 1024;

/// Maximum number of headers of a request, without those that proxies add; more get a 431. The origin's HTTP parser
/// accepts 100 headers, which leaves 25 for proxies.
pub const HEADERS_MAX_COUNT: usize = 75;

/// Maximum size of the names and values of a request's headers; more gets a 431. Together with the longest URL and the
/// headers of proxies, this is within the 128 KiB that workerd and the origin accept for a head.
pub const HEADERS_MAX_BYTES: usize = 64 * 1024;

/// Maximum names in the header `Connection`; more get a 431. The edge compares each header of the request with all of
/// them. Clients and proxies send two, such as `keep-alive, upgrade`.
pub const CONNECTION_NAMES_MAX_COUNT: usize = 32;

/// Maximum parts (`name=value`) of a query string. 640 parts such as `query[id][value][]=12345` fill the longest URL;
/// without this limit, the longest URL could have thousands of shorter parts.
pub const QUERY_MAX_PAIRS: usize = 640;

/// Maximum nesting of `[` and `{` in JSON. Bounds recursion; MariaDB's JSON functions stop at 32 levels too.
pub const JSON_NESTING_MAX_LEVELS: usize = 32;

/// Maximum keys of one parsed JSON object, and cells of one CSV line: MariaDB's tables have at most 4,096 columns.
pub const JSON_MEMBERS_MAX_COUNT: usize = 4_096;

/// Maximum names in a list of fields, such as `selectFields`: the most columns that a MariaDB table can have.
pub const FIELDS_MAX_COUNT: usize = 4_096;

/// Maximum expressions in one list `selectFields`. With those of all joins, they have less than the 65,535 parameters of
/// a statement.
pub const EXPRESSIONS_MAX_COUNT: usize = 16;

pub const EXPRESSION_MAX_BYTES: usize = 256;

/// Counts the point too.
pub const EXPRESSION_NUMBER_MAX_DIGITS: usize = 30;

pub const ORDER_MAX_STEPS: usize = 64;

pub const BATCH_MAX_ROWS: usize = 10_000;

/// Maximum cells of one insert, from `batchData` or a body of CSV or NDJSON, and of all inserts of one `/batch`
/// together. The cells of an insert are its rows times the distinct fields that they name, such as 10,000 rows of 200
/// fields. Without this limit, rows that each name a new field would turn 200 KB of text into gigabytes of empty cells.
pub const BATCH_MAX_CELLS: usize = 2_000_000;

/// Maximum operations of a `/batch`. Each takes a round trip to MariaDB or more, while earlier ones hold their locks.
pub const BATCH_OPERATIONS_MAX_COUNT: usize = 1_000;

/// Maximum commas in one `/batch`. The number of commas bounds the number of values of all its operations together.
/// Equal to the maximum of cells of all its inserts together.
pub const BATCH_COMMAS_MAX_COUNT: usize = BATCH_MAX_CELLS;

/// Maximum total bytes of the ids that replace references (`$ref`) in a batch: an id may be a long text.
pub const BATCH_REFERENCED_MAX_BYTES: usize = 1024 * 1024;

/// Maximum rows that the operations of one `/batch` return together, or that one write returns. The response is
/// buffered until the commit.
pub const BATCH_ANSWER_MAX_ROWS: usize = 10_000;

pub const BATCH_ANSWER_MAX_BYTES: usize = JSON_BODY_MAX_BYTES;

/// Maximum memory of the responses above [`UNCOUNTED_ANSWER_MAX_BYTES`] that are held as a whole while their clients
/// read: single records, batches, lists that are not streamed.
pub const HELD_ANSWERS_MAX_BYTES: u64 = 512 * 1024 * 1024;

/// The maximum for one project: eight responses of [`BATCH_ANSWER_MAX_BYTES`], as many as a project has connections.
pub const HELD_ANSWERS_PER_PROJECT_MAX_BYTES: u64 = HELD_ANSWERS_MAX_BYTES / 4;

/// Maximum bytes of a response that is not counted: for most clients, the system takes a short response at once.
pub const UNCOUNTED_ANSWER_MAX_BYTES: u64 = 64 * 1024;

/// The same for HTTP/2, where a client may leave 256 responses of a connection unread: 2 MiB in total.
pub const UNCOUNTED_HTTP2_ANSWER_MAX_BYTES: u64 = 8 * 1024;

pub const IDEMPOTENCY_KEY_MAX_BYTES: usize = 255;

/// Seconds for which the response of an insert is stored under its `Idempotency-Key`: a day.
pub const IDEMPOTENCY_LIFETIME_SECONDS: u64 = 24 * 60 * 60;

pub const JOIN_MAX_ITEMS: usize = 16;

/// Maximum conditions of one join: an index of MariaDB has at most 32 columns.
pub const JOIN_MATCH_MAX_COUNT: usize = 32;

/// Maximum relations in the option `include` of one read, including nested ones.
pub const INCLUDE_MAX_COUNT: usize = 8;

pub const INCLUDE_MAX_DEPTH: usize = 4;

/// Maximum conditions on related records in one `query`, including nested ones: each is a subquery.
pub const RELATED_CONDITION_MAX_COUNT: usize = 8;

/// Maximum bytes of a relation's name: three names of 64 characters of four bytes, with dots between them.
pub const RELATION_NAME_MAX_BYTES: usize = 3 * 4 * IDENTIFIER_MAX_CHARS + 2;

/// Maximum records whose related records are read by one statement.
pub const INCLUDE_BATCH_MAX_RECORDS: usize = 256;

/// Maximum memory in bytes of the records that are related to [`INCLUDE_BATCH_MAX_RECORDS`] records. A request holds
/// the related records of only one such batch at a time.
pub const INCLUDE_MAX_BYTES: usize = 8 * 1024 * 1024;

/// Maximum size of a page's cursor, which contains the sort values of one row.
pub const PAGE_TOKEN_MAX_BYTES: usize = 256 * 1024;

/// Maximum conditions in one `query`, `updateKeyValues` or `deleteKeyValues`, including nested ones. Bounds the
/// statement's length and the time that MariaDB takes to optimise it.
pub const CONDITION_MAX_COUNT: usize = 1_000;

/// Maximum values of one list in a condition. MariaDB converts long lists to a temporary table.
pub const LIST_MAX_VALUES: usize = 10_000;

/// Maximum commas in one `query`, `updateKeyValues` or `deleteKeyValues`: bounds the values of all its lists together.
pub const CONDITION_COMMAS_MAX_COUNT: usize = 100_000;

/// Maximum records that coalesced reads get by one statement. More would save nothing further, but take longer.
pub const COALESCED_READ_MAX_RECORDS: usize = 64;

/// Maximum inserts that are coalesced into one statement. More would save nothing further per row, and a refused row
/// would cause more other rows to be inserted again.
pub const COALESCED_INSERT_MAX_ROWS: usize = 64;

/// Maximum values of a coalesced insert: MariaDB keeps 300 bytes for each value in a prepared statement.
pub const COALESCED_INSERT_MAX_VALUES: usize = 2_048;

/// Maximum size of a row that is coalesced with others. 64 such rows take 1 MiB, far less than MariaDB's default
/// `max_allowed_packet`. Larger rows would gain nothing.
pub const COALESCED_ROW_MAX_BYTES: usize = 16 * 1024;

/// Maximum characters of a database, table or field name: MariaDB's own limit.
pub const IDENTIFIER_MAX_CHARS: usize = 64;

/// Maximum characters of a project's name. The account `selkie-<project>-rw` then fits MariaDB's 80 characters, and of
/// the 64 characters of a database `<project>_<name>`, 31 are left for `<name>`.
pub const PROJECT_NAME_MAX_CHARS: usize = 32;

pub const ROLE_NAME_MAX_CHARS: usize = 64;

pub const ROLE_MAX_BYTES: usize = 256 * 1024;

/// Maximum bytes of the description of one table or view as MariaDB gives it: the names, types, defaults and comments of
/// its columns, and the facts of its keys. A view of 1,000 columns may repeat a long list of ENUM members in each.
pub const TABLE_DESCRIPTION_MAX_BYTES: usize = 4 * 1024 * 1024;

/// Maximum bytes of the descriptions of all tables and foreign keys of a database, as MariaDB gives them.
pub const DATABASE_DESCRIPTION_MAX_BYTES: usize = 32 * 1024 * 1024;

/// Maximum bytes of one description of the API: an OpenAPI document, or the types of a language. About 4,000 tables.
pub const API_DESCRIPTION_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Maximum memory of each cache of descriptions: of tables, of whole databases, of tables as roles see them, of foreign
/// keys.
pub const DESCRIPTIONS_CACHE_MAX_BYTES: u64 = 64 * 1024 * 1024;

pub const ROLES_PER_PROJECT_MAX_COUNT: usize = 1_000;

/// Maximum bytes of the definitions of one project's roles together: 64 of the largest size.
pub const ROLES_PER_PROJECT_MAX_BYTES: usize = 64 * ROLE_MAX_BYTES;

/// Maximum keys of one project that are neither revoked nor expired. Users in larger numbers have tokens of an issuer.
pub const KEYS_PER_PROJECT_MAX_COUNT: usize = 10_000;

/// Maximum number of revoked or expired keys in a project's list. A new key deletes the oldest ones beyond that, except
/// those that ended within the last minutes.
pub const DEAD_KEYS_PER_PROJECT_MAX_COUNT: usize = 10_000;

/// Default number of entries of one page of the lists of keys and roles.
pub const MANAGED_PAGE_COUNT: u64 = 100;

pub const MANAGED_PAGE_MAX_COUNT: u64 = 1_000;

pub const ROLE_TABLES_MAX_COUNT: usize = 1_000;

/// Maximum size of the claims that a key carries for its role, as JSON.
pub const KEY_CLAIMS_MAX_BYTES: usize = 1_024;

/// Maximum bytes of `Authorization`. Selkie's own tokens have about 350, those of other issuers some thousand.
pub const AUTHORIZATION_MAX_BYTES: usize = 8 * 1_024;

/// Maximum issuers whose tokens one project accepts from its users. All issuers are read at each change of keys.
pub const ISSUERS_PER_PROJECT_MAX_COUNT: usize = 16;

/// Maximum issuers of the installation whose users sign in to the console: its policy names them in a header.
pub const SIGN_IN_ISSUERS_MAX_COUNT: usize = 32;
/// Maximum number of those of one project.
pub const SIGN_IN_ISSUERS_PER_PROJECT_MAX_COUNT: usize = 4;

/// Maximum bytes of an issuer's URL, of its audience, and of the name of the claim that gives the role. They fit their
/// columns in `selkie.issuers`, which have 255 characters.
pub const ISSUER_MAX_BYTES: usize = 255;

pub const ISSUER_ROLES_MAX_COUNT: usize = 256;

pub const JWKS_MAX_BYTES: usize = 256 * 1024;

/// Maximum keys of an issuer's JWK set. Issuers publish two to ten.
pub const JWKS_KEYS_MAX_COUNT: usize = 64;

pub const JWKS_FETCH_MAX_SECONDS: u64 = 5;

/// Seconds after which an issuer's JWK set that is in use is fetched again.
pub const JWKS_REFRESH_SECONDS: u64 = 10 * 60;

/// Minimum seconds between fetches of a JWK set. Without them, anybody could cause fetches by an unknown `kid`.
pub const JWKS_FETCH_MIN_SECONDS: u64 = 60;

/// Minimum seconds between fetches until the first succeeds: until then, no token of the issuer can be verified.
pub const JWKS_FIRST_FETCH_MIN_SECONDS: u64 = 5;

/// Maximum issuers whose tokens an edge verifies. A Cloudflare variable has at most 5 KB, enough for about ten RSA keys
/// of issuers.
pub const EDGE_ISSUERS_MAX_COUNT: usize = 64;

/// Tolerance in seconds for `exp` and `nbf` of users' tokens, since the issuer's clock may differ from the server's.
pub const USER_TOKEN_LEEWAY_SECONDS: u64 = 60;

/// Maximum public signing keys that are valid at once. Rotation needs two.
pub const SIGNING_KEYS_MAX_COUNT: usize = 4;

/// Maximum seconds that an API key's `iat` may lie ahead of the verifier's clock.
pub const CLOCK_SKEW_MAX_SECONDS: u64 = 300;

pub const REQUEST_ID_MAX_BYTES: usize = 128;

/// Maximum requests per period of a rate limit: more than any installation answers.
pub const RATE_REQUESTS_MAX_COUNT: u32 = 10_000_000;

/// Maximum period of a rate limit, in seconds. It is also the longest time that a refused caller has to wait.
pub const RATE_PERIOD_MAX_SECONDS: u32 = 60 * 60;

/// Maximum callers (API keys and users) whose requests the origin counts for rate limits at the same time, at about 200
/// bytes each: 13 MB. If there are more callers, the counters of the least busy ones are reset.
pub const RATED_KEYS_MAX_COUNT: usize = 65_536;

/// Maximum requests of verified callers that an isolate of the edge has in flight to origins. Each takes a connection
/// to the origin and some 100 KB. As many more may wait for their turn.
pub const EDGE_REQUESTS_MAX_COUNT: usize = 1_000;

/// Maximum requests in flight from an isolate of the edge to origins with users' tokens that the edge can't verify.
pub const EDGE_UNVERIFIED_REQUESTS_MAX_COUNT: usize = EDGE_REQUESTS_MAX_COUNT / 2;

/// Maximum requests in flight from an isolate of the edge to origins without a key: public media, `/docs`, `/console`.
pub const EDGE_PUBLIC_REQUESTS_MAX_COUNT: usize = EDGE_REQUESTS_MAX_COUNT / 2;

/// Maximum requests for changes of verified callers that wait at an isolate of the edge: pages until they are answered,
/// event streams until they begin. They have slots of their own, since most of them wait for long.
pub const EDGE_CHANGES_MAX_COUNT: usize = 2_000;

/// Maximum requests for changes that wait at an isolate of the edge with users' tokens that the edge can't verify.
pub const EDGE_UNVERIFIED_CHANGES_MAX_COUNT: usize = EDGE_CHANGES_MAX_COUNT / 2;

/// Maximum requests for `/readyz` in flight from an isolate of the edge to origins.
pub const EDGE_HEALTH_CHECKS_IN_FLIGHT_MAX_COUNT: usize = 16;

/// Maximum milliseconds for which a request at the edge waits until it may be sent to an origin.
pub const EDGE_QUEUE_WAIT_MAX_MS: u64 = 5_000;

/// Maximum memory of the bodies that an isolate of the edge is reading as a whole, and of the arrived bodies beside
/// which a long one is read. A body counts its announced length and [`EDGE_BODY_OVERHEAD_BYTES`].
pub const EDGE_BODIES_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes that count for each body besides its length, so that at most 2,048 bodies are read at the same time. A body of
/// more bytes than this is a long one.
pub const EDGE_BODY_OVERHEAD_BYTES: u64 = 32 * 1024;

/// Maximum seconds in which a body that the edge reads as a whole must arrive.
pub const EDGE_BODY_MAX_SECONDS: u64 = 60;

/// Maximum bodies of refused requests that an isolate of the edge drains at the same time.
pub const EDGE_DRAINS_MAX_COUNT: usize = 128;

/// Maximum bodies of refused requests of one client address that an isolate of the edge drains at the same time.
pub const EDGE_DRAINS_PER_ADDRESS_MAX_COUNT: usize = 8;

/// Maximum milliseconds for which the edge drains the body of a refused request. The same as at the origin.
pub const EDGE_DRAIN_MAX_MS: u64 = 5_000;

/// Maximum announced length of a refused request's body that the edge leaves to the runtime: as much as workerd reads,
/// within a second, before it closes a connection.
pub const EDGE_UNDRAINED_BODY_MAX_BYTES: u64 = 64 * 1024;

/// Maximum lines that an isolate of the edge logs within [`EDGE_REFUSAL_LINES_MS`] for requests that it refuses for their
/// key. Anybody can send these requests.
pub const EDGE_REFUSAL_LINES_MAX_COUNT: u32 = 100;

/// Milliseconds for which [`EDGE_REFUSAL_LINES_MAX_COUNT`] holds.
pub const EDGE_REFUSAL_LINES_MS: u64 = 10_000;

/// Maximum concurrent requests that upload files. Each has buffers of 576 KiB: 150 MB in total.
pub const UPLOADS_MAX_COUNT: u64 = 256;

/// Maximum concurrent requests of one project that upload files: half of all, so that other projects can upload too.
pub const UPLOADS_PER_PROJECT_MAX_COUNT: u64 = 128;

/// Minimum average rate of a request body, measured over each `body_read_timeout`. It is lower than the rate of the
/// slowest mobile networks. Without a minimum, a slow body could occupy an upload slot for days.
pub const BODY_MIN_BYTES_PER_SECOND: u64 = 1_024;

/// Rate at which the largest JSON body arrives in time. All have the same time, since each holds memory of its project.
pub const JSON_BODY_BYTES_PER_SECOND: u64 = 32 * 1024;

/// Maximum parameters of one `/sql` statement: MariaDB counts them in 16 bits.
pub const SQL_PARAMS_MAX_COUNT: usize = 65_535;

/// Maximum size of a media file's name, and of its folder's path: the limit of common file systems.
pub const MEDIA_NAME_MAX_BYTES: usize = 255;

/// Maximum size of `Upload-Metadata`. A name and a folder of 255 bytes each take 680 bytes in base64; the rest is for
/// keys that clients add. The header is stored with the upload and repeated in responses to `HEAD`.
pub const TUS_METADATA_MAX_BYTES: usize = 4_096;

/// Maximum unfinished resumable uploads of one project by full keys, and as many by callers with roles: users must not
/// keep out the project's own programs. Each may hold disk space until it expires.
pub const TUS_OPEN_MAX_COUNT: usize = 100;

/// Maximum total size of the unfinished resumable uploads of one project by full keys, and as much by callers with
/// roles, as a multiple of the largest allowed upload (`tus_max_bytes`): 64 GiB by default. Prevents one project from
/// filling the staging disk.
pub const TUS_OPEN_MAX_LARGEST: u64 = 4;

/// Maximum seconds for which a resumable upload is kept that has received no byte.
pub const TUS_EMPTY_SECONDS: u64 = 60 * 60;

/// Seconds for which a finished resumable upload can still be queried, by a client that lost the last response.
pub const TUS_FINISHED_SECONDS: u64 = 60 * 60;

/// Maximum entries of one page of a media listing, which is buffered.
pub const MEDIA_LIST_MAX_ITEMS: u64 = 10_000;

/// Maximum lifetime of a signed URL: a week. A signed URL can't be revoked.
pub const SIGNED_URL_MAX_SECONDS: u64 = 7 * 24 * 60 * 60;

/// Default maximum of an upload's body. It allows 190 MB of files in JSON, since base64 makes them a third larger.
pub const UPLOAD_BODY_MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Default maximum number of files in one upload.
pub const UPLOAD_MAX_ITEMS: usize = 64;

/// Maximum files that one response purges: four times the default maximum of an upload. Their hashes take 8.5 kB in a
/// header; Cloudflare accepts 128 kB of headers, and other proxies 16 kB.
pub const PURGED_MAX_COUNT: usize = 256;

/// Maximum size of a key or short text (a name, a folder) of an upload. In JSON, the text counts as written: a name of
/// [`MEDIA_NAME_MAX_BYTES`] takes 1,530 bytes if each byte is escaped like `\u0061`.
pub const UPLOAD_TEXT_MAX_BYTES: usize = 2_048;

/// Maximum bytes before the comma of a data URL. A media type has at most 255 bytes (RFC 6838), and some programs add
/// the percent-encoded file name.
pub const UPLOAD_LABEL_MAX_BYTES: usize = 1_024;

/// Maximum size of the header lines of one part of a multipart body. They may have, for example, a percent-encoded name
/// twice and a media type.
pub const UPLOAD_PART_HEAD_MAX_BYTES: usize = 8 * 1024;

/// Maximum length of a multipart boundary (RFC 2046).
pub const UPLOAD_BOUNDARY_MAX_BYTES: usize = 70;

/// Bytes of a file that are decoded from base64 at a time: the size of the parser's largest buffer. A multiple of 3,
/// since four base64 characters encode 3 bytes.
pub const UPLOAD_CHUNK_BYTES: usize = 65_535;

/// Maximum pixels of an image: as many as the largest cameras produce. Even a small file can claim billions.
pub const IMAGE_MAX_PIXELS: u64 = 100_000_000;

/// Maximum width or height of an image in pixels: JPEG's own limit.
pub const IMAGE_EDGE_MAX_PIXELS: u32 = 65_535;

pub const THUMBNAIL_EDGE_PIXELS: u32 = 256;

/// Maximum size of one image file. Uncompressed, 100 megapixels of four 16-bit samples take 800 MB.
pub const IMAGE_FILE_MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// Maximum memory that all images together take while they are decoded; an image that needs more by itself is refused
/// beforehand. A photograph takes 10 MB; 100 megapixels take 300 MB in formats that must be decoded as a whole at three
/// bytes per pixel. With this limit, the whole process fits a machine of 512 MB.
pub const IMAGE_MEMORY_MAX_BYTES: u64 = 380_000_000;

/// Maximum queued images: those of 16 requests of 64 files. A queued image takes no memory.
pub const IMAGE_QUEUE_MAX_COUNT: usize = 1_024;

/// Maximum images of one project that are queued or being decoded: half of all.
pub const IMAGE_QUEUE_PROJECT_MAX_COUNT: usize = IMAGE_QUEUE_MAX_COUNT / 2;

/// Maximum seconds that an image waits in the queue; after that, its upload gets a 503.
pub const IMAGE_WAIT_MAX_SECONDS: u64 = 60;

/// Maximum seconds for decoding an image; after that, its upload is refused. 100 megapixels take less than ten seconds.
pub const IMAGE_DECODE_MAX_SECONDS: u64 = 120;

/// Maximum subscriptions of one request for changes.
pub const SUBSCRIPTIONS_MAX_COUNT: usize = 100;

/// Maximum bytes of the id that a caller gives a subscription.
pub const SUBSCRIPTION_ID_MAX_BYTES: usize = 64;

/// Maximum and default number of changes of one page.
pub const CHANGES_PAGE_MAX_ROWS: usize = 1_000;

/// Maximum time that a page without changes waits for one. The edge ends what goes on after its response 30 s later.
pub const CHANGES_WAIT_MAX: Duration = Duration::from_secs(25);

/// Maximum bytes of a token of the feed of changes: a hash for each subscription, and a GTID for each domain.
pub const CHANGES_TOKEN_MAX_BYTES: usize = 8 * 1024;

pub const WEBHOOK_NAME_MAX_BYTES: usize = 100;

pub const WEBHOOK_URL_MAX_BYTES: usize = 2_048;

/// Maximum bytes of a webhook's subscriptions, as its definition has them.
pub const WEBHOOK_SUBSCRIPTIONS_MAX_BYTES: usize = 64 * 1024;

pub const WEBHOOKS_PER_PROJECT_MAX_COUNT: usize = 100;

/// Maximum webhooks of all projects. Each that is not paused waits for changes in a task of its own.
pub const WEBHOOKS_MAX_COUNT: usize = 1_000;
