//! What computes a graph.

use super::feed::Feed;

/// What a graph gave.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

impl Answer {
    /// The numbers of each of `batch` inputs: [batch, classes], where axes of length 1 do not count.
    pub fn classes(&self, batch: usize) -> Result<usize, String> {
        let refused = |why: &str| format!("gives {:?} for {batch} inputs, {why}", self.shape);
        let own: &[usize] = match self.shape.split_first() {
            Some((first, rest)) if *first == batch => rest,
            // A graph without an axis for the batch.
            _ if batch == 1 => &self.shape,
            _ => return Err(refused("which are not scores for each: choose another with --output NAME")),
        };
        match own.iter().filter(|axis| **axis != 1).count() {
            0 | 1 => Ok(own.iter().product()),
            _ => Err(refused("which is more than a score for each class: choose another with --output NAME")),
        }
        .and_then(|classes| match self.values.len() == classes * batch && classes > 0 {
            true => Ok(classes),
            false => Err(refused("which is nothing")),
        })
    }
}

/// An engine with a graph in it.
pub(super) trait Engine: Send + Sync {
    /// Its name and version: `tract 0.23.9`.
    fn version(&self) -> String;

    /// Whether several threads may ask it at once; if not, it has threads of its own.
    fn at_once(&self) -> bool;

    /// What a reader should know of how it computes this graph.
    fn note(&self) -> Option<String> {
        None
    }

    /// What the graph gives for these tensors.
    fn run(&self, feeds: Vec<Feed>) -> Result<Answer, String>;
}
