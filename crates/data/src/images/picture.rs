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
pub fn read_picture(path: &Path) -> FileResult<(Shape, Vec<u8>)> {
    let bytes = bytes_of(path)?;
    let picture = if is_jpeg(&bytes) { read_jpeg(&bytes) } else { read_png(&bytes) };
    picture.map_err(|problem| FileError::new(path, problem))
}

/// The shape that [`read_picture`] gives, from the picture's first bytes.
pub fn picture_shape(path: &Path) -> FileResult<Shape> {
    let bytes = bytes_of(path)?;
    let shape = match is_jpeg(&bytes) {
        true => jpeg_header(&bytes).map(|header| header.upright()),
        false => png_header(&bytes).map(|(_, shape)| shape),
    };
    shape.map_err(|problem| FileError::new(path, problem))
}

fn bytes_of(path: &Path) -> FileResult<Vec<u8>> {
    let wrong = |problem: String| FileError::new(path, problem);
    let metadata = std::fs::metadata(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if metadata.len() > MOST_BYTES {
        return Err(wrong(format!("a picture of {} bytes is larger than what is read here", metadata.len())));
    }
    // A device or a pipe may never end.
    if !metadata.is_file() {
        return Err(wrong("is not a plain file".into()));
    }
    std::fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))
}

fn is_jpeg(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xd8])
}

fn believable(height: u64, width: u64, channels: u64) -> Result<Shape, String> {
    if height.saturating_mul(width) > LARGEST {
        return Err(format!("a picture of {height} x {width} pixels is larger than what is read here"));
    }
    Shape::checked(1, height, width, channels)
}

type PngReader<'a> = png::Reader<Cursor<&'a [u8]>>;

fn damaged_png(error: png::DecodingError) -> String {
    format!("not a PNG that can be read: {error}")
}

/// The reader of a picture, and its shape without alpha.
fn png_header(bytes: &[u8]) -> Result<(PngReader<'_>, Shape), String> {
    let limits = png::Limits { bytes: MOST_BYTES as usize };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let reader = decoder.read_info().map_err(damaged_png)?;
    let (width, height) = reader.info().size();
    let shape = believable(u64::from(height), u64::from(width), 1)?;
    // Each packed byte can say 1032 bytes of a row, and each of these 8 grey pixels of one bit.
    if shape.pixels() as u64 > 8 * 1032 * bytes.len() as u64 {
        return Err(format!("{height} x {width} pixels are announced, which {} bytes cannot hold", bytes.len()));
    }
    let channels = match reader.output_color_type().0 {
        png::ColorType::Grayscale | png::ColorType::GrayscaleAlpha => 1,
        png::ColorType::Rgb | png::ColorType::Rgba => 3,
        png::ColorType::Indexed => return Err("a palette that cannot be read".into()),
    };
    Ok((reader, Shape { channels, ..shape }))
}

fn read_png(bytes: &[u8]) -> Result<(Shape, Vec<u8>), String> {
    let (mut reader, shape) = png_header(bytes)?;
    let mut pixels = vec![0; reader.output_buffer_size().ok_or("a picture larger than what is read here")?];
    // Some palettes that are too short are a panic of the library.
    let frame = pudica_boolean::caught(|| reader.next_frame(&mut pixels));
    frame.map_err(|panic| format!("not a PNG that can be read: {panic}"))?.map_err(damaged_png)?;
    if matches!(reader.output_color_type().0, png::ColorType::GrayscaleAlpha | png::ColorType::Rgba) {
        flatten(&mut pixels, shape.channels);
    }
    Ok((shape, pixels))
}

/// Puts pixels, with alpha after every `channels` values, on white.
fn flatten(pixels: &mut Vec<u8>, channels: usize) {
    let on_white = |pixel: &[u8]| {
        let alpha = u32::from(pixel[channels]);
        let value = |byte: &u8| ((u32::from(*byte) * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
        pixel[..channels].iter().map(value).collect::<Vec<u8>>()
    };
    *pixels = pixels.chunks_exact(channels + 1).flat_map(on_white).collect();
}

/// What the first bytes of a photograph say.
struct JpegHeader {
    /// As it is stored.
    shape: Shape,
    space: ColorSpace,
    orientation: u16,
}

impl JpegHeader {
    /// The shape as it is seen.
    fn upright(&self) -> Shape {
        let Shape { height, width, channels } = self.shape;
        if self.orientation >= 5 { Shape { height: width, width: height, channels } } else { self.shape }
    }
}

fn damaged_jpeg(error: zune_jpeg::errors::DecodeErrors) -> String {
    format!("not a JPEG that can be read: {error}")
}

fn jpeg_decoder(bytes: &[u8], space: ColorSpace) -> zune_jpeg::JpegDecoder<Cursor<&[u8]>> {
    let options = DecoderOptions::new_safe().set_strict_mode(true).jpeg_set_out_colorspace(space);
    zune_jpeg::JpegDecoder::new_with_options(Cursor::new(bytes), options)
}

fn jpeg_header(bytes: &[u8]) -> Result<JpegHeader, String> {
    let mut header = jpeg_decoder(bytes, ColorSpace::RGB);
    header.decode_headers().map_err(damaged_jpeg)?;
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
    Ok(JpegHeader { shape, space, orientation: header.exif().map_or(1, |exif| of_exif(exif)) })
}

fn read_jpeg(bytes: &[u8]) -> Result<(Shape, Vec<u8>), String> {
    let JpegHeader { shape, space, orientation } = jpeg_header(bytes)?;
    // The decoder fills up what is missing of the last rows. After the last scan must come the end of the image; within a scan the two bytes
    // of that marker cannot stand, and what does before it may be the end of a small picture inside the header.
    let last = |marker: u8| bytes.windows(2).rposition(|pair| pair == [0xff, marker]);
    if last(0xd9) <= last(0xda) {
        return Err("not a JPEG that can be read: it is cut off before its end".into());
    }
    let pixels = jpeg_decoder(bytes, space).decode().map_err(damaged_jpeg)?;
    if pixels.len() != shape.pixels() {
        return Err(format!("{} bytes were decoded for a picture of {shape}", pixels.len()));
    }
    Ok(turned(shape, pixels, orientation))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A palette of four bytes, with transparency: the library panics at it.
    #[test]
    fn a_palette_that_is_cut_short_is_an_error() {
        let picture: [u8; 96] = [
            137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 3, 0, 0, 0, 40,
            203, 52, 187, 0, 0, 0, 4, 80, 76, 84, 69, 1, 2, 3, 4, 35, 219, 138, 171, 0, 0, 0, 1, 116, 82, 78, 83, 1,
            55, 225, 232, 240, 0, 0, 0, 10, 73, 68, 65, 84, 120, 156, 99, 96, 0, 0, 0, 2, 0, 1, 72, 175, 164, 113, 0,
            0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
        ];
        let error = read_png(&picture).unwrap_err();
        assert!(error.starts_with("not a PNG that can be read: "), "{error}");
    }
}
