//! Other people's networks, and the first question to them.

use super::{file, file_reader, said, write};
use crate::case::Case;
use crate::mutate::Form;
use crate::target::{Memory, Target};
use crate::targets::runs::TENSORS;
use pudica_measure::open_model;
use pudica_model::{Choices, Image, Input, Model, ModelRequest, Runtime, Source, Takes};
use std::path::Path;

/// The largest input that is made for a model.
const MOST_VALUES: usize = 1 << 16;

/// Opens a model and asks it about one input, where one of reasonable size is to be had.
pub fn ask(path: &Path) -> Result<(), String> {
    ask_with(path, Choices::default())
}

fn ask_with(path: &Path, choices: Choices) -> Result<(), String> {
    let mut model = open(path, choices)?;
    match input_for(&model.about().takes) {
        Some(input) => said(model.scores(&[input])),
        None => Ok(()),
    }
}

fn open(path: &Path, choices: Choices) -> Result<Box<dyn Model>, String> {
    let request = ModelRequest { source: Source::File(path.into()), choices };
    open_model(&request, None).map_err(|error| error.to_string())
}

fn input_for(takes: &Takes) -> Option<Input> {
    match takes {
        Takes::Images { channels, height, width } => {
            let shape = [channels.unwrap_or(3), height.unwrap_or(8), width.unwrap_or(8)];
            let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size))?;
            (count <= MOST_VALUES).then(|| Input::Image(Image { shape, values: vec![0.5; count] }))
        }
        Takes::Rows { width } => {
            let width = width.unwrap_or(6);
            (width <= MOST_VALUES).then(|| Input::Row(vec![1.0; width]))
        }
        Takes::Tokens { length, .. } => {
            let length = length.unwrap_or(5);
            let tokens = || pudica_probe::Sequence { ids: vec![1; length], touch: None };
            (length <= MOST_VALUES).then(|| Input::Tokens(tokens()))
        }
        Takes::Texts => Some(Input::Text("a dog".into(), None)),
        Takes::Anything => None,
    }
}

const ONNX_WORDS: &[&str] = &[
    "Gemm",
    "MatMul",
    "Add",
    "Relu",
    "Conv",
    "Reshape",
    "Concat",
    "Slice",
    "Gather",
    "Transpose",
    "Expand",
    "ConstantOfShape",
    "Range",
    "Tile",
    "Pad",
    "Resize",
    "If",
    "Loop",
    "Scan",
    "LSTM",
    "GRU",
    "Softmax",
    "ReduceMax",
    "ReduceMean",
    "Cast",
    "Shape",
    "Squeeze",
    "Unsqueeze",
    "Split",
    "Where",
    "NonZero",
    "TopK",
    "Einsum",
    "MaxPool",
    "AveragePool",
    "BatchNormalization",
    "LayerNormalization",
    "Attention",
    "CumSum",
    "OneHot",
    "axis",
    "axes",
    "perm",
    "alpha",
    "group",
    "strides",
    "pads",
    "dilations",
    "kernel_shape",
    "equation",
    "value",
    "to",
];

fn onnx_files() -> Vec<Case> {
    let files = [
        file!("tests/golden/onnx/mlp.onnx"),
        // The one of tests/golden with a stride of 16: it is tried on pictures of 64 x 64, and others would take most of the time of all.
        file!("tests/fuzz/corpus/any-size.onnx"),
        file!("tests/golden/onnx/batch-1.onnx"),
        file!("tests/golden/onnx/bytes-nhwc.onnx"),
        file!("tests/golden/onnx/cnn.onnx"),
        file!("tests/golden/onnx/constants.onnx"),
        file!("tests/golden/onnx/external.onnx"),
        file!("tests/golden/onnx/half.onnx"),
        file!("tests/golden/onnx/linear.onnx"),
        file!("tests/golden/onnx/mixed.onnx"),
        file!("tests/golden/onnx/no-batch.onnx"),
        file!("tests/golden/onnx/parity.onnx"),
        file!("tests/golden/onnx/patches.onnx"),
        file!("tests/golden/onnx/reverse-lstm.onnx"),
        file!("tests/golden/onnx/sigmoid.onnx"),
        file!("tests/golden/onnx/softmax.onnx"),
        file!("tests/golden/onnx/tokens-bare.onnx"),
        file!("tests/golden/onnx/tokens-fixed.onnx"),
        file!("tests/golden/onnx/tokens.onnx"),
        file!("tests/golden/onnx/two-outputs.onnx"),
    ];
    files.into_iter().map(|bytes| Case::new(0, bytes)).collect()
}

pub const ONNX: Target = Target {
    name: "onnx",
    about: "ONNX files, opened by the embedded engine and asked about one input",
    form: Form::Protobuf,
    words: ONNX_WORDS,
    memory: Memory { constant: 256, factor: 2000 },
    seeds: onnx_files,
    reader: |folder| {
        // Some of the files have their weights in another.
        write(&folder.join("external.onnx.data"), file!("tests/golden/onnx/external.onnx.data"));
        file_reader(folder, "net.onnx", |path| {
            ask_with(path, Choices { runtime: Some(Runtime::Tract), ..Choices::default() })
        })
    },
    short: 200,
};

pub const PYTORCH: Target = Target {
    name: "pytorch",
    about: "PyTorch checkpoints: archives, older pickles, hostile ones",
    form: Form::Plain,
    words: &[
        "torch._utils\n_rebuild_tensor_v2\n",
        "collections\nOrderedDict\n",
        "torch\nFloatStorage\n",
        "storage",
        "state_dict",
        "weight",
        "bias",
        "cpu",
        "\u{80}\u{2}",
        "(",
        "t",
        "q",
        "R",
        ".",
        "X",
        "K",
        "M",
        "J",
        "}",
        "]",
        "\u{85}",
        "\u{86}",
        "\u{87}",
    ],
    memory: Memory { constant: 64, factor: 400 },
    seeds: || {
        let mut cases = Vec::new();
        for bytes in [
            file!("tests/golden/checkpoints/unknown.pt"),
            file!("tests/golden/checkpoints/vit_mnist.bin"),
            file!("tests/golden/checkpoints/vit_cifar10_smmk47.pth"),
            file!("tests/golden/checkpoints/resnet20.th"),
        ] {
            // Of an archive, the description of all tensors: the others are numbers.
            let all = Case::zip(0, bytes);
            cases.extend(
                all.into_iter().filter(|case| case.inside.len() == bytes.len() || case.inside.starts_with(b"\x80\x02")),
            );
        }
        cases.push(Case::new(0, b"\x80\x02cposix\nsystem\nX\x05\x00\x00\x00false\x85R.".as_slice()));
        cases.push(Case::new(0, b"\x80\x02}q\x00(X\x01\x00\x00\x00aK\x01u.".as_slice()));
        cases
    },
    reader: |folder| file_reader(folder, "net.pt", |path| said(open(path, Choices::default()))),
    short: 200,
};

pub const SAFETENSORS: Target = Target {
    name: "safetensors",
    about: "safetensors of other people's networks and of our encoders",
    form: Form::Json,
    words: TENSORS,
    memory: Memory { constant: 64, factor: 400 },
    seeds: || {
        let files = [
            file!("tests/golden/checkpoints/bfloat.safetensors"),
            file!("tests/golden/pudica-encoder.safetensors"),
            file!("tests/golden/bits-mlp.safetensors"),
        ];
        files.into_iter().flat_map(|bytes| Case::safetensors(0, bytes)).collect()
    },
    reader: |folder| file_reader(folder, "net.safetensors", ask),
    short: 300,
};

/// The files of three Hugging Face folders.
const FOLDERS: [&[(&str, &[u8])]; 3] = [
    &[
        ("gpt2/config.json", file!("tests/golden/checkpoints/gpt2/config.json")),
        ("gpt2/model.safetensors", file!("tests/golden/checkpoints/gpt2/model.safetensors")),
        ("gpt2/tokenizer.json", file!("tests/golden/checkpoints/gpt2/tokenizer.json")),
    ],
    &[
        ("roberta/config.json", file!("tests/golden/checkpoints/roberta/config.json")),
        (
            "roberta/model.safetensors.index.json",
            file!("tests/golden/checkpoints/roberta/model.safetensors.index.json"),
        ),
        (
            "roberta/model-00001-of-00002.safetensors",
            file!("tests/golden/checkpoints/roberta/model-00001-of-00002.safetensors"),
        ),
        (
            "roberta/model-00002-of-00002.safetensors",
            file!("tests/golden/checkpoints/roberta/model-00002-of-00002.safetensors"),
        ),
        ("roberta/tokenizer.json", file!("tests/golden/checkpoints/roberta/tokenizer.json")),
    ],
    &[
        ("vit/config.json", file!("tests/golden/checkpoints/vit/config.json")),
        ("vit/model.safetensors", file!("tests/golden/checkpoints/vit/model.safetensors")),
        ("vit/preprocessor_config.json", file!("tests/golden/checkpoints/vit/preprocessor_config.json")),
    ],
];

fn folder_files() -> impl Iterator<Item = &'static (&'static str, &'static [u8])> {
    FOLDERS.iter().flat_map(|folder| folder.iter())
}

pub const HUGGING_FACE: Target = Target {
    name: "hugging-face",
    about: "folders of Hugging Face: config.json, weights, their index, tokenizer.json, preprocessor_config.json; asked about one input",
    form: Form::Json,
    words: &[
        "\"n_embd\"",
        "\"n_head\"",
        "\"n_layer\"",
        "\"hidden_size\"",
        "\"num_attention_heads\"",
        "\"num_hidden_layers\"",
        "\"vocab_size\"",
        "\"max_position_embeddings\"",
        "\"image_size\"",
        "\"patch_size\"",
        "\"num_channels\"",
        "\"architectures\"",
        "\"id2label\"",
        "\"pad_token_id\"",
        "\"eos_token_id\"",
        "\"hidden_act\"",
        "\"layer_norm_eps\"",
        "\"weight_map\"",
        "\"image_mean\"",
        "\"image_std\"",
        "\"size\"",
        "null",
        "\"gelu\"",
        "\"relu\"",
        "0",
        "-1",
        "\"dtype\":\"F32\"",
        "\"shape\":[",
    ],
    memory: Memory { constant: 64, factor: 4000 },
    seeds: || {
        let cases = folder_files().enumerate().flat_map(|(part, (name, bytes))| match name.ends_with(".safetensors") {
            true => Case::safetensors(part, bytes),
            false => vec![Case::new(part, *bytes)],
        });
        cases.collect()
    },
    reader: |folder| {
        let root = folder.to_path_buf();
        for (name, bytes) in folder_files() {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&root)).expect("a scratch folder");
            write(&path, bytes);
        }
        let files: Vec<_> = folder_files().collect();
        Box::new(move |part, bytes| {
            let (name, sound) = files[part % files.len()];
            let path = root.join(name);
            write(&path, bytes);
            let result = ask(path.parent().unwrap_or(&root));
            write(&path, sound);
            result
        })
    },
    short: 200,
};
