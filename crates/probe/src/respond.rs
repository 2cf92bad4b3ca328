//! The one loop behind every sensitivity: nudge, compare, aggregate.

use pudica_data::Stream;
use rayon::prelude::*;

use crate::{Estimate, Moments};

/// What is touched, and where it can be touched.
pub trait Nudge<In> {
    /// The places where `input` can be touched, each on its own.
    fn sites(&self, input: &In) -> usize;
    /// `input` after one touch at one site; a nudge that is random takes its randomness from `noise`.
    fn touch(&self, input: &In, site: usize, noise: &mut Stream) -> In;
}

/// What is compared before and after.
pub trait Response<Out> {
    /// How strongly the outputs answered.
    fn compare(&self, before: &Out, after: &Out) -> f64;
}

/// How much is asked, and the name of the randomness.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// Times each site of each input is touched.
    pub draws: usize,
    /// Inputs given to the function at once.
    pub pack: usize,
    /// The run's seed.
    pub seed: u64,
    /// The name of the measure.
    pub purpose: &'a str,
}

/// The answers to one response: in total, by site and by input.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The mean over inputs of the sum over sites of the mean over draws. Its standard error is over inputs; when there is only
    /// one input, over draws.
    pub total: Estimate,
    /// The mean over all (input, site) pairs of the mean over draws: Definition 4.3 of Vasudeva et al., which divides by the number of
    /// sites. Inputs with more sites count for more. Its standard error is over inputs; when there is only one input, over draws.
    pub mean: Estimate,
    /// The mean at each site, over inputs and draws.
    pub by_site: Vec<Moments>,
    /// For each input, the sum over sites of the mean over draws.
    pub by_input: Vec<f64>,
    /// For each input, how many sites it has.
    pub sites: Vec<usize>,
}

/// Touch every input at every of its sites `plan.draws` times, evaluate `f` before and after, and average the responses.
///
/// `f` is given up to `plan.pack` inputs at a time and returns as many outputs. The noise of a touch is the stream
/// (seed, "purpose/site/draw", index of the input): independent for every touch, and the same in whatever order they are made. Touches are made on all cores.
pub fn respond<In: Send + Sync, Out, E>(
    inputs: impl IntoIterator<Item = Result<In, E>>,
    mut f: impl FnMut(&[In]) -> Result<Vec<Out>, E>,
    nudge: &(impl Nudge<In> + Sync),
    responses: &[&dyn Response<Out>],
    plan: &Plan,
) -> Result<Vec<Profile>, E> {
    let pack = plan.pack.max(1);
    let mut tallies: Vec<Tally> = responses.iter().map(|_| Tally::default()).collect();
    let mut inputs = inputs.into_iter();
    let mut first_index = 0;
    loop {
        let group: Vec<In> = inputs.by_ref().take(pack).collect::<Result<_, _>>()?;
        if group.is_empty() {
            break;
        }
        let before = f(&group)?;
        let sites: Vec<usize> = group.iter().map(|input| nudge.sites(input)).collect();
        for tally in &mut tallies {
            tally.new_inputs(&sites, plan.draws);
        }
        let touches: Vec<(usize, usize, usize)> = sites
            .iter()
            .enumerate()
            .flat_map(|(i, sites)| (0..*sites).map(move |site| (i, site)))
            .flat_map(|(i, site)| (0..plan.draws).map(move |draw| (i, site, draw)))
            .collect();
        for some in touches.chunks(pack) {
            let touched: Vec<In> = some
                .par_iter()
                .map(|&(i, site, draw)| {
                    let purpose = format!("{}/{site}/{draw}", plan.purpose);
                    nudge.touch(&group[i], site, &mut Stream::new(plan.seed, &purpose, (first_index + i) as u64))
                })
                .collect();
            for (&(i, site, draw), after) in some.iter().zip(&f(&touched)?) {
                for (tally, response) in tallies.iter_mut().zip(responses) {
                    tally.add(first_index + i, site, draw, response.compare(&before[i], after));
                }
            }
        }
        first_index += group.len();
    }
    Ok(tallies.into_iter().map(|tally| tally.profile(plan.draws)).collect())
}

/// Responses being added up.
#[derive(Default)]
struct Tally {
    by_site: Vec<Moments>,
    /// For each input, the sum of all its responses.
    by_input: Vec<f64>,
    sites: Vec<usize>,
    /// For the first input, the sum over sites at each draw: what tells the error when there is no second input.
    first_by_draw: Vec<f64>,
}

impl Tally {
    fn new_inputs(&mut self, sites: &[usize], draws: usize) {
        self.sites.extend_from_slice(sites);
        self.by_input.resize(self.sites.len(), 0.0);
        self.first_by_draw.resize(draws, 0.0);
    }

    fn add(&mut self, input: usize, site: usize, draw: usize, response: f64) {
        if self.by_site.len() <= site {
            self.by_site.resize(site + 1, Moments::default());
        }
        self.by_site[site].add(response);
        self.by_input[input] += response;
        if input == 0 {
            self.first_by_draw[draw] += response;
        }
    }

    fn profile(mut self, draws: usize) -> Profile {
        for sum in &mut self.by_input {
            *sum /= draws.max(1) as f64;
        }
        let units = if self.by_input.len() == 1 { &self.first_by_draw } else { &self.by_input };
        let total = Estimate::sampled(&units.iter().copied().collect());
        let mean = match self.sites[..] {
            [sites] => total.times(1.0 / sites.max(1) as f64),
            _ => {
                let counts = self.sites.iter().map(|sites| *sites as f64);
                Estimate::clustered(&self.by_input.iter().copied().zip(counts).collect::<Vec<_>>())
            }
        };
        Profile { total, mean, by_site: self.by_site, by_input: self.by_input, sites: self.sites }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds Gaussian noise to one coordinate.
    struct Jiggle;

    impl Nudge<Vec<f64>> for Jiggle {
        fn sites(&self, input: &Vec<f64>) -> usize {
            input.len()
        }
        fn touch(&self, input: &Vec<f64>, site: usize, noise: &mut Stream) -> Vec<f64> {
            let mut touched = input.clone();
            touched[site] += noise.normal();
            touched
        }
    }

    struct Square;

    impl Response<f64> for Square {
        fn compare(&self, before: &f64, after: &f64) -> f64 {
            (after - before).powi(2)
        }
    }

    /// f(x) = 3 x_1 - 2 x_2 shifts by 9 and 4 in the mean square, wherever it is.
    fn linear(inputs: &[Vec<f64>]) -> Result<Vec<f64>, ()> {
        Ok(inputs.iter().map(|x| 3.0 * x[0] - 2.0 * x[1]).collect())
    }

    fn measure(inputs: usize, draws: usize, pack: usize) -> Profile {
        let inputs = (0..inputs).map(|i| Ok(vec![i as f64, 1.0]));
        let plan = Plan { draws, pack, seed: 0, purpose: "test" };
        respond(inputs, linear, &Jiggle, &[&Square], &plan).unwrap().remove(0)
    }

    #[test]
    fn a_linear_function_answers_with_its_squared_coefficients() {
        let profile = measure(200, 50, 64);
        let error = profile.total.std_error.unwrap();
        assert!((profile.total.mean - 13.0).abs() < 4.0 * error, "{:?}", profile.total);
        // Var of 9 z^2 + 4 z'^2 is 2 (81 + 16); 200 x 50 of them are averaged.
        assert!((error / (194.0f64 / 10_000.0).sqrt() - 1.0).abs() < 0.2);
        assert!((profile.by_site[0].mean() - 9.0).abs() < 0.6 && (profile.by_site[1].mean() - 4.0).abs() < 0.3);
        assert_eq!((profile.by_input.len(), profile.by_site[0].count()), (200, 10_000));
        // The same over both sites.
        assert!((profile.mean.mean * 2.0 - profile.total.mean).abs() < 1e-9);
        assert!((profile.mean.std_error.unwrap() * 2.0 - error).abs() < 1e-9);
        assert_eq!(profile.sites, [2; 200]);
    }

    #[test]
    fn with_one_input_the_error_is_over_draws() {
        let profile = measure(1, 4000, 1);
        let error = profile.total.std_error.unwrap();
        assert!((error / (194.0f64 / 4000.0).sqrt() - 1.0).abs() < 0.2);
        assert!((profile.total.mean - 13.0).abs() < 4.0 * error);
        assert_eq!((profile.mean.mean, profile.mean.std_error.unwrap()), (profile.total.mean / 2.0, error / 2.0));
    }

    #[test]
    fn packing_changes_nothing() {
        assert_eq!(measure(7, 3, 1).by_input, measure(7, 3, 1000).by_input);
    }

    #[test]
    fn errors_of_the_function_come_through() {
        let plan = Plan { draws: 1, pack: 1, seed: 0, purpose: "test" };
        let result = respond([Ok(vec![0.0, 0.0])], |_| Err::<Vec<f64>, _>("broken"), &Jiggle, &[&Square], &plan);
        assert_eq!(result.unwrap_err(), "broken");
    }
}
