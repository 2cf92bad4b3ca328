//! Operations that are one node of the gradient graph, with hand-written backward passes.
//!
//! Left to autodiff, a LayerNorm is ten operations and its gradient twenty, each a walk through memory, and attention multiplies thousands of
//! tiny matrices one call at a time; in small networks that is most of the time. An [`Operation`] says how it is computed in both
//! directions: composed of a backend's own operations, and, where that is faster, by loops for the CPU. [`apply`] makes it a node.

// burn marks its LibTorch backend deprecated; `device.rs` says why we use it.
#![cfg_attr(feature = "torch", allow(deprecated))]

use std::fmt::Debug;

#[cfg(feature = "torch")]
use burn::backend::LibTorch;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, Backend, BackendTensor, Dispatch, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind,
    ExtensionType, Flex, backend_extension,
};

/// Tensors of a backend.
pub(crate) type Floats<B> = Vec<FloatTensor<B>>;

/// The gradients of an operation's first inputs; `None` where one is not wanted.
pub(crate) type InputGradients<B> = Vec<Option<FloatTensor<B>>>;

/// An operation on tensors, in both directions.
pub(crate) trait Operation: Debug + Clone + Send + 'static {
    /// How many of its inputs, the first ones, have a gradient: 2 to 4.
    fn differentiable(&self) -> usize;

    /// The outputs and, with `save`, what the backward pass needs, composed of a backend's operations. Gradients flow through the first
    /// output; the others are constants.
    fn forward<B: Backend>(&self, inputs: Floats<B>, save: bool) -> Computed<FloatTensor<B>>;

    /// The gradients of the first inputs from that of the first output; `wanted` says which of them are used.
    fn backward<B: Backend>(&self, saved: Floats<B>, gradient: FloatTensor<B>, wanted: &[bool]) -> InputGradients<B>;

    /// [`Operation::forward`] on the CPU.
    fn forward_on_cpu(&self, inputs: Floats<Flex>, save: bool) -> Computed<FlexTensor> {
        self.forward::<Flex>(inputs, save)
    }

    /// [`Operation::backward`] on the CPU, of what [`Operation::forward_on_cpu`] saved.
    fn backward_on_cpu(&self, saved: Floats<Flex>, gradient: FlexTensor, wanted: &[bool]) -> InputGradients<Flex> {
        self.backward::<Flex>(saved, gradient, wanted)
    }

    /// The outputs on LibTorch, whose own autograd may record how they are computed.
    #[cfg(feature = "torch")]
    fn forward_on_torch(&self, inputs: Floats<LibTorch>) -> Floats<LibTorch> {
        self.forward::<LibTorch>(inputs, false).outputs
    }
}

/// What a forward pass computed.
pub(crate) struct Computed<T> {
    pub(crate) outputs: Vec<T>,
    /// For the backward pass.
    pub(crate) saved: Vec<T>,
}

/// The next `N` tensors of those an operation was given or has saved.
pub(crate) fn take<T, const N: usize>(tensors: &mut impl Iterator<Item = T>) -> [T; N] {
    [(); N].map(|()| tensors.next().unwrap_or_else(|| unreachable!("an operation is given all its tensors")))
}

/// The outputs of an operation on these tensors; it has `N` of them.
pub(crate) fn apply<O: Operation, const N: usize>(operation: O, inputs: Vec<DispatchTensor>) -> [DispatchTensor; N] {
    take(&mut <Dispatch as Apply>::apply(Tensors(inputs), operation).into_iter())
}

/// The inputs of an operation, as burn's dispatch takes them apart.
struct Tensors<B: Backend>(Floats<B>);

impl<B: Backend> ExtensionType<B> for Tensors<B> {
    type Target = Tensors<Dispatch>;

    fn map_to_dispatch<F>(self, map_kind: F, autodiff: DispatchAutodiffContext) -> Self::Target
    where
        F: Fn(BackendTensor<B>) -> DispatchTensorKind,
    {
        let wrap = |tensor| DispatchTensor { kind: map_kind(BackendTensor::Float(tensor)), autodiff };
        Tensors(self.0.into_iter().map(wrap).collect())
    }

    fn map_from_dispatch<F>(target: Self::Target, unwrap_kind: F) -> Self
    where
        F: Fn(DispatchTensor) -> BackendTensor<B>,
    {
        Self(target.0.into_iter().map(|tensor| unwrap_kind(tensor).float()).collect())
    }

    fn routing_tensor(target: &Self::Target) -> Option<&DispatchTensor> {
        target.0.first()
    }

    fn routing_float_tensor(target: &Self::Target) -> Option<&DispatchTensor> {
        target.0.first()
    }

    fn autodiff_context(target: &Self::Target) -> DispatchAutodiffContext {
        target.0.iter().fold(DispatchAutodiffContext::Disabled, |context, tensor| context.merge(tensor.autodiff))
    }
}

#[backend_extension(Flex, LibTorch: cfg(feature = "torch"), Autodiff)]
trait Apply: Backend {
    fn apply<O: Operation>(#[extension_type] inputs: Tensors<Self>, operation: O) -> Vec<FloatTensor<Self>>;
}

impl Apply for Flex {
    fn apply<O: Operation>(inputs: Tensors<Self>, operation: O) -> Floats<Self> {
        operation.forward_on_cpu(inputs.0, false).outputs
    }
}

#[cfg(feature = "torch")]
impl Apply for LibTorch {
    fn apply<O: Operation>(inputs: Tensors<Self>, operation: O) -> Floats<Self> {
        operation.forward_on_torch(inputs.0)
    }
}

impl<B: Recorded, C: CheckpointStrategy> Apply for Autodiff<B, C> {
    fn apply<O: Operation>(inputs: Tensors<Self>, operation: O) -> Floats<Self> {
        match operation.differentiable() {
            2 => record::<B, C, O, 2>(inputs.0, operation),
            3 => record::<B, C, O, 3>(inputs.0, operation),
            4 => record::<B, C, O, 4>(inputs.0, operation),
            count => unreachable!("{operation:?} has {count} inputs with a gradient"),
        }
    }
}

/// How burn's autodiff computes operations on a backend.
trait Recorded: Backend {
    fn forward<O: Operation>(operation: &O, inputs: Floats<Self>, save: bool) -> Computed<FloatTensor<Self>> {
        operation.forward::<Self>(inputs, save)
    }

    fn backward<O: Operation>(
        operation: &O,
        saved: Floats<Self>,
        gradient: FloatTensor<Self>,
        wanted: &[bool],
    ) -> InputGradients<Self> {
        operation.backward::<Self>(saved, gradient, wanted)
    }
}

#[cfg(feature = "torch")]
impl Recorded for LibTorch {}

impl Recorded for Flex {
    fn forward<O: Operation>(operation: &O, inputs: Floats<Flex>, save: bool) -> Computed<FlexTensor> {
        operation.forward_on_cpu(inputs, save)
    }

    fn backward<O: Operation>(
        operation: &O,
        saved: Floats<Flex>,
        gradient: FlexTensor,
        wanted: &[bool],
    ) -> InputGradients<Flex> {
        operation.backward_on_cpu(saved, gradient, wanted)
    }
}

/// The operation as a node that comes from its first `N` inputs.
fn record<B: Recorded, C: CheckpointStrategy, O: Operation, const N: usize>(
    inputs: Floats<Autodiff<B, C>>,
    operation: O,
) -> Floats<Autodiff<B, C>> {
    let parents = std::array::from_fn::<_, N, _>(|at| inputs[at].node());
    let inputs = inputs.into_iter().map(|tensor| tensor.into_primitive()).collect();
    let (first, others) = match Node(operation.clone()).prepare::<C>(parents).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => {
            let Computed { mut outputs, saved } = B::forward(&operation, inputs, true);
            let others = outputs.split_off(1);
            (prepared.finish(saved, outputs.remove(0)), others)
        }
        OpsKind::UnTracked(prepared) => {
            let mut outputs = B::forward(&operation, inputs, false).outputs;
            let others = outputs.split_off(1);
            (prepared.finish(outputs.remove(0)), others)
        }
    };
    std::iter::once(first).chain(others.into_iter().map(FloatTensor::<Autodiff<B, C>>::new)).collect()
}

#[derive(Debug)]
struct Node<O>(O);

impl<B: Recorded, O: Operation, const N: usize> Backward<B, N> for Node<O> {
    type State = Floats<B>;

    fn backward(self, ops: Ops<Self::State, N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<B>(&ops.node);
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let computed = B::backward(&self.0, ops.state, gradient, &wanted);
        for (parent, gradient) in ops.parents.into_iter().zip(computed) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                gradients.register::<B>(parent.id, gradient);
            }
        }
    }
}

/// What tests of operations share.
#[cfg(test)]
pub(crate) mod check {
    use burn::tensor::{DType, TensorData};
    use pudica_data::Stream;

    use super::*;

    /// Normal values in f64.
    pub(crate) fn random(purpose: &str, shape: &[usize]) -> FlexTensor {
        let mut stream = Stream::new(0, purpose, 0);
        let values: Vec<f64> = (0..shape.iter().product()).map(|_| stream.normal()).collect();
        FlexTensor::from_data(TensorData::new(values, shape.to_vec()))
    }

    /// Whether outputs and gradients of the loops for the CPU are those of the composed operations.
    #[track_caller]
    pub(crate) fn assert_the_loops_are_composed<O: Operation>(
        operation: &O,
        inputs: &[FlexTensor],
        gradient: FlexTensor,
    ) {
        let wanted = vec![true; operation.differentiable()];
        let found = operation.forward_on_cpu(inputs.to_vec(), true);
        let expected = operation.forward::<Flex>(inputs.to_vec(), true);
        assert_equal(found.outputs.into_iter().map(Some), expected.outputs.into_iter().map(Some));
        let found = operation.backward_on_cpu(found.saved, gradient.clone(), &wanted);
        assert_equal(found, operation.backward::<Flex>(expected.saved, gradient, &wanted));
    }

    #[track_caller]
    fn assert_equal(
        found: impl IntoIterator<Item = Option<FlexTensor>>,
        expected: impl IntoIterator<Item = Option<FlexTensor>>,
    ) {
        let (found, expected): (Vec<_>, Vec<_>) = (found.into_iter().collect(), expected.into_iter().collect());
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.into_iter().zip(expected) {
            let (found, expected) = (found.unwrap().into_data(), expected.unwrap().into_data());
            assert_eq!((found.shape(), found.dtype()), (expected.shape(), DType::F64));
            for (found, expected) in found.as_slice::<f64>().unwrap().iter().zip(expected.as_slice::<f64>().unwrap()) {
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
        }
    }
}
