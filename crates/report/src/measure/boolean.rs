//! What models make of strings of bits, exactly: influences, weight by degree, how many strings have which sensitivity.

use pudica_measure::results::BooleanDetail;

use super::Part;
use super::found::Found;
use super::marks::curve;
use crate::figure::{Axis, Figure, Panel, Point};
use crate::findings::{Cell, Drawn, Table, head};

/// A figure and a table, where all strings were asked about.
pub fn parts(found: &Found) -> Vec<Part> {
    let details = &found.details.boolean;
    if details.is_empty() {
        return Vec::new();
    }
    let panel = |title: &str, x: &str, y: Axis, first: usize, of: &dyn Fn(&BooleanDetail) -> Vec<f64>| {
        let mut marks = Vec::new();
        for (model, style) in found.styles() {
            let Some(detail) = details.iter().find(|detail| detail.model == model) else { continue };
            let points =
                of(detail).into_iter().enumerate().map(|(place, y)| Point::new((place + first) as f64, y, model));
            marks.extend(curve(points.collect(), style));
        }
        Panel { title: title.into(), x: Axis::whole(x), y, marks }
    };
    let counts = |detail: &BooleanDetail| detail.sensitivity_histogram.iter().map(|count| *count as f64).collect();
    let fraction = |label: &str| Axis::fraction(label).within(-0.03, 1.05);
    let panels = vec![
        panel("Weight by degree", "degree", fraction("Fourier weight"), 0, &|detail| detail.degree_profile.clone()),
        panel("Influence of each bit", "bit", fraction("influence"), 1, &|detail| detail.influences.clone()),
        panel("Strings by sensitivity", "sensitivity", Axis::linear("strings"), 0, &counts),
    ];
    let figure = Figure { panels, columns: 3, legend: found.legend(), ..Figure::default() };
    let caption = "Of the label as a Boolean function (as ±1 for the weights, which sum to 1): its Fourier weight at each degree, the fraction \
        of strings at which flipping a bit changes it, and how many strings have how many such bits. Exact: all strings were asked about.";
    let row = |detail: &BooleanDetail| -> Vec<Cell> {
        let largest = detail.degree_profile.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1));
        vec![
            detail.model.as_str().into(),
            detail.n.into(),
            detail.average_sensitivity.into(),
            detail.ones.into(),
            detail.influences.iter().copied().reduce(f64::max).into(),
            largest.map(|(degree, _)| degree).into(),
            largest.map(|(_, weight)| *weight).into(),
        ]
    };
    let table = Table {
        title: "As Boolean functions".into(),
        head: head([
            "model",
            "bits",
            "average sensitivity",
            "fraction of ones",
            "largest influence",
            "heaviest degree",
            "its weight",
        ]),
        rows: details.iter().map(row).collect(),
        note: "Exact. The average sensitivity is the sum of the influences.".into(),
    };
    vec![Part::Figure(Drawn::new("boolean", "As Boolean functions", caption, "", figure)), Part::Table(table)]
}
