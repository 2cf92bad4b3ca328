//! Small grammars of the command line.

use super::{file, said, text, write};
use crate::case::Case;
use crate::mutate::Form;
use crate::target::{Memory, Target};
use pudica_boolean::did_you_mean;
use pudica_data::Polynomial;
use pudica_lab::Unit;
use pudica_measure::nudges::NudgeRequest;
use pudica_measure::{Compared, InputSet, InputsRequest};
use pudica_model::{Choices, ModelRequest, Takes};
use pudica_theory::automata::{Automaton, sensitivities};
use pudica_theory::constructions::Construction;

pub const NUDGE: Target = Target {
    name: "nudge",
    about: "nudges of `pudica measure`",
    form: Form::Plain,
    words: &[
        "patch-noise",
        "bit-flip",
        "corruption",
        "weight-noise",
        "feature-noise",
        "replace",
        "all",
        "name=",
        "size=",
        "variance=",
        "severity=",
        "draws=",
        ":",
        ",",
        "=",
        "0.1",
        "fog",
        "1,2,3,4,5",
    ],
    memory: Memory { constant: 8, factor: 2000 },
    seeds: || {
        let texts = [
            "patch-noise:size=4,variance=0.1,1,5",
            "bit-flip",
            "corruption:all:1,2,3",
            "weight-noise:rho=0.01",
            "corruption:fog",
        ];
        texts.into_iter().map(|text| Case::new(0, text)).collect()
    },
    reader: |_| {
        Box::new(|_, bytes| {
            let request = NudgeRequest::parse(&text(bytes)).map_err(|error| error.to_string())?;
            request.settings().iter().for_each(|setting| _ = (setting.text(), setting.identity()));
            Ok(())
        })
    },
    short: 3000,
};

pub const MODEL_REQUEST: Target = Target {
    name: "model-request",
    about: "models as they are typed: PATH:key=value,key=value",
    form: Form::Plain,
    words: &[
        "name=",
        "architecture=",
        "runtime=",
        "tract",
        "ort",
        "input=",
        "output=",
        "layout=",
        "nchw",
        "nhwc",
        "normalise=",
        "imagenet",
        "mean=",
        "std=",
        "outputs=",
        "logits",
        "probabilities",
        "bits=",
        "signs",
        "01",
        "batch=",
        "/",
        ",",
        ":",
        "=",
    ],
    memory: Memory { constant: 1, factor: 200 },
    seeds: || {
        let texts = [
            "net.onnx:runtime=tract,batch=64,layout=nhwc",
            "model.pt:architecture=resnet20,normalise=cifar10",
            "a:mean=0.1/0.2/0.3,std=1/2/3,outputs=probabilities",
            "b.onnx:bits=signs,input=x,output=y,name=mine",
        ];
        texts.into_iter().map(|text| Case::new(0, text)).collect()
    },
    reader: |_| Box::new(|_, bytes| said(ModelRequest::parse(&text(bytes), &Choices::default()))),
    short: 3000,
};

pub const POLYNOMIAL: Target = Target {
    name: "polynomial",
    about: "operations of modular arithmetic; what is accepted is computed",
    form: Form::Plain,
    words: &["a", "b", "+", "-", "*", "^", "a^2", "9999999999"],
    memory: Memory { constant: 1, factor: 200 },
    seeds: || ["a+b", "a-b", "a*b", "a^2+a*b+3", "-a^3 - 2*b^2*a"].into_iter().map(|text| Case::new(0, text)).collect(),
    reader: |_| {
        Box::new(|_, bytes| {
            let polynomial: Polynomial =
                text(bytes).parse().map_err(|error: pudica_data::DataError| error.to_string())?;
            for (a, b, modulus) in [(0, 0, 2), (1, 6, 7), (112, 111, 113)] {
                assert!(polynomial.at(a, b, modulus) < modulus);
            }
            Ok(())
        })
    },
    short: 3000,
};

pub const AUTOMATON: Target = Target {
    name: "automaton",
    about: "automata as TOML; what is accepted is measured",
    form: Form::Plain,
    words: &[
        "name = ",
        "alphabet = ",
        "states = ",
        "start = ",
        "accept = ",
        "[transitions]",
        "[",
        "]",
        "\"0\"",
        "\"1\"",
        " = { 0 = \"zero\" }",
        "zero",
    ],
    memory: Memory { constant: 4, factor: 2000 },
    seeds: || vec![Case::new(0, file!("crates/theory/tests/automata/ends-in-01.toml"))],
    reader: |_| {
        Box::new(|_, bytes| {
            let automaton = Automaton::from_toml(&text(bytes))?;
            if automaton.states.len() <= 8 && automaton.alphabet.len() <= 8 {
                sensitivities(&automaton, 5);
            }
            Ok(())
        })
    },
    short: 1000,
};

pub const SMALL: Target = Target {
    name: "words",
    about: "parts of a plan, names of constructions, responses, inputs and suggestions",
    form: Form::Plain,
    words: &["3/12", "parity", "majority", "bits:", "label", "loss", "mnist:test", "cifar10", ":", "/"],
    memory: Memory { constant: 4, factor: 2000 },
    seeds: || {
        let texts = ["3/12", "parity", "label", "bits:16", "mnist:test", "mojority"];
        texts.into_iter().enumerate().map(|(part, text)| Case::new(part, text)).collect()
    },
    reader: |_| {
        Box::new(|part, bytes| {
            let text = text(bytes);
            match part {
                0 => said(text.parse::<Unit>()),
                1 => said(text.parse::<Construction>()),
                2 => said(Compared::named(&text)),
                3 | 4 => {
                    let request = InputsRequest { source: text.into(), sample: Some(4), ..InputsRequest::default() };
                    said(InputSet::open(&request, &Takes::Rows { width: None }))
                }
                _ => Err(did_you_mean(&text, ["majority", "parity", "mean"])),
            }
        })
    },
    short: 3000,
};

pub const SLURM: Target = Target {
    name: "slurm",
    about: "~/.config/pudica/slurm.toml",
    form: Form::Plain,
    words: &[
        "partition",
        "account",
        "gpus",
        "cpus",
        "mem",
        "time",
        "at-once",
        "sbatch",
        "setup",
        " = ",
        "\"",
        "2:00:00",
        "1-12:00:00",
        "30",
        "[",
        "]",
    ],
    memory: Memory { constant: 4, factor: 2000 },
    seeds: || {
        let text = r#"partition = "gpu"
account = "a"
gpus = "1"
cpus = 4
mem = "8G"
time = "1-12:00:00"
at-once = 8
sbatch = "--nice"
setup = "module load cuda"
"#;
        vec![Case::new(0, text)]
    },
    reader: |folder| {
        let own = folder.join("pudica");
        std::fs::create_dir_all(&own).expect("a scratch folder");
        let path = own.join("slurm.toml");
        // SAFETY: the only other thread of this process looks at the clock.
        unsafe { std::env::set_var("XDG_CONFIG_HOME", folder) };
        Box::new(move |_, bytes| {
            write(&path, bytes);
            pudica::readers::read_defaults()
        })
    },
    short: 1000,
};
