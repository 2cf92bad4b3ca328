//! One layer in training, by SGD on one set of sequences.

use std::thread::available_parallelism;

use pudica_data::{Stream, TokenSet, TokenTask};
use pudica_nn::token_attention::{TokenAttention, logistic};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::TokensConfig;
use super::measure::{Point, Sets, measure};
use super::predictors::predictor_measures;
use crate::compute::Machine;
use crate::error::{Error, Result};
use crate::experiment::{Experiment, Line, Lockstep, Lost, Measured, RunStart, Training, Work};
use crate::plan::Plan;
use crate::settings::Settings;
use crate::stop::{Progress, unless_stopped};
use crate::store::RunFolder;
use crate::trained::{Trained, weights_of};

struct TokensExperiment;

pub(super) fn open(_: &Plan, _: &Machine) -> Result<Box<dyn Experiment>> {
    Ok(Box::new(TokensExperiment))
}

impl Experiment for TokensExperiment {
    fn default_jobs(&self) -> usize {
        available_parallelism().map_or(1, usize::from)
    }

    fn lockstep(&self, settings: &Settings) -> Result<Lockstep> {
        let config: TokensConfig = settings.read()?;
        let key = format!("{} {} {:?} {:?}", config.data, config.length, config.model, config.train.batch);
        Ok(Lockstep { key, most: 1 })
    }

    fn work(&self, settings: &Settings) -> Result<Work> {
        let config: TokensConfig = settings.read()?;
        let task = config.task()?;
        let (length, vocabulary, width) = (task.length as f64, task.vocabulary as f64, config.model.width as f64);
        let tables = vocabulary * vocabulary * width;
        let sequence = length * length;
        let sequences = (config.train.set_size + 2 * config.eval.sequences) as f64;
        Ok(Work {
            steps: config.steps_per_epoch() * config.train.epochs,
            step: 3.0 * (tables + config.train.batch as f64 * sequence),
            // Sensitivity replaces each token of each training sequence by every other one.
            line: sequences * sequence + config.train.set_size as f64 * length * vocabulary,
            line_every: config.steps_per_epoch() * config.measure.every,
            line_at_start: true,
            measure: 2.0 * config.measure.simulated as f64 * length * length,
        })
    }

    fn step_of(&self, _: &Settings, checkpoint: &[u8]) -> Result<u64> {
        Ok(read_layer(checkpoint)?.1)
    }

    fn begin(&self, runs: &[RunStart]) -> Result<Box<dyn Training + '_>> {
        let [start] = runs else { return Err(Error::Other("these layers train one at a time".into())) };
        Ok(Box::new(TokensTraining::begin(start)?))
    }
}

/// The layer that a run has trained.
pub(super) fn trained(folder: &RunFolder) -> Result<Trained> {
    let (layer, _) = read_layer(&weights_of(folder)?).map_err(|error| Error::damaged(&folder.weights_path(), error))?;
    Ok(Trained::Tokens(Box::new(layer)))
}

/// A layer in training.
struct TokensTraining {
    config: TokensConfig,
    task: TokenTask,
    sets: Sets,
    layer: TokenAttention,
    step: u64,
    /// The order of the training sequences in the present epoch, and how many epochs have been shuffled into it.
    order: Vec<usize>,
    shuffled: u64,
    /// Its latest measurement.
    measured: Option<Point>,
    /// The latest epoch that was logged before an interruption.
    logged: Option<u64>,
    lost: Option<Lost>,
}

impl TokensTraining {
    fn begin(start: &RunStart) -> Result<Self> {
        let config: TokensConfig = start.settings.read()?;
        let task = config.task()?;
        let sets = Sets::draw(&task, &config)?;
        let (layer, step) = match &start.checkpoint {
            Some(checkpoint) => read_layer(checkpoint)?,
            None => {
                let mut stream = Stream::new(config.seed, "tokens-start", 0);
                let (width, init) = (config.model.width, config.model.init);
                (TokenAttention::random(task.vocabulary, task.length, width, init, &mut stream), 0)
            }
        };
        let logged = start.lines.last().and_then(|line| line.get("epoch")?.as_u64());
        let order = (0..sets.train.rows()).collect();
        Ok(TokensTraining { config, task, sets, layer, step, order, shuffled: 0, measured: None, logged, lost: None })
    }

    fn epoch(&self) -> u64 {
        self.step / self.config.steps_per_epoch()
    }

    /// Whether it stands after an epoch that is measured.
    fn due(&self) -> bool {
        let (epoch, every) = (self.epoch(), self.config.measure.every);
        self.step.is_multiple_of(self.config.steps_per_epoch())
            && (epoch.is_multiple_of(every) || epoch == self.config.train.epochs)
    }
}

impl Training for TokensTraining {
    fn step(&self) -> u64 {
        self.step
    }

    fn device(&self) -> String {
        "cpu".into()
    }

    fn loss(&self, _: usize) -> f64 {
        self.measured.as_ref().map_or(f64::NAN, |point| point.train_loss)
    }

    fn lost(&self, _: usize) -> Option<Lost> {
        self.lost
    }

    fn advance(&mut self, at_most: u64) -> Result<()> {
        for _ in 0..at_most {
            let epoch = self.epoch();
            // Each epoch shuffles the order of the one before it; a resumed run shuffles them all again.
            while self.shuffled <= epoch {
                Stream::new(self.config.seed, "tokens-order", self.shuffled).shuffle(&mut self.order);
                self.shuffled += 1;
            }
            let (batch, place) = (self.config.train.batch, (self.step % self.config.steps_per_epoch()) as usize);
            let rows = &self.order[place * batch..((place + 1) * batch).min(self.order.len())];
            descend(&mut self.layer, &self.sets.train, rows, self.config.train.lr);
            self.step += 1;
            if self.due() {
                break;
            }
        }
        Ok(())
    }

    fn lines(&mut self, _: &Progress) -> Result<Vec<Vec<Line>>> {
        let epoch = self.epoch();
        if !self.due() || self.measured.as_ref().is_some_and(|point| point.epoch == epoch) {
            return Ok(vec![Vec::new()]);
        }
        let point = measure(&self.task, &self.layer.tables(), &self.sets, epoch);
        if !point.train_loss.is_finite() {
            self.lost = Some(Lost { step: self.step, loss: point.train_loss });
            return Ok(vec![Vec::new()]);
        }
        let values = point.values();
        self.measured = Some(point);
        let new = self.logged.is_none_or(|logged| epoch > logged);
        Ok(vec![if new { vec![Line { step: self.step, values }] } else { Vec::new() }])
    }

    fn measure(&mut self, progress: &Progress) -> Result<Vec<Option<Measured>>> {
        let mut measures = self.measured.as_ref().map(Point::values).unwrap_or_default();
        let (task, simulated) = (self.task, self.config.measure.simulated);
        measures.extend(unless_stopped(progress, move || predictor_measures(&task, simulated))??);
        // Layers are compared at the end of their training, whatever their loss is then.
        Ok(vec![Some(Measured { converged: true, measures, detail: Default::default() })])
    }

    fn checkpoint(&self, _: usize) -> Result<Vec<u8>> {
        write_layer(&self.layer, self.step)
    }

    fn weights(&self, _: usize) -> Result<Option<Vec<u8>>> {
        write_layer(&self.layer, self.step).map(Some)
    }
}

/// One step of SGD on the mean logistic loss of some sequences.
fn descend(layer: &mut TokenAttention, set: &TokenSet, rows: &[usize], rate: f64) {
    let tables = layer.tables();
    let mut gradient = tables.no_gradient();
    for row in rows {
        let (tokens, label) = set.get(*row);
        let slope = |output: f64| logistic(output, f64::from(label)).1 / rows.len() as f64;
        tables.add_gradient(tokens, slope, &mut gradient);
    }
    let gradient = layer.gradient(&gradient);
    layer.descend(&gradient, rate);
}

/// The four matrices as a file of f64, with the step they were reached at.
fn write_layer(layer: &TokenAttention, step: u64) -> Result<Vec<u8>> {
    let failed = |error: safetensors::SafeTensorError| Error::Other(format!("cannot write the layer ({error})"));
    let TokenAttention { vocabulary, length, width, query, key, value, head } = layer;
    let parts =
        [("query", vocabulary, query), ("key", vocabulary, key), ("value", vocabulary, value), ("head", length, head)];
    let bytes = parts.map(|(name, rows, values)| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        (name, [*rows, *width], bytes)
    });
    let views = bytes.iter().map(|(name, shape, bytes)| {
        TensorView::new(Dtype::F64, shape.to_vec(), bytes).map(|view| (name.to_string(), view))
    });
    let views = views.collect::<std::result::Result<Vec<_>, _>>().map_err(failed)?;
    let about = std::collections::HashMap::from([("step".to_string(), step.to_string())]);
    safetensors::serialize(views, Some(about)).map_err(failed)
}

/// Reads what [`write_layer`] wrote.
fn read_layer(bytes: &[u8]) -> Result<(TokenAttention, u64)> {
    let wrong = |problem: String| Error::Other(format!("not the state of such a layer ({problem})"));
    let (_, about) = SafeTensors::read_metadata(bytes).map_err(|error| wrong(error.to_string()))?;
    let step = about.metadata().as_ref().and_then(|about| about.get("step")?.parse().ok());
    let step = step.ok_or_else(|| wrong("it names no step".into()))?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| wrong(error.to_string()))?;
    let read = |name: &str| -> Result<(Vec<f64>, usize, usize)> {
        let tensor = tensors.tensor(name).map_err(|error| wrong(error.to_string()))?;
        match (tensor.dtype(), tensor.shape()) {
            (Dtype::F64, &[rows, width]) => {
                let values = tensor.data().as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
                Ok((values.collect(), rows, width))
            }
            _ => Err(wrong(format!("{name} is no matrix of f64"))),
        }
    };
    let (query, vocabulary, width) = read("query")?;
    let (_, length, _) = read("head")?;
    let sized = |name: &str, rows: usize| match read(name)? {
        (values, found, columns) if (found, columns) == (rows, width) => Ok(values),
        (_, found, columns) => Err(wrong(format!("{name} is {found} x {columns}, not {rows} x {width}"))),
    };
    let (key, value, head) = (sized("key", vocabulary)?, sized("value", vocabulary)?, sized("head", length)?);
    Ok((TokenAttention { vocabulary, length, width, query, key, value, head }, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_reads_back_to_the_bit_and_damage_is_refused() {
        let layer = TokenAttention::random(5, 4, 3, 0.1, &mut Stream::new(0, "test", 0));
        let bytes = write_layer(&layer, 17).unwrap();
        assert_eq!(read_layer(&bytes).unwrap(), (layer, 17));
        assert!(read_layer(&bytes[..bytes.len() - 1]).is_err());
        assert!(read_layer(b"").is_err());
        // Matrices that do not belong together.
        let text = String::from_utf8_lossy(&bytes[8..400]);
        let at = 8 + text.find("\"key\"").and_then(|key| Some(key + text[key..].find("[5,3]")?)).unwrap();
        let mut other = bytes.clone();
        other[at..at + 5].copy_from_slice(b"[3,5]");
        let refusal = read_layer(&other).unwrap_err().to_string();
        assert!(refusal.contains("key is 3 x 5, not 5 x 3"), "{refusal}");
    }
}
