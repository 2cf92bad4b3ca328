//! Trace and largest eigenvalue of a symmetric matrix, from products alone.

use pudica_data::Stream;
use serde::{Deserialize, Serialize};

use super::hessian::Operator;
use super::length;
use crate::{Estimate, Moments, ProbeError};

/// The trace by Hutchinson's method: the mean of z . A z over `draws` vectors z of random signs, with its standard error over them. Draw i is
/// named (seed, "hessian/trace", i).
pub fn trace(operator: &impl Operator, draws: usize, seed: u64) -> Result<Estimate, ProbeError> {
    ProbeError::at_least_one("measure.hessian.draws", draws)?;
    let mut moments = Moments::default();
    for draw in 0..draws as u64 {
        let signs = signs(operator.size(), &mut Stream::new(seed, "hessian/trace", draw));
        moments.add(dot(&signs, &operator.apply(&signs)?));
    }
    Ok(Estimate::sampled(&moments))
}

/// 1 or -1 each.
fn signs(count: usize, stream: &mut Stream) -> Vec<f64> {
    let mut bits = vec![0; count];
    stream.fill_bits(&mut bits);
    bits.into_iter().map(|bit| if bit == 1 { 1.0 } else { -1.0 }).collect()
}

/// The largest eigenvalue as far as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TopEigenvalue {
    /// A Rayleigh quotient: never more than the largest eigenvalue, and within `residual` of an eigenvalue.
    pub value: f64,
    /// |A y - value y| for the unit vector y it belongs to, from a product of its own.
    pub residual: f64,
    /// Products it took.
    pub products: usize,
}

/// The largest (most positive) eigenvalue by Lanczos' method with full reorthogonalisation, in at most `steps` steps, or until the residual
/// is below `tolerance` times the eigenvalue. Needs memory for as many vectors as steps.
pub fn top_eigenvalue(
    operator: &impl Operator,
    steps: usize,
    tolerance: f64,
    seed: u64,
) -> Result<TopEigenvalue, ProbeError> {
    ProbeError::at_least_one("measure.hessian.steps", steps)?;
    ProbeError::at_least_one("the size of a matrix", operator.size())?;
    let mut stream = Stream::new(seed, "hessian/lanczos", 0);
    let mut next: Vec<f64> = (0..operator.size()).map(|_| stream.normal()).collect();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    // The matrix in that basis: its diagonal, and beside it.
    let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
    let mut top = (0.0, Vec::new());
    let mut beyond = length(next.iter().copied());
    while basis.len() < steps.min(operator.size()) {
        next.iter_mut().for_each(|x| *x /= beyond);
        let product = operator.apply(&next)?;
        diagonal.push(dot(&next, &product));
        basis.push(std::mem::replace(&mut next, product));
        // Twice: once leaves rounding errors in the directions already there.
        for vector in basis.iter().chain(&basis) {
            let along = dot(vector, &next);
            next.iter_mut().zip(vector).for_each(|(x, v)| *x -= along * v);
        }
        beyond = length(next.iter().copied());
        top = largest_eigenpair(tridiagonal(&diagonal, &beside));
        let residual = beyond * top.1.last().copied().unwrap_or(0.0_f64).abs();
        // The second: nothing is left outside of the vectors found, up to rounding.
        let size = diagonal.iter().chain(&beside).fold(0.0, |size: f64, x| size.max(x.abs()));
        if residual <= tolerance * top.0.abs() || beyond <= 1e-12 * size {
            break;
        }
        beside.push(beyond);
    }
    let mut vector = vec![0.0; operator.size()];
    for (weight, direction) in top.1.iter().zip(&basis) {
        vector.iter_mut().zip(direction).for_each(|(x, d)| *x += weight * d);
    }
    let long = length(vector.iter().copied());
    vector.iter_mut().for_each(|x| *x /= long);
    let product = operator.apply(&vector)?;
    let value = dot(&vector, &product);
    let residual = length(product.iter().zip(&vector).map(|(product, x)| product - value * x));
    Ok(TopEigenvalue { value, residual, products: basis.len() + 1 })
}

/// The whole symmetric matrix of its diagonal and what stands beside it.
fn tridiagonal(diagonal: &[f64], beside: &[f64]) -> Vec<Vec<f64>> {
    let element = |row: usize, column: usize| match row.abs_diff(column) {
        0 => diagonal[row],
        1 => beside[row.min(column)],
        _ => 0.0,
    };
    (0..diagonal.len()).map(|row| (0..diagonal.len()).map(|column| element(row, column)).collect()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The largest eigenvalue of a small symmetric matrix and its unit eigenvector, by Jacobi's rotations.
fn largest_eigenpair(mut matrix: Vec<Vec<f64>>) -> (f64, Vec<f64>) {
    let size = matrix.len();
    let mut vectors: Vec<Vec<f64>> = (0..size).map(|row| (0..size).map(|at| f64::from(row == at)).collect()).collect();
    let scale = length(matrix.iter().flatten().copied());
    for (p, q) in (0..SWEEPS).flat_map(|_| (0..size).flat_map(move |q| (0..q).map(move |p| (p, q)))) {
        if matrix[p][q].abs() <= f64::EPSILON * 1e-3 * scale {
            continue;
        }
        // The rotation in the plane of p and q that makes the element at (p, q) zero.
        let slope = (matrix[q][q] - matrix[p][p]) / (2.0 * matrix[p][q]);
        let tangent = slope.signum() / (slope.abs() + slope.hypot(1.0));
        let cosine = 1.0 / tangent.hypot(1.0);
        let sine = tangent * cosine;
        let rotate = |row: &mut Vec<f64>| {
            (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
        };
        matrix.iter_mut().for_each(rotate);
        vectors.iter_mut().for_each(rotate);
        let (above, below) = matrix.split_at_mut(q);
        for (up, down) in above[p].iter_mut().zip(&mut below[0]) {
            (*up, *down) = (cosine * *up - sine * *down, sine * *up + cosine * *down);
        }
    }
    let top = (1..size).fold(0, |best, at| if matrix[at][at] > matrix[best][best] { at } else { best });
    (matrix[top][top], vectors.iter().map(|row| row[top]).collect())
}

/// Rounds of Jacobi's rotations; six or so are needed.
const SWEEPS: usize = 12;

#[cfg(test)]
mod tests {
    use super::super::testing::{linear_on, perceptron, random_pictures};
    use super::super::{LossHessian, image_batches};
    use super::*;
    use pudica_nn::Device;
    use pudica_nn::classifier::{Classifier, Model};
    use pudica_nn::vision::{ImageBatch, ImageShape, ResNetConfig, VisionConfig, VitSmallConfig};

    /// A symmetric matrix, row by row.
    struct Matrix(Vec<Vec<f64>>);

    impl Operator for Matrix {
        fn size(&self) -> usize {
            self.0.len()
        }

        fn apply(&self, vector: &[f64]) -> Result<Vec<f64>, ProbeError> {
            Ok(self.0.iter().map(|row| dot(row, vector)).collect())
        }
    }

    /// R D R with the reflection R = 1 - 2 u u: eigenvalues D, eigenvectors the columns of R.
    fn with_eigenvalues(eigenvalues: &[f64]) -> Matrix {
        let size = eigenvalues.len();
        let u: Vec<f64> = (0..size).map(|i| 1.0 + (i * i % 7) as f64).collect();
        let square = dot(&u, &u);
        let reflection = |i: usize, j: usize| f64::from(i == j) - 2.0 * u[i] * u[j] / square;
        let element =
            |i: usize, j: usize| (0..size).map(|k| reflection(i, k) * eigenvalues[k] * reflection(k, j)).sum();
        Matrix((0..size).map(|i| (0..size).map(|j| element(i, j)).collect()).collect())
    }

    #[test]
    fn the_largest_eigenvalue_is_found_with_its_residual() {
        let mut eigenvalues: Vec<f64> = (0..60).map(|i| -3.0 + 0.05 * i as f64).collect();
        eigenvalues[17] = 2.5;
        eigenvalues[18] = -7.0; // larger in size, but not the largest
        let found = top_eigenvalue(&with_eigenvalues(&eigenvalues), 60, 1e-10, 0).unwrap();
        assert!((found.value - 2.5).abs() < 1e-8 && found.residual < 1e-6 && found.products < 40, "{found:?}");
        // Stopped early, it is below the eigenvalue and the residual says how far a true one may be.
        let early = top_eigenvalue(&with_eigenvalues(&eigenvalues), 3, 1e-10, 0).unwrap();
        assert!(early.value < 2.5 && early.products == 4, "{early:?}");
        assert!(eigenvalues.iter().any(|eigenvalue| (eigenvalue - early.value).abs() <= early.residual), "{early:?}");
    }

    #[test]
    fn matrices_with_little_in_them() {
        let same = top_eigenvalue(&with_eigenvalues(&[4.0; 5]), 5, 1e-10, 0).unwrap();
        assert!((same.value - 4.0).abs() < 1e-12 && same.residual < 1e-12 && same.products == 2, "{same:?}");
        let none = top_eigenvalue(&with_eigenvalues(&[0.0; 3]), 5, 1e-10, 0).unwrap();
        assert_eq!((none.value, none.residual), (0.0, 0.0));
        let one = top_eigenvalue(&with_eigenvalues(&[-2.0]), 5, 1e-10, 0).unwrap();
        assert!((one.value + 2.0).abs() < 1e-12);
        assert!(top_eigenvalue(&with_eigenvalues(&[1.0]), 0, 1e-10, 0).is_err());
        assert!(trace(&with_eigenvalues(&[1.0]), 0, 0).is_err());
    }

    /// z . A z has mean tr A and variance 2 sum_{i != j} A_ij^2.
    #[test]
    fn the_trace_and_its_error_are_hutchinsons() {
        let matrix = with_eigenvalues(&(0..20).map(|i| (i as f64).sin() * 3.0).collect::<Vec<_>>());
        let exact: f64 = (0..20).map(|i| matrix.0[i][i]).sum();
        let off: f64 = (0..20)
            .flat_map(|i| (0..20).map(move |j| (i, j)))
            .filter(|(i, j)| i != j)
            .map(|(i, j)| matrix.0[i][j].powi(2))
            .sum();
        let found = trace(&matrix, 2000, 0).unwrap();
        let error = found.std_error.unwrap();
        assert!((found.mean - exact).abs() < 4.0 * error, "{found:?} {exact}");
        assert!((error / (2.0 * off / 2000.0).sqrt() - 1.0).abs() < 0.1);
    }

    #[test]
    fn jacobi_finds_what_is_put_in() {
        let (value, vector) = largest_eigenpair(with_eigenvalues(&[1.0, -5.0, 3.0, 2.0, 0.5]).0);
        assert!((value - 3.0).abs() < 1e-12);
        let product = with_eigenvalues(&[1.0, -5.0, 3.0, 2.0, 0.5]).apply(&vector).unwrap();
        assert!(product.iter().zip(&vector).all(|(product, x)| (product - 3.0 * x).abs() < 1e-12));
    }

    /// Softmax regression: the Hessian is the mean over images of (diag p - p p) x (x 1)(x 1), in the order weight [classes, pixels], bias.
    fn softmax_hessian(weight: &[f32], bias: &[f32], pictures: &ImageBatch) -> Matrix {
        let (classes, pixels) = (bias.len(), pictures.pixels());
        let size = classes * (pixels + 1);
        let mut hessian = vec![vec![0.0; size]; size];
        for image in pictures.values.chunks_exact(pixels) {
            let inputs: Vec<f64> = image.iter().map(|x| f64::from(*x)).chain([1.0]).collect();
            let place = |class: usize, input: usize| {
                if input < pixels { class * pixels + input } else { classes * pixels + class }
            };
            let parameters: Vec<f64> = weight.iter().chain(bias).map(|w| f64::from(*w)).collect();
            let score = |class: usize| (0..=pixels).map(|i| parameters[place(class, i)] * inputs[i]).sum::<f64>().exp();
            let total: f64 = (0..classes).map(score).sum();
            let p: Vec<f64> = (0..classes).map(|class| score(class) / total).collect();
            for (a, b) in (0..classes).flat_map(|a| (0..classes).map(move |b| (a, b))) {
                let between = f64::from(a == b) * p[a] - p[a] * p[b];
                for (i, j) in (0..=pixels).flat_map(|i| (0..=pixels).map(move |j| (i, j))) {
                    hessian[place(a, i)][place(b, j)] += between * inputs[i] * inputs[j] / pictures.count as f64;
                }
            }
        }
        Matrix(hessian)
    }

    struct Regression {
        model: Model<VisionConfig>,
        exact: Matrix,
        batches: Vec<(ImageBatch, Vec<usize>)>,
    }

    /// The same model both ways, on the processor in f32 or f64.
    fn regression(device: &Device) -> Regression {
        let mut stream = Stream::new(2, "regression", 0);
        let mut draw = |count: usize| (0..count).map(|_| stream.normal_f32()).collect::<Vec<f32>>();
        let (weight, bias, pictures) = (draw(27), draw(3), random_pictures(40, [1, 3, 3]));
        let labels: Vec<usize> = (0..40).map(|i| i % 3).collect();
        Regression {
            model: linear_on(device, 1, 3, &weight, &bias),
            exact: softmax_hessian(&weight, &bias, &pictures),
            batches: image_batches(&pictures, &labels, 16).collect(),
        }
    }

    #[test]
    fn a_softmax_regressions_hessian_is_its_closed_form() {
        let vector: Vec<f64> = (0..30).map(|i| ((i * 7 % 11) as f64 - 5.0) * 0.3).collect();
        let close = |product: Vec<f64>, exact: &Matrix, tolerance: f64| {
            let exact = exact.apply(&vector).unwrap();
            let error = length(product.iter().zip(&exact).map(|(a, b)| a - b)) / length(exact.into_iter());
            assert!(error < tolerance, "{error}");
        };
        let double = regression(&Device::cpu().double());
        let hessian = LossHessian::<_, f64>::new(&double.model, &double.batches, 0).unwrap();
        assert_eq!(hessian.size(), 30);
        close(hessian.apply(&vector).unwrap(), &double.exact, 1e-6);
        let single = regression(&Device::cpu());
        let hessian = LossHessian::<_, f32>::new(&single.model, &single.batches, 0).unwrap();
        close(hessian.apply(&vector).unwrap(), &single.exact, 2e-4);
        assert!(hessian.step_error() < 2e-3, "{}", hessian.step_error());
        assert_eq!(hessian.apply(&[0.0; 30]).unwrap(), [0.0; 30]);
    }

    #[test]
    fn a_softmax_regressions_trace_and_eigenvalue_are_known() {
        let Regression { model, exact, batches } = regression(&Device::cpu());
        let hessian = LossHessian::<_, f32>::new(&model, &batches, 0).unwrap();
        let found = trace(&hessian, 60, 1).unwrap();
        let expected: f64 = (0..30).map(|i| exact.0[i][i]).sum();
        assert!((found.mean - expected).abs() < 4.0 * found.std_error.unwrap(), "{found:?} {expected}");
        let (largest, _) = largest_eigenpair(exact.0);
        let found = top_eigenvalue(&hessian, 30, 1e-3, 1).unwrap();
        assert!(
            (found.value - largest).abs() < 1e-3 * largest && found.residual < 5e-3 * largest,
            "{found:?} {largest}"
        );
    }

    /// A transformer's Hessian in f32, along a random direction and along a sharp one, against the same in f64, where the differences are
    /// exact to many digits.
    #[test]
    fn a_transformers_hessian_in_f32_is_that_in_f64() {
        let images = ImageShape { channels: 1, side: 8, classes: 3 };
        let (dim, depth, heads, dim_head, mlp) = (8, 2, 2, 4, 16);
        let config =
            VisionConfig::VitSmall(VitSmallConfig { images, dim, depth, heads, dim_head, mlp, ..Default::default() });
        let weights = config.initial_weights(4).unwrap();
        let pictures = random_pictures(12, [1, 8, 8]);
        let batches: Vec<_> = image_batches(&pictures, &[0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2], 12).collect();
        let on = |device: &Device| Model::new(&config, &weights, &config.initial_buffers(), device).unwrap();
        let (single, double) = (on(&Device::cpu()), on(&Device::cpu().double()));
        let single = LossHessian::<_, f32>::new(&single, &batches, 0).unwrap();
        let double = LossHessian::<_, f64>::new(&double, &batches, 0).unwrap();
        assert!(
            double.step_error() < 1e-4 && single.step_error() < 0.05,
            "{} {}",
            double.step_error(),
            single.step_error()
        );
        let mut stream = Stream::new(0, "directions", 0);
        let random: Vec<f64> = (0..single.size()).map(|_| stream.normal()).collect();
        let sharp = double.apply(&double.apply(&random).unwrap()).unwrap();
        for vector in [random, sharp] {
            let (single, double) = (single.apply(&vector).unwrap(), double.apply(&vector).unwrap());
            let error = length(single.iter().zip(&double).map(|(a, b)| a - b)) / length(double.into_iter());
            assert!(error < 0.02, "{error}");
        }
        let (single, double) =
            (top_eigenvalue(&single, 30, 1e-2, 0).unwrap(), top_eigenvalue(&double, 30, 1e-3, 0).unwrap());
        assert!(
            (single.value / double.value - 1.0).abs() < 0.02 && single.residual < 0.1 * single.value,
            "{single:?} {double:?}"
        );
    }

    /// A network of ReLUs has a kink wherever one of their inputs passes 0: only in f64 is there a step that passes none. Then the operator
    /// is symmetric, v . A w = w . A v, to many digits; and its own error tells where it is not.
    #[test]
    fn a_networks_hessian_with_kinks_is_resolved_in_f64() {
        let images = ImageShape { channels: 3, side: 8, classes: 4 };
        let config = VisionConfig::ResNet18(ResNetConfig { images, width: 3, blocks: vec![1, 2] });
        let weights = config.initial_weights(2).unwrap();
        let labels: Vec<usize> = (0..20).map(|i| i % 4).collect();
        let batches: Vec<_> = image_batches(&random_pictures(20, [3, 8, 8]), &labels, 20).collect();
        let on = |device: &Device| Model::new(&config, &weights, &config.initial_buffers(), device).unwrap();
        let (single, double) = (on(&Device::cpu()), on(&Device::cpu().double()));
        let single = LossHessian::<_, f32>::new(&single, &batches, 0).unwrap();
        let double = LossHessian::<_, f64>::new(&double, &batches, 0).unwrap();
        assert!(double.step_error() < 1e-5 && single.step_error() > 1e-3);
        assert!(asymmetry(&double) < 1e-6, "{}", asymmetry(&double));
    }

    /// |w . A v - v . A w| / (|A v| |w|) of two random vectors.
    fn asymmetry(operator: &impl Operator) -> f64 {
        let mut stream = Stream::new(0, "symmetric", 0);
        let mut draw = || (0..operator.size()).map(|_| stream.normal()).collect::<Vec<f64>>();
        let (v, w) = (draw(), draw());
        let (av, aw) = (operator.apply(&v).unwrap(), operator.apply(&w).unwrap());
        (dot(&w, &av) - dot(&v, &aw)).abs() / (length(av.iter().copied()) * length(w.iter().copied()))
    }

    /// For a network that is not linear: the operator is symmetric.
    #[test]
    fn a_networks_hessian_is_symmetric() {
        let model = perceptron(ImageShape { channels: 1, side: 3, classes: 3 }, 6, 2);
        let pictures = random_pictures(30, [1, 3, 3]);
        let labels: Vec<usize> = (0..30).map(|i| i % 3).collect();
        let batches: Vec<_> = image_batches(&pictures, &labels, 30).collect();
        let hessian = LossHessian::<_, f32>::new(&model, &batches, 0).unwrap();
        assert!(asymmetry(&hessian) < 0.01);
        assert!(LossHessian::<_, f32>::new(&model, &[], 0).is_err());
        let broken = linear_on(&Device::cpu(), 1, 3, &[f32::NAN; 27], &[0.0; 3]);
        assert!(LossHessian::<_, f32>::new(&broken, &batches, 0).is_err(), "weights that are no numbers");
    }
}
