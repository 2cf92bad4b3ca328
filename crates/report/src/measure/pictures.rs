//! The pictures of examples: each is in the page once, whichever examples show it.

use std::fmt::Write;
use std::path::{Component, Path};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pudica_measure::results::Example;

use crate::sweep::different;

/// Smaller pictures than this are drawn with sharp pixels.
const SMALL: u32 = 128;

/// Pictures by the names of their files.
#[derive(Default)]
pub struct Pictures(Vec<Picture>);

/// A PNG file.
pub struct Picture {
    file: String,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    base64: String,
    id: String,
}

impl Pictures {
    /// Reads the pictures of examples in the folder of a measurement.
    pub fn read(folder: &Path, examples: &[Example]) -> Pictures {
        let files = different(examples.iter().filter_map(|example| example.image.as_deref()));
        let pictures = files.into_iter().enumerate();
        Pictures(pictures.filter_map(|(place, file)| Picture::read(folder, file, place)).collect())
    }

    /// The picture of an example, where it has one that could be read.
    pub fn of(&self, example: &Example) -> Option<&Picture> {
        self.0.iter().find(|picture| Some(picture.file.as_str()) == example.image.as_deref())
    }

    /// All of them, unseen: [`Picture::html`] shows one.
    pub fn html(&self) -> String {
        let mut all = String::new();
        for Picture { id, width, base64, .. } in &self.0 {
            let _ = write!(
                all,
                "<image id=\"{id}\" width=\"1\" height=\"1\" preserveAspectRatio=\"none\" style=\"image-rendering:{}\" \
                 href=\"data:image/png;base64,{base64}\"/>",
                if *width < SMALL { "pixelated" } else { "auto" },
            );
        }
        match all.is_empty() {
            true => all,
            false => format!(
                "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>{all}</defs></svg>\n"
            ),
        }
    }
}

impl Picture {
    /// `None` where there is no such file inside the folder, or it is no PNG: its example is shown without it.
    fn read(folder: &Path, file: &str, place: usize) -> Option<Picture> {
        let inside = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
        let bytes = inside.then(|| std::fs::read(folder.join(file)).ok())??;
        let is_png = bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.get(12..16)? == b"IHDR";
        let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let (width, height) = (number(16)?, number(20)?);
        (is_png && width > 0 && height > 0).then(|| Picture {
            file: file.into(),
            width,
            height,
            base64: STANDARD.encode(&bytes),
            id: format!("picture-{place}"),
        })
    }

    /// The picture inside an SVG whose units are its pixels.
    pub fn html(&self) -> String {
        format!("<use href=\"#{}\" transform=\"scale({} {})\"/>", self.id, self.width, self.height)
    }
}
