//! What records the operations that gradients are computed from.

use burn::tensor::Tensor;

use crate::NnError;
#[cfg(feature = "torch")]
use crate::native;

/// What records the operations that gradients are computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Autodiff {
    /// Nothing: prediction.
    Off,
    /// burn's autodiff.
    Burn,
    /// LibTorch's own autograd, where the network computes there; elsewhere burn's autodiff. Its backward passes are single kernels where
    /// burn's are composed of several: of convolutions and norms above all.
    LibTorch,
}

impl Autodiff {
    /// x as a leaf: everything computed from it is recorded.
    pub(crate) fn leaf<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Off => x,
            Self::Burn => x.autodiff().require_grad(),
            Self::LibTorch => {
                #[cfg(feature = "torch")]
                if let Some(leaf) = native::leaf(&x) {
                    return leaf;
                }
                Self::Burn.leaf(x)
            }
        }
    }

    /// Cuts `flat` into parts of these lengths: the leaves to take gradients with respect to, which joined are `flat`, and the parts.
    pub(crate) fn parts(self, flat: &Tensor<1>, lengths: &[usize]) -> (Vec<Tensor<1>>, Vec<Tensor<1>>) {
        #[cfg(feature = "torch")]
        {
            let whole = match self {
                Self::Off => Some(flat.clone()),
                Self::Burn => None,
                Self::LibTorch => native::leaf(flat),
            };
            if let Some(whole) = whole
                && let Some(parts) = native::split(&whole, lengths)
            {
                return (vec![whole], parts);
            }
        }
        // Each part is a leaf of its own: the gradient of a cut would be as long as all parts, once for each.
        let mut start = 0;
        let part = |length: &usize| {
            let part = flat.clone().narrow(0, start, *length);
            start += length;
            self.leaf(part)
        };
        let leaves: Vec<Tensor<1>> = lengths.iter().map(part).collect();
        (leaves.clone(), leaves)
    }

    /// The loss \[1\] without its history, and its gradients with respect to the leaves, zero where the loss does not depend on one.
    pub(crate) fn gradients<const D: usize>(
        self,
        loss: Tensor<1>,
        leaves: &[Tensor<D>],
    ) -> Result<(Tensor<1>, Vec<Tensor<D>>), NnError> {
        #[cfg(feature = "torch")]
        if let (Self::LibTorch, Some(found)) = (self, native::backward(&loss, leaves)) {
            return found;
        }
        let mut gradients = loss.backward();
        let of = |leaf: &Tensor<D>| {
            leaf.grad_remove(&mut gradients).unwrap_or_else(|| leaf.clone().without_autodiff().zeros_like())
        };
        Ok((loss.without_autodiff(), leaves.iter().map(of).collect()))
    }
}
