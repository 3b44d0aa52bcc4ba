//! Validates and measures images, and makes their thumbnails. `open` reads the header, `Opened::picture` decodes the
//! file, so that damage is found. [`pool`] runs both on its own threads.

mod avif;
mod codecs;
mod fault;
mod gif;
mod ico;
mod jpeg;
mod png;
pub mod pool;
mod raster;
mod shrink;
#[cfg(test)]
mod tests;
mod thumbnail;
mod tiff;

pub use fault::ImageFault;
pub use thumbnail::Thumbnail;

use super::sniff::ImageFormat;
use raster::Raster;
use shared::limits::{
    IMAGE_EDGE_MAX_PIXELS, IMAGE_FILE_MAX_BYTES, IMAGE_MAX_PIXELS, IMAGE_MEMORY_MAX_BYTES, THUMBNAIL_EDGE_PIXELS,
};
use std::fs::File;
use std::path::Path;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub pixels: u64,
    pub edge: u32,
    pub thumbnail_edge: u32,
    pub memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pixels: IMAGE_MAX_PIXELS,
            edge: IMAGE_EDGE_MAX_PIXELS,
            thumbnail_edge: THUMBNAIL_EDGE_PIXELS,
            memory_bytes: IMAGE_MEMORY_MAX_BYTES,
        }
    }
}

/// The size in pixels after applying the orientation, except for some variants that can't be decoded here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    /// `None` if no decoder here supports the image's format (AVIF) or variant.
    pub thumbnail: Option<Thumbnail>,
}

pub fn examine(path: &Path, format: ImageFormat, limits: &Limits) -> Result<Picture, ImageFault> {
    open(path, format, limits)?.picture()
}

struct Opened {
    size: Size,
    memory_bytes: u64,
    edge: u32,
    decode: Decode,
}

/// A size in pixels. The image's orientation is not applied yet, unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    width: u32,
    height: u32,
}

enum Decode {
    /// Decodes the pixels. The result may be shrunk, but is at least as large as the thumbnail.
    Pixels(Box<dyn FnOnce(Scaling) -> Result<Raster, ImageFault>>),
    /// Only the container was checked. Holds the size after applying the orientation, if that could be read.
    Shown(Size),
}

struct Header {
    size: Size,
    memory_bytes: u64,
    decode: Decode,
}

#[derive(Clone, Copy, Debug)]
struct Scaling {
    from: Size,
    to: Size,
}

fn open(path: &Path, format: ImageFormat, limits: &Limits) -> Result<Opened, ImageFault> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    if bytes > IMAGE_FILE_MAX_BYTES {
        return Err(ImageFault::FileTooLarge(bytes));
    }
    let header = match format {
        ImageFormat::Jpeg => jpeg::open(file, limits),
        ImageFormat::Png => png::open(file),
        ImageFormat::Gif => gif::open(file),
        ImageFormat::WebP => codecs::open_webp(file, bytes, limits),
        ImageFormat::Bmp => codecs::open_bmp(file),
        ImageFormat::Tiff => tiff::open(file, bytes, limits),
        ImageFormat::Ico => ico::open(file, bytes),
        ImageFormat::Avif => avif::open(file, bytes),
    }?;
    let Size { width, height } = header.size;
    if width == 0 || height == 0 {
        return Err(ImageFault::Corrupt);
    }
    if width > limits.edge || height > limits.edge || u64::from(width) * u64::from(height) > limits.pixels {
        return Err(ImageFault::TooLarge { width, height });
    }
    if header.memory_bytes > limits.memory_bytes {
        return Err(ImageFault::TooMuchMemory { needed_bytes: header.memory_bytes, max_bytes: limits.memory_bytes });
    }
    Ok(Opened {
        size: header.size,
        memory_bytes: header.memory_bytes,
        edge: limits.thumbnail_edge,
        decode: header.decode,
    })
}

impl Opened {
    fn picture(self) -> Result<Picture, ImageFault> {
        let without_thumbnail = |Size { width, height }: Size| Picture { width, height, thumbnail: None };
        let decode = match self.decode {
            Decode::Pixels(decode) => decode,
            Decode::Shown(size) => return Ok(without_thumbnail(size)),
        };
        let to = self.size.within(self.edge);
        let raster = match decode(Scaling { from: self.size, to }) {
            Ok(raster) => raster,
            Err(ImageFault::Unsupported) => return Ok(without_thumbnail(self.size)),
            Err(fault) => return Err(fault),
        };
        let Size { width, height } = self.size.turned(raster.orientation);
        Ok(Picture { width, height, thumbnail: Some(thumbnail::make(raster, to)?) })
    }
}

impl Size {
    fn within(self, edge: u32) -> Self {
        let longer = self.width.max(self.height);
        if longer <= edge {
            return self;
        }
        let shrunk = |side: u32| {
            let exact = u64::from(side) * u64::from(edge);
            let rounded = (exact + u64::from(longer) / 2) / u64::from(longer);
            u32::try_from(rounded).unwrap_or(edge).max(1)
        };
        Self { width: shrunk(self.width), height: shrunk(self.height) }
    }

    fn turned(self, orientation: ::image::metadata::Orientation) -> Self {
        use ::image::metadata::Orientation as O;
        match orientation {
            O::Rotate90 | O::Rotate270 | O::Rotate90FlipH | O::Rotate270FlipH => {
                Self { width: self.height, height: self.width }
            }
            O::NoTransforms | O::Rotate180 | O::FlipHorizontal | O::FlipVertical => self,
        }
    }

    fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }
}
