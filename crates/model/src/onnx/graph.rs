//! What a graph takes and gives, as far as it says so, and the part of it that one output needs.

use std::collections::{HashMap, HashSet};
use std::fmt;

use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::dimension::Value as Dimension;
use tract_onnx::pb::type_proto::Value as Type;
use tract_onnx::pb::{GraphProto, NodeProto, ValueInfoProto};

use super::file::{constants, inner_graphs, one_line, reads};

/// The type of the numbers of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    F16,
    F32,
    F64,
    Bool,
    U8,
    I8,
    I32,
    I64,
    /// One that no input is made of here.
    Other(&'static str),
}

impl Element {
    fn of(data_type: i32) -> Self {
        match DataType::try_from(data_type) {
            Ok(DataType::Float16) => Self::F16,
            Ok(DataType::Float) => Self::F32,
            Ok(DataType::Double) => Self::F64,
            Ok(DataType::Bool) => Self::Bool,
            Ok(DataType::Uint8) => Self::U8,
            Ok(DataType::Int8) => Self::I8,
            Ok(DataType::Int32) => Self::I32,
            Ok(DataType::Int64) => Self::I64,
            Ok(other) => Self::Other(other.as_str_name()),
            Err(_) => Self::Other("unknown"),
        }
    }

    /// Whether it has fractions.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::Other(name) => name,
        })
    }
}

/// An input or output of a graph; an axis that is `None` may have any length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    pub name: String,
    pub element: Element,
    /// Nothing where the file does not say how many axes there are.
    pub shape: Option<Vec<Option<usize>>>,
}

impl Port {
    fn of(value: &ValueInfoProto) -> Self {
        let tensor =
            value.r#type.as_ref().and_then(|r#type| r#type.value.as_ref()).map(|Type::TensorType(tensor)| tensor);
        let shape = tensor.and_then(|tensor| tensor.shape.as_ref()).map(|shape| {
            let fixed = |value: &Option<Dimension>| match value {
                Some(Dimension::DimValue(length)) if *length > 0 => usize::try_from(*length).ok(),
                _ => None,
            };
            shape.dim.iter().map(|dim| fixed(&dim.value)).collect()
        });
        let element = tensor.map_or(Element::Other("no tensor"), |tensor| Element::of(tensor.elem_type));
        Self { name: value.name.clone(), element, shape }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "'{}' ({}", one_line(&self.name), self.element)?;
        match &self.shape {
            Some(shape) => {
                let axes: Vec<String> =
                    shape.iter().map(|axis| axis.map_or("?".into(), |axis| axis.to_string())).collect();
                write!(f, " [{}])", axes.join(", "))
            }
            None => f.write_str(")"),
        }
    }
}

/// Ports in a sentence.
fn listed(ports: &[Port]) -> String {
    ports.iter().map(Port::to_string).collect::<Vec<_>>().join(", ")
}

/// What a graph must be given: its inputs without those that have weights of their own.
pub(super) fn inputs(graph: &GraphProto) -> Vec<Port> {
    let weights: HashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
    graph.input.iter().filter(|input| !weights.contains(input.name.as_str())).map(Port::of).collect()
}

/// The one of these that is meant: the chosen one, or the only one.
pub(super) fn the_one(ports: Vec<Port>, chosen: Option<&str>, what: &str) -> Result<Port, String> {
    let all = listed(&ports);
    if let Some(name) = chosen {
        let found = ports.into_iter().find(|port| port.name == name);
        return found.ok_or_else(|| format!("has no {what} '{name}': there are {all}"));
    }
    let [only] = <[Port; 1]>::try_from(ports).map_err(|ports| match ports.len() {
        0 => format!("has no {what}"),
        count => format!("has {count} {what}s: choose one with --{what} NAME (or {what}=NAME after its path): {all}"),
    })?;
    Ok(only)
}

/// The output that is meant.
pub(super) fn output(graph: &GraphProto, chosen: Option<&str>) -> Result<Port, String> {
    let found = the_one(graph.output.iter().map(Port::of).collect(), chosen, "output")?;
    match found.element.is_float() {
        true => Ok(found),
        false => Err(format!(
            "gives {found}, but scores are numbers with fractions: export the scores too, or choose them with --output NAME"
        )),
    }
}

/// The part of a graph that one output needs: nodes, weights and inputs that it does not need are left out.
pub(super) fn part_for(graph: &GraphProto, output: &str) -> GraphProto {
    let maker: HashMap<&str, &NodeProto> =
        graph.node.iter().flat_map(|node| node.output.iter().map(move |name| (name.as_str(), node))).collect();
    let mut needed = HashSet::new();
    let mut open = vec![output];
    while let Some(name) = open.pop() {
        if needed.insert(name) {
            open.extend(maker.get(name).into_iter().flat_map(|node| reads(node)));
        }
    }
    let kept = |name: &String| needed.contains(name.as_str());
    GraphProto {
        node: graph.node.iter().filter(|node| node.output.iter().any(kept)).cloned().collect(),
        initializer: graph.initializer.iter().filter(|tensor| kept(&tensor.name)).cloned().collect(),
        input: graph.input.iter().filter(|input| kept(&input.name)).cloned().collect(),
        output: graph.output.iter().filter(|found| found.name == output).take(1).cloned().collect(),
        name: graph.name.clone(),
        ..GraphProto::default()
    }
}

/// Ops that leave numbers as they are.
const PASSING: [&str; 8] = ["Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Dropout", "Transpose"];

/// The op that makes the output's numbers: `Softmax`, say.
pub(super) fn last_op<'a>(graph: &'a GraphProto, output: &str) -> Option<&'a str> {
    let mut wanted = output;
    // A graph without circles has no longer way than it has nodes.
    for _ in 0..=graph.node.len() {
        let node = graph.node.iter().find(|node| node.output.iter().any(|name| name == wanted))?;
        match PASSING.contains(&node.op_type.as_str()) {
            true => wanted = node.input.first()?,
            false => return Some(&node.op_type),
        }
    }
    None
}

/// How many different tokens there are, where the input looks up rows of a table of embeddings.
pub(super) fn vocabulary(graph: &GraphProto, input: &str) -> Option<usize> {
    let constants = constants(graph);
    let mut names = HashSet::from([input]);
    for node in &graph.node {
        let first_read = node.input.first().is_some_and(|name| names.contains(name.as_str()));
        match node.op_type.as_str() {
            "Gather" if node.input.get(1).is_some_and(|name| names.contains(name.as_str())) => {
                let table = constants.get(node.input[0].as_str()).filter(|table| table.dims.len() == 2);
                if let Some(rows) = table.and_then(|table| usize::try_from(table.dims[0]).ok()) {
                    return Some(rows);
                }
            }
            op if PASSING.contains(&op) && first_read => names.extend(node.output.iter().map(String::as_str)),
            _ => {}
        }
    }
    None
}

/// Calls `see` with every node, those of inner graphs included.
pub(super) fn visit_nodes<'a>(graph: &'a GraphProto, see: &mut dyn FnMut(&'a NodeProto)) {
    for node in &graph.node {
        see(node);
        inner_graphs(node).for_each(|inner| visit_nodes(inner, see));
    }
}
