//! The trained weights of a graph: numbers with fractions that its layers read, whether they are stated as weights (`initializer`) or as constants.

use std::collections::{HashMap, HashSet};

use half::f16;
use pudica_nn::Weights;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{GraphProto, NodeProto, TensorProto};

use super::file::constants;

/// The names of a graph's weights with their shapes, in the order in which its layers read them.
///
/// Running means and variances of batch normalisation are no weights: nothing trains them by its gradient, and noise would make variances negative.
/// A file does not tell tables that were trained (positions) from those that were not; masks are told by their huge numbers.
pub(super) fn layout(graph: &GraphProto) -> Vec<(String, Vec<usize>)> {
    let stored = constants(graph);
    let stated: HashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
    let maker: HashMap<&str, &NodeProto> =
        graph.node.iter().flat_map(|node| node.output.iter().map(move |name| (name.as_str(), node))).collect();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for node in &graph.node {
        for input in read_as_weights(node, &maker) {
            let Some(name) = node.input.get(input).and_then(|name| origin(name, &maker, &stored)) else { continue };
            let tensor = stored[name];
            let axes = tensor.dims.len();
            let is_weight = match node.op_type.as_str() {
                "Gather" => axes == 2,
                "Add" | "Concat" if axes > 1 => stated.contains(name) && !is_mask(tensor),
                "Add" | "Mul" => axes == 1,
                _ => axes > 0,
            };
            let size: i64 = tensor.dims.iter().product();
            if is_weight && size > 1 && is_float(tensor) && seen.insert(name) {
                found.push((name.to_string(), tensor.dims.iter().map(|dim| *dim as usize).collect()));
            }
        }
    }
    found
}

/// The inputs of a node that are weights if they are constant.
fn read_as_weights(node: &NodeProto, maker: &HashMap<&str, &NodeProto>) -> Vec<usize> {
    // A vector is a bias, or the scale of a normalisation that is written out, if what it meets comes from such a computation.
    let follows = |ops: &[&str], input: usize| {
        let made_by = node.input.get(input).and_then(|name| maker.get(name.as_str()));
        made_by.is_some_and(|made_by| ops.contains(&made_by.op_type.as_str()))
    };
    let beside = |ops: &[&str]| (0..2).filter(|input| follows(ops, 1 - input)).collect();
    match node.op_type.as_str() {
        "Gemm" => vec![0, 1, 2],
        "MatMul" => vec![0, 1],
        "Conv" | "ConvTranspose" => vec![1, 2],
        "LSTM" | "GRU" | "RNN" => vec![1, 2, 3, 7],
        "SkipLayerNormalization" | "SkipSimplifiedLayerNormalization" => vec![2, 3, 4],
        op if op.ends_with("Normalization") => vec![1, 2],
        "PRelu" => vec![1],
        "Gather" => vec![0],
        // Tables of positions meet what was put together, reshaped or looked up.
        "Add" => beside(&["MatMul", "Mul", "Conv", "ConvTranspose", "Add", "Concat", "Transpose", "Reshape", "Gather"]),
        // A token for the class stands before those of an image.
        "Concat" if node.input.iter().any(|name| maker.contains_key(name.as_str())) => (0..node.input.len()).collect(),
        "Mul" => beside(&["Div"]),
        _ => Vec::new(),
    }
}

/// The constant that a name stands for, through nodes that only lay out or convert.
fn origin<'a>(
    name: &'a str,
    maker: &HashMap<&str, &'a NodeProto>,
    stored: &HashMap<&'a str, &TensorProto>,
) -> Option<&'a str> {
    let mut name = name;
    for _ in 0..8 {
        if let Some((stored, _)) = stored.get_key_value(name) {
            return Some(stored);
        }
        let node = maker.get(name)?;
        let passes = matches!(
            node.op_type.as_str(),
            "Identity" | "Cast" | "Transpose" | "Reshape" | "Squeeze" | "Unsqueeze" | "Flatten" | "Expand"
        );
        name = node.input.first().filter(|_| passes)?;
    }
    None
}

/// Whether a table hides things: minus infinity, or what stands for it.
fn is_mask(tensor: &TensorProto) -> bool {
    is_float(tensor) && values(tensor).iter().any(|value| !value.is_finite() || value.abs() > 1e3)
}

fn is_float(tensor: &TensorProto) -> bool {
    [DataType::Float, DataType::Float16, DataType::Double].iter().any(|known| *known as i32 == tensor.data_type)
}

/// The values of a graph's weights.
pub(super) fn read(graph: &GraphProto) -> Weights {
    let (layout, stored) = (layout(graph), constants(graph));
    let mut weights = Weights::zeros(layout.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())));
    let values: Vec<f32> = layout.iter().flat_map(|(name, _)| values(stored[name.as_str()])).collect();
    weights.data_mut().copy_from_slice(&values);
    weights
}

/// The graph with other values of its weights.
pub(super) fn write(graph: &mut GraphProto, weights: &Weights) {
    let set = |name: &str, tensor: &mut TensorProto| {
        if let Some((_, values)) = weights.get(name) {
            set_values(tensor, values);
        }
    };
    for tensor in &mut graph.initializer {
        let name = tensor.name.clone();
        set(&name, tensor);
    }
    for node in graph.node.iter_mut().filter(|node| node.op_type == "Constant") {
        let tensor = node.attribute.iter_mut().find_map(|attribute| attribute.t.as_mut());
        if let (Some(name), Some(tensor)) = (node.output.first(), tensor) {
            set(name, tensor);
        }
    }
}

/// The values of a tensor of numbers with fractions.
pub(super) fn values(tensor: &TensorProto) -> Vec<f32> {
    let raw = &tensor.raw_data;
    match DataType::try_from(tensor.data_type) {
        Ok(DataType::Float) if raw.is_empty() => tensor.float_data.clone(),
        Ok(DataType::Float) => raw.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        Ok(DataType::Float16) if raw.is_empty() => {
            tensor.int32_data.iter().map(|bits| f16::from_bits(*bits as u16).to_f32()).collect()
        }
        Ok(DataType::Float16) => raw.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
        _ if raw.is_empty() => tensor.double_data.iter().map(|value| *value as f32).collect(),
        _ => raw.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap_or_default()) as f32).collect(),
    }
}

/// Gives a tensor other values, in its own type.
pub(super) fn set_values(tensor: &mut TensorProto, values: &[f32]) {
    tensor.raw_data = match DataType::try_from(tensor.data_type) {
        Ok(DataType::Float) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Ok(DataType::Float16) => values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|value| f64::from(*value).to_le_bytes()).collect(),
    };
    tensor.float_data.clear();
    tensor.int32_data.clear();
    tensor.double_data.clear();
}
