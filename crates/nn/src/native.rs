//! LibTorch's own operations where burn would compose several, and its own memory of what gradients need.
//!
//! Each function gives `None` for tensors that are not LibTorch's, or whose history burn's autodiff keeps: there, what is composed is used.

// burn marks its LibTorch backend deprecated; `device.rs` says why we use it.
#![allow(deprecated)]

use std::cell::RefCell;

use burn::backend::LibTorch;
use burn::backend::libtorch::TchTensor;
use burn::tensor::Tensor;
use tch::{Kind, TchError};

use crate::NnError;
use crate::mixing::{Attention, Mixing, Visible};

thread_local! {
    /// What LibTorch may have remembered since the last backward pass. burn writes a result over an operand that nobody else holds, which
    /// would spoil what is remembered of it: so we hold it.
    static HELD: RefCell<Vec<TchTensor>> = const { RefCell::new(Vec::new()) };
}

/// The tensor as LibTorch has it.
fn own<const D: usize>(x: &Tensor<D>) -> Option<tch::Tensor> {
    let held = x.clone().try_into_primitive::<LibTorch>().ok()?;
    let own = held.tensor.shallow_clone();
    if own.requires_grad() {
        HELD.with_borrow_mut(|all| all.push(held));
    }
    Some(own)
}

/// A tensor whose memory nothing else of burn's knows of.
fn tensor<const D: usize>(x: tch::Tensor) -> Tensor<D> {
    Tensor::from_primitive::<LibTorch>(TchTensor::new(x))
}

/// x as the beginning of a history: LibTorch remembers what is computed from it.
pub(crate) fn leaf<const D: usize>(x: &Tensor<D>) -> Option<Tensor<D>> {
    Some(tensor(own(x)?.detach().set_requires_grad(true)))
}

/// The loss \[1\] without its history, and its gradients with respect to the leaves, zero where one played no part. An error where an
/// operation overwrote what LibTorch remembered.
#[allow(clippy::type_complexity)]
pub(crate) fn backward<const D: usize>(
    loss: &Tensor<1>,
    leaves: &[Tensor<D>],
) -> Option<Result<(Tensor<1>, Vec<Tensor<D>>), NnError>> {
    let (loss, leaves) = (own(loss)?, leaves.iter().map(own).collect::<Option<Vec<_>>>()?);
    let of = |leaf: tch::Tensor| -> Result<Tensor<D>, TchError> {
        let gradient = leaf.f_grad()?;
        Ok(tensor(if gradient.defined() { gradient } else { leaf.f_detach()?.f_zeros_like()? }))
    };
    let all = || -> Result<_, TchError> {
        let done = loss.f_backward();
        HELD.with_borrow_mut(Vec::clear);
        done?;
        Ok((tensor(loss.f_detach()?), leaves.into_iter().map(of).collect::<Result<_, _>>()?))
    };
    // The first line says what; C++'s stack is below.
    Some(all().map_err(|e| NnError::Computation(e.to_string().lines().next().unwrap_or_default().to_string())))
}

/// x W^T + b of a weight [outputs, inputs].
pub(crate) fn linear<const D: usize>(x: &Tensor<D>, weight: &Tensor<2>, bias: Option<&Tensor<1>>) -> Option<Tensor<D>> {
    let bias = bias.map(|bias| own(bias).ok_or(())).transpose().ok()?;
    Some(tensor(own(x)?.linear(&own(weight)?, bias)))
}

/// LayerNorm over the last dimension.
pub(crate) fn layer_norm<const D: usize>(
    x: &Tensor<D>,
    weight: &Tensor<1>,
    bias: &Tensor<1>,
    eps: f64,
) -> Option<Tensor<D>> {
    let width = x.dims()[D - 1] as i64;
    Some(tensor(own(x)?.layer_norm([width], Some(own(weight)?), Some(own(bias)?), eps, true)))
}

/// BatchNorm by the batch's own statistics: the output, the mean and the unbiased variance of each channel.
pub(crate) fn batch_norm(
    x: &Tensor<4>,
    weight: &Tensor<1>,
    bias: &Tensor<1>,
    eps: f64,
) -> Option<(Tensor<4>, Tensor<1>, Tensor<1>)> {
    let (weight, bias) = (own(weight)?, own(bias)?);
    let (mean, variance) = (weight.detach().zeros_like(), weight.detach().zeros_like());
    // Running statistics that take in a batch's with weight 1 are the batch's.
    let y = own(x)?.batch_norm(Some(&weight), Some(&bias), Some(&mean), Some(&variance), true, 1.0, eps, true);
    Some((tensor(y), tensor(mean), tensor(variance)))
}

/// BatchNorm by these statistics.
pub(crate) fn batch_norm_by(
    x: &Tensor<4>,
    [weight, bias, mean, variance]: [&Tensor<1>; 4],
    eps: f64,
) -> Option<Tensor<4>> {
    let [weight, bias, mean, variance] = [own(weight)?, own(bias)?, own(mean)?, own(variance)?];
    Some(tensor(own(x)?.batch_norm(Some(weight), Some(bias), Some(mean), Some(variance), false, 0.0, eps, true)))
}

/// GELU by tanh.
pub(crate) fn gelu_by_tanh<const D: usize>(x: &Tensor<D>) -> Option<Tensor<D>> {
    Some(tensor(own(x)?.gelu("tanh")))
}

/// x with each value zeroed with probability `rate` and the others scaled up.
pub(crate) fn dropout<const D: usize>(x: &Tensor<D>, rate: f64) -> Option<Tensor<D>> {
    Some(tensor(own(x)?.dropout(rate, true)))
}

/// [`mix`](crate::mixing::mix), with weights dropped at this rate.
pub(crate) fn mix(
    q: &Tensor<3>,
    keys_values: &Tensor<3>,
    mask: Option<&Tensor<2>>,
    rate: f64,
    mixing: Mixing,
) -> Option<Tensor<3>> {
    let ([batch, l, d], m) = (q.dims().map(|size| size as i64), keys_values.dims()[1] as i64);
    let (q, keys_values) = (own(q)?, own(keys_values)?);
    let mask = mask.map(|mask| own(mask).ok_or(())).transpose().ok()?;
    let heads = mixing.heads as i64;
    let q = q.reshape([batch, l, heads, d / heads]).transpose(1, 2);
    let parts = keys_values.reshape([batch, m, 2, heads, d / heads]).permute([2, 0, 3, 1, 4]).unbind(0);
    let [k, v] = <[tch::Tensor; 2]>::try_from(parts).ok()?;
    let hidden = hidden(mixing.visible, l, m, (q.kind(), q.device()));
    let mask = mask.map(|mask| mask.reshape([batch, 1, 1, m]));
    let added = match (hidden, mask) {
        (Some(hidden), Some(mask)) => Some(hidden + mask),
        (hidden, mask) => hidden.or(mask),
    };
    let y = match mixing.attention {
        Attention::Softmax => tch::Tensor::scaled_dot_product_attention(&q, &k, &v, added, rate, false, 1.0, false),
        Attention::Relu => {
            let scores = q.matmul(&k.transpose(2, 3));
            let scores = match added {
                Some(added) => scores + added,
                None => scores,
            };
            scores.relu().dropout(rate, rate > 0.0).matmul(&v)
        }
    };
    Some(tensor(y.transpose(1, 2).reshape([batch, l, d])))
}

/// What is added to scores [l, m] so that only visible tokens are seen.
fn hidden(visible: Visible, l: i64, m: i64, options: (Kind, tch::Device)) -> Option<tch::Tensor> {
    let scores = |value: f64| tch::Tensor::full([l, m], value, options);
    match visible {
        Visible::All => None,
        Visible::Before => Some(scores(f64::NEG_INFINITY).triu(m - l + 1)),
        Visible::Others => {
            let scores = scores(0.0);
            let _ = scores.diagonal(m - l, 0, 1).fill_(f64::NEG_INFINITY);
            Some(scores)
        }
    }
}
