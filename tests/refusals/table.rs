//! Reads `table.txt`: requests that the API refuses, each with its error code. Knows nothing of how they are sent.
//!
//! A line `code: METHOD target <header: value> body | words` is a request; its error's message or hint contains all of the
//! words. If it contains `…`, it is a template of the indented rows below: each row replaces the `…` in each of the
//! templates above it. `code (schema):` marks a refusal that needs the tables; all others are made without a database.
//!
//! A target without a slash before it is below `/api/v1/crud/demo/`. In rows, targets and bodies, `«ff»` is a byte, `«»`
//! nothing, and `«3×x#»` is `x0x1x2`.

const TABLE: &str = include_str!("table.txt");
const DATABASE: &str = "/api/v1/crud/demo/";

pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) needs_schema: bool,
    pub(crate) method: &'static str,
    pub(crate) target: String,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: Vec<u8>,
    pub(crate) words: Vec<&'static str>,
}

impl Refusal {
    /// Returns what the error lacks of what the table says; `None` if it lacks nothing. An error of a batch names the
    /// operation in its message and, as `operation`, in its details.
    pub(crate) fn fault(&self, code: &str, told: &str, operation: Option<u64>) -> Option<String> {
        let named = told.strip_prefix("Operation ").and_then(|rest| rest.split(':').next()?.parse().ok());
        let is_told = code == self.code && self.words.iter().all(|word| told.contains(word)) && named == operation;
        let body = String::from_utf8_lossy(&self.body);
        (!is_told).then(|| {
            format!(
                "{} {} {body:.300}\n  expected {} with {:?}, got {code}: {told} (operation {operation:?})\n",
                self.method, self.target, self.code, self.words
            )
        })
    }
}

/// Returns the requests in the table's order.
pub(crate) fn all() -> Vec<Refusal> {
    let (mut refusals, mut templates, mut has_rows) = (Vec::new(), Vec::<&str>::new(), false);
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("  ") {
            Some(row) => {
                has_rows = true;
                refusals.extend(templates.iter().map(|template| request(template, row)));
            }
            None if line.split(" | ").next().is_some_and(|request| request.contains('…')) => {
                if std::mem::take(&mut has_rows) {
                    templates.clear();
                }
                templates.push(line);
            }
            None => refusals.push(request(line, "")),
        }
    }
    refusals
}

fn request(template: &'static str, row: &'static str) -> Refusal {
    let mut words = template.split(" | ").chain(row.split(" | ").skip(1));
    let (head, rest) = words.next().and_then(|request| request.split_once(": ")).expect("a code and a request");
    let row = row.split(" | ").next().unwrap_or_default();
    let (method, rest) = rest.split_once(' ').expect("a method");
    let (target, mut rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let mut headers = Vec::new();
    while let Some((header, behind)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        let Some((name, value)) = header.split_once(": ") else { break };
        headers.push((filled(name, row), filled(value, row)));
        rest = behind.trim_start();
    }
    let base = if target.starts_with('/') { "" } else { DATABASE };
    Refusal {
        code: head.split(' ').next().unwrap_or_default(),
        needs_schema: head.ends_with(" (schema)"),
        method: filled(method, row),
        target: encoded(&bytes(&[base, &target.replace('…', row)].concat())),
        headers,
        body: bytes(&rest.replace('…', row)),
        words: words.collect(),
    }
}

fn filled(part: &'static str, row: &'static str) -> &'static str {
    if part == "…" { row } else { part }
}

/// Replaces what is between `«` and `»`.
fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut parts = text.split('«');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let (inner, behind) = part.split_once('»').expect("a closing ».");
        match inner.split_once('×') {
            Some((count, item)) => {
                for at in 0..count.parse::<usize>().expect("a count") {
                    bytes.extend_from_slice(item.replace('#', &at.to_string()).as_bytes());
                }
            }
            None => bytes.extend(inner.as_bytes().chunks(2).map(|pair| {
                let pair = str::from_utf8(pair).expect("hex digits");
                u8::from_str_radix(pair, 16).expect("a byte")
            })),
        }
        bytes.extend_from_slice(behind.as_bytes());
    }
    bytes
}

/// Percent-encodes what no URL may contain, so that the table's JSON stays readable. `%` itself stays.
fn encoded(target: &[u8]) -> String {
    let is_url = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$()*+,;:=@/?%&[]".contains(&byte);
    let mut text = String::new();
    for byte in target {
        match is_url(*byte) {
            true => text.push(char::from(*byte)),
            false => text += &format!("%{byte:02X}"),
        }
    }
    text
}
