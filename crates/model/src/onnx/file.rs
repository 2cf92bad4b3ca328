//! An ONNX file as it lies on the disk: read, and refused before an engine sees it if it claims what it does not hold.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use prost::Message;
use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto, TensorProto};

use crate::{ModelError, ModelResult};

/// The most that a protobuf may have, by its own rules.
const MOST_BYTES: u64 = 1 << 31;

/// The most numbers that a node may make out of a shape that is written in the file (`ConstantOfShape` and the like): so many in any file, and so
/// many for each number that the file holds, but not more than a bound.
const MADE_ANYWAY: u64 = 1 << 23;
const MADE_PER_NUMBER: u64 = 64;
const MOST_MADE: u64 = 1 << 28;

/// The largest kernel, stride or border.
const MOST_STEP: u64 = 1 << 20;

/// The most axes of a tensor.
const MOST_AXES: i64 = 64;

/// A file whose tensors are as large as it says, whose graph has no circle and whose nodes read only what something gives.
pub(super) struct OnnxFile {
    /// Where it lies.
    pub path: PathBuf,
    /// What it says; tensors that lie in files of their own have been fetched.
    pub model: ModelProto,
    /// Those files.
    pub others: Vec<PathBuf>,
}

impl OnnxFile {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> ModelResult<Self> {
        let wrong = |problem: String| refused(path, problem);
        let unreadable = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
        let size = plain_size(path).map_err(unreadable)?;
        if size > MOST_BYTES {
            return Err(wrong(
                "is larger than 2 GiB, which no ONNX file may be: its weights belong in a file of their own".into(),
            ));
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        if bytes.starts_with(b"version https://git-lfs") {
            return Err(wrong("is a pointer of Git LFS, not the model: fetch it with `git lfs pull`".into()));
        }
        let mut model = ModelProto::decode(bytes.as_slice()).map_err(|error| {
            let error = error.to_string();
            wrong(format!("is not a readable ONNX file: {}", error.rsplit(": ").next().unwrap_or_default()))
        })?;
        drop(bytes);
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let Some(graph) = &mut model.graph else { return Err(wrong("is not an ONNX file: it has no graph".into())) };
        if graph.output.is_empty() {
            return Err(wrong("is not an ONNX file of use: its graph has no output".into()));
        }
        let mut others = Vec::new();
        visit_tensors(graph, &mut |tensor| fetch(tensor, &folder, &mut others).and_then(|()| check_tensor(tensor)))
            .map_err(wrong)?;
        check_graph(graph, &HashSet::new()).map_err(wrong)?;
        others.sort();
        others.dedup();
        Ok(Self { path: path.into(), model, others })
    }

    /// The graph, which a file that could be read has.
    pub fn graph(&self) -> &GraphProto {
        self.model.graph.as_ref().expect("checked when it was read")
    }
}

/// The length of a plain file: a device or a pipe may never end.
fn plain_size(path: &Path) -> std::io::Result<u64> {
    let about = std::fs::metadata(path)?;
    match about.is_file() {
        true => Ok(about.len()),
        false => Err(std::io::Error::other("it is not a plain file")),
    }
}

/// What is wrong with a file; names in it may hold anything.
pub(super) fn refused(path: &Path, problem: impl AsRef<str>) -> ModelError {
    ModelError::file(path, one_line(problem.as_ref()))
}

/// A text on one line, without what would move a cursor, and not too long.
pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(600) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// Calls `see` with every tensor of a graph and of the graphs inside it.
pub(super) fn visit_tensors(
    graph: &mut GraphProto,
    see: &mut dyn FnMut(&mut TensorProto) -> Result<(), String>,
) -> Result<(), String> {
    graph.initializer.iter_mut().try_for_each(&mut *see)?;
    if !graph.sparse_initializer.is_empty() {
        return Err("has sparse weights, which are not supported: export it with dense ones".into());
    }
    for attribute in graph.node.iter_mut().flat_map(|node| &mut node.attribute) {
        attribute.t.iter_mut().chain(&mut attribute.tensors).try_for_each(&mut *see)?;
        attribute.g.iter_mut().chain(&mut attribute.graphs).try_for_each(|inner| visit_tensors(inner, see))?;
    }
    Ok(())
}

/// The graphs inside a node: bodies of loops, branches.
pub(super) fn inner_graphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}

/// What to call a node: its name, or what it gives.
pub(super) fn node_name(node: &NodeProto) -> String {
    let name = if node.name.is_empty() { node.output.first().map_or("", String::as_str) } else { &node.name };
    format!("'{name}' ({})", node.op_type)
}

/// Bytes of one element; `None` where elements are packed or of no fixed length.
pub(super) fn element_bytes(data_type: i32) -> Option<u64> {
    use DataType::*;
    Some(match DataType::try_from(data_type).ok()? {
        Uint8 | Int8 | Bool | Float8e4m3fn | Float8e4m3fnuz | Float8e5m2 | Float8e5m2fnuz => 1,
        Uint16 | Int16 | Float16 | Bfloat16 => 2,
        Float | Int32 | Uint32 => 4,
        Int64 | Uint64 | Double | Complex64 => 8,
        Complex128 => 16,
        Undefined | String | Uint4 | Int4 | Float4e2m1 => return None,
    })
}

/// How many numbers a tensor claims to have.
fn claimed(tensor: &TensorProto) -> Result<u64, String> {
    let too_large = || format!("tensor '{}' claims the shape {:?}, which is impossible", tensor.name, tensor.dims);
    tensor.dims.iter().try_fold(1_u64, |size, dim| {
        let dim = u64::try_from(*dim).map_err(|_| too_large())?;
        size.checked_mul(dim).filter(|size| *size < 1 << 48).ok_or_else(too_large)
    })
}

/// A tensor must hold what it claims: engines make room for what is claimed.
fn check_tensor(tensor: &TensorProto) -> Result<(), String> {
    let claimed = claimed(tensor)?;
    let raw = tensor.raw_data.len() as u64;
    let listed = [tensor.float_data.len(), tensor.int32_data.len(), tensor.int64_data.len(), tensor.double_data.len()];
    let listed =
        listed.into_iter().chain([tensor.uint64_data.len(), tensor.string_data.len()]).max().unwrap_or(0) as u64;
    let held = match (raw, element_bytes(tensor.data_type)) {
        (0, _) => listed,
        (_, Some(bytes)) if raw.is_multiple_of(bytes) => raw / bytes,
        (_, Some(_)) => u64::MAX,
        // Two to a byte, at most four.
        (_, None) if claimed <= 4 * raw => claimed,
        (_, None) => raw,
    };
    // Complex numbers, and small types packed into larger ones, are listed as several.
    let plausible = held == claimed
        || (raw == 0 && element_bytes(tensor.data_type).is_none_or(|bytes| bytes >= 8) && held >= claimed);
    match plausible {
        true => Ok(()),
        false => Err(format!(
            "tensor '{}' claims {claimed} numbers {:?} but the file holds {}: it is damaged or cut off",
            tensor.name,
            tensor.dims,
            if held == u64::MAX { format!("{raw} bytes") } else { held.to_string() },
        )),
    }
}

/// Fetches the data of a tensor that lie in another file, which must lie in the folder of the model.
fn fetch(tensor: &mut TensorProto, folder: &Path, others: &mut Vec<PathBuf>) -> Result<(), String> {
    if tensor.data_location != Some(DataLocation::External as i32) {
        return Ok(());
    }
    let of = |key: &str| tensor.external_data.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str());
    let wrong = |problem: String| format!("tensor '{}' lies in another file, {problem}", tensor.name);
    let location = of("location").ok_or_else(|| wrong("but which is not said".into()))?;
    let number = |key: &str| -> Result<Option<u64>, String> {
        of(key).map(|text| text.parse().map_err(|_| wrong(format!("but its {key} '{text}' is no number")))).transpose()
    };
    let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
    let relative = Path::new(location);
    let outside = || wrong(format!("but '{location}' is outside the folder of the model, where nothing is read"));
    if !relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(outside());
    }
    let missing =
        |error: std::io::Error| wrong(format!("'{location}', which cannot be read ({error}): put it beside the model"));
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // A link may lead out of the folder.
    let (root, file) =
        (folder.canonicalize().map_err(missing)?, folder.join(relative).canonicalize().map_err(missing)?);
    if !file.starts_with(&root) {
        return Err(outside());
    }
    let size = plain_size(&file).map_err(missing)?;
    let expected = claimed(tensor)?.saturating_mul(element_bytes(tensor.data_type).unwrap_or(1));
    let length = length.unwrap_or(expected);
    if offset.checked_add(length).is_none_or(|end| end > size) || length > expected {
        return Err(wrong(format!(
            "'{location}', which has {size} bytes and not the {length} from {offset} on that are said"
        )));
    }
    let mut data = vec![0; length as usize];
    read_at(&file, offset, &mut data).map_err(missing)?;
    tensor.raw_data = data;
    tensor.data_location = None;
    tensor.external_data.clear();
    others.push(file);
    Ok(())
}

fn read_at(path: &Path, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(into)
}

/// Names that a node reads, those read inside its own graphs included.
pub(super) fn reads(node: &NodeProto) -> Vec<&str> {
    let mut names: Vec<&str> = node.input.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    for graph in inner_graphs(node) {
        let own: HashSet<&str> = given(graph).collect();
        let wanted = graph.node.iter().flat_map(reads).chain(graph.output.iter().map(|output| output.name.as_str()));
        names.extend(wanted.filter(|name| !own.contains(name)));
    }
    names
}

/// Names that a graph itself gives: inputs, weights, what its nodes make.
fn given(graph: &GraphProto) -> impl Iterator<Item = &str> {
    let inputs = graph.input.iter().map(|input| input.name.as_str());
    let weights = graph.initializer.iter().map(|tensor| tensor.name.as_str());
    let made = graph.node.iter().flat_map(|node| &node.output).map(String::as_str);
    inputs.chain(weights).chain(made).filter(|name| !name.is_empty())
}

/// Refuses graphs that read what nothing gives, that give a name twice, or that go round in circles; `outer` is what is given around it.
fn check_graph(graph: &GraphProto, outer: &HashSet<&str>) -> Result<(), String> {
    let mut maker = HashMap::new();
    for (index, node) in graph.node.iter().enumerate() {
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            if maker.insert(name.as_str(), index).is_some() {
                return Err(format!("its graph is damaged: '{name}' is made by two nodes"));
            }
        }
    }
    let known: HashSet<&str> = given(graph).chain(outer.iter().copied()).collect();
    let mut waiting = vec![0_usize; graph.node.len()];
    let mut readers = vec![Vec::new(); graph.node.len()];
    for (index, node) in graph.node.iter().enumerate() {
        for name in reads(node) {
            if !known.contains(name) {
                return Err(format!("its graph is damaged: {} reads '{name}', which nothing gives", node_name(node)));
            }
            if let Some(maker) = maker.get(name) {
                waiting[index] += 1;
                readers[*maker].push(index);
            }
        }
        check_attributes(node)?;
        inner_graphs(node).try_for_each(|inner| check_graph(inner, &known))?;
    }
    if let Some(output) = graph.output.iter().find(|output| !known.contains(output.name.as_str())) {
        return Err(format!("its graph is damaged: nothing gives its output '{}'", output.name));
    }
    let mut ready: Vec<usize> = (0..graph.node.len()).filter(|index| waiting[*index] == 0).collect();
    let mut order = Vec::with_capacity(graph.node.len());
    while let Some(index) = ready.pop() {
        order.push(&graph.node[index]);
        for reader in std::mem::take(&mut readers[index]) {
            waiting[reader] -= 1;
            if waiting[reader] == 0 {
                ready.push(reader);
            }
        }
    }
    match waiting.iter().position(|waiting| *waiting > 0) {
        Some(index) => Err(format!("its graph goes round in a circle through {}", node_name(&graph.node[index]))),
        None => check_made(graph, &order),
    }
}

/// Refuses settings of nodes that an engine would never finish with: a permutation that is none keeps tract busy until no memory is left.
fn check_attributes(node: &NodeProto) -> Result<(), String> {
    for attribute in &node.attribute {
        let (numbers, count) = (&attribute.ints, attribute.ints.len() as i64);
        let fine = match (node.op_type.as_str(), attribute.name.as_str()) {
            ("Transpose", "perm") => count <= MOST_AXES && (0..count).all(|axis| numbers.contains(&axis)),
            (_, "kernel_shape" | "strides" | "dilations" | "pads" | "output_padding" | "output_shape") => {
                numbers.iter().all(|number| number.unsigned_abs() <= MOST_STEP)
            }
            _ => true,
        };
        if !fine {
            return Err(format!("{} has an impossible setting: {} {numbers:?}", node_name(node), attribute.name));
        }
    }
    Ok(())
}

/// Refuses nodes, given in the order of their computation, that would make something huge of the few bytes of a constant: engines do that while
/// they prepare a graph, before the shapes that they find can be looked at.
fn check_made(graph: &GraphProto, order: &[&NodeProto]) -> Result<(), String> {
    let constants = constants(graph);
    let mut sizes: HashMap<&str, u64> = HashMap::new();
    for (name, tensor) in &constants {
        sizes.insert(name, claimed(tensor)?);
    }
    let held = sizes.values().fold(0_u64, |sum, size| sum.saturating_add(*size));
    let most = held.saturating_mul(MADE_PER_NUMBER).saturating_add(MADE_ANYWAY).min(MOST_MADE);
    // What a shape makes at least: the product of those of its numbers that the file tells. A length such as the batch's may be read off an input
    // and put before them.
    let mut products: HashMap<&str, u64> = HashMap::new();
    for (name, tensor) in &constants {
        if let Some(numbers) = whole_numbers(tensor) {
            let positive = numbers.iter().filter(|number| **number > 0);
            products.insert(name, positive.fold(1_u64, |made, number| made.saturating_mul(*number as u64)));
        }
    }
    for node in order {
        let shape = match node.op_type.as_str() {
            "ConstantOfShape" => node.input.first(),
            "Expand" | "Tile" => node.input.get(1),
            "Resize" => node.input.get(3),
            _ => None,
        };
        let product = shape.and_then(|name| products.get(name.as_str())).copied();
        let given: Option<Vec<u64>> = node.input.iter().map(|name| sizes.get(name.as_str()).copied()).collect();
        let first = given.as_ref().and_then(|given| given.first()).copied().unwrap_or(1);
        let moves = matches!(
            node.op_type.as_str(),
            "Identity" | "Cast" | "Reshape" | "Transpose" | "Squeeze" | "Unsqueeze" | "Neg"
        );
        let made = match (node.op_type.as_str(), product, given) {
            ("Tile", Some(times), _) => Some(times.saturating_mul(first)),
            (_, Some(made), _) => Some(made),
            ("Concat", None, Some(given)) => Some(given.iter().fold(0_u64, |sum, size| sum.saturating_add(*size))),
            (_, None, Some(_)) if moves => Some(first),
            _ => None,
        };
        let Some(name) = node.output.first() else { continue };
        if let Some(made) = made {
            if made > most {
                let node = node_name(node);
                return Err(format!(
                    "{node} would make {made} numbers, which is too many for a file that holds {held}"
                ));
            }
            sizes.insert(name, made);
        }
        let known = |name: &String| products.get(name.as_str()).copied();
        let product = match node.op_type.as_str() {
            "Concat" => node.input.iter().filter_map(known).reduce(u64::saturating_mul),
            _ if moves => node.input.first().and_then(known),
            _ => None,
        };
        if let Some(product) = product {
            products.insert(name, product);
        }
    }
    Ok(())
}

/// Weights and constants of a graph by name.
pub(super) fn constants(graph: &GraphProto) -> HashMap<&str, &TensorProto> {
    let weights = graph.initializer.iter().map(|tensor| (tensor.name.as_str(), tensor));
    let constants = graph.node.iter().filter(|node| node.op_type == "Constant").filter_map(|node| {
        let tensor = node.attribute.iter().find_map(|attribute| attribute.t.as_ref())?;
        Some((node.output.first()?.as_str(), tensor))
    });
    weights.chain(constants).collect()
}

/// The values of a small tensor of 64-bit integers.
pub(super) fn whole_numbers(tensor: &TensorProto) -> Option<Vec<i64>> {
    if tensor.data_type != DataType::Int64 as i32 {
        return None;
    }
    match tensor.raw_data.is_empty() {
        true => Some(tensor.int64_data.clone()),
        false => Some(
            tensor
                .raw_data
                .chunks_exact(8)
                .map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap_or_default()))
                .collect(),
        ),
    }
}
