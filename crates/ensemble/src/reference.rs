//! The networks of `pudica_nn` behind the ensemble's face, one after the other: slow, and the oracle of the tests.

use pudica_data::{Bits, Stream};
use pudica_nn::{Architecture, Device, Network, NnError, NormFactors, Placed, Trainer, TrainingState, Weights};

use crate::measure::{response, score, shake};
use crate::members::{check_bits, check_networks, measured};
use crate::precision::no_tf32_here;
use crate::{Engine, EnsembleError, Member, Noise, NoisyResponse, NormSummary, Precision, Shape, Strings};

/// An ensemble on the reference network of `pudica_nn`, computed by autodiff on this machine's processor.
pub fn reference(shape: Shape, members: Vec<Member>, precision: Precision) -> Result<Box<dyn Engine>, EnsembleError> {
    let device = match precision {
        Precision::F32 => Device::cpu(),
        Precision::F64 => Device::cpu().double(),
        Precision::Tf32 => return Err(no_tf32_here()),
    };
    one_by_one(&Architecture::Encoder(shape.encoder), shape.batch, members, &device)
}

/// Networks of any architecture of `pudica_nn` behind the ensemble's face, computed one after the other on a device of burn.
pub fn one_by_one(
    architecture: &Architecture,
    batch: usize,
    members: Vec<Member>,
    device: &Device,
) -> Result<Box<dyn Engine>, EnsembleError> {
    let rows = check_networks(architecture, batch, &members)?;
    let trainers = members
        .iter()
        .map(|member| Trainer::resume(architecture, &member.state.to_bytes()?, member.adamw, device))
        .collect::<Result<_, _>>()?;
    let (steps, lost) = (members[0].state.step, vec![false; members.len()]);
    let (architecture, device) = (architecture.clone(), device.clone());
    Ok(Box::new(Reference { steps, architecture, device, members, trainers, lost, rows }))
}

struct Reference {
    architecture: Architecture,
    device: Device,
    members: Vec<Member>,
    trainers: Vec<Trainer>,
    /// Whether a replica's loss has ceased to be finite; it then stands still.
    lost: Vec<bool>,
    rows: usize,
    steps: u64,
}

impl Reference {
    fn network(&self, weights: Weights) -> Result<Network, NnError> {
        Network::new(&self.architecture, weights, &self.device)
    }

    /// What `measure` makes of each replica's strings and labels.
    fn each<R>(
        &self,
        strings: Strings,
        measure: impl Fn(usize, &Bits, &[f32]) -> Result<R, EnsembleError>,
    ) -> Result<Vec<R>, EnsembleError> {
        check_bits(strings, self.members.len(), |length| self.architecture.check_length(length, 0))?;
        let one = |(replica, member): (usize, &Member)| {
            let batch = measured(strings, replica, &member.task, member.seed)?;
            measure(replica, &batch.strings, &batch.labels)
        };
        self.members.iter().enumerate().map(one).collect()
    }
}

impl Engine for Reference {
    fn replicas(&self) -> usize {
        self.members.len()
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn device(&self) -> String {
        let precision = if self.device.is_double() { ", f64" } else { "" };
        format!("{} (burn{precision})", self.device.name())
    }

    fn advance(&mut self, count: usize) -> Result<Vec<Vec<f64>>, EnsembleError> {
        let mut losses = Vec::with_capacity(count);
        for _ in 0..count {
            let mut of_step = Vec::with_capacity(self.members.len());
            for ((member, trainer), lost) in self.members.iter().zip(&mut self.trainers).zip(&mut self.lost) {
                let batch = member.task.train_batch(self.rows, member.seed, self.steps)?;
                let offset = offset(&self.architecture, batch.strings.n(), member.seed, self.steps);
                let loss = match lost {
                    true => f64::NAN,
                    false => match trainer.step(Placed { strings: &batch.strings, offset }, &batch.labels) {
                        Ok(loss) | Err(NnError::Diverged { loss, .. }) => loss,
                        Err(error) => return Err(error.into()),
                    },
                };
                *lost |= !loss.is_finite();
                of_step.push(loss);
            }
            self.steps += 1;
            losses.push(of_step);
        }
        Ok(losses)
    }

    fn state(&self, replica: usize) -> Result<TrainingState, EnsembleError> {
        Ok(TrainingState::from_bytes(&self.architecture, &self.trainers[replica].checkpoint()?)?)
    }

    fn predict(&mut self, strings: Strings) -> Result<Vec<Vec<f32>>, EnsembleError> {
        self.each(strings, |replica, strings, _| Ok(self.trainers[replica].network()?.predict(strings)?))
    }

    fn evaluate(&mut self, strings: Strings) -> Result<Vec<(f64, f64)>, EnsembleError> {
        self.each(strings, |replica, strings, labels| {
            Ok(score(&self.trainers[replica].network()?.predict(strings)?, labels))
        })
    }

    fn shake(&mut self, strings: Strings, noise: Noise) -> Result<Vec<Vec<NoisyResponse>>, EnsembleError> {
        self.each(strings, |replica, strings, labels| {
            let weights = self.trainers[replica].weights();
            let before = self.network(weights.clone())?.predict(strings)?;
            let one = |draw| {
                let mut noisy = weights.clone();
                shake(noisy.data_mut(), weights.layout(), &noise, self.members[replica].seed, draw);
                let after = self.network(noisy)?.predict(strings)?;
                Ok(response(&before, &after, labels))
            };
            (0..noise.draws).map(one).collect()
        })
    }

    fn norms(&mut self, strings: Strings) -> Result<Vec<NormSummary>, EnsembleError> {
        self.each(strings, |replica, strings, _| {
            let (_, norms) = self.trainers[replica].network()?.predict_with_norms(strings)?;
            Ok(summarise(&norms, strings.rows()))
        })
    }
}

/// The position at which the strings of a training step begin: anywhere among learned positions, so that all of them are learnt where there are
/// more than bits. Measured strings begin at the first.
fn offset(architecture: &Architecture, length: usize, seed: u64, step: u64) -> usize {
    match architecture.positions().and_then(|positions| positions.checked_sub(length)) {
        None | Some(0) => 0,
        Some(room) => Stream::new(seed, "train-offset", step).below(room as u64 + 1) as usize,
    }
}

fn summarise(norms: &[NormFactors], rows: usize) -> NormSummary {
    let mut summary = NormSummary { names: norms.iter().map(|norm| norm.name.clone()).collect(), ..Default::default() };
    for row in 0..rows {
        for norm in norms {
            let own = row * norm.positions..(row + 1) * norm.positions;
            for (factors, max, mean) in [
                (&norm.unbiased[own.clone()], &mut summary.unbiased_max, &mut summary.unbiased_mean),
                (&norm.theory[own], &mut summary.theory_max, &mut summary.theory_mean),
            ] {
                max.push(factors.iter().copied().fold(f32::NEG_INFINITY, f32::max));
                mean.push((factors.iter().copied().map(f64::from).sum::<f64>() / factors.len() as f64) as f32);
            }
        }
    }
    summary
}
