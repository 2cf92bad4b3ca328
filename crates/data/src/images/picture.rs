//! One picture from a PNG or JPEG file.

use super::Shape;
use super::orientation::{of_exif, turned};
use crate::{FileError, FileResult};
use std::io::Cursor;
use std::path::Path;
use zune_jpeg::zune_core::{colorspace::ColorSpace, options::DecoderOptions};

/// Pictures of more pixels than this are not what these networks look at: photographs have 12 to 50 million.
const LARGEST: u64 = 1 << 26;

/// Bytes of a file, and those that its decoder may ask for.
const MOST_BYTES: u64 = 1 << 28;

/// Shape and pixels \[height, width, channels\] of a picture; grey stays grey, what is transparent is put on white, and photographs
/// are turned as they say.
pub(crate) fn read_picture(path: &Path) -> FileResult<(Shape, Vec<u8>)> {
    let wrong = |problem: String| FileError::new(path, problem);
    let length = std::fs::metadata(path).map_err(|error| wrong(format!("cannot be read: {error}")))?.len();
    if length > MOST_BYTES {
        return Err(wrong(format!("a picture of {length} bytes is larger than what is read here")));
    }
    let bytes = std::fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let picture = if bytes.starts_with(&[0xff, 0xd8]) { read_jpeg(&bytes) } else { read_png(&bytes) };
    picture.map_err(wrong)
}

fn believable(height: u64, width: u64, channels: u64) -> Result<Shape, String> {
    if height.saturating_mul(width) > LARGEST {
        return Err(format!("a picture of {height} x {width} pixels is larger than what is read here"));
    }
    Shape::checked(1, height, width, channels)
}

fn read_png(bytes: &[u8]) -> Result<(Shape, Vec<u8>), String> {
    let damaged = |error: png::DecodingError| format!("not a PNG that can be read: {error}");
    let limits = png::Limits { bytes: MOST_BYTES as usize };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(damaged)?;
    let (width, height) = reader.info().size();
    let shape = believable(u64::from(height), u64::from(width), 1)?;
    // Each packed byte can say 1032 bytes of a row, and each of these 8 grey pixels of one bit.
    if shape.pixels() as u64 > 8 * 1032 * bytes.len() as u64 {
        return Err(format!("{height} x {width} pixels are announced, which {} bytes cannot hold", bytes.len()));
    }
    let mut pixels = vec![0; reader.output_buffer_size().ok_or("a picture larger than what is read here")?];
    reader.next_frame(&mut pixels).map_err(damaged)?;
    let channels = match reader.output_color_type().0 {
        png::ColorType::Grayscale => 1,
        png::ColorType::Rgb => 3,
        png::ColorType::GrayscaleAlpha => flatten(&mut pixels, 1),
        png::ColorType::Rgba => flatten(&mut pixels, 3),
        png::ColorType::Indexed => return Err("a palette that cannot be read".into()),
    };
    Ok((Shape { channels, ..shape }, pixels))
}

/// Puts pixels, with alpha after every `channels` values, on white; gives `channels`.
fn flatten(pixels: &mut Vec<u8>, channels: usize) -> usize {
    let on_white = |pixel: &[u8]| {
        let alpha = u32::from(pixel[channels]);
        let value = |byte: &u8| ((u32::from(*byte) * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
        pixel[..channels].iter().map(value).collect::<Vec<u8>>()
    };
    *pixels = pixels.chunks_exact(channels + 1).flat_map(on_white).collect();
    channels
}

fn read_jpeg(bytes: &[u8]) -> Result<(Shape, Vec<u8>), String> {
    let damaged = |error: zune_jpeg::errors::DecodeErrors| format!("not a JPEG that can be read: {error}");
    let decoder = |space| {
        let options = DecoderOptions::new_safe().set_strict_mode(true).jpeg_set_out_colorspace(space);
        zune_jpeg::JpegDecoder::new_with_options(Cursor::new(bytes), options)
    };
    let mut header = decoder(ColorSpace::RGB);
    header.decode_headers().map_err(damaged)?;
    let info = header.info().ok_or("not a JPEG that can be read: no sizes")?;
    let (space, channels) = if info.components == 1 { (ColorSpace::Luma, 1) } else { (ColorSpace::RGB, 3) };
    let shape = believable(u64::from(info.height), u64::from(info.width), channels)?;
    // A block of 8 x 8 pixels takes two bits or more in the file.
    if shape.pixels() as u64 > 3 * 4 * 64 * bytes.len() as u64 {
        return Err(format!(
            "{} x {} pixels are announced, which {} bytes cannot hold",
            info.height,
            info.width,
            bytes.len()
        ));
    }
    // The decoder fills up what is missing of the last rows. After the last scan must come the end of the image; within a scan the two bytes
    // of that marker cannot stand, and what does before it may be the end of a small picture inside the header.
    let last = |marker: u8| bytes.windows(2).rposition(|pair| pair == [0xff, marker]);
    if last(0xd9) <= last(0xda) {
        return Err("not a JPEG that can be read: it is cut off before its end".into());
    }
    let pixels = decoder(space).decode().map_err(damaged)?;
    if pixels.len() != shape.pixels() {
        return Err(format!("{} bytes were decoded for a picture of {shape}", pixels.len()));
    }
    Ok(turned(shape, pixels, header.exif().map_or(1, |exif| of_exif(exif))))
}
