//! Writes valid uploads in every allowed form, and makes edits that may break them.

use arbitrary::Arbitrary;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// `Content-Type` of the written forms.
pub const FORM_TYPE: &str = "multipart/form-data; boundary=xyz";

/// Maximum number of files in a body: enough for one at the beginning, in the middle and at the end.
const FILES_MAX_COUNT: usize = 4;

/// One of this many files is large.
const LARGE: usize = 32;

const FOLDERS: [&str; 4] = ["", "a", "a/b c/d", "日本/é\u{301}"];
const KINDS: [&str; 4] = ["image", "file", "video", "audio"];
const STEMS: [&str; 4] = ["cat", "ein-hund", "写真", "é"];
const BLANKS: [&str; 4] = ["", "", " ", "\r\n\t"];

#[derive(Arbitrary, Debug)]
pub struct Body {
    first: File,
    others: Vec<File>,
    is_typed: bool,
    is_single: bool,
    folder: Option<u8>,
    kind: u8,
    update: Option<bool>,
    private: Option<Option<bool>>,
    choices: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
struct File {
    stem: u8,
    length: u16,
    pattern: u8,
    spelling: u8,
    private: Option<Option<bool>>,
    has_head: bool,
}

impl File {
    fn bytes(&self) -> Vec<u8> {
        let length = usize::from(self.length);
        let length = match length % LARGE {
            // Lengths around the size of the chunks in which base64 is decoded.
            0 => 65_530 + length % 11,
            _ => length % 100,
        };
        let pattern: Vec<u8> = match self.pattern % 4 {
            // Almost the delimiter of a form.
            0 => b"\r\n--xy\r\r\n-\r\n--x".to_vec(),
            1 => vec![0xff, 0xfb, 0xef, 0xbe],
            _ => (0..=255u8).map(|at| at.wrapping_mul(7).wrapping_add(self.pattern)).collect(),
        };
        pattern.into_iter().cycle().take(length + 1).collect()
    }

    fn base64(&self) -> String {
        let bytes = self.bytes();
        let text = match self.spelling % 4 {
            0 => URL_SAFE.encode(bytes),
            1 => URL_SAFE_NO_PAD.encode(bytes),
            2 => STANDARD_NO_PAD.encode(bytes),
            _ => STANDARD.encode(bytes),
        };
        match self.spelling / 4 % 8 {
            0 => text.replace('/', "\\/"),
            1 => text.replace('A', "\\u0041").replace('=', "\\u003d"),
            2 => broken(&text, 76, "\\r\\n"),
            3 => broken(&text, 5, " "),
            4 => broken(&text, 1, "\\t"),
            5 => text.replace('+', "-"),
            _ => text,
        }
    }
}

fn broken(text: &str, length: usize, with: &str) -> String {
    let lines = text.as_bytes().chunks(length).map(String::from_utf8_lossy);
    lines.collect::<Vec<_>>().join(with)
}

/// The choices of a writer: the bytes in order, then a 0, then again from the start.
struct Choices<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Choices<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        let choice = self.bytes.get(self.at).copied();
        self.at = choice.map_or(0, |_| self.at + 1);
        usize::from(choice.unwrap_or(0)) % bound
    }

    fn blank(&mut self) -> &'static str {
        BLANKS[self.below(BLANKS.len())]
    }

    /// Writes a text as JSON, with some characters escaped.
    fn text(&mut self, text: &str) -> String {
        let mut written = String::from("\"");
        for character in text.chars() {
            if self.below(4) == 0 {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    written.push_str(&format!("\\u{unit:04X}"));
                }
            } else {
                written.push(character);
            }
        }
        written + "\""
    }

    fn object(&mut self, mut members: Vec<(&str, String)>) -> String {
        let mut written = Vec::new();
        while !members.is_empty() {
            let (key, value) = members.swap_remove(self.below(members.len()));
            let key = self.text(key);
            let blanks = [(); 4].map(|()| self.blank());
            written.push(format!("{}{key}{}:{}{value}{}", blanks[0], blanks[1], blanks[2], blanks[3]));
        }
        format!("{{{}}}", written.join(","))
    }
}

impl Body {
    fn all(&self) -> impl Iterator<Item = &File> {
        let others = self.others.iter().take(FILES_MAX_COUNT - 1);
        std::iter::once(&self.first).chain(others.filter(|_| !self.is_single))
    }

    #[must_use]
    pub fn folder(&self) -> &'static str {
        self.folder.map_or("", |at| FOLDERS[usize::from(at) % FOLDERS.len()])
    }

    fn kind(&self) -> &'static str {
        let known = if self.is_typed { 2 } else { KINDS.len() };
        KINDS[usize::from(self.kind) % known]
    }

    pub fn files(&self) -> impl Iterator<Item = (String, Vec<u8>)> {
        self.all().enumerate().map(|(at, file)| (name(at, file), file.bytes()))
    }

    #[must_use]
    pub fn json(&self) -> Vec<u8> {
        let mut choices = Choices::new(&self.choices);
        let items: Vec<_> = self.all().enumerate().map(|(at, file)| self.item(&mut choices, at, file)).collect();
        let media = match items.as_slice() {
            [one] if self.is_single => one.clone(),
            _ => {
                let comma = format!("{},{}", choices.blank(), choices.blank());
                format!("[{}]", items.join(&comma))
            }
        };
        let mut members = vec![("media", media), ("type", choices.text(self.kind()))];
        if self.folder.is_some() {
            members.push(("folder", choices.text(self.folder())));
        }
        if let Some(update) = self.update {
            members.push(("update", update.to_string()));
        }
        if let Some(private) = self.private {
            members.push(("private", flag(private)));
        }
        let object = choices.object(members);
        format!("{}{object}{}", choices.blank(), choices.blank()).into_bytes()
    }

    fn item(&self, choices: &mut Choices<'_>, at: usize, file: &File) -> String {
        let head = if file.has_head || !self.is_typed {
            ["data:image/png;base64,", "DATA:a\\/b; x=y;Base64,"][choices.below(2)]
        } else {
            ""
        };
        let content = format!("\"{head}{}\"", file.base64());
        let mut members = if self.is_typed {
            let given = format!("{at} {}", stem(file).to_uppercase());
            let keys =
                [["imageName", "imageType", "imageBase64"], ["fileName", "fileType", "fileBase64"]][choices.below(2)];
            let kind = ["png", ".PNG", "image/png"][choices.below(3)];
            vec![(keys[0], choices.text(&given)), (keys[1], choices.text(kind)), (keys[2], content)]
        } else {
            vec![("name", choices.text(&name(at, file))), ("base64", content)]
        };
        if let Some(private) = file.private {
            members.push((["private", "privateFolder"][choices.below(2)], flag(private)));
        }
        choices.object(members)
    }

    #[must_use]
    pub fn form(&self) -> Vec<u8> {
        let mut choices = Choices::new(&self.choices);
        let mut fields = vec![("type", self.kind().to_owned())];
        if self.folder.is_some() {
            fields.push(("folder", self.folder().to_owned()));
        }
        if let Some(update) = self.update {
            fields.push(("update", update.to_string()));
        }
        let mut form = Vec::new();
        for (at, file) in self.all().enumerate() {
            while choices.below(2) == 0 && !fields.is_empty() {
                field(&mut form, fields.swap_remove(choices.below(fields.len())));
            }
            let kind = ["", "Content-Type: image/png\r\n"][choices.below(2)];
            let head = format!(
                "--xyz\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{}\"\r\n{kind}\r\n",
                name(at, file)
            );
            form.extend_from_slice(head.as_bytes());
            form.extend_from_slice(&file.bytes());
            form.extend_from_slice(b"\r\n");
        }
        for rest in fields {
            field(&mut form, rest);
        }
        form.extend_from_slice(b"--xyz--\r\n");
        form
    }
}

fn field(form: &mut Vec<u8>, (name, value): (&str, String)) {
    let part = format!("--xyz\r\nContent-Disposition: form-data; name={name}\r\n\r\n{value}\r\n");
    form.extend_from_slice(part.as_bytes());
}

fn flag(flag: Option<bool>) -> String {
    flag.map_or("null".to_owned(), |flag| flag.to_string())
}

fn stem(file: &File) -> &'static str {
    STEMS[usize::from(file.stem) % STEMS.len()]
}

/// Returns the expected name of a file; in the second shape, the parser composes it.
fn name(at: usize, file: &File) -> String {
    format!("{at}-{}.png", stem(file))
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Edit {
    Cut(u32),
    /// Removes the byte at this position.
    Remove(u32),
    /// Inserts a byte at this position.
    Insert(u32, u8),
    /// Replaces the byte at this position.
    Replace(u32, u8),
    /// Repeats some bytes at this position.
    Double(u32, u8),
}

/// Bytes with a meaning in uploads, so that edits are more than noise.
const SIGNS: &[u8] = b"{}[]\",:\\ =-_/+nutf0\r\n;\xef\xff\x01";
/// Maximum number of edits of one body.
const EDITS_MAX_COUNT: usize = 3;
/// One of this many edits is among the first bytes, where the keys are.
const NEAR: u32 = 2;
const NEAR_BYTES: usize = 120;

impl Edit {
    #[must_use]
    pub fn apply_all(edits: &[Self], mut body: Vec<u8>) -> Vec<u8> {
        for edit in edits.iter().take(EDITS_MAX_COUNT) {
            edit.apply(&mut body);
        }
        body
    }

    fn apply(self, body: &mut Vec<u8>) {
        let (Self::Cut(at) | Self::Remove(at) | Self::Insert(at, _) | Self::Replace(at, _) | Self::Double(at, _)) =
            self;
        let bound = if at % NEAR == 0 { body.len().min(NEAR_BYTES) } else { body.len() };
        if bound == 0 {
            return;
        }
        let at = (at / NEAR) as usize % bound;
        let sign = |choice: u8| SIGNS[usize::from(choice) % SIGNS.len()];
        match self {
            Self::Cut(_) => body.truncate(at),
            Self::Remove(_) => drop(body.remove(at)),
            Self::Insert(_, choice) => body.insert(at, sign(choice)),
            Self::Replace(_, choice) => body[at] = sign(choice),
            Self::Double(_, length) => {
                let end = body.len().min(at + usize::from(length));
                let piece = body[at..end].to_vec();
                body.splice(end..end, piece);
            }
        }
    }
}
