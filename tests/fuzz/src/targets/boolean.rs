//! Boolean functions: tables, expressions, names.

use super::{said, text, write};
use crate::case::Case;
use crate::mutate::Form;
use crate::target::{Memory, Target};
use pudica_boolean::analysis::{Measure, Subject};
use pudica_boolean::files::{TableFormat, read_table, read_table_with_digest};
use pudica_boolean::restriction::Restriction;
use pudica_boolean::{BooleanFunction, Expression, Function, Given};

pub const TABLE: Target = Target {
    name: "table",
    about: "truth tables: text, packed bits, .npy",
    form: Form::Plain,
    words: &[
        "'descr'",
        "'fortran_order'",
        "'shape'",
        "'<f8'",
        "'|b1'",
        "'<i8'",
        "'<f2'",
        "True",
        "False",
        "(4,)",
        "(2, 2)",
        "()",
        "\u{93}NUMPY",
    ],
    memory: Memory { constant: 4, factor: 16 },
    seeds: || {
        let npy = |descr: &str, shape: &str, data: &[u8]| {
            let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
            [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes(), data].concat()
        };
        let bits = [0, 1, 1, 0, 1, 0, 0, 1];
        let floats = bits.map(|bit| f64::from(bit) - 0.25);
        let mut cases = vec![
            Case::new(0, "0110 1001\n"),
            Case::new(1, "01101001\n10010110\n"),
            Case::new(2, [0x69, 0x96]),
            Case::new(0, [0xff, 0x13, 0x69, 0x96]),
        ];
        let float = floats.map(f64::to_le_bytes).concat();
        for file in [
            npy("|b1", "(8,)", &bits),
            npy("|u1", "(2, 4)", &bits),
            npy("<f8", "(8,)", &float),
            npy("<f4", "(8,)", &floats.map(|value| (value as f32).to_le_bytes()).concat()),
            npy("<i8", "(2, 2, 2)", &bits.map(|bit| (1 - 2 * i64::from(bit)).to_le_bytes()).concat()),
            npy("<i2", "(8,)", &bits.map(|bit| i16::from(bit).to_le_bytes()).concat()),
            npy("<f2", "(8,)", &bits.map(|bit| if bit == 1 { [0, 0x3c] } else { [0, 0] }).concat()),
        ] {
            cases.extend([Case::new(0, file.clone()), Case::new(3, file)]);
        }
        cases
    },
    reader: |folder| {
        let path = folder.join("table");
        Box::new(move |part, bytes| {
            write(&path, bytes);
            match part {
                0 => said(read_table_with_digest(&path)),
                1 => said(read_table(&path, Some(TableFormat::Text))),
                2 => said(read_table(&path, Some(TableFormat::Packed))),
                _ => said(read_table(&path, Some(TableFormat::Npy))),
            }
        })
    },
    short: 2000,
};

const OPERATORS: &[&str] = &[
    "x1",
    "x2",
    "x10",
    "x64",
    "x9999",
    "x10000",
    "x0",
    "0",
    "1",
    "true",
    "false",
    " & ",
    "&&",
    " | ",
    "||",
    "^",
    "!",
    "~",
    "not ",
    " and ",
    " or ",
    " xor ",
    "maj(",
    "majority(",
    "(",
    ")",
    ",",
    "∧",
    "∨",
    "⊕",
    "¬",
    "expr:",
];

pub const EXPRESSION: Target = Target {
    name: "expression",
    about: "Boolean expressions; what is accepted is written, read again and computed",
    form: Form::Plain,
    words: OPERATORS,
    memory: Memory { constant: 1, factor: 200 },
    seeds: || {
        let texts = [
            "x1 & (x2 | !x3) ^ x4",
            "maj(x1, x2, x3) | not x4 and x5",
            "x1",
            "!!~x2 xor true",
            "x1 && x2 || x3 && x4 || x5 && x6",
            "maj(x1 & x2, maj(x3, 1, 0), x4 ∧ ¬x5)",
            "((x1))",
            "x10000",
        ];
        texts.into_iter().map(|text| Case::new(0, text)).collect()
    },
    reader: |_| {
        Box::new(|_, bytes| {
            let parsed = Expression::parse(&text(bytes), None).map_err(|error| error.to_string())?;
            let again = Expression::parse(&parsed.to_string(), None).expect("what is written is read");
            assert_eq!(again, parsed, "written and read again");
            let x: Vec<u64> =
                (0..parsed.variables() as u64).map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            assert_eq!(parsed.lanes(&x), again.lanes(&x));
            Ok(())
        })
    },
    short: 5000,
};

pub const FUNCTION: Target = Target {
    name: "function",
    about: "functions as they are typed: names and their parameters, formulas over n, restrictions, measures",
    form: Form::Plain,
    words: &[
        "parity",
        "kparity:",
        "majority",
        "dictator:",
        "mean",
        "threshold:",
        "random:",
        "tribes:",
        "address:",
        "inner-product",
        "two-majority",
        "cyclic:",
        "triangle",
        "first",
        "n/2",
        "n",
        "(n+1)/2",
        "*",
        "-",
        "+",
        "(",
        "expr:",
        "table:",
        "x1",
        "x3=1",
        ",x5=0",
        "=",
        ":",
    ],
    memory: Memory { constant: 2, factor: 300 },
    seeds: || {
        let functions = [
            "parity",
            "kparity:3",
            "majority",
            "dictator:n",
            "mean",
            "threshold:n/3",
            "random:7",
            "tribes:2",
            "address:2",
            "inner-product",
            "two-majority",
            "cyclic:2",
            "triangle",
            "first",
            "expr:x1&x2",
            "x1 | x2",
            "threshold:(n + 1) / 2 - 3*2",
        ];
        let mut cases: Vec<Case> = functions.into_iter().map(|text| Case::new(0, text)).collect();
        cases.extend([Case::new(1, "x3=1,x5=0"), Case::new(2, "spectrum"), Case::new(2, "influences")]);
        cases
    },
    reader: |_| {
        Box::new(|part, bytes| {
            let text = text(bytes);
            match part {
                1 => said(text.parse::<Restriction>().and_then(|fixed| fixed.free(6))),
                2 => said(text.parse::<Measure>()),
                _ => {
                    let given: Given = text.parse().map_err(|error: pudica_boolean::Error| error.to_string())?;
                    let again: Given = given.to_string().parse().expect("what is written is read");
                    assert_eq!(again, given, "written and read again");
                    if matches!(given, Given::Table(_)) {
                        return Ok(());
                    }
                    for n in [None, Some(1), Some(6), Some(200)] {
                        if let Ok(Subject::Function(Function::Boolean(function))) = given.at(n) {
                            match function.variables() {
                                0..=8 => _ = function.table(),
                                n => _ = function.lanes(&vec![0x6996_9669; n]),
                            }
                        }
                    }
                    said(given.at(Some(6)))
                }
            }
        })
    },
    short: 5000,
};
