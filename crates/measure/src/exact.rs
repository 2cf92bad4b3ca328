//! All strings of bits: nothing is sampled.

use pudica_boolean::{Spectrum, TruthTable, sensitivity_profile};
use pudica_probe::Response;

use crate::nudged::{Chunk, ChunkResponse};
use crate::responses::{Answer, Compared};
use crate::results::BooleanDetail;
use crate::{MeasureError, MeasureResult};

/// The most bits of which all strings are asked about.
pub const MOST_BITS: usize = 20;

/// Every flip of every string, from the answers to all 2^n strings in the order of their numbers (x1 is the most significant bit).
pub fn flips(answers: &[Answer], n: usize, responses: &[Compared]) -> Chunk {
    let values = |response: &Compared| {
        let mut totals = vec![0.0; answers.len()];
        let mut by_site = Vec::with_capacity(n);
        for site in 0..n {
            let bit = 1usize << (n - 1 - site);
            let of = |row: usize| response.compare(&answers[row], &answers[row ^ bit]);
            let all: Vec<f64> = (0..answers.len()).map(of).collect();
            totals.iter_mut().zip(&all).for_each(|(total, value)| *total += value);
            by_site.push(all.into_iter().collect());
        }
        ChunkResponse { totals, by_site }
    };
    Chunk {
        first: 0,
        sites: vec![n; answers.len()],
        evaluations: answers.len() as u64,
        responses: responses.iter().map(values).collect(),
        map: Vec::new(), // no string is shown as an example
    }
}

/// The Boolean function that the model computes: whether it predicts class 1 (of more than two classes: any but class 0).
pub fn boolean(model: &str, answers: &[Answer], n: usize) -> MeasureResult<BooleanDetail> {
    let wrong = |error: pudica_boolean::Error| MeasureError::Other(error.to_string());
    let mut table = TruthTable::zeros(n).map_err(wrong)?;
    answers.iter().enumerate().for_each(|(row, answer)| table.set(row as u64, answer.predicted() != 0));
    let profile = sensitivity_profile(&table);
    let spectrum = Spectrum::of(&table).map_err(wrong)?;
    Ok(BooleanDetail {
        model: model.into(),
        n,
        average_sensitivity: profile.average_sensitivity(),
        influences: profile.influences(),
        degree_profile: spectrum.degree_profile().to_vec(),
        sensitivity_histogram: profile.histogram(),
        ones: table.ones() as f64 / answers.len() as f64,
    })
}
