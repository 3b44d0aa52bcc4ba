//! Converts texts to UTF-8, exactly as MariaDB does, or says that only MariaDB can.

use std::borrow::Cow;

/// Number of the collation of binary strings.
pub const BINARY_COLLATION: u16 = 63;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    Ascii,
    Binary,
    /// Windows-1252, where the five unassigned bytes are control characters.
    Latin1,
    Ucs2,
    Utf16,
    Utf16le,
    Utf32,
    Utf8mb3,
    Utf8mb4,
    /// Any other character set, whose texts only the server can convert.
    Other,
}

impl Charset {
    /// Returns the character set of a collation by its number in MariaDB.
    pub fn of(collation: u16) -> Self {
        match collation {
            11 | 65 | 1035 | 1089 => Self::Ascii,
            BINARY_COLLATION => Self::Binary,
            5 | 8 | 15 | 31 | 47 | 48 | 49 | 94 | 1032 | 1071 => Self::Latin1,
            35 | 90 | 128..=151 | 159 | 640..=642 | 1059 | 1114 | 1152 | 1174 | 2560..=2815 => Self::Ucs2,
            54 | 55 | 101..=124 | 672..=674 | 1078 | 1079 | 1125 | 1147 | 2816..=3071 => Self::Utf16,
            56 | 62 | 1080 | 1086 => Self::Utf16le,
            60 | 61 | 160..=183 | 736..=738 | 1084 | 1085 | 1184 | 1206 | 3072..=3327 => Self::Utf32,
            33 | 83 | 192..=215 | 223 | 576..=579 | 1057 | 1107 | 1216 | 1238 | 2048..=2303 => Self::Utf8mb3,
            45 | 46 | 224..=247 | 255..=309 | 608..=611 | 1069 | 1070 | 1248 | 1270 | 2304..=2559 => Self::Utf8mb4,
            _ => Self::Other,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Utf8<'a> {
    Text(Cow<'a, str>),
    /// Only MariaDB can convert the bytes: their character set is not supported here, or they are not valid in it.
    NeedsServer,
    /// The bytes are a binary string, not a text.
    Binary,
}

impl Utf8<'_> {
    pub(crate) fn into_owned(self) -> Utf8<'static> {
        match self {
            Self::Text(text) => Utf8::Text(Cow::Owned(text.into_owned())),
            Self::NeedsServer => Utf8::NeedsServer,
            Self::Binary => Utf8::Binary,
        }
    }
}

pub fn to_utf8(collation: u16, bytes: &[u8]) -> Utf8<'_> {
    let text = match Charset::of(collation) {
        Charset::Binary => return Utf8::Binary,
        Charset::Other => None,
        Charset::Ascii => bytes.is_ascii().then(|| borrowed(bytes)).flatten(),
        Charset::Utf8mb4 => borrowed(bytes),
        Charset::Utf8mb3 => borrowed(bytes).filter(|text| !text.chars().any(|c| c > '\u{FFFF}')),
        Charset::Latin1 if bytes.is_ascii() => borrowed(bytes),
        Charset::Latin1 => Some(bytes.iter().copied().map(latin1).collect()),
        Charset::Ucs2 => units(bytes, u16::from_be_bytes).and_then(|units| {
            let each = units.map(|unit| char::from_u32(u32::from(unit)));
            each.collect::<Option<String>>().map(Cow::Owned)
        }),
        Charset::Utf16 => units(bytes, u16::from_be_bytes).and_then(utf16),
        Charset::Utf16le => units(bytes, u16::from_le_bytes).and_then(utf16),
        Charset::Utf32 => units(bytes, u32::from_be_bytes)
            .and_then(|units| units.map(char::from_u32).collect::<Option<String>>().map(Cow::Owned)),
    };
    text.map_or(Utf8::NeedsServer, Utf8::Text)
}

fn borrowed(bytes: &[u8]) -> Option<Cow<'_, str>> {
    std::str::from_utf8(bytes).ok().map(Cow::Borrowed)
}

/// Splits the bytes into units of `N` bytes; `None` if the last unit is incomplete.
fn units<'a, const N: usize, T: 'a>(bytes: &'a [u8], unit: fn([u8; N]) -> T) -> Option<impl Iterator<Item = T> + 'a> {
    let (units, rest) = bytes.as_chunks::<N>();
    rest.is_empty().then(|| units.iter().copied().map(unit))
}

fn utf16<'a>(units: impl Iterator<Item = u16>) -> Option<Cow<'a, str>> {
    char::decode_utf16(units).collect::<Result<String, _>>().ok().map(Cow::Owned)
}

/// The characters of the bytes 0x80 to 0x9F.
const LATIN1_HIGH: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
];

fn latin1(byte: u8) -> char {
    let high = byte.checked_sub(0x80).and_then(|index| LATIN1_HIGH.get(usize::from(index)));
    high.copied().unwrap_or(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_converted_or_left_to_the_server() {
        let cases: &[(u16, &[u8], Option<&str>)] = &[
            (45, "é😀".as_bytes(), Some("é😀")),
            (45, &[0xC3], None),
            (33, "é日".as_bytes(), Some("é日")),
            (33, "😀".as_bytes(), None),
            (11, b"a~", Some("a~")),
            (11, &[0x80], None),
            (8, &[0x80, 0x81, 0x9F, 0xA0, 0xFF, b'a'], Some("€\u{81}Ÿ\u{A0}ÿa")),
            (35, &[0x65, 0xE5], Some("日")),
            (35, &[0xD8, 0x3D, 0xDE, 0x00], None),
            (35, &[0], None),
            (54, &[0xD8, 0x3D, 0xDE, 0x00], Some("😀")),
            (54, &[0xD8, 0x3D], None),
            (56, &[0x3D, 0xD8, 0x00, 0xDE], Some("😀")),
            (60, &[0, 1, 0xF6, 0], Some("😀")),
            (60, &[0, 0x11, 0, 0], None),
            (51, b"a", None),
            (9_999, b"a", None),
        ];
        for (collation, bytes, expected) in cases {
            let expected = expected.map_or(Utf8::NeedsServer, |text| Utf8::Text(Cow::Borrowed(text)));
            assert_eq!(to_utf8(*collation, bytes), expected, "{collation} {bytes:?}");
        }
        assert_eq!(to_utf8(BINARY_COLLATION, b"a"), Utf8::Binary);
    }
}
