//! The sizes of a convolution, and which of the CPU's ways it goes.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::DType;

use super::Conv;

/// Which way a convolution goes.
pub(super) enum Way {
    /// Every output channel sees every input channel.
    Dense(Geometry),
    /// Every channel is convolved by itself, at every pixel.
    Depthwise(Geometry),
}

/// The sizes of a convolution with a square kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Geometry {
    pub(super) batch: usize,
    pub(super) inputs: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) outputs: usize,
    /// The kernel's side.
    pub(super) kernel: usize,
    pub(super) stride: usize,
    pub(super) padding: usize,
    pub(super) out_height: usize,
    pub(super) out_width: usize,
}

impl Way {
    /// Of x [batch, inputs, height, width] and a weight [outputs, inputs / groups, k, k]; `None`: neither of them.
    pub(super) fn of(x: &FlexTensor, weight: &FlexTensor, conv: Conv) -> Option<Self> {
        let Conv { stride, padding, groups } = conv;
        let (&[batch, inputs, height, width], &[outputs, seen, kernel, other]) = (&x.shape()[..], &weight.shape()[..])
        else {
            return None;
        };
        let real = matches!(x.dtype(), DType::F32 | DType::F64) && x.dtype() == weight.dtype();
        let fits = kernel == other && height.min(width) + 2 * padding >= kernel;
        if !real || !fits || [batch, inputs, height, width, outputs, kernel, stride].contains(&0) {
            return None;
        }
        let out = |size: usize| (size + 2 * padding - kernel) / stride + 1;
        let (out_height, out_width) = (out(height), out(width));
        let geometry =
            Geometry { batch, inputs, height, width, outputs, kernel, stride, padding, out_height, out_width };
        let alone = groups == inputs && outputs == inputs && seen == 1;
        match groups {
            1 if seen == inputs => Some(Self::Dense(geometry)),
            // Its gradient is a convolution with kernel - 1 - padding zeros around.
            _ if alone && stride == 1 && padding < kernel => Some(Self::Depthwise(geometry)),
            _ => None,
        }
    }
}

impl Geometry {
    /// Values of one channel of an input image.
    pub(super) fn plane(&self) -> usize {
        self.height * self.width
    }

    /// Values of one channel of an output image.
    pub(super) fn pixels(&self) -> usize {
        self.out_height * self.out_width
    }

    /// Values an output pixel is computed from.
    pub(super) fn taps(&self) -> usize {
        self.inputs * self.kernel * self.kernel
    }

    /// The shape of x.
    pub(super) fn input_shape(&self) -> [usize; 4] {
        [self.batch, self.inputs, self.height, self.width]
    }

    /// The shape of the output.
    pub(super) fn output_shape(&self) -> [usize; 4] {
        [self.batch, self.outputs, self.out_height, self.out_width]
    }
}
