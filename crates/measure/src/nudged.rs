//! Nudges of inputs: every input at every site, chunk after chunk, until there are enough.

use pudica_model::Input;
use pudica_probe::{Budget, InputKind, Looks, Precision, Profile, Sequence, cautious, respond_in_parts};
use pudica_statistics::{Estimate, Moments};
use serde::{Deserialize, Serialize};

use crate::asked::{Asked, cases};
use crate::nudges::{Case, Setting, Touching};
use crate::responses::Compared;
use crate::work::WorkFile;
use crate::{InputSet, MeasureResult};

/// When to end before the inputs do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Enough {
    /// The half-width of the 95 % interval at which to end.
    pub precision: Option<f64>,
    /// The most evaluations of one model for one nudge.
    pub budget: Option<u64>,
}

/// What was found at some inputs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Chunk {
    /// The number of its first input.
    pub first: usize,
    /// The sites of each input.
    pub sites: Vec<usize>,
    /// How often the model was asked.
    pub evaluations: u64,
    /// One for each response.
    pub responses: Vec<ChunkResponse>,
    /// For each input, the mean over draws at each site, of the first response.
    pub map: Vec<Vec<f32>>,
}

impl Chunk {
    /// Whether one that was saved is what is made after those `before`, of so many responses and inputs in all.
    pub fn follows(&self, before: &[Self], responses: usize, inputs: usize) -> bool {
        let done: usize = before.iter().map(|chunk| chunk.sites.len()).sum();
        let spent: u64 = before.iter().map(|chunk| chunk.evaluations).sum();
        let most = self.sites.iter().copied().max().unwrap_or(0);
        let having = |site: usize| self.sites.iter().filter(|sites| **sites > site).count() as u64;
        let fits = |found: &ChunkResponse| {
            let counts = found.by_site.iter().map(Moments::count);
            found.totals.len() == self.sites.len() && found.by_site.len() == most && counts.eq((0..most).map(having))
        };
        let maps = self.map.iter().map(Vec::len);
        self.first == done
            && (1..=inputs.saturating_sub(done)).contains(&self.sites.len())
            && spent.checked_add(self.evaluations).is_some()
            && maps.eq(self.sites.iter().copied())
            && self.responses.len() == responses
            && self.responses.iter().all(fits)
    }
}

/// One response of some inputs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChunkResponse {
    /// For each input, the sum over sites of the mean over draws.
    pub totals: Vec<f64>,
    /// At each site, over inputs, of the mean over draws.
    pub by_site: Vec<Moments>,
}

/// Evaluations after which the work done is saved, about.
const EVALUATIONS_PER_CHUNK: u64 = 1024;

/// Evaluations between which a model is never waited for, about: a GPU that is must be filled again.
const EVALUATIONS_IN_ONE_GO: u64 = 64 * EVALUATIONS_PER_CHUNK;

/// Values of inputs that are held for that, about: 64 MiB.
const VALUES_IN_ONE_GO: usize = 1 << 24;

/// All of one response: for each input its total over sites, and its number of sites.
pub fn totals(chunks: &[Chunk], response: usize) -> Vec<(f64, f64)> {
    let of_chunk = |chunk: &Chunk| {
        let totals = chunk.responses[response].totals.clone();
        totals.into_iter().zip(chunk.sites.clone()).map(|(total, sites)| (total, sites as f64)).collect::<Vec<_>>()
    };
    chunks.iter().flat_map(of_chunk).collect()
}

/// The mean over all (input, site) pairs, its error over inputs.
pub fn estimate(chunks: &[Chunk], response: usize) -> Estimate {
    Estimate::clustered(&totals(chunks, response))
}

/// What is asked about a nudge.
pub struct Asking<'a> {
    /// The inputs.
    pub inputs: &'a InputSet,
    /// The nudge as it was written.
    pub setting: &'a Setting,
    /// What is compared.
    pub responses: &'a [Compared],
    /// Names the noise.
    pub seed: u64,
    /// When to end.
    pub enough: Enough,
}

/// Measures until there is enough, from where `file` ends.
pub fn measure(
    asked: &mut Asked,
    asking: &Asking,
    touching: &Touching,
    file: &mut WorkFile<Chunk>,
) -> MeasureResult<()> {
    let Asking { inputs, setting, responses, seed, enough } = *asking;
    let (count, purpose) = (inputs.about().count, setting.identity());
    let compared: Vec<&dyn pudica_probe::Response<_>> = responses.iter().map(|response| response as _).collect();
    let input_size: usize = inputs.about().shape.iter().product();
    let mut looks = Looks::default();
    // How often the model is asked about one input: inputs may differ, the first one tells well enough.
    let first = prepared(asked, setting, cases(inputs, 0..1)?)?;
    let per_input = first.first().map_or(1, |case| touching.nudge.sites(case) * touching.draws).max(1) as u64;
    loop {
        let done: usize = file.parts.iter().map(|chunk| chunk.sites.len()).sum();
        let spent: u64 = file.parts.iter().map(|chunk| chunk.evaluations).sum();
        let affordable = enough.budget.map_or(u64::MAX, |budget| budget.saturating_sub(spent) / per_input);
        let is_paid = done > 0 && affordable == 0;
        if done >= count || is_paid || (looks.is_due(done) && is_precise(&file.parts, responses, &enough)) {
            return Ok(());
        }
        // As many chunks in one go as fit, up to where the next look is due.
        let (mut chunks, mut taken, mut asks) = (Vec::new(), done, 0);
        loop {
            let affordable = enough.budget.map_or(u64::MAX, |budget| budget.saturating_sub(spent + asks) / per_input);
            let is_over = taken >= count || affordable == 0 || asks >= EVALUATIONS_IN_ONE_GO;
            let is_large = (taken - done) * input_size >= VALUES_IN_ONE_GO;
            let is_due = enough.precision.is_some() && looks.would_be_due(taken);
            if !chunks.is_empty() && (is_over || is_large || is_due) {
                break;
            }
            let size = (EVALUATIONS_PER_CHUNK / per_input).min(256).min(affordable).max(1) as usize;
            let cases = prepared(asked, setting, cases(inputs, taken..(taken + size).min(count))?)?;
            taken += cases.len();
            asks += cases.iter().map(|case| touching.nudge.sites(case) * touching.draws).sum::<usize>() as u64;
            chunks.push(cases);
        }
        let budget = Budget { before: done, ..Budget::new(touching.draws, asked.model.batch(), seed, &purpose) };
        let mut first = done;
        respond_in_parts(asked, &chunks, touching.nudge.as_ref(), &compared, &budget, &mut |profiles| {
            let chunk = chunk(first, touching.draws, &profiles);
            first += chunk.sites.len();
            file.push(chunk)
        })?;
    }
}

/// What was found at inputs from the `first` on.
fn chunk(first: usize, draws: usize, profiles: &[Profile]) -> Chunk {
    let of_profile = |profile: &Profile| ChunkResponse {
        totals: profile.by_input.clone(),
        by_site: by_site(&profile.by_input_and_site),
    };
    let (sites, maps) = (profiles[0].sites.clone(), &profiles[0].by_input_and_site);
    Chunk {
        first,
        evaluations: (sites.iter().sum::<usize>() * draws) as u64,
        sites,
        responses: profiles.iter().map(of_profile).collect(),
        map: maps.iter().map(|sites| sites.iter().map(|mean| *mean as f32).collect()).collect(),
    }
}

/// Texts as tokens, where embeddings are touched.
fn prepared(asked: &Asked, setting: &Setting, mut cases: Vec<Case>) -> MeasureResult<Vec<Case>> {
    for case in &mut cases {
        if setting.kind.name == "embedding-noise" && case.input.kind() == InputKind::Texts {
            case.input = Input::Tokens(Sequence { ids: asked.model.tokens(&case.input)?, touch: None });
        }
    }
    Ok(cases)
}

/// At each site, over inputs that have it.
fn by_site(maps: &[Vec<f64>]) -> Vec<Moments> {
    let most = maps.iter().map(Vec::len).max().unwrap_or(0);
    (0..most).map(|site| maps.iter().filter_map(|map| map.get(site)).copied().collect()).collect()
}

/// Whether every fraction among the responses is as precise as asked; where there is none, every response.
fn is_precise(chunks: &[Chunk], responses: &[Compared], enough: &Enough) -> bool {
    use pudica_probe::Response;
    let Some(precision) = enough.precision else { return false };
    let no_fraction = responses.iter().all(|response| response.most().is_infinite());
    let mut deciding = responses.iter().enumerate().filter(|(_, response)| no_fraction || response.most().is_finite());
    deciding
        .all(|(at, response)| Precision::Absolute(precision).reached(&cautious(estimate(chunks, at), response.most())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by fuzzing: saved work was believed, and numbers that do not belong together led to a panic or to no end.
    #[test]
    fn saved_chunks_that_cannot_be_are_not_believed() {
        let maps = [vec![0.5, 0.25], vec![1.0]];
        let response = ChunkResponse { totals: vec![0.75, 1.0], by_site: by_site(&maps) };
        let map = vec![vec![0.5, 0.25], vec![1.0]];
        let chunk = Chunk { first: 0, sites: vec![2, 1], evaluations: 3, responses: vec![response], map };
        assert!(chunk.follows(&[], 1, 2) && chunk.follows(&[], 1, 9));
        let second = Chunk { first: 2, ..chunk.clone() };
        assert!(second.follows(std::slice::from_ref(&chunk), 1, 4));
        assert!(!second.follows(std::slice::from_ref(&chunk), 1, 3), "more inputs than there are");
        assert!(!chunk.follows(&[], 2, 2) && !chunk.follows(std::slice::from_ref(&chunk), 1, 4));
        let damages: [fn(&mut Chunk); 7] = [
            |chunk| chunk.sites = vec![2, 2],
            |chunk| chunk.sites = vec![usize::MAX, 1],
            |chunk| chunk.sites.clear(),
            |chunk| _ = chunk.responses[0].totals.pop(),
            |chunk| _ = chunk.responses[0].by_site.pop(),
            |chunk| chunk.responses[0].by_site[1] = chunk.responses[0].by_site[0],
            |chunk| _ = chunk.map.pop(),
        ];
        for (number, damage) in damages.iter().enumerate() {
            let mut damaged = chunk.clone();
            damage(&mut damaged);
            assert!(!damaged.follows(&[], 1, 2), "{number}");
        }
        let endless = Chunk { evaluations: u64::MAX, ..second };
        assert!(!endless.follows(&[chunk], 1, 4));
    }
}
