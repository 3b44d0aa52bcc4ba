//! Tables of media types for [`super::label`]: synonyms, groups of related types, and properties of types. Types are
//! separated by white space.

pub(in crate::media) const UNKNOWN: &str = "application/octet-stream";

pub(super) fn lists(types: &str, mime: &str) -> bool {
    types.split_ascii_whitespace().any(|listed| listed == mime)
}

pub(super) const SYNONYMS: &[(&str, &str)] = &[
    ("image/jpeg", "image/jpg image/pjpeg image/jfif"),
    ("image/png", "image/apng image/x-png image/vnd.mozilla.apng"),
    ("image/bmp", "image/x-bmp image/x-ms-bmp"),
    ("image/tiff", "image/tif image/x-tiff"),
    ("image/x-icon", "image/ico image/icon image/vnd.microsoft.icon"),
    ("image/svg+xml", "image/svg"),
    ("image/vnd.adobe.photoshop", "image/x-photoshop application/x-photoshop"),
    ("audio/mpeg", "audio/mp3 audio/mpeg3 audio/mpga audio/x-mp3 audio/x-mpeg"),
    ("audio/wav", "audio/x-wav audio/wave audio/vnd.wave"),
    ("audio/flac", "audio/x-flac"),
    ("audio/aac", "audio/x-aac audio/aacp audio/vnd.dlna.adts"),
    ("audio/aiff", "audio/x-aiff"),
    ("audio/midi", "audio/x-midi audio/mid"),
    ("video/x-msvideo", "video/avi video/msvideo video/vnd.avi"),
    ("video/mpeg", "video/x-mpeg"),
    ("application/pdf", "application/x-pdf"),
    ("application/zip", "application/x-zip application/x-zip-compressed multipart/x-zip"),
    ("application/gzip", "application/x-gzip application/gzip-compressed"),
    ("text/xml", "application/xml"),
    ("application/rtf", "application/x-rtf text/rtf"),
    ("text/javascript", "application/x-javascript application/javascript application/ecmascript text/ecmascript"),
    ("text/markdown", "text/x-markdown"),
    ("text/csv", "application/csv"),
    ("application/json", "text/json"),
    (UNKNOWN, "binary/octet-stream application/binary application/unknown application/x-binary"),
];

/// A group of related types. A label of one type does not contradict content of another type in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    IsoMedia,
    Matroska,
    Ogg,
    Heif,
    MpegStream,
    Asf,
    Tiff,
    Zip,
    Gzip,
    Ole,
    Markup,
}

pub(super) const FAMILIES: &[(Family, &str)] = &[
    (
        Family::IsoMedia,
        "video/mp4 audio/mp4 application/mp4 video/quicktime video/x-m4v audio/m4a audio/x-m4a audio/x-m4b
         audio/m4b video/3gpp audio/3gpp video/3gpp2 audio/3gpp2 audio/aac audio/x-m4p",
    ),
    (Family::Matroska, "video/webm audio/webm video/x-matroska audio/x-matroska video/matroska audio/matroska"),
    (
        Family::Ogg,
        "video/ogg audio/ogg application/ogg audio/opus audio/vorbis audio/x-vorbis+ogg audio/speex
         audio/flac",
    ),
    (Family::Heif, "image/heic image/heif image/heic-sequence image/heif-sequence image/avif image/avif-sequence"),
    (Family::MpegStream, "video/mpeg video/mp2t video/mp2p video/mp1s"),
    (Family::Asf, "video/x-ms-asf video/x-ms-wmv audio/x-ms-wma application/vnd.ms-asf"),
    (Family::Tiff, "image/tiff image/x-adobe-dng image/dng image/x-nikon-nef image/x-canon-cr2 image/x-sony-arw"),
    (
        Family::Zip,
        "application/zip application/epub+zip application/java-archive application/x-java-archive
         application/jar",
    ),
    (
        Family::Gzip,
        "application/gzip application/x-tgz application/x-gtar application/x-gzip-compressed
         application/x-compressed-tar application/x-tar",
    ),
    (
        Family::Ole,
        "application/x-ole-storage application/msword application/vnd.ms-excel application/vnd.ms-powerpoint
         application/vnd.ms-outlook application/vnd.visio",
    ),
    (Family::Markup, "text/html application/xhtml+xml image/svg+xml text/xml"),
];

/// Image and audio types whose files are text, or may be text.
pub(super) const TEXTUAL_MEDIA: &str = "
    audio/mpegurl audio/x-mpegurl audio/x-scpls
    image/vnd.dxf image/vnd.radiance image/x-dxf image/x-hdr image/x-portable-anymap image/x-portable-arbitrarymap
    image/x-portable-bitmap image/x-portable-floatmap image/x-portable-graymap image/x-portable-pixmap
    image/x-xbitmap image/x-xbm image/x-xpixmap image/x-xpm";

/// Types for which a label must match the content, up to the [`Family`].
pub(super) const VERIFIABLE: &str = "
    application/gzip application/pdf application/x-ole-storage application/zip
    audio/aiff audio/flac audio/midi audio/mp4 audio/mpeg audio/ogg audio/wav audio/webm
    image/avif image/bmp image/gif image/heic image/heif image/jp2 image/jpeg image/jxl image/png image/tiff
    image/vnd.adobe.photoshop image/webp image/x-icon
    video/3gpp video/mp4 video/ogg video/quicktime video/webm video/x-flv video/x-m4v video/x-matroska
    video/x-ms-asf video/x-msvideo";
