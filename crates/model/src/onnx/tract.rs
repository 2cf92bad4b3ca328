//! The embedded engine, [`tract_onnx`]: pure Rust, one thread per plan, a plan for each shape of input.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pudica_boolean::caught;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::dimension::Value as Dimension;
use tract_onnx::pb::type_proto::Value as Type;
use tract_onnx::pb::{GraphProto, ModelProto, ValueInfoProto};
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::infer::Factoid;

use super::engine::{Answer, Engine};
use super::feed::{Feed, Values};
use super::file::{node_name, one_line};
use super::graph::visit_nodes;
use super::weights;

/// The version that `Cargo.toml` asks for.
const VERSION: &str = "tract 0.23.9";

/// The most bytes that one tensor of a plan may need.
const MOST_BYTES: usize = 1 << 32;

/// Plans that are kept; texts of many lengths would make one for each.
const KEPT: usize = 64;

type Plan = Arc<TypedRunnableModel>;

/// What reads graphs; making its list of ops takes as long as reading a small one.
static READER: LazyLock<tract_onnx::Onnx> =
    LazyLock::new(|| onnx().with_ignore_value_info(true).with_ignore_output_types(true));

/// A graph that tract has read, and its plans by the shapes of their inputs.
pub(super) struct Tract {
    parsed: InferenceModel,
    /// What maxima and minima are taken of, by name.
    maxima: Vec<String>,
    /// Whether numbers of 16 or 64 bits were made ones of 32.
    converted: bool,
    plans: Mutex<HashMap<Vec<Vec<usize>>, Plan>>,
}

impl Tract {
    /// Reads a graph.
    pub fn new(mut model: ModelProto) -> Result<Self, String> {
        // Names of lengths may be expressions; plans are made for lengths that are known, so that nobody need read them.
        model.graph.iter_mut().for_each(forget_names);
        let converted = model.graph.as_mut().is_some_and(to_single);
        let graph = model.graph.as_ref().ok_or("it has no graph")?;
        let extreme = graph.node.iter().filter(|node| matches!(node.op_type.as_str(), "ReduceMax" | "ReduceMin"));
        let maxima = extreme.filter_map(|node| node.input.first().cloned()).collect();
        let mut unknown = None;
        visit_nodes(graph, &mut |node| {
            if !READER.op_register.0.contains_key(&node.op_type) {
                unknown = Some(format!("it does not have the op {}", node_name(node)));
            }
        });
        if let Some(unknown) = unknown {
            return Err(unknown);
        }
        let parsed = quietly(|| Ok(READER.parse(&model, None)?.model))?;
        Ok(Self { parsed, maxima, converted, plans: Mutex::default() })
    }

    fn plan(&self, feeds: &[Feed]) -> Result<Plan, String> {
        let key: Vec<Vec<usize>> = feeds.iter().map(|feed| feed.shape.clone()).collect();
        // Whoever comes while a plan is made waits for it: making it twice would take no less.
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&key) {
            return Ok(plan.clone());
        }
        let plan = quietly(|| self.compile(feeds))?;
        if plans.len() >= KEPT {
            plans.clear();
        }
        plans.insert(key, plan.clone());
        Ok(plan)
    }

    fn compile(&self, feeds: &[Feed]) -> TractResult<Plan> {
        let mut model = self.parsed.clone();
        for index in 0..model.inputs.len() {
            let name = &model.node(model.inputs[index].node).name;
            let feed = feeds.iter().find(|feed| feed.name == *name);
            let feed = feed.ok_or_else(|| TractError::msg(format!("nothing is given to its input '{name}'")))?;
            let fact = InferenceFact::dt_shape(feed.values.datum_type(), &feed.shape);
            model.set_input_fact(index, fact)?;
        }
        if !self.maxima.is_empty() {
            model.analyse(false)?;
        }
        for outlet in self.maxima.iter().filter_map(|name| model.find_outlet_label(name)) {
            if model.outlet_fact(outlet)?.shape.dims().any(|length| length.concretize() == Some(0.to_dim())) {
                return Err(TractError::msg("it has a maximum or minimum over nothing, which tract gets wrong"));
            }
        }
        let typed = model.into_typed()?;
        check_typed(&typed)?;
        let decluttered = typed.into_decluttered()?;
        check_typed(&decluttered)?;
        decluttered.into_optimized()?.into_runnable()
    }
}

impl Engine for Tract {
    fn version(&self) -> String {
        VERSION.into()
    }

    fn at_once(&self) -> bool {
        true
    }

    fn note(&self) -> Option<String> {
        self.converted.then(|| "Its numbers of 16 or 64 bits are computed with 32 by tract.".into())
    }

    fn run(&self, mut feeds: Vec<Feed>) -> Result<Answer, String> {
        feeds.iter_mut().for_each(Feed::make_single);
        let plan = self.plan(&feeds)?;
        quietly(|| {
            let order = plan.model().inputs.iter().map(|input| &plan.model().node(input.node).name);
            let tensors = order.map(|name| {
                let feed = feeds.iter().find(|feed| feed.name == *name);
                feed.ok_or_else(|| TractError::msg(format!("nothing is given to its input '{name}'")))?.tensor()
            });
            let tensors: TVec<TValue> = tensors.map(|tensor| Ok(tensor?.into())).collect::<TractResult<_>>()?;
            let outputs = plan.run(tensors)?;
            let output = outputs.first().ok_or_else(|| TractError::msg("it gave nothing"))?;
            let numbers = output.cast_to::<f32>()?;
            let values = numbers.to_plain_array_view::<f32>()?.iter().copied().collect();
            Ok(Answer { shape: output.shape().to_vec(), values })
        })
    }
}

impl Values {
    fn datum_type(&self) -> DatumType {
        match self {
            Self::F16(_) => DatumType::F16,
            Self::F32(_) => DatumType::F32,
            Self::F64(_) => DatumType::F64,
            Self::Bool(_) => DatumType::Bool,
            Self::U8(_) => DatumType::U8,
            Self::I8(_) => DatumType::I8,
            Self::I32(_) => DatumType::I32,
            Self::I64(_) => DatumType::I64,
        }
    }
}

impl Feed {
    fn make_single(&mut self) {
        match &self.values {
            Values::F16(values) => self.values = Values::F32(values.iter().map(|value| value.to_f32()).collect()),
            Values::F64(values) => self.values = Values::F32(values.iter().map(|value| *value as f32).collect()),
            _ => {}
        }
    }

    fn tensor(&self) -> TractResult<Tensor> {
        match &self.values {
            Values::F16(values) => Tensor::from_shape(&self.shape, values),
            Values::F32(values) => Tensor::from_shape(&self.shape, values),
            Values::F64(values) => Tensor::from_shape(&self.shape, values),
            Values::Bool(values) => Tensor::from_shape(&self.shape, values),
            Values::U8(values) => Tensor::from_shape(&self.shape, values),
            Values::I8(values) => Tensor::from_shape(&self.shape, values),
            Values::I32(values) => Tensor::from_shape(&self.shape, values),
            Values::I64(values) => Tensor::from_shape(&self.shape, values),
        }
    }
}

/// Refuses tensors that no memory holds, which is known when all shapes are.
fn check_typed(model: &TypedModel) -> TractResult<()> {
    for node in model.nodes() {
        for output in &node.outputs {
            let lengths = output.fact.shape.as_concrete().unwrap_or_default();
            let bytes =
                lengths.iter().try_fold(output.fact.datum_type.size_of(), |bytes, length| bytes.checked_mul(*length));
            if bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
                return Err(TractError::msg(format!(
                    "'{}' would need a tensor of shape {lengths:?}, which is too large: try batch=1 after the path",
                    node.name
                )));
            }
        }
    }
    Ok(())
}

/// Makes all numbers with fractions ones of 32 bits, because tract has no `Gemm` of others; whether there were any.
fn to_single(graph: &mut GraphProto) -> bool {
    let single = DataType::Float as i32;
    let other = |data_type: i32| data_type == DataType::Float16 as i32 || data_type == DataType::Double as i32;
    let mut found = false;
    for value in graph.input.iter_mut().chain(&mut graph.output) {
        let tensor =
            value.r#type.as_mut().and_then(|r#type| r#type.value.as_mut()).map(|Type::TensorType(tensor)| tensor);
        if let Some(tensor) = tensor.filter(|tensor| other(tensor.elem_type)) {
            (tensor.elem_type, found) = (single, true);
        }
    }
    let attributes = graph.node.iter_mut().flat_map(|node| &mut node.attribute);
    let tensors = attributes.flat_map(|attribute| attribute.t.iter_mut());
    for tensor in graph.initializer.iter_mut().chain(tensors).filter(|tensor| other(tensor.data_type)) {
        let values = weights::values(tensor);
        (tensor.data_type, found) = (single, true);
        weights::set_values(tensor, &values);
    }
    for node in &mut graph.node {
        for attribute in &mut node.attribute {
            if node.op_type == "Cast" && attribute.name == "to" && i32::try_from(attribute.i).is_ok_and(other) {
                (attribute.i, found) = (single.into(), true);
            }
            for inner in attribute.g.iter_mut().chain(&mut attribute.graphs) {
                found |= to_single(inner);
            }
        }
    }
    found
}

/// Removes the names of lengths and the types of inner values.
fn forget_names(graph: &mut GraphProto) {
    graph.value_info.clear();
    let forget = |value: &mut ValueInfoProto| {
        let tensor =
            value.r#type.as_mut().and_then(|r#type| r#type.value.as_mut()).map(|Type::TensorType(tensor)| tensor);
        let axes = tensor.and_then(|tensor| tensor.shape.as_mut()).map(|shape| &mut shape.dim);
        for axis in axes.into_iter().flatten() {
            if matches!(axis.value, Some(Dimension::DimParam(_))) {
                axis.value = None;
            }
        }
    };
    graph.input.iter_mut().chain(&mut graph.output).for_each(forget);
    for attribute in graph.node.iter_mut().flat_map(|node| &mut node.attribute) {
        attribute.g.iter_mut().chain(&mut attribute.graphs).for_each(forget_names);
    }
}

/// Calls tract, which panics on some graphs that it should refuse (an axis that is not there, a number where a tensor is due): a panic is an
/// error like others here, and says nothing on the screen. What it may have left half done is thrown away.
fn quietly<T>(work: impl FnOnce() -> TractResult<T>) -> Result<T, String> {
    match caught(work) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            let causes: Vec<String> = error.chain().map(|cause| cause.to_string()).collect();
            let (first, last) = (&causes[0], &causes[causes.len() - 1]);
            Err(one_line(&if causes.len() == 1 { first.clone() } else { format!("{first}: {last}") }))
        }
        Err(panic) => Err(format!("it gave up ({})", one_line(&panic))),
    }
}
