//! `bits:N`: all strings of up to [`MOST_BITS`] bits, or a sample of longer ones.

use pudica_data::Stream;
use pudica_model::{Input, Takes};
use pudica_probe::InputKind;

use super::{Choice, Inputs, InputsRequest, Labelled, Opened};
use crate::{MOST_BITS, MeasureError, MeasureResult};

/// Longer strings are no input of any network here.
const LONGEST: usize = 100_000;

/// Longer strings that are measured where the request does not say how many.
const USUAL_SAMPLE: usize = 1000;

/// Strings of `n` bits.
struct Strings {
    n: usize,
    /// Those of the whole cube, or the seed that random ones are drawn by.
    from: From,
}

enum From {
    Cube(Choice),
    Seed(u64),
}

pub(super) fn open(request: &InputsRequest, bits: &str, takes: &Takes) -> MeasureResult<Opened> {
    let n: Option<usize> = bits.parse().ok().filter(|n| (1..=LONGEST).contains(n));
    let n = n.ok_or_else(|| {
        MeasureError::Other(format!("{}: give a number of bits from 1 to {LONGEST}, as in bits:16", request.source))
    })?;
    let wanted = match takes {
        Takes::Rows { width } => *width,
        Takes::Tokens { length, .. } => *length,
        _ => None,
    };
    if let Some(wanted) = wanted.filter(|wanted| *wanted != n) {
        let problem = format!("{}: the model takes {takes}, so bits:{wanted} is meant", request.source);
        return Err(MeasureError::Other(problem));
    }
    let (choice, from) = if n <= MOST_BITS {
        let choice = Choice::new(request, 1 << n);
        (choice.clone(), From::Cube(choice))
    } else {
        let count = request.sample.unwrap_or(USUAL_SAMPLE);
        (Choice::some(count, 1usize.checked_shl(n as u32).unwrap_or(usize::MAX)), From::Seed(request.seed))
    };
    let seed = matches!(from, From::Seed(_)).then(|| format!("seed {}", request.seed));
    let notes = seed.iter().map(|_| {
        format!(
            "{} of the 2^{n} strings were drawn at random: up to {MOST_BITS} bits all are measured.",
            choice.count()
        )
    });
    Ok(Opened {
        kind: InputKind::Bits,
        shape: vec![n],
        notes: notes.collect(),
        choice,
        classes: Vec::new(),
        columns: Vec::new(),
        spread: Vec::new(),
        identity: [format!("bits {n}")].into_iter().chain(seed).collect(),
        inputs: Box::new(Strings { n, from }),
    })
}

impl Strings {
    /// x1 first: of the cube, the binary digits of the row, the most significant first.
    fn string(&self, index: usize) -> Vec<u8> {
        match &self.from {
            From::Cube(choice) => {
                let row = choice.row(index);
                (0..self.n).rev().map(|bit| (row >> bit & 1) as u8).collect()
            }
            From::Seed(seed) => {
                let mut bits = vec![0; self.n];
                Stream::new(*seed, "measure/bits", index as u64).fill_bits(&mut bits);
                bits
            }
        }
    }
}

impl Inputs for Strings {
    fn read(&self, index: usize) -> MeasureResult<Labelled> {
        Ok(Labelled { input: Input::Bits(self.string(index)), label: None })
    }

    fn name(&self, index: usize) -> String {
        if self.n > 64 {
            return format!("string {index}");
        }
        self.string(index).iter().map(|bit| if *bit == 1 { '1' } else { '0' }).collect()
    }
}
