//! The single attention layer of Eq. 3 of Vasudeva et al. (2024) on one-hot tokens, with its gradient by hand.
//!
//! `Phi(X) = <U, softmax(X Wq Wk^T X^T) X Wv>`. Rows of X are unit vectors, so X only looks up rows of two small tables: the scores
//! A = Wq Wk^T [M, M] and the head's view of every token at every position G = U Wv^T [T, M]. With E = exp(A),
//!
//! `Phi(X) = sum_i N_i / Z_i,  Z_i = sum_j E[x_i, x_j],  N_i = sum_j E[x_i, x_j] G[i, x_j]`:
//!
//! a sequence costs 2 T^2 multiplications and no exponential, and gradients of the four matrices are taken once for a whole batch.

use pudica_data::Stream;

/// The layer's parameters, each row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenAttention {
    /// M: different tokens.
    pub vocabulary: usize,
    /// T: tokens in a sequence.
    pub length: usize,
    /// Columns of all four matrices.
    pub width: usize,
    /// Wq [M, width].
    pub query: Vec<f64>,
    /// Wk [M, width].
    pub key: Vec<f64>,
    /// Wv [M, width].
    pub value: Vec<f64>,
    /// U [T, width].
    pub head: Vec<f64>,
}

/// All that an output depends on.
#[derive(Debug, Clone)]
pub struct Tables {
    vocabulary: usize,
    /// E [M, M], each row over its largest entry: no softmax notices, nothing overflows.
    exponentials: Vec<f64>,
    /// G [T, M].
    seen: Vec<f64>,
}

/// The gradient of a loss with respect to the two tables, summed over sequences.
#[derive(Debug, Clone)]
pub struct TableGradient {
    /// [M, M]
    scores: Vec<f64>,
    /// [T, M]
    seen: Vec<f64>,
}

/// The gradient of a loss with respect to the four matrices, in their shapes.
#[derive(Debug, Clone)]
pub struct Gradient {
    /// [M, width]
    pub query: Vec<f64>,
    /// [M, width]
    pub key: Vec<f64>,
    /// [M, width]
    pub value: Vec<f64>,
    /// [T, width]
    pub head: Vec<f64>,
}

impl TokenAttention {
    /// Every parameter normal with this standard deviation.
    pub fn random(
        vocabulary: usize,
        length: usize,
        width: usize,
        deviation: f64,
        stream: &mut Stream,
    ) -> TokenAttention {
        let mut matrix = |rows: usize| (0..rows * width).map(|_| deviation * stream.normal()).collect();
        let (query, key, value) = (matrix(vocabulary), matrix(vocabulary), matrix(vocabulary));
        TokenAttention { vocabulary, length, width, query, key, value, head: matrix(length) }
    }

    /// The tables of the parameters as they are now.
    pub fn tables(&self) -> Tables {
        let mut exponentials = product(&self.query, &transposed(&self.key, self.width), self.width);
        for row in exponentials.chunks_exact_mut(self.vocabulary) {
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|score| *score = (*score - largest).exp());
        }
        let seen = product(&self.head, &transposed(&self.value, self.width), self.width);
        Tables { vocabulary: self.vocabulary, exponentials, seen }
    }

    /// From the tables back to the matrices: A = Wq Wk^T, G = U Wv^T.
    pub fn gradient(&self, tables: &TableGradient) -> Gradient {
        let (vocabulary, width) = (self.vocabulary, self.width);
        debug_assert_eq!(self.key.len(), vocabulary * width);
        Gradient {
            query: product(&tables.scores, &self.key, vocabulary),
            key: product(&transposed(&tables.scores, vocabulary), &self.query, vocabulary),
            value: product(&transposed(&tables.seen, vocabulary), &self.head, self.length),
            head: product(&tables.seen, &self.value, vocabulary),
        }
    }

    /// One step of gradient descent.
    pub fn descend(&mut self, gradient: &Gradient, rate: f64) {
        let pairs = [
            (&mut self.query, &gradient.query),
            (&mut self.key, &gradient.key),
            (&mut self.value, &gradient.value),
            (&mut self.head, &gradient.head),
        ];
        for (weights, gradient) in pairs {
            weights.iter_mut().zip(gradient).for_each(|(weight, slope)| *weight -= rate * slope);
        }
    }
}

impl Tables {
    /// M: different tokens.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Row `token` of E: `[M]`.
    pub fn exponentials(&self, token: u16) -> &[f64] {
        &self.exponentials[usize::from(token) * self.vocabulary..][..self.vocabulary]
    }

    /// Row `position` of G = U Wv^T: `[M]`.
    pub fn seen(&self, position: usize) -> &[f64] {
        &self.seen[position * self.vocabulary..][..self.vocabulary]
    }

    /// Phi of a sequence of `T` tokens.
    pub fn output(&self, tokens: &[u16]) -> f64 {
        (0..tokens.len()).map(|position| self.sums(tokens, position)).map(|(above, below)| above / below).sum()
    }

    /// N_i and Z_i.
    pub fn sums(&self, tokens: &[u16], position: usize) -> (f64, f64) {
        let (row, seen) = (self.exponentials(tokens[position]), self.seen(position));
        let (mut above, mut below) = (0.0, 0.0);
        for token in tokens {
            let weight = row[usize::from(*token)];
            above += weight * seen[usize::from(*token)];
            below += weight;
        }
        (above, below)
    }

    /// A gradient of zeros.
    pub fn no_gradient(&self) -> TableGradient {
        TableGradient { scores: vec![0.0; self.exponentials.len()], seen: vec![0.0; self.seen.len()] }
    }

    /// Adds a sequence's share to a gradient, where `slope` is the loss's derivative by Phi(X) as a function of Phi(X); returns Phi(X).
    pub fn add_gradient(&self, tokens: &[u16], slope: impl FnOnce(f64) -> f64, gradient: &mut TableGradient) -> f64 {
        let sums: Vec<(f64, f64)> = (0..tokens.len()).map(|position| self.sums(tokens, position)).collect();
        let output = sums.iter().map(|(above, below)| above / below).sum();
        let slope = slope(output);
        for (position, (above, below)) in sums.into_iter().enumerate() {
            let first = usize::from(tokens[position]) * self.vocabulary;
            let (row, seen) = (self.exponentials(tokens[position]), self.seen(position));
            let scores = &mut gradient.scores[first..first + self.vocabulary];
            let seen_gradient = &mut gradient.seen[position * self.vocabulary..][..self.vocabulary];
            let (scale, mean) = (slope / below, above / below);
            for token in tokens {
                let token = usize::from(*token);
                let weight = scale * row[token];
                seen_gradient[token] += weight;
                scores[token] += weight * (seen[token] - mean);
            }
        }
        output
    }
}

/// The logistic loss log(1 + exp(-label * output)) and its derivative by the output.
pub fn logistic(output: f64, label: f64) -> (f64, f64) {
    let margin = label * output;
    let loss = (-margin.abs()).exp().ln_1p() + (-margin).max(0.0);
    (loss, -label / (1.0 + margin.exp()))
}

/// a [rows, inner] times b [inner, columns].
fn product(a: &[f64], b: &[f64], inner: usize) -> Vec<f64> {
    let columns = b.len() / inner;
    let mut out = vec![0.0; a.len() / inner * columns];
    for (row, factors) in out.chunks_exact_mut(columns).zip(a.chunks_exact(inner)) {
        for (factor, other) in factors.iter().zip(b.chunks_exact(columns)) {
            row.iter_mut().zip(other).for_each(|(sum, value)| *sum += factor * value);
        }
    }
    out
}

fn transposed(matrix: &[f64], columns: usize) -> Vec<f64> {
    let rows = matrix.len() / columns;
    (0..columns).flat_map(|column| (0..rows).map(move |row| matrix[row * columns + column])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Eq. 3 as it is written, with matrices.
    fn as_written(layer: &TokenAttention, tokens: &[u16]) -> f64 {
        let look_up = |matrix: &[f64]| -> Vec<f64> {
            tokens.iter().flat_map(|t| matrix[usize::from(*t) * layer.width..][..layer.width].to_vec()).collect()
        };
        let (queries, keys, values) = (look_up(&layer.query), look_up(&layer.key), look_up(&layer.value));
        let mut scores = product(&queries, &transposed(&keys, layer.width), layer.width);
        for row in scores.chunks_exact_mut(tokens.len()) {
            row.iter_mut().for_each(|score| *score = score.exp());
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|score| *score /= sum);
        }
        product(&scores, &values, tokens.len()).iter().zip(&layer.head).map(|(a, b)| a * b).sum()
    }

    fn small() -> (TokenAttention, Vec<u16>) {
        (TokenAttention::random(6, 7, 4, 0.8, &mut Stream::new(0, "test", 0)), vec![0, 3, 3, 5, 1, 0, 3])
    }

    #[test]
    fn tables_give_the_equation() {
        let (layer, tokens) = small();
        let (ours, written) = (layer.tables().output(&tokens), as_written(&layer, &tokens));
        assert!((ours - written).abs() < 1e-13 && ours.abs() > 0.1, "{ours} {written}");
    }

    #[test]
    fn gradients_equal_finite_differences() {
        let (layer, tokens) = small();
        let tables = layer.tables();
        let mut gradient = tables.no_gradient();
        tables.add_gradient(&tokens, |output| output, &mut gradient); // of Phi^2 / 2
        let gradient = layer.gradient(&gradient);
        type Pick = fn(&mut TokenAttention) -> &mut Vec<f64>;
        let picks: [(Pick, &[f64]); 4] = [
            (|layer| &mut layer.query, &gradient.query),
            (|layer| &mut layer.key, &gradient.key),
            (|layer| &mut layer.value, &gradient.value),
            (|layer| &mut layer.head, &gradient.head),
        ];
        for (pick, gradient) in picks {
            assert!(gradient.iter().any(|slope| slope.abs() > 1e-2));
            for (place, slope) in gradient.iter().enumerate() {
                let moved = |step: f64| {
                    let mut layer = layer.clone();
                    pick(&mut layer)[place] += step;
                    as_written(&layer, &tokens).powi(2) / 2.0
                };
                let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((difference - slope).abs() < 1e-8, "{place}: {difference} {slope}");
            }
        }
    }

    #[test]
    fn the_logistic_loss_and_its_slope() {
        let (loss, slope) = logistic(0.0, 1.0);
        assert!((loss - 2f64.ln()).abs() < 1e-15 && slope == -0.5);
        assert!(logistic(-800.0, 1.0) == (800.0, -1.0) && logistic(800.0, 1.0).0 == 0.0);
        let difference = (logistic(0.3 + 1e-6, -1.0).0 - logistic(0.3 - 1e-6, -1.0).0) / 2e-6;
        assert!((difference - logistic(0.3, -1.0).1).abs() < 1e-9);
    }

    fn numbers(list: &Value) -> Vec<f64> {
        match list {
            Value::Array(items) => items.iter().flat_map(numbers).collect(),
            number => vec![number.as_f64().unwrap()],
        }
    }

    /// `tests/golden/tokens.py` made the numbers: outputs, gradients and the losses of ten steps of SGD.
    #[test]
    fn pytorch_computes_the_same() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/tokens.json");
        let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let size = |name: &str| golden[name].as_u64().unwrap() as usize;
        let (vocabulary, length, width) = (size("vocabulary"), size("length"), size("width"));
        let start = |name: &str| numbers(&golden["start"][name]);
        let (query, key, value, head) = (start("query"), start("key"), start("value"), start("head"));
        let mut layer = TokenAttention { vocabulary, length, width, query, key, value, head };
        let tokens: Vec<u16> = numbers(&golden["tokens"]).iter().map(|token| *token as u16).collect();
        let labels = numbers(&golden["labels"]);
        let close = |ours: &[f64], theirs: &Value| {
            let theirs = numbers(theirs);
            assert_eq!(ours.len(), theirs.len());
            ours.iter().zip(&theirs).for_each(|(a, b)| assert!((a - b).abs() < 1e-12, "{a} {b}"));
        };
        for step in 0..10 {
            let tables = layer.tables();
            let mut gradient = tables.no_gradient();
            let (mut loss, mut outputs) = (0.0, Vec::new());
            for (tokens, label) in tokens.chunks_exact(length).zip(&labels) {
                let slope = |output: f64| logistic(output, *label).1 / labels.len() as f64;
                let output = tables.add_gradient(tokens, slope, &mut gradient);
                loss += logistic(output, *label).0 / labels.len() as f64;
                outputs.push(output);
            }
            let gradient = layer.gradient(&gradient);
            close(&[loss], &golden["losses"][step]);
            if step == 0 {
                close(&outputs, &golden["outputs"]);
                close(&gradient.query, &golden["gradients"]["query"]);
                close(&gradient.key, &golden["gradients"]["key"]);
                close(&gradient.value, &golden["gradients"]["value"]);
                close(&gradient.head, &golden["gradients"]["head"]);
            }
            layer.descend(&gradient, golden["rate"].as_f64().unwrap());
        }
    }
}
