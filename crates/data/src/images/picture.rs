//! One picture from a PNG or JPEG file.

use super::Shape;
use crate::{FileError, FileResult};
use std::io::Cursor;
use std::path::Path;
use zune_jpeg::zune_core::{colorspace::ColorSpace, options::DecoderOptions};

/// Pictures of more pixels than this are not what these networks look at.
const LARGEST: u64 = 1 << 24;

/// Shape and pixels \[height, width, channels\] of a picture; grey stays grey.
pub(crate) fn read_picture(path: &Path) -> FileResult<(Shape, Vec<u8>)> {
    let wrong = |problem: String| FileError::new(path, problem);
    let length = std::fs::metadata(path).map_err(|error| wrong(format!("cannot be read: {error}")))?.len();
    if length > 16 * LARGEST {
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
    let limits = png::Limits { bytes: 16 * LARGEST as usize };
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
    let (channels, opaque) = match reader.output_color_type().0 {
        png::ColorType::Grayscale => (1, true),
        png::ColorType::Rgb => (3, true),
        png::ColorType::GrayscaleAlpha => (1, drop_alpha(&mut pixels, 1)),
        png::ColorType::Rgba => (3, drop_alpha(&mut pixels, 3)),
        png::ColorType::Indexed => return Err("a palette that cannot be read".into()),
    };
    if !opaque {
        return Err("the picture is transparent in places: put it on a background first".into());
    }
    Ok((Shape { channels, ..shape }, pixels))
}

/// Removes the alpha after every `channels` values; whether all of them were opaque.
fn drop_alpha(pixels: &mut Vec<u8>, channels: usize) -> bool {
    let opaque = pixels.chunks_exact(channels + 1).all(|pixel| pixel[channels] == 255);
    *pixels = pixels.chunks_exact(channels + 1).flat_map(|pixel| &pixel[..channels]).copied().collect();
    opaque
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
    Ok((shape, pixels))
}
