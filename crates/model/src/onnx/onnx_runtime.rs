//! ONNX Runtime, loaded from where it is found: it is neither linked nor brought along.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ort::environment::Environment;
use ort::ep::CUDA;
use ort::session::{OutputSelector, RunOptions, Session, SessionInputValue};
use ort::value::{DynValue, Tensor, TensorElementType, ValueType};

use super::engine::{Answer, Engine};
use super::feed::{Feed, Values};
use super::file::one_line;

/// A library that was found and loaded; there is one per process.
struct Library {
    environment: Environment,
    version: String,
}

/// Names the library, or the folder it lies in.
const VARIABLE: &str = "PUDICA_ORT";

/// Loads the library, once.
fn library() -> Result<&'static Library, String> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    LIBRARY.get_or_init(load).as_ref().map_err(Clone::clone)
}

/// Whether there is one, and if not, how to get one.
pub(super) fn found() -> Result<(), String> {
    library().map(|_| ())
}

fn load() -> Result<Library, String> {
    if cfg!(all(target_os = "linux", target_feature = "crt-static")) {
        let problem = "this program is static and cannot load ONNX Runtime; the one of `pip install pudica`, or a build of your own, can";
        return Err(problem.into());
    }
    let path = find()?;
    let failed = |error: String| format!("ONNX Runtime at {} cannot be used: {}", path.display(), one_line(&error));
    // Builds of Microsoft's report their use to Microsoft from the moment they are loaded, unless this is set before.
    // SAFETY: writing the environment is unsound only if another thread reads it at the same time without Rust's own lock, as C code may. This
    // library is the first C code with threads that a process of ours loads through here, and it is loaded after this line, once.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
    // What goes wrong comes back as an error; the library would print it, too.
    let silent = Arc::new(|_: ort::logging::LogLevel, _: &str, _: &str, _: &str, _: &str| {});
    let builder = ort::init_from(&path).map_err(|error| failed(error.to_string()))?;
    let environment = builder.with_name("pudica").with_telemetry(false).with_logger(silent).build();
    let environment = environment.map_err(|error| failed(error.to_string()))?;
    Ok(Library { environment, version: version(&path) })
}

/// The version in the name of a library's file (`libonnxruntime.so.1.31.1`), or the branch that it was built from.
fn version(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or(path.into());
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let in_name = numbers(&name);
    in_name
        .or_else(|| numbers(ort::info().split("rel-").nth(1).unwrap_or_default()))
        .unwrap_or("of unknown version".into())
}

/// The first `1.31.1` in a text.
fn numbers(text: &str) -> Option<String> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let found: String = text[start..].chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let found = found.trim_end_matches('.');
    found.contains('.').then(|| found.into())
}

/// Where the library lies.
fn find() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        let found = if named.is_file() { Some(named.clone()) } else { in_folder(&named) };
        return found
            .ok_or_else(|| format!("{VARIABLE} is {}, where no library of ONNX Runtime lies", named.display()));
    }
    ["python3", "python"].into_iter().find_map(of_python).ok_or_else(|| {
        format!(
            "ONNX Runtime is not found: install it with `pip install onnxruntime` for the python3 in PATH, or set {VARIABLE} to its library \
             (libonnxruntime.so) or to the folder of that"
        )
    })
}

/// The library that an installed Python package brought; the package is looked for, not imported.
fn of_python(python: &str) -> Option<PathBuf> {
    let code = "import importlib.util as u; s = u.find_spec('onnxruntime'); print(s.origin if s and s.origin else '')";
    let answer = Command::new(python).args(["-c", code]).env("ORT_DISABLE_TELEMETRY", "1").output().ok()?;
    let origin = String::from_utf8(answer.stdout).ok()?;
    in_folder(Path::new(origin.trim()).parent()?)
}

/// The library in a folder, or in the folders inside it where packages put it.
fn in_folder(folder: &Path) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let library = name.starts_with("libonnxruntime.") || name == "onnxruntime.dll";
        library && (name.contains(".so") || name.contains(".dylib") || name.contains(".dll"))
    };
    ["", "capi", "lib", "onnxruntime/capi"].iter().find_map(|inside| {
        let entries = std::fs::read_dir(folder.join(inside)).ok()?;
        let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_library).collect();
        found.sort();
        found.pop()
    })
}

/// A graph that ONNX Runtime has read.
pub(super) struct OnnxRuntime {
    session: Mutex<Session>,
    output: String,
    cuda: bool,
    version: String,
}

/// Where a graph comes from.
pub(super) enum From<'a> {
    /// The file as it is.
    File(&'a Path),
    /// The bytes of a file.
    Bytes(&'a [u8]),
}

impl OnnxRuntime {
    /// Reads a graph, of which one output is wanted.
    pub fn new(from: From, output: &str, device: Option<&str>) -> Result<Self, String> {
        let library = library()?;
        let cuda = match device {
            None | Some("cpu") => false,
            Some("cuda") => true,
            Some(other) => return Err(format!("ONNX Runtime computes on cpu or cuda here, not on {other}")),
        };
        let session = session(library, from, cuda).map_err(|error| one_line(&error))?;
        Ok(Self { session: Mutex::new(session), output: output.into(), cuda, version: library.version.clone() })
    }
}

fn session(library: &Library, from: From, cuda: bool) -> Result<Session, String> {
    let builder = Session::builder(&library.environment).map_err(|error| error.to_string())?;
    let builder = builder.with_intra_threads(rayon::current_num_threads()).map_err(|error| error.to_string())?;
    let mut builder = match cuda {
        true => builder
            .with_execution_providers([CUDA::default().build().error_on_failure()])
            .map_err(|error| format!("CUDA cannot be used (it needs the package onnxruntime-gpu): {error}"))?,
        false => builder,
    };
    match from {
        From::File(path) => builder.commit_from_file(path),
        From::Bytes(bytes) => builder.commit_from_memory(bytes),
    }
    .map_err(|error| error.to_string())
}

impl Engine for OnnxRuntime {
    fn version(&self) -> String {
        format!("ONNX Runtime {}{}", self.version, if self.cuda { " (CUDA)" } else { "" })
    }

    fn at_once(&self) -> bool {
        false
    }

    fn run(&self, feeds: Vec<Feed>) -> Result<Answer, String> {
        self.ask(feeds).map_err(|error| one_line(&error.to_string()))
    }
}

impl OnnxRuntime {
    fn ask(&self, feeds: Vec<Feed>) -> ort::Result<Answer> {
        let inputs = feeds.into_iter().map(|feed| {
            let name = feed.name.clone();
            Ok((name, SessionInputValue::from(feed.value()?)))
        });
        let inputs: Vec<(String, SessionInputValue)> = inputs.collect::<ort::Result<_>>()?;
        let options = RunOptions::new()?.with_outputs(OutputSelector::no_default().with(&self.output));
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let outputs = session.run_with_options(inputs, &options)?;
        let output = outputs.get(&self.output).ok_or_else(|| ort::Error::new("it gave nothing"))?;
        numbers_of(output)
    }
}

fn numbers_of(output: &DynValue) -> ort::Result<Answer> {
    let element = match output.dtype() {
        ValueType::Tensor { ty, .. } => *ty,
        _ => return Err(ort::Error::new("its output is no tensor")),
    };
    let lengths = |shape: &[i64]| shape.iter().map(|length| *length as usize).collect();
    Ok(match element {
        TensorElementType::Float16 => {
            let (shape, values) = output.try_extract_tensor::<half::f16>()?;
            Answer { shape: lengths(shape), values: values.iter().map(|value| value.to_f32()).collect() }
        }
        TensorElementType::Float64 => {
            let (shape, values) = output.try_extract_tensor::<f64>()?;
            Answer { shape: lengths(shape), values: values.iter().map(|value| *value as f32).collect() }
        }
        _ => {
            let (shape, values) = output.try_extract_tensor::<f32>()?;
            Answer { shape: lengths(shape), values: values.to_vec() }
        }
    })
}

impl Feed {
    fn value(self) -> ort::Result<DynValue> {
        let shape = self.shape;
        Ok(match self.values {
            Values::F16(values) => Tensor::from_array((shape, values))?.into_dyn(),
            Values::F32(values) => Tensor::from_array((shape, values))?.into_dyn(),
            Values::F64(values) => Tensor::from_array((shape, values))?.into_dyn(),
            Values::Bool(values) => Tensor::from_array((shape, values))?.into_dyn(),
            Values::U8(values) => Tensor::from_array((shape, values))?.into_dyn(),
            Values::I8(values) => Tensor::from_array((shape, values))?.into_dyn(),
            Values::I32(values) => Tensor::from_array((shape, values))?.into_dyn(),
            Values::I64(values) => Tensor::from_array((shape, values))?.into_dyn(),
        })
    }
}
