//! Reverse-mode derivatives of small networks in f64: enough to write down an MLP, attention and an LSTM.
//!
//! A [`Tape`] records matrices and how each came about; [`Tape::gradients`] goes back over it.

use std::borrow::Cow;
use std::ops::Range;

/// A matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// rows x columns values.
    pub values: Vec<f64>,
}

impl Matrix {
    /// Zeros.
    pub fn zeros(rows: usize, columns: usize) -> Matrix {
        Matrix { rows, columns, values: vec![0.0; rows * columns] }
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }

    fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.values[row * self.columns..(row + 1) * self.columns]
    }

    fn map(&self, f: impl Fn(f64) -> f64) -> Matrix {
        Matrix { values: self.values.iter().map(|value| f(*value)).collect(), ..*self }
    }

    fn zip(&self, other: &Matrix, f: impl Fn(f64, f64) -> f64) -> Matrix {
        debug_assert_eq!((self.rows, self.columns), (other.rows, other.columns));
        Matrix { values: self.values.iter().zip(&other.values).map(|(a, b)| f(*a, *b)).collect(), ..*self }
    }

    /// self += a b.
    fn add_product(&mut self, a: &Matrix, b: &Matrix) {
        debug_assert_eq!((a.columns, self.rows, self.columns), (b.rows, a.rows, b.columns));
        for row in 0..a.rows {
            for (factor, inner) in a.row(row).iter().zip(0..) {
                self.row_mut(row).iter_mut().zip(b.row(inner)).for_each(|(sum, value)| *sum += factor * value);
            }
        }
    }

    /// self += a b^T.
    fn add_product_transposed(&mut self, a: &Matrix, b: &Matrix) {
        debug_assert_eq!((a.columns, self.rows, self.columns), (b.columns, a.rows, b.rows));
        for row in 0..a.rows {
            for (column, sum) in self.row_mut(row).iter_mut().enumerate() {
                *sum += a.row(row).iter().zip(b.row(column)).map(|(x, y)| x * y).sum::<f64>();
            }
        }
    }

    /// self += a^T b.
    fn add_transposed_product(&mut self, a: &Matrix, b: &Matrix) {
        debug_assert_eq!((a.rows, self.rows, self.columns), (b.rows, a.columns, b.columns));
        for inner in 0..a.rows {
            for (factor, row) in a.row(inner).iter().zip(0..) {
                self.row_mut(row).iter_mut().zip(b.row(inner)).for_each(|(sum, value)| *sum += factor * value);
            }
        }
    }
}

/// A matrix on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Var(usize);

enum Step {
    Constant,
    Parameter(usize),
    Product(Var, Var),
    ProductTransposed(Var, Var),
    Sum(Var, Var),
    AddRow(Var, Var),
    Elementwise(Var, Var),
    Scaled(Var, f64),
    Relu(Var),
    Erf(Var),
    Tanh(Var),
    Sigmoid(Var),
    SoftmaxRows(Var),
    Columns(Var, Range<usize>),
    Rows(Var, Range<usize>),
    Stack(Vec<Var>),
    MeanRows(Var),
    Total(Var),
}

/// What was computed, in order.
#[derive(Default)]
pub struct Tape<'a> {
    nodes: Vec<(Cow<'a, Matrix>, Step)>,
}

impl<'a> Tape<'a> {
    /// An empty tape.
    pub fn new() -> Self {
        Tape::default()
    }

    /// The value of a matrix on the tape.
    pub fn value(&self, var: Var) -> &Matrix {
        &self.nodes[var.0].0
    }

    fn push(&mut self, value: Matrix, step: Step) -> Var {
        self.nodes.push((Cow::Owned(value), step));
        Var(self.nodes.len() - 1)
    }

    /// Something with no derivative.
    pub fn constant(&mut self, value: Matrix) -> Var {
        self.push(value, Step::Constant)
    }

    /// Parameter number `index`.
    pub fn parameter(&mut self, index: usize, value: &'a Matrix) -> Var {
        self.nodes.push((Cow::Borrowed(value), Step::Parameter(index)));
        Var(self.nodes.len() - 1)
    }

    /// a b.
    pub fn product(&mut self, a: Var, b: Var) -> Var {
        let mut value = Matrix::zeros(self.value(a).rows, self.value(b).columns);
        value.add_product(self.value(a), self.value(b));
        self.push(value, Step::Product(a, b))
    }

    /// a b^T.
    pub fn product_transposed(&mut self, a: Var, b: Var) -> Var {
        let mut value = Matrix::zeros(self.value(a).rows, self.value(b).rows);
        value.add_product_transposed(self.value(a), self.value(b));
        self.push(value, Step::ProductTransposed(a, b))
    }

    /// a + b.
    pub fn sum(&mut self, a: Var, b: Var) -> Var {
        self.push(self.value(a).zip(self.value(b), |x, y| x + y), Step::Sum(a, b))
    }

    /// The row b added to every row of a.
    pub fn add_row(&mut self, a: Var, b: Var) -> Var {
        let mut value = self.value(a).clone();
        for row in 0..value.rows {
            value.row_mut(row).iter_mut().zip(&self.value(b).values).for_each(|(sum, bias)| *sum += bias);
        }
        self.push(value, Step::AddRow(a, b))
    }

    /// a b, entry by entry.
    pub fn elementwise(&mut self, a: Var, b: Var) -> Var {
        self.push(self.value(a).zip(self.value(b), |x, y| x * y), Step::Elementwise(a, b))
    }

    /// factor a.
    pub fn scaled(&mut self, a: Var, factor: f64) -> Var {
        self.push(self.value(a).map(|x| factor * x), Step::Scaled(a, factor))
    }

    /// max(0, a).
    pub fn relu(&mut self, a: Var) -> Var {
        self.push(self.value(a).map(|x| x.max(0.0)), Step::Relu(a))
    }

    /// erf(a).
    pub fn erf(&mut self, a: Var) -> Var {
        self.push(self.value(a).map(libm::erf), Step::Erf(a))
    }

    /// tanh(a).
    pub fn tanh(&mut self, a: Var) -> Var {
        self.push(self.value(a).map(f64::tanh), Step::Tanh(a))
    }

    /// 1 / (1 + exp(-a)).
    pub fn sigmoid(&mut self, a: Var) -> Var {
        self.push(self.value(a).map(|x| 1.0 / (1.0 + (-x).exp())), Step::Sigmoid(a))
    }

    /// Softmax of every row.
    pub fn softmax_rows(&mut self, a: Var) -> Var {
        let mut value = self.value(a).clone();
        for row in 0..value.rows {
            let row = value.row_mut(row);
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|x| *x = (*x - largest).exp());
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|x| *x /= total);
        }
        self.push(value, Step::SoftmaxRows(a))
    }

    /// Some columns.
    pub fn columns(&mut self, a: Var, columns: Range<usize>) -> Var {
        let from = self.value(a);
        let values = (0..from.rows).flat_map(|row| from.row(row)[columns.clone()].to_vec()).collect();
        let value = Matrix { rows: from.rows, columns: columns.len(), values };
        self.push(value, Step::Columns(a, columns))
    }

    /// Some rows.
    pub fn rows(&mut self, a: Var, rows: Range<usize>) -> Var {
        let from = self.value(a);
        let values = from.values[rows.start * from.columns..rows.end * from.columns].to_vec();
        let value = Matrix { rows: rows.len(), columns: from.columns, values };
        self.push(value, Step::Rows(a, rows))
    }

    /// One row.
    pub fn row(&mut self, a: Var, row: usize) -> Var {
        self.rows(a, row..row + 1)
    }

    /// These single rows, one below the other.
    pub fn stack(&mut self, rows: &[Var]) -> Var {
        let values: Vec<f64> = rows.iter().flat_map(|row| self.value(*row).values.clone()).collect();
        let value = Matrix { rows: rows.len(), columns: values.len() / rows.len().max(1), values };
        self.push(value, Step::Stack(rows.to_vec()))
    }

    /// The mean of the rows, as one row.
    pub fn mean_rows(&mut self, a: Var) -> Var {
        let from = self.value(a);
        let mut value = Matrix::zeros(1, from.columns);
        for row in 0..from.rows {
            value.values.iter_mut().zip(from.row(row)).for_each(|(sum, x)| *sum += x / from.rows as f64);
        }
        self.push(value, Step::MeanRows(a))
    }

    /// The sum of all entries, as a 1 x 1 matrix.
    pub fn total(&mut self, a: Var) -> Var {
        let value = Matrix { rows: 1, columns: 1, values: vec![self.value(a).values.iter().sum()] };
        self.push(value, Step::Total(a))
    }

    /// Adds the derivatives of the 1 x 1 matrix `of` by every parameter to `into[parameter]`.
    pub fn gradients(&self, of: Var, into: &mut [Matrix]) {
        let mut slopes: Vec<Option<Matrix>> = vec![None; self.nodes.len()];
        slopes[of.0] = Some(Matrix { rows: 1, columns: 1, values: vec![1.0] });
        for place in (0..self.nodes.len()).rev() {
            let Some(slope) = slopes[place].take() else { continue };
            let (value, step) = &self.nodes[place];
            // What flows back to an earlier matrix is added up there.
            let mut at = |var: Var, back: &dyn Fn(&mut Matrix)| {
                let shape = self.value(var);
                back(slopes[var.0].get_or_insert_with(|| Matrix::zeros(shape.rows, shape.columns)));
            };
            let add = |back: Matrix| move |sum: &mut Matrix| add_to(&mut sum.values, &back.values);
            match step {
                Step::Constant => {}
                Step::Parameter(index) => add_to(&mut into[*index].values, &slope.values),
                Step::Product(a, b) => {
                    at(*a, &|sum| sum.add_product_transposed(&slope, self.value(*b)));
                    at(*b, &|sum| sum.add_transposed_product(self.value(*a), &slope));
                }
                Step::ProductTransposed(a, b) => {
                    at(*a, &|sum| sum.add_product(&slope, self.value(*b)));
                    at(*b, &|sum| sum.add_transposed_product(&slope, self.value(*a)));
                }
                Step::Sum(a, b) => {
                    at(*a, &|sum| add_to(&mut sum.values, &slope.values));
                    at(*b, &|sum| add_to(&mut sum.values, &slope.values));
                }
                Step::AddRow(a, b) => {
                    at(*a, &|sum| add_to(&mut sum.values, &slope.values));
                    at(*b, &|sum| (0..slope.rows).for_each(|row| add_to(&mut sum.values, slope.row(row))));
                }
                Step::Elementwise(a, b) => {
                    at(*a, &add(slope.zip(self.value(*b), |s, y| s * y)));
                    at(*b, &add(slope.zip(self.value(*a), |s, x| s * x)));
                }
                Step::Scaled(a, factor) => at(*a, &add(slope.map(|s| factor * s))),
                Step::Relu(a) => at(*a, &add(slope.zip(value, |s, y| if y > 0.0 { s } else { 0.0 }))),
                Step::Erf(a) => {
                    let derivative = |x: f64| std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp();
                    at(*a, &add(slope.zip(self.value(*a), |s, x| s * derivative(x))));
                }
                Step::Tanh(a) => at(*a, &add(slope.zip(value, |s, y| s * (1.0 - y * y)))),
                Step::Sigmoid(a) => at(*a, &add(slope.zip(value, |s, y| s * y * (1.0 - y)))),
                Step::SoftmaxRows(a) => {
                    let mut back = slope.zip(value, |s, y| s * y);
                    for row in 0..back.rows {
                        let total: f64 = back.row(row).iter().sum();
                        back.row_mut(row).iter_mut().zip(value.row(row)).for_each(|(b, y)| *b -= y * total);
                    }
                    at(*a, &add(back));
                }
                Step::Columns(a, columns) => at(*a, &|sum| {
                    (0..slope.rows).for_each(|row| add_to(&mut sum.row_mut(row)[columns.clone()], slope.row(row)));
                }),
                Step::Rows(a, rows) => {
                    at(*a, &|sum| add_to(&mut sum.values[rows.start * slope.columns..], &slope.values))
                }
                Step::Stack(rows) => {
                    rows.iter().enumerate().for_each(|(place, row)| {
                        at(*row, &|sum| add_to(&mut sum.values, slope.row(place)));
                    });
                }
                Step::MeanRows(a) => {
                    let share = slope.map(|s| s / self.value(*a).rows as f64);
                    at(*a, &|sum| (0..sum.rows).for_each(|row| add_to(sum.row_mut(row), &share.values)));
                }
                Step::Total(a) => at(*a, &|sum| sum.values.iter_mut().for_each(|value| *value += slope.values[0])),
            }
        }
    }
}

fn add_to(sums: &mut [f64], values: &[f64]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}
