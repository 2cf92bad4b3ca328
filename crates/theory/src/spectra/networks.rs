//! Finite networks with random weights: what the kernels' infinitely wide networks are the limit of, and two that have no closed form.
//!
//! All weights are standard normal and scaled where they are used (the "NTK parametrisation"), so that kernels converge with width.

use pudica_data::Stream;

use super::activation::Activation;
use super::architecture::{Architecture, Family, Readout};
use super::tape::{Matrix, Tape, Var};
use crate::{Result, TheoryError};

/// The size of a finite network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Size {
    /// Features of hidden layers, of tokens, of the LSTM's state.
    pub width: usize,
    /// Attention heads; each has width / heads features.
    pub heads: usize,
}

/// A finite network with its weights.
pub struct Network {
    architecture: Architecture,
    size: Size,
    parameters: Vec<Matrix>,
    /// The readout's parameters are those from here on.
    readout: usize,
}

impl Network {
    /// Draws the weights from the stream (seed, "spectra-weights", parameter).
    pub fn random(architecture: &Architecture, size: Size, seed: u64) -> Result<Network> {
        let shapes = checked_shapes(architecture, size)?;
        let draw = |(place, (rows, columns)): (usize, &(usize, usize))| {
            let mut stream = Stream::new(seed, "spectra-weights", place as u64);
            Matrix { rows: *rows, columns: *columns, values: (0..rows * columns).map(|_| stream.normal()).collect() }
        };
        let parameters = shapes.iter().enumerate().map(draw).collect();
        Ok(Network { architecture: architecture.clone(), size, parameters, readout: shapes.len() - 2 })
    }

    /// How many weights and biases it has.
    pub fn parameter_count(&self) -> usize {
        self.parameters.iter().map(|parameter| parameter.values.len()).sum()
    }

    /// How many of them, the last ones, belong to the readout.
    pub fn readout_count(&self) -> usize {
        self.parameters[self.readout..].iter().map(|parameter| parameter.values.len()).sum()
    }

    /// The output for an input of ±1, and its derivatives by all parameters, in order.
    pub fn jacobian_row(&self, x: &[f64], row: &mut [f64]) -> f64 {
        let mut tape = Tape::new();
        let output = self.forward(&mut tape, x);
        let mut gradients: Vec<Matrix> = self.parameters.iter().map(|p| Matrix::zeros(p.rows, p.columns)).collect();
        tape.gradients(output, &mut gradients);
        let all = gradients.iter().flat_map(|gradient| &gradient.values);
        row.iter_mut().zip(all).for_each(|(entry, derivative)| *entry = *derivative);
        tape.value(output).values[0]
    }

    fn forward<'a>(&'a self, tape: &mut Tape<'a>, x: &[f64]) -> Var {
        let mut next = 0;
        let mut parameter = |tape: &mut Tape<'a>| {
            next += 1;
            tape.parameter(next - 1, &self.parameters[next - 1])
        };
        let network = &self.architecture;
        let input = Matrix { rows: network.tokens, columns: network.token_width, values: x.to_vec() };
        let mut z = tape.constant(input);
        for _ in 0..network.depth {
            z = match network.family {
                Family::Mlp => z,
                Family::Lstm => self.lstm(tape, z, &mut parameter),
                Family::LinearAttention | Family::SoftmaxAttention => self.attention(tape, z, &mut parameter),
            };
            let nonlinearity = match network.activation {
                Activation::Identity => continue,
                Activation::Relu => Tape::relu,
                Activation::Erf => Tape::erf,
            };
            z = self.dense(tape, z, &mut parameter);
            z = nonlinearity(tape, z);
        }
        let (weights, bias) = (parameter(tape), parameter(tape));
        let read = match (network.family, network.readout) {
            (Family::Lstm, _) => tape.row(z, network.tokens - 1),
            (_, Readout::Mean) => tape.mean_rows(z),
            (_, Readout::Flatten) => z,
        };
        let weighted = tape.elementwise(read, weights);
        let sum = tape.total(weighted);
        let fan_in = tape.value(weights).values.len() as f64;
        let output = tape.scaled(sum, (network.weight_variance / fan_in).sqrt());
        let bias = tape.scaled(bias, network.bias_variance.sqrt());
        tape.sum(output, bias)
    }

    fn dense<'a>(&self, tape: &mut Tape<'a>, z: Var, parameter: &mut dyn FnMut(&mut Tape<'a>) -> Var) -> Var {
        let (weights, bias) = (parameter(tape), parameter(tape));
        let z = project(tape, z, weights, self.architecture.weight_variance);
        let bias = tape.scaled(bias, self.architecture.bias_variance.sqrt());
        tape.add_row(z, bias)
    }

    /// Scores are queries times keys over sqrt(features of a head); linear attention divides them by sqrt(tokens) too.
    fn attention<'a>(&self, tape: &mut Tape<'a>, z: Var, parameter: &mut dyn FnMut(&mut Tape<'a>) -> Var) -> Var {
        let features = self.size.width / self.size.heads;
        let [queries, keys, values] = [(); 3].map(|()| {
            let weights = parameter(tape);
            project(tape, z, weights, 1.0)
        });
        let mut mixed: Option<Var> = None;
        let out = parameter(tape);
        for head in 0..self.size.heads {
            let columns = head * features..(head + 1) * features;
            let [query, key, value] = [queries, keys, values].map(|all| tape.columns(all, columns.clone()));
            let scores = tape.product_transposed(query, key);
            let scale = 1.0 / (features as f64).sqrt();
            let weights = if self.architecture.family == Family::LinearAttention {
                tape.scaled(scores, scale / (self.architecture.tokens as f64).sqrt())
            } else {
                let scores = tape.scaled(scores, scale);
                tape.softmax_rows(scores)
            };
            let head_output = tape.product(weights, value);
            let rows = tape.rows(out, columns);
            let part = tape.product(head_output, rows);
            mixed = Some(mixed.map_or(part, |sum| tape.sum(sum, part)));
        }
        let mixed = mixed.unwrap_or(values);
        tape.scaled(mixed, 1.0 / (self.size.width as f64).sqrt())
    }

    /// Reads the tokens in order; its states are the tokens of the next layer.
    fn lstm<'a>(&self, tape: &mut Tape<'a>, z: Var, parameter: &mut dyn FnMut(&mut Tape<'a>) -> Var) -> Var {
        let width = self.size.width;
        let (from_input, from_state, bias) = (parameter(tape), parameter(tape), parameter(tape));
        let from_input = project(tape, z, from_input, self.architecture.weight_variance);
        let bias = tape.scaled(bias, self.architecture.bias_variance.sqrt());
        let from_input = tape.add_row(from_input, bias);
        let mut state = tape.constant(Matrix::zeros(1, width));
        let mut cell = tape.constant(Matrix::zeros(1, width));
        let mut states = Vec::new();
        for token in 0..self.architecture.tokens {
            let recurrent = project(tape, state, from_state, self.architecture.weight_variance);
            let now = tape.row(from_input, token);
            let gates = tape.sum(now, recurrent);
            let [input, forget, candidate, output] =
                [0, 1, 2, 3].map(|gate| tape.columns(gates, gate * width..(gate + 1) * width));
            let (input, forget, output) = (tape.sigmoid(input), tape.sigmoid(forget), tape.sigmoid(output));
            let candidate = tape.tanh(candidate);
            let (kept, new) = (tape.elementwise(forget, cell), tape.elementwise(input, candidate));
            cell = tape.sum(kept, new);
            let shown = tape.tanh(cell);
            state = tape.elementwise(output, shown);
            states.push(state);
        }
        tape.stack(&states)
    }
}

/// z W sqrt(variance / inputs).
fn project(tape: &mut Tape, z: Var, weights: Var, variance: f64) -> Var {
    let inputs = tape.value(weights).rows as f64;
    let product = tape.product(z, weights);
    tape.scaled(product, (variance / inputs).sqrt())
}

/// [`shapes`], refused where there is no such network.
fn checked_shapes(architecture: &Architecture, size: Size) -> Result<Vec<(usize, usize)>> {
    architecture.check()?;
    let Size { width, heads } = size;
    if !(1..=4096).contains(&width) {
        return Err(TheoryError::argument(format!("--width {width}: give 1 to 4096")));
    }
    if architecture.has_attention() && (heads == 0 || !width.is_multiple_of(heads)) {
        return Err(TheoryError::argument(format!("--heads {heads} does not divide the width {width}")));
    }
    Ok(shapes(architecture, size))
}

/// How many weights and biases such a network has; nothing is drawn.
pub(super) fn parameter_count(architecture: &Architecture, size: Size) -> Result<usize> {
    Ok(checked_shapes(architecture, size)?.iter().map(|(rows, columns)| rows * columns).sum())
}

/// Rows and columns of all parameters, in the order `forward` uses them; the readout's weights and bias come last.
fn shapes(network: &Architecture, size: Size) -> Vec<(usize, usize)> {
    let width = size.width;
    let mut shapes = Vec::new();
    let mut inputs = network.token_width;
    for _ in 0..network.depth {
        match network.family {
            Family::Mlp => {}
            Family::Lstm => shapes.extend([(inputs, 4 * width), (width, 4 * width), (1, 4 * width)]),
            _ => shapes.extend([(inputs, width), (inputs, width), (inputs, width), (width, width)]),
        }
        if network.family != Family::Mlp {
            inputs = width;
        }
        if network.activation != Activation::Identity {
            shapes.extend([(inputs, width), (1, width)]);
            inputs = width;
        }
    }
    let rows = match (network.family, network.readout) {
        (Family::Lstm, _) | (_, Readout::Mean) => 1,
        (_, Readout::Flatten) => network.tokens,
    };
    shapes.extend([(rows, inputs), (1, 1)]);
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks() -> Vec<Network> {
        let size = Size { width: 6, heads: 2 };
        let make = |name: &str, readout, activation: Option<Activation>| {
            let network = Architecture::named(name, 6).unwrap();
            let activation = activation.unwrap_or(network.activation);
            let network = Architecture { depth: 2, bias_variance: 0.3, readout, activation, ..network };
            Network::random(&network, size, 5).unwrap()
        };
        vec![
            make("relu", Readout::Flatten, None),
            make("erf", Readout::Flatten, None),
            make("linear-attention", Readout::Flatten, None),
            make("linear-attention", Readout::Mean, Some(Activation::Identity)),
            make("softmax-attention", Readout::Mean, None),
            make("softmax-attention", Readout::Flatten, Some(Activation::Erf)),
            make("lstm", Readout::Flatten, None),
        ]
    }

    /// Every derivative by every parameter against a central difference.
    #[test]
    fn jacobians_are_finite_differences() {
        let x = [1.0, -1.0, 1.0, 1.0, -1.0, -1.0];
        for mut network in networks() {
            let count = network.parameter_count();
            let mut row = vec![0.0; count];
            network.jacobian_row(&x, &mut row);
            assert!(row.iter().filter(|slope| **slope != 0.0).count() > count / 4);
            let mut place = 0;
            for parameter in 0..network.parameters.len() {
                for entry in 0..network.parameters[parameter].values.len() {
                    let mut at = |step: f64| {
                        network.parameters[parameter].values[entry] += step;
                        let value = network.jacobian_row(&x, &mut []);
                        network.parameters[parameter].values[entry] -= step;
                        value
                    };
                    let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
                    assert!(
                        (slope - row[place]).abs() < 1e-7,
                        "{} parameter {parameter} entry {entry}: {slope} {}",
                        network.architecture.name,
                        row[place]
                    );
                    place += 1;
                }
            }
            assert_eq!(place, count);
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let network = Architecture::named("softmax-attention", 6).unwrap();
        assert!(Network::random(&network, Size { width: 6, heads: 4 }, 0).is_err());
        assert!(Network::random(&network, Size { width: 0, heads: 1 }, 0).is_err());
    }
}
