//! Makes a thumbnail of a decoded image of any format: resized, in sRGB, upright, without metadata.

use super::raster::{PixelLayout, Raster};
use super::{ImageFault, Size, raster};
use ::image::metadata::Orientation;
use ::image::{DynamicImage, GrayImage, RgbImage, RgbaImage};
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

/// The quality of lossy thumbnails, from 0 to 100. 80 is also the default of sharp and imgproxy.
const QUALITY: u8 = 80;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thumbnail {
    pub bytes: Vec<u8>,
    /// `image/jpeg`, or `image/webp` if a pixel is not opaque.
    pub mime: &'static str,
    pub width: u32,
    pub height: u32,
}

pub(super) fn make(raster: Raster, to: Size) -> Result<Thumbnail, ImageFault> {
    let (icc, layout, orientation) = (raster.icc.clone(), raster.layout, raster.orientation);
    let pixels = resize(raster, to)?;
    let (layout, pixels) = raster::to_srgb(layout, pixels, icc.as_deref());
    let upright = turn(layout, pixels, to, orientation).ok_or(ImageFault::Corrupt)?;
    match upright {
        DynamicImage::ImageRgba8(image) if image.pixels().any(|pixel| pixel.0[3] != 255) => webp(&image),
        DynamicImage::ImageRgba8(_) => jpeg(&DynamicImage::ImageRgb8(upright.into_rgb8())),
        opaque => jpeg(&opaque),
    }
}

fn resize(raster: Raster, to: Size) -> Result<Vec<u8>, ImageFault> {
    if raster.size == to {
        return Ok(raster.pixels);
    }
    let kind = match raster.layout {
        PixelLayout::Grey => PixelType::U8,
        PixelLayout::Rgb => PixelType::U8x3,
        PixelLayout::Rgba | PixelLayout::Cmyk => PixelType::U8x4,
    };
    let Size { width, height } = raster.size;
    let from = ImageRef::new(width, height, &raster.pixels, kind).map_err(|_| ImageFault::Corrupt)?;
    let mut small = Image::new(to.width, to.height, kind);
    let (across, down) = raster.covered;
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3))
        .crop(0.0, 0.0, across, down)
        .use_alpha(raster.layout == PixelLayout::Rgba);
    Resizer::new().resize(&from, &mut small, &options).map_err(|_| ImageFault::Corrupt)?;
    Ok(small.into_vec())
}

fn turn(layout: PixelLayout, pixels: Vec<u8>, size: Size, orientation: Orientation) -> Option<DynamicImage> {
    let Size { width, height } = size;
    let mut image = match layout {
        PixelLayout::Grey => DynamicImage::ImageLuma8(GrayImage::from_raw(width, height, pixels)?),
        PixelLayout::Rgb => DynamicImage::ImageRgb8(RgbImage::from_raw(width, height, pixels)?),
        PixelLayout::Rgba => DynamicImage::ImageRgba8(RgbaImage::from_raw(width, height, pixels)?),
        PixelLayout::Cmyk => return None,
    };
    image.apply_orientation(orientation);
    Some(image)
}

fn jpeg(image: &DynamicImage) -> Result<Thumbnail, ImageFault> {
    let format = match image {
        DynamicImage::ImageLuma8(_) => turbojpeg::PixelFormat::GRAY,
        _ => turbojpeg::PixelFormat::RGB,
    };
    let (width, height) = (image.width(), image.height());
    let encode = || {
        let mut encoder = turbojpeg::Compressor::new()?;
        encoder.set_quality(i32::from(QUALITY))?;
        encoder.set_subsamp(match format {
            turbojpeg::PixelFormat::GRAY => turbojpeg::Subsamp::Gray,
            _ => turbojpeg::Subsamp::Sub2x2,
        })?;
        // Optimised Huffman tables make a small file about 10 % smaller.
        encoder.set_optimize(true)?;
        encoder.compress_to_vec(turbojpeg::Image {
            pixels: image.as_bytes(),
            width: width as usize,
            pitch: width as usize * format.size(),
            height: height as usize,
            format,
        })
    };
    Ok(Thumbnail {
        bytes: encode().map_err(|_: turbojpeg::Error| ImageFault::TooCostly)?,
        mime: "image/jpeg",
        width,
        height,
    })
}

fn webp(image: &RgbaImage) -> Result<Thumbnail, ImageFault> {
    let (width, height) = image.dimensions();
    let bytes = webpx::Encoder::new_rgba(image.as_raw(), width, height)
        .quality(f32::from(QUALITY))
        .encode(webpx::Unstoppable)
        .map_err(|_| ImageFault::TooCostly)?;
    Ok(Thumbnail { bytes, mime: "image/webp", width, height })
}
