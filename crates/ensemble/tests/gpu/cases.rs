//! The networks that the GPU and the reference are compared on.

use pudica_boolean::memory::Array;
use pudica_boolean::table::RealTable;
use pudica_data::{Stream, Target, Task, TrainingSet};
use pudica_ensemble::{Member, Shape};
use pudica_nn::{AdamWConfig, Architecture, Embed, EncoderConfig, Parameter, TrainingState};

/// One network.
pub fn member(shape: &Shape, target: &str, seed: u64, adamw: AdamWConfig, set: Option<usize>, start: Start) -> Member {
    let n = shape.encoder.n;
    let mut task = Task::new(if target == REAL { real_table(n) } else { Target::parse(target, n).unwrap() });
    if let Some(size) = set {
        task = task.with_training_set(TrainingSet::draw(size, n, seed).unwrap());
    }
    let mut weights = Architecture::Encoder(shape.encoder.clone()).initial_weights(seed).unwrap();
    if start != Start::Usual {
        let mut noise = Stream::new(seed, "test", 0);
        weights.data_mut().iter_mut().for_each(|weight| *weight += 0.05 * noise.normal_f32());
    }
    if matches!(start, Start::Sharp | Start::Sharpest) {
        let by = if start == Start::Sharp { 4.0 } else { 20.0 };
        let attention = weights.layout().iter().find(|p| p.name == "enc.layers.0.self_attn.in_proj_weight");
        let all = attention.unwrap().range.clone();
        let queries_and_keys = all.start..all.start + all.len() / 3 * 2;
        weights.data_mut()[queries_and_keys].iter_mut().for_each(|weight| *weight *= by);
    }
    if start == Start::Flat {
        let last_norm = format!("enc.layers.{}.norm2", shape.encoder.layers - 1);
        for Parameter { name, range, .. } in weights.layout().to_vec() {
            if !name.starts_with("head") && !name.starts_with(&last_norm) {
                weights.data_mut()[range].iter_mut().for_each(|weight| *weight *= 0.02);
            }
        }
    }
    Member { task, seed, adamw, state: TrainingState::new(weights) }
}

/// Stands for a table of real values.
pub const REAL: &str = "real";

fn real_table(n: usize) -> Target {
    let values: Vec<f64> = (0..1 << n).map(|row| f64::from(row).sin()).collect();
    Target::from_table(REAL, RealTable::new(n, Array::from(&values[..]), f64::EPSILON).unwrap())
}

/// Where networks start: as runs do; moved, since biases of 0 and scales of 1 hide mistakes; or moved and with attention so sharp that the
/// largest scores are far above the others; or by so much that the exponential of the difference is no float; or moved and with so small
/// weights that LayerNorms scale their inputs up by nearly the most that their epsilon lets them, as long after PARITY is learned.
#[derive(Clone, Copy, PartialEq)]
pub enum Start {
    Usual,
    Moved,
    Sharp,
    Sharpest,
    Flat,
}

pub struct Case {
    pub shape: Shape,
    pub set: Option<usize>,
    /// Its networks differ in all that a group may differ in; otherwise they are the paper's.
    pub various: bool,
}

pub fn cases() -> Vec<Case> {
    let case = |n, d, heads, ff, layers, embed, batch, set| {
        let encoder = EncoderConfig { n, d, layers, heads, ff, embed, same_init: true };
        Case { shape: Shape { encoder, batch: at_most(batch) }, set, various: true }
    };
    use Embed::{Add, Concat};
    vec![
        case(9, 16, 2, 16, 2, Concat, 100, None),
        case(4, 16, 2, 16, 2, Concat, 128, None), // the whole cube, weighted
        case(12, 32, 4, 20, 2, Add, 64, None),
        case(7, 12, 3, 40, 3, Concat, 33, None), // a middle layer
        case(6, 8, 1, 8, 4, Add, 50, None),
        case(5, 16, 2, 24, 1, Concat, 64, None), // first layer and last
        case(1, 4, 2, 4, 2, Concat, 8, None),
        case(40, 4, 2, 4, 2, Concat, 32, None), // long and narrow: no attention is stored
        case(67, 8, 2, 8, 2, Add, 150, None),   // more than a block of strings
        case(34, 32, 2, 8, 2, Concat, 40, None), // long and wide
        case(10, 128, 2, 128, 2, Concat, 256, None),
        case(8, 16, 2, 16, 2, Concat, 64, Some(24)), // the whole set
        case(8, 16, 2, 16, 2, Concat, 24, Some(64)), // drawn from the set
    ]
}

/// The most strings or draws that an emulated GPU is asked for; none where it is a GPU.
pub fn most_strings() -> Option<usize> {
    std::env::var("PUDICA_STRINGS").ok().map(|most| most.parse().unwrap())
}

/// As many strings or draws, or the most.
pub fn at_most(usual: usize) -> usize {
    usual.min(most_strings().unwrap_or(usize::MAX))
}

/// The paper's encoder as the paper trains it.
pub fn paper() -> Case {
    Case { shape: Shape { encoder: EncoderConfig::paper(10), batch: at_most(1024) }, set: None, various: false }
}

impl Case {
    pub fn members(&self, start: Start) -> Vec<Member> {
        let with = |target, seed, lr, weight_decay| {
            let adamw = AdamWConfig { lr, weight_decay, ..Default::default() };
            member(&self.shape, target, seed, adamw, self.set, start)
        };
        let targets = ["parity", "majority", "first", "mean"];
        if !self.various {
            return targets.into_iter().map(|target| with(target, 0, 3e-4, 0.1)).collect();
        }
        // Beyond 24 bits there is no random function on the GPU.
        let last = if self.shape.encoder.n <= 24 { "random:3" } else { "kparity:5" };
        // Longer expressions are computed step by step, and there are no longer tables.
        let n = self.shape.encoder.n;
        let expression = format!("expr:maj(x1,!x{n},x{}) ^ x1 & x{n} | 0", n.div_ceil(2));
        let real = if n <= 24 { REAL } else { "kparity:n/2" };
        let one = |(seed, target)| with(target, seed, 1e-4 * (1.0 + seed as f64), 0.1 * seed as f64);
        (0..).zip(targets.into_iter().chain([last, &expression, real])).map(one).collect()
    }

    pub fn name(&self) -> String {
        format!("{:?} set {:?}", self.shape, self.set)
    }
}
