//! `pudica data`: data sets, downloaded, listed, verified, looked at and corrupted.

use crate::Ending;
use crate::arguments::whole;
use crate::fetch::{self, Fetch};
use crate::text::grouped;
use clap::{Args, Subcommand, ValueEnum};
use pudica_boolean::shortened;
use pudica_data::corruptions::{Corruption, FrostPictures, corrupt};
use pudica_data::images::{ContactSheet, DATA_SETS, DataSet, Images, Verdict, read_any, write_npy};
use pudica_data::text::{Pairs, TEXT_SETS, TextSet};
use pudica_data::{Divided, Split};
use pudica_lab::kinds::classifier::{DataConfig, OwnData, own_data};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::error::Error;
use std::path::{Path, PathBuf};

type Outcome = Result<Ending, Box<dyn Error>>;

/// Download, list, verify, show and corrupt data sets
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  pudica data list --data DIR              the known data sets, and which files of them are in DIR
  pudica data fetch mnist --data DIR       download MNIST from its publisher and compare its checksums
  pudica data verify DIR                   compare checksums with the published ones, and read every image
  pudica data show cifar10 --data DIR      ten images of each class as cifar10-test.png
  pudica data show photos data.size=32     the same for your own folder of classes (or a .npy, .mat, .bin or IDX file)
  pudica data show my.tsv data.text=sentence1+sentence2 data.label=gold
                                           classes, counts and first rows of your own texts
  pudica data corrupt fog --data DIR --out cifar10-c
                                           CIFAR-10-C's fog at severities 1 to 5: cifar10-c/fog.npy and labels.npy
  pudica data corrupt all --data DIR --sheet corruptions.png
                                           every corruption of one image, as one picture

The folder DIR holds one folder for each data set: mnist, fashion_mnist, cifar10, svhn (the folders torchvision makes for the
first two and cifar-10-batches-bin are known too), with the files as published, gzipped or not. Instead of --data DIR you can set
the environment variable PUDICA_DATA.";

#[derive(Subcommand)]
enum Command {
    /// List the known data sets, and which of their files are in the data folder
    List(List),
    Fetch(Fetch),
    /// Compare checksums with the published ones and read every image
    Verify(Verify),
    /// Show counts, classes and a contact sheet (PNG) of images, or classes and first rows of texts: a known data set, or your own
    Show(Show),
    /// Make CIFAR-10-C's corruptions of CIFAR-10's test images, seeded
    Corrupt(Corrupt),
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    place: Place,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Verify {
    /// The data folder [default: $PUDICA_DATA]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Show {
    /// A known data set (see `pudica data list`), or the path of your own images or texts, from here or from the data folder
    name: String,
    /// How your own data is read, as in `pudica run`: data.size=32, data.text=NAME+NAME, data.label=NAME, data.test_fraction=0.1, data.seed=1
    #[arg(value_name = "KEY=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    place: Place,
    /// Split whose images are on the sheet; of your own images without a part for tests, all are
    #[arg(long, value_enum, default_value = "test")]
    split: Part,
    /// Images per class on the sheet
    #[arg(long, default_value_t = 10, value_parser = whole::<u16>(1..=1000))]
    columns: u16,
    /// Enlargement: side of one pixel on the sheet
    #[arg(long, default_value_t = 2, value_parser = whole::<u16>(1..=32))]
    scale: u16,
    /// File for the sheet [default: NAME-SPLIT.png]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Corrupt {
    /// A corruption by the name of its official file (fog, gaussian_noise, ...), or `all`
    name: String,
    #[command(flatten)]
    place: Place,
    /// Folder for NAME.npy (severities 1 to 5 one after the other, as in the official files) and labels.npy
    #[arg(long, value_name = "FOLDER", required_unless_present = "sheet")]
    out: Option<PathBuf>,
    /// Picture of one image (a row for each corruption: as it was, then severities 1 to 5)
    #[arg(long, value_name = "PNG")]
    sheet: Option<PathBuf>,
    /// Which image the sheet shows, by its number in the test split
    #[arg(long, default_value_t = 0)]
    image: usize,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Corrupt only the first so many images
    #[arg(long)]
    images: Option<usize>,
    /// Folder with frost1.png to frost5.jpg [default: DIR/corruptions]
    #[arg(long, value_name = "FOLDER")]
    frost: Option<PathBuf>,
}

#[derive(Args)]
struct Place {
    /// The folder with the data sets [default: $PUDICA_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    Train,
    Test,
}

impl From<Part> for Split {
    fn from(part: Part) -> Self {
        match part {
            Part::Train => Self::Train,
            Part::Test => Self::Test,
        }
    }
}

impl Arguments {
    /// What it does, for who waits.
    pub fn doing(&self) -> String {
        match &self.command {
            Command::List(_) => String::new(),
            Command::Fetch(_) => "asking for the files".into(),
            Command::Verify(_) => "reading every file and comparing its checksum".into(),
            Command::Show(show) => format!("reading {}", show.name),
            Command::Corrupt(corrupt) => format!("making {} at five severities", corrupt.name),
        }
    }
}

/// Runs `pudica data`.
pub fn run(arguments: &Arguments) -> Outcome {
    match &arguments.command {
        Command::List(list) => print_list(list),
        Command::Fetch(arguments) => fetch::run(arguments),
        Command::Verify(verify) => print_checks(verify),
        Command::Show(show) => print_data(show),
        Command::Corrupt(corrupt) => make_corruptions(corrupt),
    }
}

/// The data folder that the environment names.
pub fn folder_of_environment() -> Option<PathBuf> {
    std::env::var_os("PUDICA_DATA").filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// The data folder a user gave, which must be one, or the one the environment names.
pub fn data_folder(given: Option<&Path>) -> Result<Option<PathBuf>, String> {
    match given.map(Path::to_path_buf).or_else(folder_of_environment) {
        Some(folder) if !folder.is_dir() => {
            let from = if given.is_some() { "" } else { "PUDICA_DATA: " };
            Err(format!("{from}{} is not a folder", folder.display()))
        }
        folder => Ok(folder),
    }
}

fn required_data_folder(given: Option<&Path>) -> Result<PathBuf, String> {
    data_folder(given)?.ok_or_else(|| "say where the data sets lie: --data DIR, or the variable PUDICA_DATA".into())
}

fn print_list(arguments: &List) -> Outcome {
    let folder = data_folder(arguments.place.data.as_deref())?;
    let found = |set: &DataSet, split| folder.as_ref().map(|folder| set.files(folder, split).len());
    if arguments.json {
        let split = |set: &DataSet, split| json!({"images": set.published(split), "files": set.file_count(split), "files_found": found(set, split)});
        let set = |set: &DataSet| {
            let shape = [set.shape.height, set.shape.width, set.shape.channels];
            json!({"name": set.name, "source": set.source, "shape": shape, "classes": set.classes,
                "train": split(set, Split::Train), "test": split(set, Split::Test)})
        };
        println!("{}", json!({"data": folder, "sets": DATA_SETS.iter().map(set).collect::<Vec<_>>()}));
        return Ok(Ending::Done);
    }
    println!("{:<15} {:<12} {:>8} {:>8}   {:<18} about", "name", "image", "train", "test", "files here");
    for set in &DATA_SETS {
        let here = |split: Split| {
            found(set, split).map_or_else(|| "-".into(), |count| format!("{count}/{}", set.file_count(split)))
        };
        let here = format!("{} + {}", here(Split::Train), here(Split::Test));
        let (train, test) = (grouped(set.published(Split::Train) as u64), grouped(set.published(Split::Test) as u64));
        println!("{:<15} {:<12} {train:>8} {test:>8}   {here:<18} {}", set.name, set.shape.to_string(), set.source);
    }
    match folder {
        Some(folder) => println!("\n\"files here\": of the training and the test split, in {}", folder.display()),
        None => println!("\nno data folder: name one with --data DIR or the variable PUDICA_DATA"),
    }
    Ok(Ending::Done)
}

fn print_checks(arguments: &Verify) -> Outcome {
    let folder = required_data_folder(arguments.dir.as_deref())?;
    let (mut files, mut splits, mut problems) = (Vec::new(), Vec::new(), 0);
    let say = |line: String| {
        if !arguments.json {
            println!("{line}");
        }
    };
    for set in &DATA_SETS {
        for split in Split::ALL {
            for check in set.verify(&folder, split) {
                let row = match check {
                    Ok(file) => {
                        let (word, expected) = match file.verdict {
                            Verdict::Official => ("as published", None),
                            Verdict::Differs(expected) => ("DIFFERS", Some(expected)),
                            Verdict::Unpublished => ("no checksum is published", None),
                        };
                        problems += usize::from(expected.is_some());
                        let note = expected.map_or(String::new(), |md5| format!(" (published: {md5})"));
                        say(format!("  {}  {}  {word}{note}", file.md5, file.path.display()));
                        json!({"path": file.path, "bytes": file.bytes, "md5": file.md5, "verdict": word, "published": expected})
                    }
                    Err(error) => {
                        problems += 1;
                        say(format!("  UNREADABLE  {error}"));
                        json!({"path": error.path, "verdict": "unreadable", "problem": error.problem})
                    }
                };
                files.push(row);
            }
            if set.files(&folder, split).is_empty() {
                continue;
            }
            let name = format!("{} {}", set.name, split.name());
            match set.load(&folder, split) {
                Ok(loaded) => {
                    let (count, all) = (loaded.images.count(), loaded.published);
                    say(format!("{name}: {} of {} images read", grouped(count as u64), grouped(all as u64)));
                    splits.push(json!({"set": set.name, "split": split.name(), "images": count, "published": all,
                        "label_counts": loaded.images.label_counts()}));
                }
                Err(error) => {
                    problems += 1;
                    say(format!("{name}: UNREADABLE  {error}"));
                    splits.push(json!({"set": set.name, "split": split.name(), "problem": error.to_string()}));
                }
            }
        }
    }
    if arguments.json {
        println!("{}", json!({"data": folder, "files": files, "splits": splits, "problems": problems}));
    }
    if files.is_empty() {
        return Err(
            format!("no file of a known data set in {}; `pudica data list` names them", folder.display()).into()
        );
    }
    if problems > 0 {
        return Err(format!("{problems} of these differ from what is published or cannot be read").into());
    }
    Ok(Ending::Done)
}

/// Images to show, what they are called, names of their classes where known, and how many there would be.
struct Shown {
    title: String,
    images: Images,
    classes: Vec<String>,
    published: Option<usize>,
    /// Of own images in two parts.
    parts: Option<Parts>,
}

/// How own data, or a known set of texts, is divided.
struct Parts {
    /// How many inputs of each class are for training, and how many for tests.
    counts: [Vec<usize>; 2],
    /// How they came to be two parts.
    how: String,
    /// The identity of own files.
    content: String,
}

impl Parts {
    fn of(config: &DataConfig, counts: [Vec<usize>; 2]) -> Self {
        let how = match config.test_fraction {
            0.0 => "as they lie there".into(),
            fraction => {
                format!("data.test_fraction={fraction} of each class for tests, drawn by data.seed={}", config.seed)
            }
        };
        Self { counts, how, content: config.content.clone() }
    }

    fn print(&self, classes: &[String]) {
        let totals = self.counts.each_ref().map(|counts| grouped(counts.iter().sum::<usize>() as u64));
        println!("  {} for training and {} for tests: {}", totals[0], totals[1], self.how);
        let width = classes.iter().map(|class| class.chars().count()).max().unwrap_or(0).max(12);
        println!("  {:<10}{:<width$} {:>9} {:>9}", "class", "", "train", "test");
        for (label, class) in classes.iter().enumerate() {
            let count = |part: &[usize]| grouped(part.get(label).copied().unwrap_or(0) as u64);
            println!("  {label:<9} {class:<width$} {:>9} {:>9}", count(&self.counts[0]), count(&self.counts[1]));
        }
    }

    fn json(&self) -> Value {
        json!({"train_counts": self.counts[0], "test_counts": self.counts[1], "division": self.how, "content": self.content})
    }
}

fn print_data(arguments: &Show) -> Outcome {
    let folder = data_folder(arguments.place.data.as_deref())?;
    let (name, path) = (&arguments.name, Path::new(&arguments.name));
    let known = DATA_SETS.iter().any(|set| set.name == name) || TEXT_SETS.iter().any(|set| set.name == name);
    let one_file = path.is_file() && read_by_name(path);
    if let Some(setting) = arguments.settings.first().filter(|_| known || one_file) {
        return Err(format!("{setting}: plays no part in {name}, which is not your own folder; leave it out").into());
    }
    if let Ok(set) = TextSet::named(name) {
        let folder = required_data_folder(arguments.place.data.as_deref())?;
        let (train, test) = (set.load(&folder, Split::Train)?.pairs, set.load(&folder, Split::Test)?.pairs);
        let classes = set.classes.map(str::to_string).to_vec();
        let counts = [train.label_counts(), test.label_counts()];
        let parts = Parts { counts, how: "as published".into(), content: String::new() };
        return print_texts(arguments, &Divided { train, test, classes }, &parts);
    }
    if one_file || known {
        return print_images(arguments, known_images(arguments)?);
    }
    // Nothing of this name: the sentence of a misspelt data set.
    if !path.exists() && !folder.as_ref().is_some_and(|folder| folder.join(path).exists()) {
        DataSet::named(name)?;
    }
    match own_data(name, &arguments.settings, folder.as_deref())? {
        (config, OwnData::Texts(own)) => {
            let read = config.read_own_texts(&own)?;
            let parts = Parts::of(&config, [read.train.label_counts(), read.test.label_counts()]);
            print_texts(arguments, &read, &parts)
        }
        (config, OwnData::Images(own)) => {
            let Divided { train, test, classes } = config.read_own_images(&own)?;
            let parts = Parts::of(&config, [train.label_counts(), test.label_counts()]);
            let split = Split::from(arguments.split);
            let (title, images) = match (own.is_divided(), split) {
                (false, _) => (title_of(path), joined(&[train, test])),
                (true, Split::Train) => (format!("{}-train", title_of(path)), train),
                (true, Split::Test) => (format!("{}-test", title_of(path)), test),
            };
            print_images(arguments, Shown { title, images, classes, published: None, parts: Some(parts) })
        }
    }
}

/// What a path is called: its last part, without endings.
fn title_of(path: &Path) -> String {
    let name = path.file_name().map_or("data".into(), |name| name.to_string_lossy());
    name.split('.').next().filter(|name| !name.is_empty()).unwrap_or("data").to_string()
}

/// Whether the name of a file says that it holds a whole set of images.
fn read_by_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    [".bin", ".mat", ".npy"].iter().any(|ending| plain.ends_with(ending)) || name.contains("images-idx3")
}

fn known_images(arguments: &Show) -> Result<Shown, Box<dyn Error>> {
    let Ok(set) = DataSet::named(&arguments.name) else {
        let path = Path::new(&arguments.name);
        let images = read_any(path)?;
        return Ok(Shown { title: title_of(path), images, classes: Vec::new(), published: None, parts: None });
    };
    let split = Split::from(arguments.split);
    let loaded = set.load(&required_data_folder(arguments.place.data.as_deref())?, split)?;
    Ok(Shown {
        title: format!("{}-{}", set.name, split.name()),
        images: loaded.images,
        classes: set.classes.map(str::to_string).to_vec(),
        published: Some(loaded.published),
        parts: None,
    })
}

/// Letters of a text that are shown.
const SHOWN_LETTERS: usize = 60;

fn print_texts(arguments: &Show, read: &Divided<Pairs>, parts: &Parts) -> Outcome {
    let title = title_of(Path::new(&arguments.name));
    let first = |class: usize| {
        let row = read.train.labels.iter().position(|label| *label == class)?;
        read.train.texts.get(row)
    };
    if arguments.json {
        let examples: Vec<_> = (0..read.classes.len()).map(first).collect();
        let mut object = parts.json();
        object["name"] = title.into();
        object["texts"] = (read.train.count() + read.test.count()).into();
        object["classes"] = json!(read.classes);
        object["examples"] = json!(examples);
        println!("{object}");
        return Ok(Ending::Done);
    }
    let pairs = read.train.texts.first().is_some_and(|(_, second)| second.is_some());
    let total = grouped((read.train.count() + read.test.count()) as u64);
    println!("{title}: {total} {} in {} classes", if pairs { "pairs of texts" } else { "texts" }, read.classes.len());
    parts.print(&read.classes);
    println!("  the first of each class:");
    for (class, name) in read.classes.iter().enumerate() {
        if let Some((first, second)) = first(class) {
            let second =
                second.as_ref().map_or(String::new(), |second| format!(" | {}", shortened(second, SHOWN_LETTERS)));
            println!("  {name}: {}{second}", shortened(first, SHOWN_LETTERS));
        }
    }
    Ok(Ending::Done)
}

fn print_images(arguments: &Show, shown: Shown) -> Outcome {
    let Shown { title, images, classes, published, parts } = shown;
    let sheet = ContactSheet::by_class(&images, usize::from(arguments.columns), usize::from(arguments.scale));
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{title}.png")));
    sheet.write_png(&out)?;
    let (shape, statistics, counts) = (images.shape(), images.channel_statistics(), images.label_counts());
    if arguments.json {
        let channels: Vec<Value> =
            statistics.iter().map(|(mean, deviation)| json!({"mean": mean, "standard_deviation": deviation})).collect();
        let shape = [shape.height, shape.width, shape.channels];
        let mut object = json!({"name": title, "images": images.count(), "published": published, "shape": shape,
            "label_counts": counts, "classes": classes, "channels": channels, "sheet": out});
        if let (Some(Value::Object(own)), Value::Object(object)) = (parts.map(|parts| parts.json()), &mut object) {
            object.extend(own);
        }
        println!("{object}");
        return Ok(Ending::Done);
    }
    let of = published
        .filter(|all| *all != images.count())
        .map_or(String::new(), |all| format!(" of {}", grouped(all as u64)));
    println!("{title}: {}{of} images of {shape}", grouped(images.count() as u64));
    for (channel, (mean, deviation)) in statistics.iter().enumerate() {
        let name = if statistics.len() == 1 { "grey" } else { ["red", "green", "blue"][channel] };
        println!("  {name:<6} mean {mean:.4}  standard deviation {deviation:.4}  (of values 0 to 1)");
    }
    match parts {
        Some(parts) => parts.print(&classes),
        None => {
            for (label, count) in counts.iter().enumerate() {
                let class = classes.get(label).map_or("", String::as_str);
                println!("  class {label} {class:<12} {:>7}", grouped(*count as u64));
            }
        }
    }
    let (width, height) = sheet.size();
    println!("contact sheet ({width} x {height}, a row for each class): {}", out.display());
    Ok(Ending::Done)
}

fn make_corruptions(arguments: &Corrupt) -> Outcome {
    let chosen: Vec<Corruption> = match arguments.name.as_str() {
        "all" => Corruption::ALL.map(|(corruption, _)| corruption).to_vec(),
        name => vec![Corruption::named(name)?],
    };
    if arguments.frost.is_some() && !chosen.contains(&Corruption::Frost) {
        return Err("--frost is for the corruption frost; leave it out".into());
    }
    let data = required_data_folder(arguments.place.data.as_deref())?;
    let frost = match chosen.contains(&Corruption::Frost) {
        true => Some(FrostPictures::read(&arguments.frost.clone().unwrap_or_else(|| data.join("corruptions")))?),
        false => None,
    };
    let all = DataSet::named("cifar10")?.load(&data, Split::Test)?.images;
    let severities = |images: &Images, corruption| -> Result<Vec<Images>, String> {
        (1..=5)
            .into_par_iter()
            .map(|level| corrupt(images, corruption, level, arguments.seed, frost.as_ref()))
            .collect()
    };
    if let Some(images) = arguments.images.filter(|images| !(1..=all.count()).contains(images)) {
        return Err(format!(
            "--images {images}: give 1 to {}, the images of the test split here",
            grouped(all.count() as u64)
        )
        .into());
    }
    if let Some(path) = &arguments.sheet {
        if arguments.image >= all.count() {
            let last = all.count().saturating_sub(1);
            return Err(format!("--image {}: the images here are numbered 0 to {last}", arguments.image).into());
        }
        let image = all.select([arguments.image]);
        let mut pictures = Vec::new();
        for corruption in &chosen {
            pictures.push(image.clone());
            pictures.extend(severities(&image, *corruption)?);
        }
        let rows: Vec<Vec<usize>> = (0..chosen.len()).map(|row| (row * 6..row * 6 + 6).collect()).collect();
        ContactSheet::of_rows(&joined(&pictures), &rows, 2).write_png(path)?;
        println!("{} rows ({}): {}", chosen.len(), names(&chosen), path.display());
    }
    if let Some(folder) = &arguments.out {
        std::fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        let images = all.select(0..arguments.images.unwrap_or(all.count()));
        for corruption in &chosen {
            let path = folder.join(format!("{}.npy", corruption.name()));
            let blocks = joined(&severities(&images, *corruption)?);
            write_npy(&blocks, &path, &folder.join("labels.npy"))?;
            println!("{}: 5 x {} images", path.display(), grouped(images.count() as u64));
        }
    }
    Ok(Ending::Done)
}

fn names(corruptions: &[Corruption]) -> String {
    corruptions.iter().map(|corruption| corruption.name()).collect::<Vec<_>>().join(", ")
}

/// Sets of one shape, one after the other.
fn joined(sets: &[Images]) -> Images {
    let mut all = sets[0].clone();
    for set in &sets[1..] {
        all.append(set);
    }
    all
}
