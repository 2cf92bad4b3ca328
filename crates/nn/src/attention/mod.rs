//! Attention as one node of the gradient graph.
//!
//! Large networks have their keys beside their values and compute with a backend's matrix products; padding may be hidden, weights dropped,
//! and ReLU may stand in place of the softmax. Small encoders have keys and values apart, and on the CPU go through [`loops`].

mod loops;

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Flex, TensorMetadata};
use burn::tensor::{Shape, Slice, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::classifier::Pass;
use crate::cpu::by_dtype;
use crate::layers::multiply;
use crate::operation::{Computed, Floats, InputGradients, Operation, apply, take};

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
    let operation = Attend { spec, apart: false, padded: padding.is_some(), dropped: kept.is_some() };
    let mut inputs = vec![q.into_dispatch(), keys_values.into_dispatch()];
    inputs.extend(padding.map(Tensor::into_dispatch));
    inputs.extend(kept.map(Tensor::into_dispatch));
    let [y] = apply(operation, inputs);
    Tensor::from_dispatch(y)
}

/// softmax(q k^T) v for each string and head, of keys and values apart: q [batch, l, d], k and v [batch, m, d] -> [batch, l, d]. Scores are
/// not scaled.
pub(crate) fn attend_apart(q: Tensor<3>, k: Tensor<3>, v: Tensor<3>, heads: usize, mask: Mask) -> Tensor<3> {
    let spec = AttentionSpec { heads, mask, attention: Attention::Softmax, dropout: 0.0 };
    let operation = Attend { spec, apart: true, padded: false, dropped: false };
    let [y] = apply(operation, [q, k, v].map(Tensor::into_dispatch).into());
    Tensor::from_dispatch(y)
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

#[derive(Debug, Clone)]
struct Attend {
    spec: AttentionSpec,
    /// Whether keys and values are two tensors.
    apart: bool,
    /// Whether there is a mask of padding.
    padded: bool,
    /// Whether weights are dropped.
    dropped: bool,
}

impl Attend {
    /// Whether the CPU's loops can do it.
    fn has_loops(&self) -> bool {
        let AttentionSpec { mask, attention, .. } = self.spec;
        self.apart && !self.padded && !self.dropped && mask != Mask::NotSelf && attention == Attention::Softmax
    }
}

/// Inputs: queries [batch, l, d]; keys beside values [batch, m, 2d], or each [batch, m, d]; where there are, the mask of padding [batch, m] and
/// what dropout multiplies weights with [batch, heads, l, m].
///
/// Saved: queries [batch, heads, l, w], keys and values [batch, heads, m, w], weights [batch, heads, l, m] before dropout, and what dropout
/// multiplied them with. The loops save queries, keys and values as they were given.
impl Operation for Attend {
    fn differentiable(&self) -> usize {
        if self.apart { 3 } else { 2 }
    }

    fn forward<B: Backend>(&self, inputs: Floats<B>, _: bool) -> Computed<FloatTensor<B>> {
        let spec = self.spec;
        let mut inputs = inputs.into_iter();
        let [q] = take(&mut inputs);
        let [q] = split::<B, 1>(q, spec.heads);
        let [k, v] = match self.apart {
            true => {
                let [k, v] = take(&mut inputs).map(|x| split::<B, 1>(x, spec.heads));
                [k, v].map(|[x]| x)
            }
            false => {
                let [keys_values] = take(&mut inputs);
                split::<B, 2>(keys_values, spec.heads)
            }
        };
        let mut scores = B::float_matmul(q.clone(), B::float_swap_dims(k.clone(), 2, 3));
        if self.padded {
            let [padding] = take(&mut inputs);
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
        let kept = inputs.next();
        let used = match &kept {
            Some(kept) => B::float_mul(weights.clone(), kept.clone()),
            None => weights.clone(),
        };
        let output = join::<B, 1>([B::float_matmul(used, v.clone())]);
        Computed { outputs: vec![output], saved: [q, k, v, weights].into_iter().chain(kept).collect() }
    }

    fn backward<B: Backend>(&self, saved: Floats<B>, gradient: FloatTensor<B>, _: &[bool]) -> InputGradients<B> {
        let mut saved = saved.into_iter();
        let [q, k, v, weights] = take(&mut saved);
        let kept = saved.next();
        let transposed = |x: FloatTensor<B>| B::float_swap_dims(x, 2, 3);
        let dropped = |x: FloatTensor<B>| match &kept {
            Some(kept) => B::float_mul(x, kept.clone()),
            None => x,
        };
        let [gradient] = split::<B, 1>(gradient, self.spec.heads);
        let dv = B::float_matmul(transposed(dropped(weights.clone())), gradient.clone());
        let d_weights = dropped(B::float_matmul(gradient, transposed(v)));
        let d_scores = match self.spec.attention {
            Attention::Relu => B::relu_backward(weights, d_weights),
            Attention::Softmax => {
                // The softmax's gradient: p (g - sum p g).
                let weighted = B::float_mul(weights.clone(), d_weights);
                let total = B::float_sum_dim(weighted.clone(), 3);
                B::float_sub(weighted, B::float_mul(weights, total))
            }
        };
        let dq = join::<B, 1>([B::float_matmul(d_scores.clone(), k)]);
        let dk = B::float_matmul(transposed(d_scores), q);
        match self.apart {
            true => vec![Some(dq), Some(join::<B, 1>([dk])), Some(join::<B, 1>([dv]))],
            false => vec![Some(dq), Some(join::<B, 2>([dk, dv]))],
        }
    }

    fn forward_on_cpu(&self, inputs: Floats<Flex>, save: bool) -> Computed<FlexTensor> {
        if !self.has_loops() {
            return self.forward::<Flex>(inputs, save);
        }
        let [q, k, v] = take(&mut inputs.into_iter());
        let (output, weights) = by_dtype!(q, loops::forward([&q, &k, &v], self.spec));
        Computed { outputs: vec![output], saved: vec![q, k, v, weights] }
    }

    fn backward_on_cpu(&self, saved: Floats<Flex>, gradient: FlexTensor, wanted: &[bool]) -> InputGradients<Flex> {
        if !self.has_loops() {
            return self.backward::<Flex>(saved, gradient, wanted);
        }
        let [q, k, v, weights] = take(&mut saved.into_iter());
        by_dtype!(gradient, loops::backward([&q, &k, &v, &weights], &gradient, self.spec)).map(Some).into()
    }
}

/// [batch, length, parts * d] -> for each part [batch, heads, length, d/heads], in one copy.
fn split<B: Backend, const PARTS: usize>(x: FloatTensor<B>, heads: usize) -> [FloatTensor<B>; PARTS] {
    let shape = x.shape();
    let (batch, length, width) = (shape[0], shape[1], shape[2] / PARTS / heads);
    let x = B::float_reshape(x, Shape::new([batch, length, PARTS, heads, width]));
    let x = B::float_permute(x, &[2, 0, 3, 1, 4]);
    // Rows one after the other, so that the multiplications need not copy each part by itself.
    let x = B::float_reshape(x, Shape::new([PARTS * batch, heads, length, width]));
    std::array::from_fn(|part| B::float_slice(x.clone(), &[Slice::from(part * batch..(part + 1) * batch)]))
}

/// The reverse of [`split`].
fn join<B: Backend, const PARTS: usize>(parts: [FloatTensor<B>; PARTS]) -> FloatTensor<B> {
    let shape = parts[0].shape();
    let (batch, heads, length, width) = (shape[0], shape[1], shape[2], shape[3]);
    let mut parts = Vec::from(parts);
    let x = if PARTS == 1 { parts.remove(0) } else { B::float_cat(parts, 0) };
    let x = B::float_reshape(x, Shape::new([PARTS, batch, heads, length, width]));
    let x = B::float_permute(x, &[1, 3, 0, 2, 4]);
    B::float_reshape(x, Shape::new([batch, length, PARTS * heads * width]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::check::{assert_the_loops_are_composed, random};

    /// Sizes that are no multiple of eight, fewer queries than keys, with and without a mask, small and large enough to be shared
    /// among cores.
    #[test]
    fn the_loops_are_the_composed_operations() {
        for (batch, l, m, d, heads, mask) in [
            (3, 5, 5, 6, 2, Mask::None),
            (2, 1, 7, 12, 3, Mask::None),
            (4, 9, 9, 10, 1, Mask::Causal),
            (64, 17, 17, 32, 2, Mask::Causal),
        ] {
            let spec = AttentionSpec { heads, mask, attention: Attention::Softmax, dropout: 0.0 };
            let operation = Attend { spec, apart: true, padded: false, dropped: false };
            assert!(operation.has_loops());
            let inputs = [random("q", &[batch, l, d]), random("k", &[batch, m, d]), random("v", &[batch, m, d])];
            assert_the_loops_are_composed(&operation, &inputs, random("g", &[batch, l, d]));
        }
    }
}
