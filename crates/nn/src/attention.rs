//! The classifiers' attention as one step of the gradient graph, with a hand-written backward pass.
//!
//! Beside what [`fused::attend`](crate::fused) does: a mask of padding, tokens that do not see themselves, ReLU in place of the softmax, and
//! dropout of the weights.

// burn marks its LibTorch backend deprecated; `device.rs` says why we use it.
#![cfg_attr(feature = "torch", allow(deprecated))]

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Shape, Slice, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::classifier::Pass;
use crate::vision::layers::multiply;

/// What there is to know of an attention beside its tensors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttentionSpec {
    /// Heads, side by side in the last dimension.
    pub(crate) heads: usize,
    /// Which tokens a token sees.
    pub(crate) mask: Mask,
    /// How it turns scores into weights.
    pub(crate) attention: Attention,
    /// Share of the weights dropped in training.
    pub(crate) dropout: f64,
}

/// How attention turns scores into weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attention {
    /// exp of each score over their sum.
    #[default]
    Softmax,
    /// max(score, 0), not normalised.
    Relu,
}

/// Which tokens a token sees, padding aside. The last query is the last key's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mask {
    /// All tokens.
    None,
    /// Itself and the tokens before it.
    Causal,
    /// All tokens but itself.
    NotSelf,
}

impl Mask {
    /// What is added to scores [l, m] so that nothing else is seen: 0 or minus infinity; `None` where all is seen.
    fn added(self, l: usize, m: usize) -> Option<TensorData> {
        let hidden: fn(usize, usize) -> bool = match self {
            Self::None => return None,
            Self::Causal => |key, own| key > own,
            Self::NotSelf => |key, own| key == own,
        };
        let value = |i: usize| if hidden(i % m, i / m + m - l) { f32::NEG_INFINITY } else { 0.0 };
        Some(TensorData::new((0..l * m).map(value).collect::<Vec<f32>>(), [1, 1, l, m]))
    }
}

/// weights(q k^T) v for each sequence and head, where weights are softmax or ReLU: q [batch, l, d], keys beside values
/// [batch, m, 2d] -> [batch, l, d]. Scores are not scaled. `padding` [batch, m] is added to all scores of a key; in training, weights are
/// dropped.
pub(crate) fn attend(
    q: Tensor<3>,
    keys_values: Tensor<3>,
    padding: Option<Tensor<2>>,
    spec: AttentionSpec,
    pass: &Pass,
) -> Tensor<3> {
    #[cfg(feature = "torch")]
    {
        let rate = if pass.is_training() { spec.dropout } else { 0.0 };
        if let Some(mixed) = crate::native::attend(&q, &keys_values, padding.as_ref(), rate, spec) {
            return mixed;
        }
    }
    let ([batch, l, _], m) = (q.dims(), keys_values.dims()[1]);
    let kept = pass.kept(&q, [batch, spec.heads, l, m], spec.dropout);
    // The macro knows no optional tensors: any tensor stands for one that is not there.
    let there = [padding.is_some(), kept.is_some()];
    let (q, keys_values) = (q.into_dispatch(), keys_values.into_dispatch());
    let padding = padding.map_or_else(|| q.clone(), Tensor::into_dispatch);
    let kept = kept.map_or_else(|| q.clone(), Tensor::into_dispatch);
    Tensor::from_dispatch(<Dispatch as Attend>::attend(q, keys_values, padding, kept, there, spec))
}

/// [`attend`] of tokens x [batch, l, inputs] with each other, whose queries, keys and values are `weight` [3d, inputs] times x; `scaled` is
/// applied to the weights of the queries, the smallest place where a factor of the scores can go.
pub(crate) fn self_attend(
    x: Tensor<3>,
    weight: Tensor<2>,
    scaled: impl Fn(Tensor<2>) -> Tensor<2>,
    spec: AttentionSpec,
    pass: &Pass,
) -> Tensor<3> {
    let d = weight.dims()[0] / 3;
    #[cfg(feature = "torch")]
    {
        let rate = if pass.is_training() { spec.dropout } else { 0.0 };
        if let Some(parts) = crate::native::split(&weight, &[d; 3])
            && let [q, k, v] = &parts[..]
            && let Some(mixed) = crate::native::self_attend(&x, [&scaled(q.clone()), k, v], rate, spec)
        {
            return mixed;
        }
    }
    let (q, keys_values) = (scaled(weight.clone().narrow(0, 0, d)), weight.narrow(0, d, 2 * d));
    attend(multiply(x.clone(), q, None), multiply(x, keys_values, None), None, spec, pass)
}

#[backend_extension(Flex, LibTorch: cfg(feature = "torch"), Autodiff)]
trait Attend: Backend {
    fn attend(
        q: FloatTensor<Self>,
        keys_values: FloatTensor<Self>,
        padding: FloatTensor<Self>,
        kept: FloatTensor<Self>,
        there: [bool; 2],
        spec: AttentionSpec,
    ) -> FloatTensor<Self>;
}

impl Attend for Flex {
    fn attend(
        q: FloatTensor<Self>,
        keys_values: FloatTensor<Self>,
        padding: FloatTensor<Self>,
        kept: FloatTensor<Self>,
        there: [bool; 2],
        spec: AttentionSpec,
    ) -> FloatTensor<Self> {
        forward::<Self>(q, keys_values, there[0].then_some(padding), there[1].then_some(kept), spec).0
    }
}

#[cfg(feature = "torch")]
impl Attend for burn::backend::LibTorch {
    fn attend(
        q: FloatTensor<Self>,
        keys_values: FloatTensor<Self>,
        padding: FloatTensor<Self>,
        kept: FloatTensor<Self>,
        there: [bool; 2],
        spec: AttentionSpec,
    ) -> FloatTensor<Self> {
        forward::<Self>(q, keys_values, there[0].then_some(padding), there[1].then_some(kept), spec).0
    }
}

impl<B: Backend, C: CheckpointStrategy> Attend for Autodiff<B, C> {
    fn attend(
        q: FloatTensor<Self>,
        keys_values: FloatTensor<Self>,
        padding: FloatTensor<Self>,
        kept: FloatTensor<Self>,
        there: [bool; 2],
        spec: AttentionSpec,
    ) -> FloatTensor<Self> {
        let parents = [q.node(), keys_values.node()];
        let [q, keys_values] = [q, keys_values].map(|tensor| tensor.into_primitive());
        let [padding, kept] = [padding, kept].map(|tensor| tensor.into_primitive());
        let (padding, kept) = (there[0].then_some(padding), there[1].then_some(kept));
        match Node.prepare::<C>(parents).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let (output, saved) = forward::<B>(q, keys_values, padding, kept, spec);
                prepared.finish((saved, spec), output)
            }
            OpsKind::UnTracked(prepared) => prepared.finish(forward::<B>(q, keys_values, padding, kept, spec).0),
        }
    }
}

/// What the backward pass needs: queries [batch, heads, l, w], keys and values [batch, heads, m, w], weights
/// [batch, heads, l, m] before dropout, and what dropout kept.
#[derive(Debug, Clone)]
struct Saved<T> {
    q: T,
    k: T,
    v: T,
    weights: T,
    kept: Option<T>,
}

fn forward<B: Backend>(
    q: FloatTensor<B>,
    keys_values: FloatTensor<B>,
    padding: Option<FloatTensor<B>>,
    kept: Option<FloatTensor<B>>,
    spec: AttentionSpec,
) -> (FloatTensor<B>, Saved<FloatTensor<B>>) {
    let q = split::<B>(q, 1, spec.heads).remove(0);
    let mut keys_values = split::<B>(keys_values, 2, spec.heads);
    let (v, k) = (keys_values.remove(1), keys_values.remove(0));
    let mut scores = B::float_matmul(q.clone(), B::float_swap_dims(k.clone(), 2, 3));
    if let Some(padding) = padding {
        let shape = padding.shape();
        scores = B::float_add(scores, B::float_reshape(padding, Shape::new([shape[0], 1, 1, shape[1]])));
    }
    let shape = scores.shape();
    if let Some(mask) = spec.mask.added(shape[2], shape[3]) {
        let mask = B::float_from_data(mask.convert_dtype(scores.dtype()), &scores.device());
        scores = B::float_add(scores, mask);
    }
    let weights = match spec.attention {
        Attention::Softmax => B::softmax(scores, 3),
        Attention::Relu => B::relu(scores),
    };
    let used = match &kept {
        Some(kept) => B::float_mul(weights.clone(), kept.clone()),
        None => weights.clone(),
    };
    let output = join::<B>(vec![B::float_matmul(used, v.clone())]);
    (output, Saved { q, k, v, weights, kept })
}

/// The gradients of the queries and of keys beside values.
fn backward<B: Backend>(
    saved: Saved<FloatTensor<B>>,
    gradient: FloatTensor<B>,
    spec: AttentionSpec,
) -> [FloatTensor<B>; 2] {
    let Saved { q, k, v, weights, kept } = saved;
    let transposed = |x: FloatTensor<B>| B::float_swap_dims(x, 2, 3);
    let dropped = |x: FloatTensor<B>| match &kept {
        Some(kept) => B::float_mul(x, kept.clone()),
        None => x,
    };
    let gradient = split::<B>(gradient, 1, spec.heads).remove(0);
    let dv = B::float_matmul(transposed(dropped(weights.clone())), gradient.clone());
    let d_weights = dropped(B::float_matmul(gradient, transposed(v)));
    let d_scores = match spec.attention {
        Attention::Relu => B::relu_backward(weights, d_weights),
        Attention::Softmax => {
            // The softmax's gradient: p (g - sum p g).
            let weighted = B::float_mul(weights.clone(), d_weights);
            let total = B::float_sum_dim(weighted.clone(), 3);
            B::float_sub(weighted, B::float_mul(weights, total))
        }
    };
    let dq = B::float_matmul(d_scores.clone(), k);
    let dk = B::float_matmul(transposed(d_scores), q);
    [join::<B>(vec![dq]), join::<B>(vec![dk, dv])]
}

#[derive(Debug)]
struct Node;

impl<B: Backend> Backward<B, 2> for Node {
    type State = (Saved<FloatTensor<B>>, AttentionSpec);

    fn backward(self, ops: Ops<Self::State, 2>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let (saved, spec) = ops.state;
        let computed = backward::<B>(saved, gradient, spec);
        for (parent, gradient) in ops.parents.into_iter().zip(computed) {
            if let Some(parent) = parent {
                gradients.register::<B>(parent.id, gradient);
            }
        }
    }
}

/// [batch, length, parts * d] -> for each part [batch, heads, length, d/heads], in one copy.
fn split<B: Backend>(x: FloatTensor<B>, parts: usize, heads: usize) -> Vec<FloatTensor<B>> {
    let shape = x.shape();
    let (batch, length, width) = (shape[0], shape[1], shape[2] / parts / heads);
    let x = B::float_reshape(x, Shape::new([batch, length, parts, heads, width]));
    let x = B::float_permute(x, &[2, 0, 3, 1, 4]);
    // Rows one after the other, so that the multiplications need not copy each part by itself.
    let x = B::float_reshape(x, Shape::new([parts * batch, heads, length, width]));
    let part = |part: usize| B::float_slice(x.clone(), &[Slice::from(part * batch..(part + 1) * batch)]);
    (0..parts).map(part).collect()
}

/// The reverse of [`split`].
fn join<B: Backend>(parts: Vec<FloatTensor<B>>) -> FloatTensor<B> {
    let (count, shape) = (parts.len(), parts[0].shape());
    let (batch, heads, length, width) = (shape[0], shape[1], shape[2], shape[3]);
    let x = match count {
        1 => parts.into_iter().next().expect("one part"),
        _ => B::float_cat(parts, 0),
    };
    let x = B::float_reshape(x, Shape::new([count, batch, heads, length, width]));
    let x = B::float_permute(x, &[1, 3, 0, 2, 4]);
    B::float_reshape(x, Shape::new([batch, length, count * heads * width]))
}
