//! LibTorch's own operations where burn would compose several, and its own autograd.
//!
//! Each function gives `None` for tensors that are not LibTorch's, or whose history burn's autodiff keeps: there, what is composed is used.

// burn marks its LibTorch backend deprecated; `device.rs` says why we use it.
#![allow(deprecated)]

use std::cell::RefCell;

use burn::backend::LibTorch;
use burn::backend::libtorch::TchTensor;
use burn::tensor::{Int, Tensor};
use tch::{Kind, TchError};

use crate::NnError;
use crate::attention::{Attention, AttentionSpec, Mask};
use crate::classifier::{Optimiser, Rates};
use crate::libtorch;

thread_local! {
    /// Operands LibTorch's autograd may need since the last backward pass. burn reuses the buffer of an operand without other references in
    /// place, which would overwrite values that the gradient needs; a reference kept here prevents that.
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

/// x cut into parts of these lengths, in one operation whose gradient is one too.
pub(crate) fn split<const D: usize>(x: &Tensor<D>, lengths: &[usize]) -> Option<Vec<Tensor<D>>> {
    let held = x.clone().try_into_primitive::<LibTorch>().ok()?;
    let lengths: Vec<i64> = lengths.iter().map(|length| *length as i64).collect();
    let parts = held.tensor.split_with_sizes(lengths, 0).into_iter();
    Some(parts.map(|part| Tensor::from_primitive::<LibTorch>(TchTensor::partial(part, held.storage.clone()))).collect())
}

/// Values on the first GPU. The host does not wait until they are there: up to 64 KiB not at all, beyond that for what the GPU was doing.
pub(crate) fn put<T: tch::kind::Element>(values: &[T], shape: &[usize]) -> TchTensor {
    let shape: Vec<i64> = shape.iter().map(|size| *size as i64).collect();
    let values = tch::Tensor::from_slice(values).to_device_(tch::Device::Cuda(0), T::KIND, true, false);
    TchTensor::new(values.reshape(shape))
}

/// LibTorch's tensor of integers.
pub(crate) fn integers<const D: usize>(x: &Tensor<D, Int>) -> Option<tch::Tensor> {
    Some(x.clone().try_into_primitive::<LibTorch>().ok()?.tensor)
}

/// LibTorch's tensor of a constant.
pub(crate) fn constant<const D: usize>(x: &Tensor<D>) -> Option<tch::Tensor> {
    Some(x.clone().try_into_primitive::<LibTorch>().ok()?.tensor)
}

/// [`Optimiser::update`] in one kernel, in place.
pub(crate) fn update(
    optimiser: Optimiser,
    weights: &Tensor<1>,
    gradient: &Tensor<1>,
    memory: &[Tensor<1>],
    rates: &Rates,
) -> Option<Result<(), NnError>> {
    let rates = constant(rates.on_device.as_ref()?)?;
    let memory = memory.iter().map(constant).collect::<Option<Vec<_>>>()?;
    let rates = [&rates.select(0, 0), &rates.select(0, 1)];
    Some(libtorch::update(optimiser, &constant(weights)?, &constant(gradient)?, &memory, rates))
}

/// The mean cross-entropy \[1\] of scores \[batch, classes\] and labels \[batch, 1\].
pub(crate) fn cross_entropy(scores: &Tensor<2>, labels: &Tensor<2, Int>) -> Option<Tensor<1>> {
    let (scores, labels) = (own(scores)?, integers(labels)?.reshape(-1));
    let loss = scores.cross_entropy_loss::<tch::Tensor>(&labels, None, tch::Reduction::Mean, -100, 0.0);
    Some(tensor(loss.reshape(1)))
}

/// The loss \[1\] without its history, and its gradients with respect to the leaves, zero where one played no part. An error where an
/// operation overwrote what LibTorch remembered.
#[allow(clippy::type_complexity)]
pub(crate) fn backward<const D: usize>(
    loss: &Tensor<1>,
    leaves: &[Tensor<D>],
) -> Option<Result<(Tensor<1>, Vec<Tensor<D>>), NnError>> {
    let (loss, leaves) = (own(loss)?, leaves.iter().map(own).collect::<Option<Vec<_>>>()?);
    let of = |(leaf, gradient): (&tch::Tensor, tch::Tensor)| -> Result<Tensor<D>, TchError> {
        Ok(tensor(if gradient.defined() { gradient } else { leaf.f_detach()?.f_zeros_like()? }))
    };
    let all = || -> Result<_, TchError> {
        let gradients = tch::Tensor::f_run_backward(&[&loss], &leaves, false, false);
        HELD.with_borrow_mut(Vec::clear);
        let gradients = leaves.iter().zip(gradients?).map(of).collect::<Result<_, _>>()?;
        Ok((tensor(loss.f_detach()?), gradients))
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

/// [`channels_last`](crate::layers::channels_last), on a GPU.
pub(crate) fn channels_last(x: &Tensor<4>) -> Option<Tensor<4>> {
    let x = own(x)?;
    x.device().is_cuda().then(|| tensor(x.permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2])))
}

/// BatchNorm by the batch's own statistics, of which the running ones take in this share, where they lie.
pub(crate) fn batch_norm(
    x: &Tensor<4>,
    [weight, bias, mean, variance]: [&Tensor<1>; 4],
    share: f64,
    eps: f64,
) -> Option<Tensor<4>> {
    let [weight, bias, mean, variance] = [own(weight)?, own(bias)?, own(mean)?, own(variance)?];
    Some(tensor(own(x)?.batch_norm(Some(weight), Some(bias), Some(mean), Some(variance), true, share, eps, true)))
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

/// [`attend`](crate::attention::attend), with weights dropped at this rate.
pub(crate) fn attend(
    q: &Tensor<3>,
    keys_values: &Tensor<3>,
    padding: Option<&Tensor<2>>,
    rate: f64,
    spec: AttentionSpec,
) -> Option<Tensor<3>> {
    let ([batch, l, d], m) = (q.dims().map(|size| size as i64), keys_values.dims()[1] as i64);
    let (q, keys_values) = (own(q)?, own(keys_values)?);
    let padding = padding.map(|padding| own(padding).ok_or(())).transpose().ok()?;
    let heads = spec.heads as i64;
    let q = q.reshape([batch, l, heads, d / heads]).transpose(1, 2);
    let parts = keys_values.reshape([batch, m, 2, heads, d / heads]).permute([2, 0, 3, 1, 4]).unbind(0);
    let [k, v] = <[tch::Tensor; 2]>::try_from(parts).ok()?;
    let y = weigh([&q, &k, &v], padding.map(|padding| padding.reshape([batch, 1, 1, m])), rate, spec);
    Some(tensor(y.transpose(1, 2).reshape([batch, l, d])))
}

/// [`self_attend`](crate::attention::self_attend) with the weights of queries, keys and values given each [d, inputs].
pub(crate) fn self_attend(
    x: &Tensor<3>,
    weights: [&Tensor<2>; 3],
    rate: f64,
    spec: AttentionSpec,
) -> Option<Tensor<3>> {
    let ([batch, l, _], d) = (x.dims().map(|size| size as i64), weights[0].dims()[0] as i64);
    let heads = spec.heads as i64;
    let x = own(x)?;
    // One product each: of one for all three, the gradients would have to be joined.
    let project = |weight: &Tensor<2>| {
        let y = x.linear::<tch::Tensor>(&own(weight)?, None);
        Some(y.reshape([batch, l, heads, d / heads]).transpose(1, 2))
    };
    let [q, k, v] = weights;
    let y = weigh([&project(q)?, &project(k)?, &project(v)?], None, rate, spec);
    Some(tensor(y.transpose(1, 2).reshape([batch, l, d])))
}

/// weights(q k^T) v of q [.., .., l, w], k and v [.., .., m, w]; `padding` is added to the scores.
fn weigh([q, k, v]: [&tch::Tensor; 3], padding: Option<tch::Tensor>, rate: f64, spec: AttentionSpec) -> tch::Tensor {
    let (l, m) = (q.size()[2], k.size()[2]);
    let added = match (hidden(spec.mask, l, m, (q.kind(), q.device())), padding) {
        (Some(hidden), Some(padding)) => Some(hidden + padding),
        (hidden, padding) => hidden.or(padding),
    };
    match (spec.attention, spec.mask) {
        (Attention::Softmax, Mask::None | Mask::Causal) => {
            tch::Tensor::scaled_dot_product_attention(q, k, v, added, rate, false, 1.0, false)
        }
        // Where no token sees itself, LibTorch's fused kernel is slower than its parts: an image's class token is the 65th, and it
        // works in tiles of 64.
        (attention, _) => {
            let scores = q.matmul(&k.transpose(2, 3));
            let scores = match added {
                Some(added) => scores + added,
                None => scores,
            };
            let weights = match attention {
                Attention::Softmax => scores.softmax(-1, None),
                Attention::Relu => scores.relu(),
            };
            weights.dropout(rate, rate > 0.0).matmul(v)
        }
    }
}

/// What is added to scores [l, m] so that only visible tokens are seen.
fn hidden(mask: Mask, l: i64, m: i64, options: (Kind, tch::Device)) -> Option<tch::Tensor> {
    let scores = |value: f64| tch::Tensor::full([l, m], value, options);
    match mask {
        Mask::None => None,
        Mask::Causal => Some(scores(f64::NEG_INFINITY).triu(m - l + 1)),
        Mask::NotSelf => {
            let scores = scores(0.0);
            let _ = scores.diagonal(m - l, 0, 1).fill_(f64::NEG_INFINITY);
            Some(scores)
        }
    }
}
