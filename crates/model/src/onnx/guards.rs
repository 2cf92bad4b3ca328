//! What the embedded engine is known to answer wrongly without an error (`tract` 0.23.9, found with ONNX's own tests of its ops): refused here, or
//! left to ONNX Runtime.

use tract_onnx::pb::{FunctionProto, GraphProto, NodeProto};

use super::file::node_name;
use super::graph::visit_nodes;

/// The first such thing in a graph, in words that complete "has ...".
pub(super) fn known_wrong(graph: &GraphProto, functions: &[FunctionProto]) -> Option<String> {
    let mut found = None;
    visit_nodes(graph, &mut |node| {
        if found.is_none() {
            found = problem(node, functions).map(|problem| format!("{} {problem}", node_name(node)));
        }
    });
    found
}

fn problem(node: &NodeProto, functions: &[FunctionProto]) -> Option<&'static str> {
    let attribute = |name: &str| node.attribute.iter().find(|attribute| attribute.name == name);
    let given = |input: usize| node.input.get(input).is_some_and(|name| !name.is_empty());
    let standard = matches!(node.domain.as_str(), "" | "ai.onnx");
    // It looks for ops by their names alone.
    if functions.iter().any(|function| function.name() == node.op_type && function.domain() == node.domain) {
        return Some("computed by a function of the file's own");
    }
    match node.op_type.as_str() {
        "LSTM" | "GRU" | "RNN" if attribute("direction").is_some_and(|direction| direction.s == b"reverse") => {
            Some("that reads from the last token to the first")
        }
        "Attention" if !standard => Some("of another kind than ONNX's own"),
        "Attention" if given(4) || given(5) => Some("with keys and values from the past"),
        "Attention"
            if ["left_window_size", "right_window_size"]
                .iter()
                .any(|name| attribute(name).is_some_and(|size| size.i >= 0)) =>
        {
            Some("that sees only a window")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tract_onnx::pb::AttributeProto;

    use super::*;

    fn attention(domain: &str, inputs: usize, window: Option<i64>) -> Option<&'static str> {
        let attribute =
            window.map(|i| AttributeProto { name: "left_window_size".into(), i, ..AttributeProto::default() });
        let node = NodeProto {
            op_type: "Attention".into(),
            domain: domain.into(),
            input: (0..inputs).map(|input| input.to_string()).collect(),
            attribute: attribute.into_iter().collect(),
            ..NodeProto::default()
        };
        problem(&node, &[])
    }

    #[test]
    fn attention_is_refused_where_it_would_be_wrong() {
        assert_eq!(attention("", 4, None), None);
        assert_eq!(attention("ai.onnx", 3, Some(-1)), None);
        assert!(attention("", 6, None).is_some_and(|problem| problem.contains("past")));
        assert!(attention("", 3, Some(2)).is_some_and(|problem| problem.contains("window")));
        assert!(attention("com.microsoft", 3, None).is_some_and(|problem| problem.contains("another kind")));
    }

    #[test]
    fn recurrent_networks_are_refused_backwards_also_inside_a_branch() {
        let node = |direction: &[u8]| NodeProto {
            op_type: "GRU".into(),
            attribute: vec![AttributeProto {
                name: "direction".into(),
                s: direction.into(),
                ..AttributeProto::default()
            }],
            ..NodeProto::default()
        };
        let graph = |node: NodeProto| GraphProto { node: vec![node], ..GraphProto::default() };
        let branch = |node: NodeProto| NodeProto {
            op_type: "If".into(),
            attribute: vec![AttributeProto { g: Some(graph(node)), ..AttributeProto::default() }],
            ..NodeProto::default()
        };
        assert_eq!(known_wrong(&graph(node(b"bidirectional")), &[]), None);
        assert!(known_wrong(&graph(node(b"reverse")), &[]).is_some());
        assert!(known_wrong(&graph(branch(node(b"reverse"))), &[]).is_some());
        let own = FunctionProto { name: Some("GRU".into()), domain: Some(String::new()), ..FunctionProto::default() };
        assert!(known_wrong(&graph(node(b"forward")), &[own]).is_some());
    }
}
