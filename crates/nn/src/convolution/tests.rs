//! Against burn's own convolution, against finite differences, and on one thread and several.

use burn::tensor::{DType, TensorData, module};
use pudica_data::Stream;

use super::*;
use crate::Device;

/// Normal values.
fn random<const D: usize>(purpose: &str, shape: [usize; D], device: &Device) -> Tensor<D> {
    let mut stream = Stream::new(0, purpose, 0);
    let values: Vec<f64> = (0..shape.iter().product()).map(|_| stream.normal()).collect();
    Tensor::from_data(TensorData::new(values, shape), device.constant())
}

/// A convolution to try: the sizes of x, output channels, the kernel's side.
#[derive(Debug, Clone, Copy)]
struct Case {
    x: [usize; 4],
    outputs: usize,
    kernel: usize,
    conv: Conv,
}

impl Case {
    /// Each channel by itself.
    fn depthwise(x: [usize; 4], kernel: usize, stride: usize, padding: usize) -> Self {
        Self { x, outputs: x[1], kernel, conv: Conv { stride, padding, groups: x[1] } }
    }

    fn dense(x: [usize; 4], outputs: usize, kernel: usize, stride: usize, padding: usize) -> Self {
        Self { x, outputs, kernel, conv: Conv { stride, padding, groups: 1 } }
    }

    fn tensors(&self, device: &Device) -> (Tensor<4>, Tensor<4>, Tensor<1>) {
        let weight = [self.outputs, self.x[1] / self.conv.groups, self.kernel, self.kernel];
        (random("x", self.x, device), random("weight", weight, device), random("bias", [self.outputs], device))
    }

    /// The output and the gradients of x, weight and bias of a sum of the outputs with random factors.
    fn results(
        &self,
        device: &Device,
        biased: bool,
        convolve: impl Fn(Tensor<4>, Tensor<4>, Option<Tensor<1>>) -> Tensor<4>,
    ) -> Vec<Vec<f64>> {
        let (x, weight, bias) = self.tensors(device);
        let (x, weight, bias) =
            (x.autodiff().require_grad(), weight.autodiff().require_grad(), bias.autodiff().require_grad());
        let y = convolve(x.clone(), weight.clone(), biased.then(|| bias.clone()));
        let mut gradients = (y.clone() * random("factors", y.dims(), device).autodiff()).sum().backward();
        let mut found = vec![values(y), values(x.grad_remove(&mut gradients).unwrap())];
        found.push(values(weight.grad_remove(&mut gradients).unwrap()));
        found.extend(bias.grad_remove(&mut gradients).map(values));
        found
    }

    fn ours(&self, device: &Device, biased: bool) -> Vec<Vec<f64>> {
        self.results(device, biased, |x, weight, bias| convolve(x, weight, bias, self.conv))
    }
}

fn values<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.into_data().convert_dtype(DType::F64).try_to_vec().unwrap()
}

fn double() -> Device {
    Device::cpu().double()
}

/// Every kind of step over every kind of image: even and odd, wider than high, smaller than the kernel, in tiles of rows and of images.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in [1, 3, 5, 9] {
        for (stride, padding) in (1..=3).flat_map(|stride| (0..=4).map(move |padding| (stride, padding))) {
            for [height, width] in [[9, 9], [7, 10], [12, 5], [3, 2]] {
                if height.min(width) + 2 * padding >= kernel {
                    cases.push(Case::dense([2, 3, height, width], 4, kernel, stride, padding));
                    cases.push(Case::depthwise([2, 3, height, width], kernel, stride, padding));
                }
            }
        }
    }
    cases.extend([
        // One image in several tiles of rows, the last one shorter; channels in two parts.
        Case::dense([3, 70, 19, 17], 5, 3, 1, 1),
        Case::dense([2, 70, 37, 39], 5, 3, 2, 1),
        // Tiles of many images, the last one with fewer; more images than there are pieces of the sum over them.
        Case::dense([75, 6, 4, 4], 9, 3, 1, 1),
        Case::dense([75, 6, 4, 4], 9, 3, 2, 1),
        // A last tile of a single image.
        Case::dense([17, 6, 4, 4], 9, 3, 1, 1),
        Case::dense([29, 7, 3, 3], 3, 1, 1, 0),
        // The input itself as columns, in tiles of rows and gathered from many images.
        Case::dense([2, 7, 20, 20], 3, 1, 1, 0),
        Case::dense([40, 7, 3, 3], 3, 1, 1, 0),
        Case::dense([1, 1, 1, 1], 1, 1, 1, 0),
        Case::depthwise([1, 5, 33, 31], 9, 1, 4),
        // Neither way: two groups.
        Case { x: [2, 4, 5, 5], outputs: 6, kernel: 3, conv: Conv { stride: 1, padding: 1, groups: 2 } },
    ]);
    cases
}

#[test]
fn outputs_and_gradients_are_those_of_burn() {
    let device = double();
    for (at, case) in cases().into_iter().enumerate() {
        let biased = at % 2 == 0;
        let expected =
            case.results(&device, biased, |x, weight, bias| module::conv2d(x, weight, bias, case.conv.options()));
        let found = case.ours(&device, biased);
        assert_eq!((found.len(), expected.len()), (3 + usize::from(biased), 3 + usize::from(biased)));
        for (which, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found.len(), expected.len(), "{case:?}: {which}");
            let largest = expected.iter().fold(1.0f64, |largest, x| largest.max(x.abs()));
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12 * largest, "{case:?}: {which}: {found}, burn has {expected}");
            }
        }
    }
}

#[test]
fn single_precision_is_near_double() {
    for case in [Case::dense([5, 20, 9, 9], 6, 3, 1, 1), Case::depthwise([5, 3, 9, 9], 5, 1, 2)] {
        let (single, double) = (case.ours(&Device::cpu(), true), case.ours(&double(), true));
        assert_ne!(single, double, "one of them is not what it should be");
        for (single, double) in single.iter().flatten().zip(double.iter().flatten()) {
            assert!((single - double).abs() < 1e-4 * double.abs().max(1.0), "{case:?}: {single} {double}");
        }
    }
}

/// f(x + 1/2) - f(x - 1/2) is the slope but for rounding: a convolution is linear in each of its three tensors.
#[test]
fn gradients_are_slopes() {
    let device = double();
    for case in [Case::dense([2, 3, 6, 5], 4, 3, 2, 1), Case::depthwise([2, 3, 6, 5], 3, 1, 1)] {
        let (x, weight, bias) = case.tensors(&device);
        let (x_shape, weight_shape) = (x.dims(), weight.dims());
        let all = [values(x), values(weight), values(bias)];
        let total = |[x, weight, bias]: [Vec<f64>; 3]| {
            let bias = Tensor::from_data(TensorData::new(bias, [case.outputs]), device.constant());
            let x = Tensor::from_data(TensorData::new(x, x_shape), device.constant());
            let weight = Tensor::from_data(TensorData::new(weight, weight_shape), device.constant());
            let y = convolve(x, weight, Some(bias), case.conv);
            values((y.clone() * random("factors", y.dims(), &device)).sum())[0]
        };
        for (which, gradient) in case.ours(&device, true)[1..].iter().enumerate() {
            for (at, found) in gradient.iter().enumerate() {
                let moved = |by: f64| {
                    let mut moved = all.clone();
                    moved[which][at] += by;
                    total(moved)
                };
                let slope = moved(0.5) - moved(-0.5);
                assert!((slope - found).abs() < 1e-11, "{case:?}: {which}: {found}, the slope is {slope}");
            }
        }
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let cases = [
        Case::dense([70, 40, 8, 8], 16, 3, 1, 1),
        Case::dense([50, 70, 6, 6], 16, 3, 2, 1),
        Case::depthwise([70, 12, 8, 8], 5, 1, 2),
    ];
    for case in cases {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| case.ours(&Device::cpu(), true))
        };
        let alone = on(1);
        // Another order of summation would show in the last digits of some of these thousands.
        assert!(alone == on(2) && alone == on(5), "{case:?}");
    }
}
