//! `pudica data fetch`: data sets from where they are published.

use crate::Ending;
use crate::data::folder_of_environment;
use crate::download::{Downloader, part_of};
use crate::text::seconds;
use clap::Args;
use flate2::read::MultiGzDecoder;
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use pudica_data::images::md5_of_content;
use pudica_data::sources::{Download, Member, Source};
use serde_json::{Value, json};
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Download data sets from their publishers
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Fetch {
    /// mnist, fashion-mnist, cifar10, svhn, cifar10-c (2.9 GB), mrpc or bpe
    #[arg(required = true)]
    names: Vec<String>,
    /// The folder for the data sets [default: $PUDICA_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Download from URL/FOLDER/FILE instead (a copy in your own network)
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pudica data fetch mnist cifar10 --data data      into data/mnist and data/cifar10
  pudica data fetch cifar10-c                      into the folder that PUDICA_DATA names
  https_proxy=http://proxy:3128 pudica data fetch svhn --data data

Files that are there already are not downloaded again, and interrupted downloads are continued. A file
gets its name only once its checksum is the published one.";

/// The wait after a first failure.
const PAUSE: Duration = Duration::from_secs(2);
/// No file of an archive is larger.
const LARGEST_MEMBER: u64 = 1 << 30;

/// Runs `pudica data fetch`.
pub fn run(arguments: &Fetch) -> Result<Ending, Box<dyn Error>> {
    let sources: Vec<Source> = arguments.names.iter().map(|name| Source::named(name)).collect::<Result<_, _>>()?;
    let data = arguments.data.clone().or_else(folder_of_environment);
    let data = data.ok_or("say where the data sets go: --data DIR, or the variable PUDICA_DATA")?;
    if let Some(mirror) = arguments.mirror.as_deref().filter(|mirror| !is_web_address(mirror)) {
        return Err(format!("--mirror '{mirror}' is no address, such as https://mirror.example/data").into());
    }
    let downloader = Downloader::new(PAUSE);
    let mut files = Vec::new();
    for source in sources {
        let folder = data.join(source.folder);
        let made: Vec<&Path> =
            folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for download in &source.downloads {
            let mut download = download.clone();
            if let Some(mirror) = &arguments.mirror {
                download.urls = vec![format!("{}/{}/{}", mirror.trim_end_matches('/'), source.folder, download.name)];
            }
            let fetched = fetch(&downloader, &download, &folder).inspect_err(|_| {
                // Nothing is left of what came to nothing; folders that hold something stay.
                made.iter().take_while(|folder| fs::remove_dir(folder).is_ok()).count();
            })?;
            if !arguments.json {
                println!("{fetched}");
            }
            files.push(fetched.to_json());
        }
    }
    if arguments.json {
        println!("{}", json!({"data": data, "files": files}));
    }
    Ok(Ending::Done)
}

fn is_web_address(text: &str) -> bool {
    let address: Result<ureq::http::Uri, _> = text.parse();
    address.is_ok_and(|address| matches!(address.scheme_str(), Some("http" | "https")) && address.host().is_some())
}

/// What became of a download.
struct Fetched {
    /// The file, or the archive it was.
    path: PathBuf,
    outcome: Outcome,
}

enum Outcome {
    /// It was there and right.
    Here,
    /// So many bytes came.
    Came(u64),
    /// So many bytes came, and so many files were taken out of them.
    Unpacked(u64, usize),
}

impl std::fmt::Display for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let path = self.path.display();
        match self.outcome {
            Outcome::Here => write!(f, "{path}: already here"),
            Outcome::Came(bytes) => write!(f, "{path}: {}, as published", HumanBytes(bytes)),
            Outcome::Unpacked(bytes, files) => write!(f, "{path}: {}, {files} files unpacked", HumanBytes(bytes)),
        }
    }
}

impl Fetched {
    fn to_json(&self) -> Value {
        let (state, bytes, files) = match self.outcome {
            Outcome::Here => ("already here", None, None),
            Outcome::Came(bytes) => ("downloaded", Some(bytes), None),
            Outcome::Unpacked(bytes, files) => ("unpacked", Some(bytes), Some(files)),
        };
        json!({"path": self.path, "state": state, "bytes": bytes, "files": files})
    }
}

fn fetch(downloader: &Downloader, download: &Download, folder: &Path) -> Result<Fetched, String> {
    let path = folder.join(&download.name);
    let here = match download.members.as_slice() {
        [] => is_right(&path, download.md5),
        members => members.iter().all(|member| is_right(&folder.join(&member.name), member.md5)),
    };
    if here {
        return Ok(Fetched { path, outcome: Outcome::Here });
    }
    if download.md5.is_none() || !is_right(&path, download.md5) {
        let mut shown = Shown::new(&download.name);
        let check = |part: &Path| check(part, download.md5);
        downloader.fetch(&download.urls, &path, &check, &mut |have, total| shown.update(have, total))?;
        shown.end();
    }
    let bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
    if download.members.is_empty() {
        return Ok(Fetched { path, outcome: Outcome::Came(bytes) });
    }
    unpack(&path, &download.members, folder)?;
    fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Fetched { path, outcome: Outcome::Unpacked(bytes, download.members.len()) })
}

/// Whether a file is there with this content; one of which nothing is published, whether it is there.
fn is_right(path: &Path, md5: Option<&str>) -> bool {
    path.is_file() && check(path, md5).is_ok()
}

fn check(path: &Path, md5: Option<&str>) -> Result<(), String> {
    let Some(expected) = md5 else { return Ok(()) };
    let (found, bytes) = md5_of_content(path).map_err(|error| format!("what came is damaged: {}", error.problem))?;
    match found == expected {
        true => Ok(()),
        false => {
            Err(format!("what came is not the published file: its {bytes} bytes have the MD5 {found}, not {expected}"))
        }
    }
}

/// Takes these files out of a tar archive, gzipped or not; folders in it play no part, so none can lead out of `folder`.
fn unpack(archive: &Path, members: &[Member], folder: &Path) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{}: cannot be unpacked: {error}", archive.display());
    let mut file = BufReader::new(File::open(archive).map_err(wrong)?);
    let packed = std::io::BufRead::fill_buf(&mut file).map_err(wrong)?.starts_with(&[0x1f, 0x8b]);
    let content: Box<dyn Read> = if packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut missing: Vec<&Member> = members.iter().collect();
    for entry in tar::Archive::new(content).entries().map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.path().map_err(wrong)?.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(place) = missing.iter().position(|member| member.name == name) else { continue };
        if !entry.header().entry_type().is_file() || entry.size() > LARGEST_MEMBER {
            return Err(format!("{}: {name} in it is not the file it should be", archive.display()));
        }
        let member = missing.remove(place);
        let (path, part) = (folder.join(&name), part_of(&folder.join(&name)));
        let mut out = File::create(&part).map_err(|error| format!("{}: {error}", part.display()))?;
        std::io::copy(&mut entry.take(LARGEST_MEMBER), &mut out).map_err(wrong)?;
        check(&part, member.md5).map_err(|problem| format!("{}: {name} in it: {problem}", archive.display()))?;
        fs::rename(&part, &path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    match missing.first() {
        Some(member) => Err(format!("{}: {} is not in it", archive.display(), member.name)),
        None => Ok(()),
    }
}

/// How far a download is: a bar on a terminal, elsewhere a line now and then.
enum Shown {
    Bar(ProgressBar),
    Lines { name: String, begun: Instant, first: Option<u64>, said: Instant },
}

/// Time between two lines.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

impl Shown {
    fn new(name: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            let now = Instant::now();
            return Self::Lines { name: name.to_string(), begun: now, first: None, said: now };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let template = "{prefix} {bar:32} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_string());
        Self::Bar(bar)
    }

    fn update(&mut self, have: u64, total: Option<u64>) {
        match self {
            Self::Bar(bar) => {
                if let Some(total) = total {
                    bar.set_length(total);
                }
                bar.set_position(have);
            }
            Self::Lines { name, begun, first, said } => {
                let first = *first.get_or_insert(have);
                if said.elapsed() < BETWEEN_LINES {
                    return;
                }
                *said = Instant::now();
                let left = total.filter(|_| have > first).map(|total| {
                    let speed = (have - first) as f64 / begun.elapsed().as_secs_f64();
                    format!(" of {}, {} left", HumanBytes(total), seconds(total.saturating_sub(have) as f64 / speed))
                });
                eprintln!("{name}: {}{}", HumanBytes(have), left.unwrap_or_default());
            }
        }
    }

    fn end(self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    /// A tar archive of these files.
    fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            // The name as it is, dots and all: what a hostile archive would say.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            archive.append(&header, *bytes).unwrap();
        }
        archive.into_inner().unwrap()
    }

    fn member(name: &str, md5: Option<&'static str>) -> Member {
        Member { name: name.to_string(), md5 }
    }

    #[test]
    fn archives_give_the_files_asked_for_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (data, archive) = (folder.path().join("data"), folder.path().join("a.tar.gz"));
        fs::create_dir(&data).unwrap();
        let files: [(&str, &[u8]); 3] = [("in/one.bin", b"one"), ("../../evil.bin", b"evil"), ("in/two.bin", b"two")];
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&tar(&files)).unwrap();
        fs::write(&archive, packed.finish().unwrap()).unwrap();
        // MD5 of "one".
        let wanted = [member("two.bin", None), member("one.bin", Some("f97c5d29941bfb1b2fdab0874906ab82"))];
        unpack(&archive, &wanted, &data).unwrap();
        assert_eq!(fs::read(data.join("one.bin")).unwrap(), b"one");
        assert_eq!(fs::read_dir(&data).unwrap().count(), 2);
        // One that is asked for by name lands in the folder, wherever the archive would have it.
        unpack(&archive, &[member("evil.bin", None)], &data).unwrap();
        assert!(data.join("evil.bin").is_file() && !folder.path().join("evil.bin").exists());
        let refused = |members: &[Member]| unpack(&archive, members, &data).unwrap_err();
        assert!(refused(&[member("three.bin", None)]).contains("three.bin is not in it"));
        let problem = refused(&[member("two.bin", Some("f97c5d29941bfb1b2fdab0874906ab82"))]);
        assert!(problem.contains("two.bin in it") && problem.contains("not the published file"), "{problem}");
        fs::write(&archive, b"no archive at all").unwrap();
        assert!(unpack(&archive, &wanted, &data).is_err());
    }
}
