//! The one loop behind every sensitivity: nudge, compare, aggregate.

use std::ops::Range;

use pudica_statistics::{Estimate, Moments, Precision};

use crate::{Nudge, ProbeError, Response, Subject, Touch, Touches};

/// How much is asked, and the name of the randomness.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget<'a> {
    /// Times each site of each input is touched.
    pub draws: usize,
    /// Inputs given to the subject at once.
    pub batch: usize,
    /// The run's seed.
    pub seed: u64,
    /// The name of the measure.
    pub purpose: &'a str,
    /// Inputs that were measured before these: noise is named by the number of its input among all.
    pub before: usize,
    /// Inputs at most; all that come where `None`.
    pub inputs: Option<usize>,
    /// Stop before the inputs end (or the draws, where there is one input) once [`Profile::mean`] of every response is this precise.
    pub precision: Option<Precision>,
}

impl<'a> Budget<'a> {
    /// So many draws at every site of all inputs that come.
    pub const fn new(draws: usize, batch: usize, seed: u64, purpose: &'a str) -> Self {
        Self { draws, batch, seed, purpose, before: 0, inputs: None, precision: None }
    }
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
    /// The mean over inputs of each one's mean response: every input counts alike, however many sites it has. Standard errors as above.
    pub mean_of_inputs: Estimate,
    /// The mean at each site, over inputs and draws.
    pub by_site: Vec<Moments>,
    /// For each input, the sum over sites of the mean over draws.
    pub by_input: Vec<f64>,
    /// For each input, the mean over draws at each of its sites.
    pub by_input_and_site: Vec<Vec<f64>>,
    /// For each input, how many sites it has.
    pub sites: Vec<usize>,
    tally: Tally,
}

impl Profile {
    /// Where an input is a batch and its response a sum over the batch's `counts` rows: the mean over rows and draws. Larger batches count for
    /// more. Its standard error is over batches; when there is only one batch, over draws.
    pub fn mean_over_rows(&self, counts: &[usize]) -> Estimate {
        self.tally.mean_over_rows(counts)
    }
}

/// Touch every input at every of its sites `budget.draws` times, have `subject` answer before and after, and average the responses.
///
/// The subject is given up to `budget.batch` inputs or touches at a time. The noise of a touch is named ([`crate::NoiseName`]): independent
/// for every touch, and the same in whatever order and company touches are made.
///
/// Any function of batches can be measured:
///
/// ```
/// use pudica_probe::{BitFlip, Budget, LabelDiffers, ProbeError, respond};
///
/// // Whether a string of bits has more ones than zeros; yours would call a model here.
/// let majority = |x: &Vec<u8>| usize::from(2 * x.iter().filter(|bit| **bit == 1).count() > x.len());
/// let mut model = |batch: &[Vec<u8>]| Ok::<_, ProbeError>(batch.iter().map(majority).collect());
/// let inputs = (0..32u8).map(|x| (0..5).map(|i| x >> i & 1).collect());
/// let found = respond(&mut model, inputs, &BitFlip, &[&LabelDiffers], &Budget::new(1, 8, 0, "majority"))?;
/// // Of five flips, 5 * C(4, 2) / 2^4 change a majority in the mean over all strings.
/// assert!((found[0].total.mean - 1.875).abs() < 1e-12);
/// # Ok::<_, ProbeError>(())
/// ```
pub fn respond<In: Send + Sync, N: Nudge<In> + ?Sized, S: Subject<In, N>>(
    subject: &mut S,
    inputs: impl IntoIterator<Item = In>,
    nudge: &N,
    responses: &[&dyn Response<S::Out>],
    budget: &Budget,
) -> Result<Vec<Profile>, S::Error> {
    ProbeError::at_least_one("draws", budget.draws)?;
    let batch = budget.batch.max(1);
    let mut inputs = inputs.into_iter().take(budget.inputs.unwrap_or(usize::MAX)).peekable();
    let mut tallies: Vec<Tally> = responses.iter().map(|_| Tally::default()).collect();
    let mut inputs_left = Looks::default();
    let mut seen = 0;
    loop {
        let group: Vec<In> = inputs.by_ref().take(batch).collect();
        if group.is_empty() {
            break;
        }
        let before = subject.answer(&group)?;
        ProbeError::as_many("inputs", group.len(), before.len())?;
        let sites: Vec<usize> = group.iter().map(|input| nudge.sites(input)).collect();
        tallies.iter_mut().for_each(|tally| tally.new_inputs(&sites, budget.draws));
        // One input alone is precise when its draws are; otherwise all draws are made.
        let alone = budget.precision.is_some() && seen + group.len() == 1 && inputs.peek().is_none();
        let mut draws = Looks::default();
        while draws.made < budget.draws {
            let next = if alone { draws.next().min(budget.draws) } else { budget.draws };
            let touches = every_touch(&sites, draws.made..next);
            let (seed, purpose, before_all) = (budget.seed, budget.purpose, budget.before + seen);
            let of = |touches| Touches { inputs: &group, before: before_all, nudge, touches, seed, purpose };
            let batches: Vec<Touches<In, N>> = touches.chunks(batch).map(of).collect();
            subject.answer_in_turn(&batches, &mut |touches, answers| {
                Ok(add_all(&mut tallies, responses, seen, touches.touches, &before, &answers)?)
            })?;
            draws.made = next;
            tallies.iter_mut().for_each(|tally| tally.draws = next);
            if alone && precise(&tallies, responses, budget) {
                break;
            }
        }
        seen += group.len();
        if inputs_left.is_due(seen) && precise(&tallies, responses, budget) {
            break;
        }
    }
    match seen {
        0 => Err(ProbeError::NoInputs.into()),
        _ => Ok(tallies.into_iter().map(Tally::profile).collect()),
    }
}

/// Each of these draws at every site of inputs that have so many.
pub(crate) fn every_touch(sites: &[usize], draws: Range<usize>) -> Vec<Touch> {
    (0..sites.len())
        .flat_map(|input| (0..sites[input]).map(move |site| (input, site)))
        .flat_map(|(input, site)| draws.clone().map(move |draw| Touch { input, site, draw }))
        .collect()
}

/// Takes in the answers to touches of inputs that come after `seen` others, whose answers `before` they are compared with.
pub(crate) fn add_all<Out>(
    tallies: &mut [Tally],
    responses: &[&dyn Response<Out>],
    seen: usize,
    touches: &[Touch],
    before: &[Out],
    answers: &[Out],
) -> Result<(), ProbeError> {
    ProbeError::as_many("touched inputs", touches.len(), answers.len())?;
    for (touch, after) in touches.iter().zip(answers) {
        for (tally, response) in tallies.iter_mut().zip(responses) {
            tally.add(seen, touch, response.compare(&before[touch.input], after));
        }
    }
    Ok(())
}

/// When to look whether enough has been measured. After every input would be to stop at lucky moments; after each quarter more it is rare enough.
#[derive(Debug, Default)]
pub struct Looks {
    made: usize,
}

impl Looks {
    /// Inputs or draws before the first look, at least.
    const FIRST: usize = 16;

    /// How many there are at the next look.
    fn next(&self) -> usize {
        self.made + (self.made / 4).max(Self::FIRST)
    }

    /// Whether another look would be due at this many.
    pub fn would_be_due(&self, count: usize) -> bool {
        count >= self.next()
    }

    /// Whether this many are enough for another look, which is then taken.
    pub fn is_due(&mut self, count: usize) -> bool {
        let due = self.would_be_due(count);
        if due {
            self.made = count;
        }
        due
    }
}

/// Whether every response is as precise as asked.
fn precise<Out>(tallies: &[Tally], responses: &[&dyn Response<Out>], budget: &Budget) -> bool {
    let Some(precision) = budget.precision else { return false };
    let cautious = |(tally, response): (&Tally, &&dyn Response<Out>)| cautious(tally.mean(), response.most());
    tallies.iter().zip(responses).map(cautious).all(|mean| precision.reached(&mean))
}

/// A mean of values in [0, `most`] with two imagined values more, one at each end: they keep its error honest where all values so far are
/// equal. Without a largest value, equal values say nothing.
pub fn cautious(mean: Estimate, most: f64) -> Estimate {
    let (samples, error) = (mean.samples as f64, mean.error_or_zero());
    let imagined = match most.is_finite() {
        true => (mean.mean.powi(2) + (most - mean.mean).powi(2)) / (samples * (samples - 1.0)),
        false if error == 0.0 => f64::INFINITY,
        false => 0.0,
    };
    Estimate { std_error: mean.std_error.map(|error| (error * error + imagined).sqrt()), ..mean }
}

/// Responses being added up.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Tally {
    by_site: Vec<Moments>,
    /// For each input, the sum of all its responses.
    sums: Vec<f64>,
    /// For each input, the sum of its responses at each site.
    site_sums: Vec<Vec<f64>>,
    /// For each input, all its responses.
    by_input: Vec<Moments>,
    sites: Vec<usize>,
    /// For the first input, the sum over sites at each draw: what tells the error when there is no second input.
    first_by_draw: Vec<f64>,
    /// Draws made at every site.
    draws: usize,
}

impl Tally {
    /// Of so many draws at every site.
    pub(crate) fn of_draws(draws: usize) -> Self {
        Self { draws, ..Self::default() }
    }

    pub(crate) fn new_inputs(&mut self, sites: &[usize], draws: usize) {
        self.sites.extend_from_slice(sites);
        self.site_sums.extend(sites.iter().map(|sites| vec![0.0; *sites]));
        self.sums.resize(self.sites.len(), 0.0);
        self.by_input.resize(self.sites.len(), Moments::default());
        self.first_by_draw.resize(draws, 0.0);
    }

    /// Takes in the response to a touch of an input that comes after `before` others.
    fn add(&mut self, before: usize, touch: &Touch, response: f64) {
        let (input, Touch { site, draw, .. }) = (before + touch.input, *touch);
        if self.by_site.len() <= site {
            self.by_site.resize(site + 1, Moments::default());
        }
        self.by_site[site].add(response);
        self.by_input[input].add(response);
        self.sums[input] += response;
        self.site_sums[input][site] += response;
        if input == 0 {
            self.first_by_draw[draw] += response;
        }
    }

    /// An average whose error is over inputs, or over draws where there is only one input: `over_inputs`, or the mean of what `of_draw` makes of
    /// the sum over sites at each draw.
    fn average(&self, over_inputs: impl FnOnce() -> Estimate, of_draw: impl Fn(f64) -> f64) -> Estimate {
        match self.sites.len() {
            1 => Estimate::sampled(&self.first_by_draw[..self.draws].iter().map(|sum| of_draw(*sum)).collect()),
            _ => over_inputs(),
        }
    }

    /// For each input, the sum over sites of the mean over draws.
    fn totals(&self) -> impl Iterator<Item = f64> {
        self.sums.iter().map(|sum| sum / self.draws.max(1) as f64)
    }

    /// For each input, the mean over draws at each site.
    fn site_means(&mut self) -> Vec<Vec<f64>> {
        let draws = self.draws.max(1) as f64;
        let mut means = std::mem::take(&mut self.site_sums);
        means.iter_mut().flatten().for_each(|sum| *sum /= draws);
        means
    }

    fn total(&self) -> Estimate {
        self.average(|| Estimate::sampled(&self.totals().collect()), |sum| sum)
    }

    /// The total over the sites of the only input, if there is one.
    fn total_of_one_over_sites(&self) -> Option<Estimate> {
        let [sites] = self.sites[..] else { return None };
        Some(self.total().times(1.0 / sites.max(1) as f64))
    }

    fn mean(&self) -> Estimate {
        self.total_of_one_over_sites().unwrap_or_else(|| {
            let counts = self.sites.iter().map(|sites| *sites as f64);
            Estimate::clustered(&self.totals().zip(counts).collect::<Vec<_>>())
        })
    }

    fn mean_of_inputs(&self) -> Estimate {
        let over_inputs = || Estimate::sampled(&self.by_input.iter().map(Moments::mean).collect());
        self.total_of_one_over_sites().unwrap_or_else(over_inputs)
    }

    fn mean_over_rows(&self, counts: &[usize]) -> Estimate {
        let of_input = |(sum, count): (&f64, &usize)| (*sum, (count * self.draws) as f64);
        let over_inputs = || Estimate::clustered(&self.sums.iter().zip(counts).map(of_input).collect::<Vec<_>>());
        self.average(over_inputs, |sum| sum / counts.first().map_or(f64::NAN, |count| *count as f64))
    }

    pub(crate) fn profile(mut self) -> Profile {
        Profile {
            total: self.total(),
            mean: self.mean(),
            mean_of_inputs: self.mean_of_inputs(),
            by_site: std::mem::take(&mut self.by_site),
            by_input: self.totals().collect(),
            by_input_and_site: self.site_means(),
            sites: self.sites.clone(),
            tally: self,
        }
    }
}

#[cfg(test)]
mod tests {
    use pudica_data::Stream;

    use super::*;
    use crate::{LabelDiffers, SquaredShift};

    /// Adds Gaussian noise to one coordinate.
    struct Jiggle;

    impl Nudge<Vec<f64>> for Jiggle {
        fn sites(&self, input: &Vec<f64>) -> usize {
            input.len()
        }
        fn apply(&self, input: &Vec<f64>, site: usize, noise: &mut Stream) -> Vec<f64> {
            let mut touched = input.clone();
            touched[site] += noise.normal();
            touched
        }
    }

    /// f(x) = 3 x_1 - 2 x_2 shifts by 9 and 4 in the mean square, wherever it is.
    fn linear(inputs: &[Vec<f64>]) -> Result<Vec<f64>, ProbeError> {
        Ok(inputs.iter().map(|x| 3.0 * x[0] - 2.0 * x[1]).collect())
    }

    fn measured(inputs: usize, budget: &Budget) -> Profile {
        let inputs = (0..inputs).map(|i| vec![i as f64, 1.0]);
        respond(&mut linear, inputs, &Jiggle, &[&SquaredShift], budget).unwrap().remove(0)
    }

    fn measure(inputs: usize, draws: usize, batch: usize) -> Profile {
        measured(inputs, &Budget::new(draws, batch, 0, "test"))
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
        for mean in [profile.mean, profile.mean_of_inputs] {
            assert!((mean.mean * 2.0 - profile.total.mean).abs() < 1e-9);
            assert!((mean.std_error.unwrap() * 2.0 - error).abs() < 1e-9);
        }
        assert_eq!(profile.sites, [2; 200]);
    }

    #[test]
    fn with_one_input_the_error_is_over_draws() {
        let profile = measure(1, 4000, 1);
        let error = profile.total.std_error.unwrap();
        assert!((error / (194.0f64 / 4000.0).sqrt() - 1.0).abs() < 0.2);
        assert!((profile.total.mean - 13.0).abs() < 4.0 * error);
        assert_eq!((profile.mean.mean, profile.mean.std_error.unwrap()), (profile.total.mean / 2.0, error / 2.0));
        assert_eq!(profile.mean_of_inputs, profile.mean);
    }

    #[test]
    fn batches_change_nothing() {
        assert_eq!(measure(7, 3, 1).by_input, measure(7, 3, 1000).by_input);
    }

    /// Inputs of 1, 2 and 5 rows whose every row answers with its input's number.
    #[test]
    fn rows_count_alike_or_inputs_do() {
        let counts = [1, 2, 5];
        let profile = |count: usize| {
            let mut rows = |inputs: &[Vec<f64>]| Ok::<_, ProbeError>(inputs.iter().map(|x| x[0]).collect());
            struct Grow;
            impl Nudge<Vec<f64>> for Grow {
                fn sites(&self, _: &Vec<f64>) -> usize {
                    1
                }
                fn apply(&self, input: &Vec<f64>, _: usize, _: &mut Stream) -> Vec<f64> {
                    vec![input[1], 0.0]
                }
            }
            struct Shift;
            impl Response<f64> for Shift {
                fn compare(&self, before: &f64, after: &f64) -> f64 {
                    after - before
                }
            }
            let inputs = (0..count).map(|i| vec![0.0, (i * counts[i]) as f64]);
            respond(&mut rows, inputs, &Grow, &[&Shift], &Budget::new(3, 2, 0, "test")).unwrap().remove(0)
        };
        let several = profile(3);
        assert_eq!((several.mean_of_inputs.mean, several.mean_over_rows(&counts).mean), (4.0, 1.5));
        assert_eq!(several.mean_over_rows(&counts).samples, 3);
        let one = profile(1).mean_over_rows(&counts[..1]);
        assert_eq!((one.mean, one.std_error, one.samples), (0.0, Some(0.0), 3));
    }

    #[test]
    fn it_stops_once_it_is_precise() {
        let enough = |inputs, draws, precision| {
            let budget = Budget { precision: Some(precision), ..Budget::new(draws, 16, 0, "test") };
            measured(inputs, &budget)
        };
        // Over inputs: 194 / 4 is the variance of the mean over both sites, so that 3803 inputs have a half-width of 0.22.
        let profile = enough(100_000, 1, Precision::Absolute(0.22));
        let inputs = profile.by_input.len();
        assert!((3000..6000).contains(&inputs), "{inputs}");
        assert!(profile.mean.half_width().unwrap() <= 0.22);
        assert_eq!(profile.by_input, measure(inputs, 1, 16).by_input);
        // Over draws, where there is one input.
        let profile = enough(1, 100_000, Precision::Relative(0.22 / 6.5));
        assert!((3000..6000).contains(&profile.total.samples), "{:?}", profile.total);
        assert!((profile.total.mean - 13.0).abs() < 4.0 * profile.total.std_error.unwrap());
        // What never answered may do so rarely: with values up to 1, so many inputs are needed to know it is below 0.1.
        let mut constant = |inputs: &[Vec<f64>]| Ok::<_, ProbeError>(vec![0usize; inputs.len()]);
        let budget = Budget { precision: Some(Precision::Absolute(0.1)), ..Budget::new(1, 4, 0, "test") };
        let inputs = (0..1000).map(|_| vec![0.0]);
        let found = respond(&mut constant, inputs, &Jiggle, &[&LabelDiffers], &budget).unwrap().remove(0);
        assert!((20..40).contains(&found.by_input.len()), "{}", found.by_input.len());
        let mut constant = |inputs: &[Vec<f64>]| Ok::<_, ProbeError>(vec![0.0f64; inputs.len()]);
        let inputs = (0..100).map(|_| vec![0.0]);
        let found = respond(&mut constant, inputs, &Jiggle, &[&SquaredShift], &budget).unwrap().remove(0);
        assert_eq!(found.by_input.len(), 100, "without a largest value nothing is known");
    }

    #[test]
    fn no_more_inputs_than_asked_for() {
        let profile = measured(50, &Budget { inputs: Some(7), ..Budget::new(2, 4, 0, "test") });
        assert_eq!(profile.by_input, measure(7, 2, 4).by_input);
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        type Answer = fn(&[Vec<f64>]) -> Result<Vec<f64>, ProbeError>;
        let refused = |model: Answer, inputs, draws| {
            let inputs = (0..inputs).map(|_| vec![0.0, 0.0]);
            let budget = Budget::new(draws, 3, 0, "test");
            respond(&mut { model }, inputs, &Jiggle, &[&SquaredShift], &budget).unwrap_err().to_string()
        };
        assert!(refused(|_| Err(ProbeError::NoBatches("a broken model")), 1, 1).contains("a broken model"));
        assert!(refused(|_| Ok(vec![0.0]), 2, 1).contains("1 answers to 2 inputs"));
        assert!(refused(|some| Ok(vec![0.0; some.len().min(2)]), 1, 2).contains("2 answers to 3 touched inputs"));
        assert!(refused(linear, 0, 1).contains("at least one"));
        assert!(refused(linear, 1, 0).contains("at least 1"));
    }
}
