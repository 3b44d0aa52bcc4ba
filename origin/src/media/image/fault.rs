//! Errors of image validation. Messages of the decoders are not shown, since they name offsets and internal states.

use crate::project_quota::Refused;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::limits::{IMAGE_DECODE_MAX_SECONDS, IMAGE_FILE_MAX_BYTES};
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ImageFault {
    #[error("it is cut short")]
    Cut,
    #[error("its data is corrupted")]
    Corrupt,
    #[error("it is of a variant that can't be decoded here")]
    Unsupported,
    #[error("it measures {width} × {height} pixels")]
    TooLarge { width: u32, height: u32 },
    #[error("its file has {0} bytes, the maximum is {IMAGE_FILE_MAX_BYTES}")]
    FileTooLarge(u64),
    #[error("decoding it takes {} MB of memory, the maximum is {} MB", needed_bytes.div_ceil(1_000_000), max_bytes / 1_000_000)]
    TooMuchMemory { needed_bytes: u64, max_bytes: u64 },
    /// A JPEG with too many scans, or decoding took more memory than the image's header shows.
    #[error("it is more complex than any image needs to be")]
    TooCostly,
    #[error("decoding it takes longer than {IMAGE_DECODE_MAX_SECONDS} seconds")]
    TooSlow,
    #[error("too many images wait to be decoded")]
    Refused(Refused),
    /// The image waited longer than [`IMAGE_WAIT_MAX_SECONDS`](shared::limits::IMAGE_WAIT_MAX_SECONDS) for its turn.
    #[error("too many images wait to be decoded")]
    Overloaded,
    #[error("the file can't be read")]
    Io(#[source] io::Error),
}

impl ImageFault {
    pub fn problem(&self, name: &str) -> Problem {
        let invalid = |message: String| Problem::new(ErrorCode::InvalidMedia, message);
        match self {
            Self::Cut | Self::Corrupt | Self::Unsupported => invalid(format!(
                "The image {} can't be decoded: {self}.",
                shown(name)
            ))
            .with_hint("Upload it again from its source, or with the type \"file\" to keep it as it is."),
            Self::TooLarge { .. } | Self::TooCostly | Self::TooSlow => invalid(format!(
                "The image {} is too large: {self}.",
                shown(name)
            ))
            .with_hint("An image may have 100 megapixels, and 65,535 pixels on a side. Larger ones go with the type \"file\"."),
            Self::TooMuchMemory { .. } => invalid(format!(
                "The image {} is too large: {self}.",
                shown(name)
            ))
            .with_hint("Save it with less depth, without interlacing or progression, or in strips or tiles; or upload it with the type \"file\"."),
            Self::FileTooLarge(_) => Problem::new(
                ErrorCode::BodyTooLarge,
                format!("The image {} is too large: {self}.", shown(name)),
            )
            .with_hint("Larger ones go with the type \"file\"."),
            Self::Refused(refused) => refused.into_problem("images to decode"),
            Self::Overloaded => Problem::new(
                ErrorCode::Overloaded,
                "Too many images wait to be decoded.",
            ),
            Self::Io(error) => {
                Problem::internal("The upload could not be read.", error.to_string())
            }
        }
    }
}

impl From<io::Error> for ImageFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Cut,
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => Self::Corrupt,
            io::ErrorKind::OutOfMemory => Self::TooCostly,
            _ => Self::Io(error),
        }
    }
}

impl From<::png::DecodingError> for ImageFault {
    fn from(error: ::png::DecodingError) -> Self {
        match error {
            ::png::DecodingError::IoError(error) => error.into(),
            ::png::DecodingError::LimitsExceeded => Self::TooCostly,
            ::png::DecodingError::Format(_) | ::png::DecodingError::Parameter(_) => Self::Corrupt,
        }
    }
}

impl From<::gif::DecodingError> for ImageFault {
    fn from(error: ::gif::DecodingError) -> Self {
        match error {
            ::gif::DecodingError::Io(error) => error.into(),
            ::gif::DecodingError::OutOfMemory | ::gif::DecodingError::MemoryLimit => Self::TooCostly,
            _ => Self::Corrupt,
        }
    }
}

impl From<::image::ImageError> for ImageFault {
    fn from(error: ::image::ImageError) -> Self {
        use ::image::ImageError as E;
        match error {
            E::IoError(error) => error.into(),
            E::Limits(_) => Self::TooCostly,
            E::Unsupported(_) => Self::Unsupported,
            other if ended(&other) => Self::Cut,
            _ => Self::Corrupt,
        }
    }
}

fn ended(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut source = Some(error);
    while let Some(error) = source {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
            return true;
        }
        source = error.source();
    }
    false
}
