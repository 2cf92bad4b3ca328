//! Damaged and hostile checkpoints are refused in a sentence, quickly and without large allocations.

use std::path::{Path, PathBuf};

use pudica_data::Stream;
use pudica_model::{Choices, ModelRequest, Source, open};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/checkpoints")
}

fn refusal(path: &Path) -> Option<String> {
    let request = ModelRequest { source: Source::File(path.into()), choices: Choices::default() };
    open(&request).err().map(|error| error.to_string())
}

#[track_caller]
fn assert_a_sentence(problem: &str) {
    assert!(!problem.contains('\n') && problem.len() < 800, "{problem}");
}

/// The same file cut anywhere, and with bytes changed: refused, or read as something that fits.
#[test]
fn damaged_files_are_refused_in_a_sentence() {
    let scratch = tempfile::tempdir().unwrap();
    for file in ["resnet20.th", "vit_cifar10_smmk47.pth", "vit_mnist.bin", "bfloat.safetensors", "double.pt"] {
        let whole = std::fs::read(folder().join(file)).unwrap();
        let path = scratch.path().join(file);
        let mut stream = Stream::new(0, file, 0);
        for round in 0..60 {
            let mut bytes = whole.clone();
            if round % 2 == 0 {
                bytes.truncate(stream.below(whole.len() as u64) as usize);
            } else {
                // Most often where names and sizes are.
                let end = if round % 4 == 1 { whole.len() } else { 600.min(whole.len()) };
                for _ in 0..8 {
                    bytes[stream.below(end as u64) as usize] = stream.below(256) as u8;
                }
            }
            std::fs::write(&path, &bytes).unwrap();
            if let Some(problem) = refusal(&path) {
                assert_a_sentence(&problem);
            } else {
                assert!(round % 2 == 1, "{file} was cut to {} bytes and read", bytes.len());
            }
        }
    }
}

/// A pickle that would run a command, one that claims a huge tensor, and files of other kinds.
#[test]
fn hostile_files_are_refused_and_never_executed() {
    let scratch = tempfile::tempdir().unwrap();
    let (path, mark) = (scratch.path().join("hostile.pt"), scratch.path().join("executed"));
    let command = format!("touch {}", mark.display());
    let run =
        [b"\x80\x02cposix\nsystem\nX".as_slice(), &(command.len() as u32).to_le_bytes(), command.as_bytes(), b"\x85R."];
    let empty_dict = b"\x80\x02}.";
    // A list that says it has 2^31 bytes of text.
    let long = b"\x80\x02X\xff\xff\xff\x7fabc.";
    let header = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let vast = r#"{"conv1.weight":{"dtype":"F32","shape":[1099511627776,1099511627776],"data_offsets":[0,4]}}"#;
    let beyond = r#"{"conv1.weight":{"dtype":"F32","shape":[1048576],"data_offsets":[0,4194304]}}"#;
    let hostile: [Vec<u8>; 8] = [
        run.concat(),
        empty_dict.to_vec(),
        long.to_vec(),
        header(vast),
        header(beyond),
        b"PK\x03\x04 and nothing more".to_vec(),
        b"just a text".to_vec(),
        Vec::new(),
    ];
    for bytes in hostile {
        std::fs::write(&path, &bytes).unwrap();
        let problem = refusal(&path).unwrap_or_else(|| panic!("{:?} was read", &bytes[..bytes.len().min(20)]));
        assert_a_sentence(&problem);
        assert!(problem.contains("hostile.pt"), "{problem}");
    }
    assert!(!mark.exists());
}

/// Widths that a small file claims are not believed: the network they belong to would fill the memory.
#[test]
fn a_small_file_makes_no_large_network() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("wide.safetensors");
    let (width, classes) = (8192usize, 10usize);
    let sizes = [("conv1.weight", vec![width, 1, 3, 3]), ("linear.weight", vec![classes, 4 * width])];
    let (mut end, mut entries, mut data) = (0, Vec::new(), Vec::new());
    for (name, shape) in sizes {
        let bytes = 4 * shape.iter().product::<usize>();
        entries.push(format!(r#""{name}":{{"dtype":"F32","shape":{shape:?},"data_offsets":[{end},{}]}}"#, end + bytes));
        end += bytes;
        data.resize(end, 0);
    }
    let header = format!("{{{}}}", entries.join(","));
    std::fs::write(&path, [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()).unwrap();
    let problem = refusal(&path).unwrap();
    assert!(problem.contains("the nearest is resnet20, but the file has no bn1.weight"), "{problem}");
}

#[test]
fn damaged_folders_are_refused_in_a_sentence() {
    let scratch = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        let to = scratch.path().join(name);
        std::fs::create_dir_all(&to).unwrap();
        for entry in std::fs::read_dir(folder().join(name)).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
        to
    };
    let (roberta, gpt2) = (copy("roberta"), copy("gpt2"));
    let edit = |path: PathBuf, from: &str, to: &str| {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} in {}", path.display());
        std::fs::write(path, text.replace(from, to)).unwrap();
    };
    let index = "model.safetensors.index.json";
    edit(roberta.join(index), "model-00001-of", "../model-00001-of");
    assert!(refusal(&roberta).unwrap().contains("names files outside of its folder"));
    edit(roberta.join(index), "../model-00001-of", "model-00009-of");
    assert!(refusal(&roberta).unwrap().contains("model-00009-of"));
    std::fs::write(roberta.join(index), "{}").unwrap();
    assert!(refusal(&roberta).unwrap().contains("no weight_map"));
    edit(gpt2.join("config.json"), "\"n_embd\": 8", "\"n_embd\": 16");
    assert!(refusal(&gpt2).unwrap().contains("transformer.wte.weight is [40, 8] in the file and [40, 16]"));
    edit(gpt2.join("config.json"), "\"n_embd\": 16", "\"n_embd\": 8000000000000");
    assert!(refusal(&gpt2).unwrap().contains("\"n_embd\" is not a number from 1 to"));
    edit(gpt2.join("config.json"), "8000000000000", "8");
    edit(gpt2.join("config.json"), "\"n_layer\": 2", "\"n_layer\": 65535");
    assert!(refusal(&gpt2).unwrap().contains("\"n_layer\" is 65535, and no network read here has more than"));
    edit(gpt2.join("config.json"), "\"n_layer\": 65535", "\"n_layer\": 2");
    edit(gpt2.join("config.json"), "GPT2ForSequenceClassification", "GPT2LMHeadModel");
    assert!(refusal(&gpt2).unwrap().contains("is of a GPT2LMHeadModel"));
    edit(gpt2.join("config.json"), "GPT2LMHeadModel", "GPT2ForSequenceClassification");
    std::fs::write(gpt2.join("tokenizer.json"), "{\"version\": 7}").unwrap();
    assert!(refusal(&gpt2).unwrap().contains("is not a tokenizer.json"));
    std::fs::remove_file(gpt2.join("tokenizer.json")).unwrap();
    assert_eq!(refusal(&gpt2), None);
}
