//! Shrinks an image by an integer factor, row by row, so that decoders that give single rows need no memory for the
//! full image. Then [`super::thumbnail`] shrinks the result further, with a better filter.

use super::raster::{PixelLayout, Raster};
use super::{ImageFault, Scaling, Size};
use ::image::metadata::Orientation;

/// The maximum factor, since the sum of a column of samples must fit into 16 bits.
const FACTOR_MAX: u32 = 128;

/// The minimum ratio of the shrunk image's sides to those of the thumbnail, unless the factor is 1.
const OVERSAMPLING: u32 = 2;

pub(super) struct Shrinker {
    from: Size,
    to: Size,
    factor: u32,
    layout: PixelLayout,
    /// One sum for each byte of a row.
    columns: Sums,
    rows: u32,
    pixels: Vec<u8>,
}

enum Sums {
    None,
    Plain(Vec<u16>),
    Weighted(Vec<u32>),
}

impl Shrinker {
    pub(super) fn new(target: Scaling, layout: PixelLayout) -> Self {
        let factor = factor(target);
        let to = Size { width: target.from.width.div_ceil(factor), height: target.from.height.div_ceil(factor) };
        let bytes = target.from.width as usize * layout.bytes();
        let columns = match layout {
            _ if factor == 1 => Sums::None,
            PixelLayout::Rgba => Sums::Weighted(vec![0; bytes]),
            PixelLayout::Grey | PixelLayout::Rgb | PixelLayout::Cmyk => Sums::Plain(vec![0; bytes]),
        };
        Self {
            from: target.from,
            to,
            factor,
            layout,
            columns,
            rows: 0,
            pixels: Vec::with_capacity(to.width as usize * to.height as usize * layout.bytes()),
        }
    }

    pub(super) fn push(&mut self, row: &[u8]) -> Result<(), ImageFault> {
        if row.len() != self.from.width as usize * self.layout.bytes() || self.rows == self.from.height {
            return Err(ImageFault::Corrupt);
        }
        self.rows += 1;
        match &mut self.columns {
            Sums::None => self.pixels.extend_from_slice(row),
            Sums::Plain(sums) => {
                for (sum, byte) in sums.iter_mut().zip(row) {
                    *sum += u16::from(*byte);
                }
            }
            Sums::Weighted(sums) => {
                for (sum, pixel) in sums.chunks_exact_mut(4).zip(row.chunks_exact(4)) {
                    let opacity = u32::from(pixel[3]);
                    sum[0] += u32::from(pixel[0]) * opacity;
                    sum[1] += u32::from(pixel[1]) * opacity;
                    sum[2] += u32::from(pixel[2]) * opacity;
                    sum[3] += opacity;
                }
            }
        }
        if self.rows.is_multiple_of(self.factor) || self.rows == self.from.height {
            self.fill_cells();
        }
        Ok(())
    }

    fn fill_cells(&mut self) {
        let factor = self.factor as usize;
        let rows = match self.rows % self.factor {
            0 => self.factor,
            rest => rest,
        };
        let pixels = &mut self.pixels;
        match (&mut self.columns, self.layout) {
            (Sums::None, _) => {}
            (Sums::Plain(sums), PixelLayout::Grey) => {
                means::<1>(sums, factor, rows, pixels);
            }
            (Sums::Plain(sums), PixelLayout::Rgb) => {
                means::<3>(sums, factor, rows, pixels);
            }
            (Sums::Plain(sums), PixelLayout::Cmyk | PixelLayout::Rgba) => {
                means::<4>(sums, factor, rows, pixels);
            }
            (Sums::Weighted(sums), _) => weighted_means(sums, factor, rows, pixels),
        }
    }

    pub(super) fn finish(self, icc: Option<Vec<u8>>, orientation: Orientation) -> Result<Raster, ImageFault> {
        if self.rows != self.from.height {
            return Err(ImageFault::Cut);
        }
        let factor = f64::from(self.factor);
        Ok(Raster {
            size: self.to,
            covered: (f64::from(self.from.width) / factor, f64::from(self.from.height) / factor),
            layout: self.layout,
            pixels: self.pixels,
            icc,
            orientation,
        })
    }
}

fn factor(Scaling { from, to }: Scaling) -> u32 {
    let across = from.width / (OVERSAMPLING * to.width);
    let down = from.height / (OVERSAMPLING * to.height);
    across.min(down).clamp(1, FACTOR_MAX)
}

pub(super) fn memory_bytes(size: Size) -> u64 {
    const SMALL_RESULT_MAX_BYTES: u64 = 2 * 1024 * 1024;
    let (width, height) = (u64::from(size.width), u64::from(size.height));
    // Twice the sums of four bytes, and the result, which may be the whole image if that is small.
    width * 32 + (width + height) * 1024 + (width * height * 4).min(SMALL_RESULT_MAX_BYTES)
}

fn means<const CHANNELS: usize>(sums: &mut [u16], factor: usize, rows: u32, pixels: &mut Vec<u8>) {
    for cell in sums.chunks_mut(factor * CHANNELS) {
        let mut total = [0_u32; CHANNELS];
        for pixel in cell.as_chunks::<CHANNELS>().0 {
            for (total, sum) in total.iter_mut().zip(pixel) {
                *total += u32::from(*sum);
            }
        }
        let count = (cell.len() / CHANNELS) as u32 * rows;
        pixels.extend(total.map(|total| ((total + count / 2) / count) as u8));
    }
    sums.fill(0);
}

fn weighted_means(sums: &mut [u32], factor: usize, rows: u32, pixels: &mut Vec<u8>) {
    for cell in sums.chunks_mut(factor * 4) {
        let mut total = [0_u64; 4];
        for pixel in cell.as_chunks::<4>().0 {
            for (total, sum) in total.iter_mut().zip(pixel) {
                *total += u64::from(*sum);
            }
        }
        let count = (cell.len() / 4) as u64 * u64::from(rows);
        let [red, green, blue, opacity] = total;
        let colour = |total: u64| ((total + opacity / 2).checked_div(opacity).unwrap_or(0)) as u8;
        pixels.extend([colour(red), colour(green), colour(blue), ((opacity + count / 2) / count) as u8]);
    }
    sums.fill(0);
}
