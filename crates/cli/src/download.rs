//! One file over HTTP: continued where it stopped, retried, checked before it takes its name.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tries in a row that bring nothing new before an address is given up.
const TRIES: u32 = 5;
/// A server that sends nothing for so long is asked again.
const SILENCE: Duration = Duration::from_secs(60);

/// Downloads files, through a proxy where `https_proxy` or `http_proxy` names one.
pub struct Downloader {
    agent: ureq::Agent,
    /// The wait before the second try; it doubles with each further one.
    pause: Duration,
}

/// Told how many bytes are there, and of how many where the server said so.
pub type Progress<'a> = &'a mut dyn FnMut(u64, Option<u64>);

/// Why a try failed.
enum Failure {
    /// Asking the same address again may help.
    Passing(String),
    /// It will not.
    Final(String),
}

use Failure::{Final, Passing};

impl Downloader {
    /// A downloader that waits this long before its second try.
    pub fn new(pause: Duration) -> Self {
        Self::through(ureq::Proxy::try_from_env(), pause)
    }

    fn through(proxy: Option<ureq::Proxy>, pause: Duration) -> Self {
        let config = ureq::Agent::config_builder()
            .proxy(proxy)
            .http_status_as_error(false)
            .timeout_connect(Some(SILENCE))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .user_agent(concat!("pudica/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { agent: config.into(), pause }
    }

    /// Downloads a file from the first of these addresses that gives one that `check` finds right; `check` says what is wrong otherwise. Until
    /// then it lies beside `path` as `.part`, which a later call continues.
    pub fn fetch(
        &self,
        urls: &[String],
        path: &Path,
        check: &dyn Fn(&Path) -> Result<(), String>,
        progress: Progress,
    ) -> Result<(), String> {
        let part = part_of(path);
        let mut problems = Vec::new();
        for url in urls {
            match self.fetch_from(url, &part, check, progress) {
                Ok(()) => return fs::rename(&part, path).map_err(|error| format!("{}: {error}", path.display())),
                Err(problem) => problems.push(problem),
            }
        }
        Err(problems.join("; "))
    }

    fn fetch_from(
        &self,
        url: &str,
        part: &Path,
        check: &dyn Fn(&Path) -> Result<(), String>,
        progress: Progress,
    ) -> Result<(), String> {
        let continued = length(part) > 0;
        self.complete(url, part, progress)?;
        let Err(problem) = check(part) else { return Ok(()) };
        // What was continued may have begun as another file: once more, from the start.
        remove(part);
        if !continued {
            return Err(format!("{url}: {problem}"));
        }
        self.complete(url, part, progress)?;
        check(part).map_err(|problem| {
            remove(part);
            format!("{url}: {problem}")
        })
    }

    /// Asks until the whole file is there.
    fn complete(&self, url: &str, part: &Path, progress: Progress) -> Result<(), String> {
        let mut tries = 0;
        loop {
            let before = length(part);
            let problem = match self.ask(url, part, progress) {
                Ok(()) => return Ok(()),
                Err(Final(problem)) => return Err(format!("{url}: {problem}")),
                Err(Passing(problem)) => problem,
            };
            tries = if length(part) > before { 1 } else { tries + 1 };
            if tries == TRIES {
                let kept = match length(part) {
                    0 => String::new(),
                    bytes => format!("; the {bytes} bytes that came are kept, run it again to continue"),
                };
                return Err(format!("{url}: {problem}, {TRIES} times in a row{kept}"));
            }
            std::thread::sleep(self.pause * 2u32.pow(tries - 1));
        }
    }

    /// One request for what is missing.
    fn ask(&self, url: &str, part: &Path, progress: Progress) -> Result<(), Failure> {
        let have = length(part);
        let mut request = self.agent.get(url);
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
        }
        let mut response = request.call().map_err(|error| match error {
            ureq::Error::BadUri(_) | ureq::Error::HostNotFound | ureq::Error::InvalidProxyUrl | ureq::Error::Tls(_) => {
                Final(error.to_string())
            }
            // A misprint, or no network at all: neither goes by waiting.
            ureq::Error::Io(error) if error.to_string().contains("failed to lookup address") => Final(
                "no machine of this name is found; is it written right, and is this machine on the network?".into(),
            ),
            error => Passing(error.to_string()),
        })?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let range = header("Content-Range").map(str::to_string);
        let announced: Option<u64> = header("Content-Length").and_then(|length| length.parse().ok());
        let have = match response.status().as_u16() {
            206 if range.as_deref().is_some_and(|range| range.starts_with(&format!("bytes {have}-"))) => have,
            // All of it, though only the rest may have been asked for.
            200 => 0,
            // Nothing follows: it is all there, or the part is longer than the file.
            416 if range.as_deref() == Some(&format!("bytes */{have}")) => return Ok(()),
            206 | 416 => {
                remove(part);
                return Err(Passing("the server could not continue the file".to_string()));
            }
            429 | 500..=599 => return Err(Passing(format!("the server answered {}", response.status()))),
            _ => return Err(Final(format!("the server answered {}", response.status()))),
        };
        let total = announced.map(|announced| have + announced);
        let written = write_body(&mut response.body_mut().as_reader(), part, have, total, progress)?;
        match total {
            Some(total) if written < total => {
                Err(Passing(format!("the connection ended after {written} of {total} bytes")))
            }
            _ => Ok(()),
        }
    }
}

/// Appends to the first `have` bytes of the part; how many there are then.
fn write_body(
    body: &mut impl Read,
    part: &Path,
    mut have: u64,
    total: Option<u64>,
    progress: Progress,
) -> Result<u64, Failure> {
    let disk = |error: std::io::Error| Final(format!("{}: {error}", part.display()));
    let mut file: File = OpenOptions::new().create(true).append(true).open(part).map_err(disk)?;
    file.set_len(have).map_err(disk)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        progress(have, total);
        match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                file.write_all(&buffer[..count]).map_err(disk)?;
                have += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Passing(format!("the connection broke after {have} bytes ({error})"))),
        }
    }
    file.sync_all().map_err(disk)?;
    Ok(have)
}

/// Where a file lies until it is whole.
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    path.with_file_name(name)
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// A part that is no use; that it is not there is fine too.
fn remove(part: &Path) {
    let _ = fs::remove_file(part);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::sync::{Arc, Mutex};

    /// How a server answers one request.
    #[derive(Clone, Copy)]
    enum Answer {
        /// As asked, with ranges.
        Well,
        /// Ends the connection after so many bytes of the body.
        CutAfter(usize),
        /// Always the whole file.
        WithoutRanges,
        /// A status line and nothing more.
        Status(&'static str),
    }

    use Answer::*;

    /// A server of one file on this machine, which answers requests in turn; the last answer is repeated. It notes the ranges asked for.
    struct Server {
        url: String,
        asked: Arc<Mutex<Vec<Option<String>>>>,
    }

    impl Server {
        fn new(content: Vec<u8>, answers: &'static [Answer]) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/file", listener.local_addr().unwrap());
            let asked = Arc::new(Mutex::new(Vec::new()));
            let notes = asked.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let mut stream = stream.unwrap();
                    let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                    let request: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                    let range = request.iter().find_map(|line| {
                        let (name, value) = line.split_once(": ")?;
                        name.eq_ignore_ascii_case("range").then(|| value.to_string())
                    });
                    let turn = {
                        let mut notes = notes.lock().unwrap();
                        notes.push(range.clone());
                        notes.len() - 1
                    };
                    let answer = answers[turn.min(answers.len() - 1)];
                    let _ = stream.write_all(&reply(&content, answer, range.as_deref()));
                }
            });
            Self { url, asked }
        }

        fn asked(&self) -> Vec<Option<String>> {
            self.asked.lock().unwrap().clone()
        }
    }

    fn reply(content: &[u8], answer: Answer, range: Option<&str>) -> Vec<u8> {
        let from = range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
        let size = content.len();
        let with_body = |status: &str, more: String, from: usize, end: usize| {
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{more}\r\n", size - from);
            [head.as_bytes(), &content[from..end.clamp(from, size)]].concat()
        };
        let partial = |from: usize, end: usize| {
            with_body("206 Partial Content", format!("Content-Range: bytes {from}-{}/{size}\r\n", size - 1), from, end)
        };
        match (answer, from) {
            (Status(status), _) => {
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
            }
            (Well, Some(from)) if from >= size => {
                let range = format!("Content-Range: bytes */{size}\r\n");
                format!("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n{range}\r\n")
                    .into_bytes()
            }
            (Well, Some(from)) => partial(from, size),
            (CutAfter(bytes), Some(from)) => partial(from, from + bytes),
            (CutAfter(bytes), None) => with_body("200 OK", String::new(), 0, bytes),
            (Well | WithoutRanges, _) => with_body("200 OK", String::new(), 0, size),
        }
    }

    fn content() -> Vec<u8> {
        (0..200_000u32).map(|i| (i * 7 % 251) as u8).collect()
    }

    fn is_content(path: &Path) -> Result<(), String> {
        match fs::read(path).is_ok_and(|bytes| bytes == content()) {
            true => Ok(()),
            false => Err("not the published file".to_string()),
        }
    }

    /// Downloads into a fresh folder, where `part` lies already; what came, or the problem, and what is left as a part.
    fn fetched(servers: &[&Server], part: Option<&[u8]>) -> (Result<Vec<u8>, String>, Option<Vec<u8>>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.gz");
        if let Some(part) = part {
            fs::write(part_of(&path), part).unwrap();
        }
        let urls: Vec<String> = servers.iter().map(|server| server.url.clone()).collect();
        let mut last = 0;
        let mut progress = |have: u64, total: Option<u64>| {
            assert!(total.is_none_or(|total| have <= total));
            last = have;
        };
        let done = Downloader::through(None, Duration::from_millis(1)).fetch(&urls, &path, &is_content, &mut progress);
        assert!(done.is_err() || last == 200_000 || part.is_some_and(|part| part.len() == 200_000));
        (done.map(|()| fs::read(&path).unwrap()), fs::read(part_of(&path)).ok())
    }

    #[test]
    fn a_file_comes_whole() {
        let server = Server::new(content(), &[Well]);
        assert_eq!(fetched(&[&server], None), (Ok(content()), None));
        assert_eq!(server.asked(), [None]);
    }

    #[test]
    fn what_was_cut_off_is_continued() {
        let server = Server::new(content(), &[CutAfter(70_000), CutAfter(50_000), Status("503 Busy"), Well]);
        assert_eq!(fetched(&[&server], None).0, Ok(content()));
        let asked = server.asked();
        assert_eq!(asked.len(), 4);
        // What was sent before a cut may be lost with the connection, but never more.
        let start = |at: usize| asked[at].as_ref().unwrap()[6..].trim_end_matches('-').parse::<u64>().unwrap();
        assert!(
            start(1) <= 70_000 && start(2) <= start(1) + 50_000 && start(2) == start(3) && start(3) > 0,
            "{asked:?}"
        );
    }

    #[test]
    fn a_part_from_before_is_continued() {
        let server = Server::new(content(), &[Well]);
        assert_eq!(fetched(&[&server], Some(&content()[..150_000])).0, Ok(content()));
        assert_eq!(server.asked(), [Some("bytes=150000-".to_string())]);
        // All of it was there, only not yet under its name.
        let server = Server::new(content(), &[Well]);
        assert_eq!(fetched(&[&server], Some(&content())).0, Ok(content()));
        assert_eq!(server.asked().len(), 1);
    }

    #[test]
    fn a_part_of_something_else_is_thrown_away() {
        let server = Server::new(content(), &[Well]);
        assert_eq!(fetched(&[&server], Some(&[9; 1000])).0, Ok(content()));
        assert_eq!(server.asked(), [Some("bytes=1000-".to_string()), None]);
        // Longer than the file.
        let server = Server::new(content(), &[Well]);
        assert_eq!(fetched(&[&server], Some(&[9; 300_000])).0, Ok(content()));
    }

    #[test]
    fn a_server_without_ranges_starts_over() {
        let server = Server::new(content(), &[CutAfter(70_000), WithoutRanges]);
        assert_eq!(fetched(&[&server], None).0, Ok(content()));
    }

    #[test]
    fn a_missing_file_is_said_at_once_and_the_next_place_tried() {
        let (gone, good) = (Server::new(content(), &[Status("404 Not Found")]), Server::new(content(), &[Well]));
        let (result, part) = fetched(&[&gone], None);
        let problem = result.unwrap_err();
        assert!(problem.contains(&gone.url) && problem.contains("404 Not Found"), "{problem}");
        assert_eq!((gone.asked().len(), part), (1, None));
        assert_eq!(fetched(&[&gone, &good], None).0, Ok(content()));
    }

    #[test]
    fn a_wrong_file_is_refused_and_leaves_nothing() {
        let server = Server::new(vec![1; 500], &[Well]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let fetch = |part: &[u8]| {
            fs::write(part_of(&path), part).unwrap();
            let downloader = Downloader::through(None, Duration::from_millis(1));
            downloader.fetch(std::slice::from_ref(&server.url), &path, &is_content, &mut |_, _| {}).unwrap_err()
        };
        for part in [&[][..], &[1; 100]] {
            assert!(fetch(part).contains("not the published file"));
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_server_that_stays_down_is_given_up_and_the_part_kept() {
        let server = Server::new(content(), &[CutAfter(90_000), Status("500 Internal Server Error")]);
        let (result, part) = fetched(&[&server], None);
        let problem = result.unwrap_err();
        assert!(problem.contains("500") && problem.contains("run it again to continue"), "{problem}");
        let part = part.unwrap();
        assert!(!part.is_empty() && content().starts_with(&part));
        // Nobody listens there at all.
        let nobody = Server { url: "http://127.0.0.1:9/file".to_string(), asked: Arc::default() };
        assert!(fetched(&[&nobody], None).0.unwrap_err().contains("127.0.0.1:9"));
    }
}
