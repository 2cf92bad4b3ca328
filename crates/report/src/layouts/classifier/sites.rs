//! Figures 8 and 16 to 18, and their counterpart for images: sensitivity at every patch, and at every token counted from the end.

use pudica_statistics::{Mean, Range};

use super::Context;
use crate::figure::{Axis, ColourBar, Figure, Panel};
use crate::findings::Drawn;
use crate::group::Group;

/// The mean over runs at each site of their last evaluation, for networks of images or for those of texts.
fn profiles<'a>(context: &'a Context, of_texts: bool) -> Vec<(&'a Group<'a>, Vec<Mean>)> {
    // A network of texts has a longest text, one of images has not.
    let reads_text = |group: &Group| group.number("model.length").is_some_and(|length| length > 0.0);
    let groups = context.groups.iter().filter(|group| reads_text(group) == of_texts);
    let profile = |group: &Group| group.profile("sites").into_iter().map(|mean| mean.within(Range::Fraction)).collect();
    let groups = groups.map(|group| -> (&Group, Vec<Mean>) { (group, profile(group)) });
    groups.filter(|(_, profile)| !profile.is_empty()).collect()
}

/// A map of patches for each network of images.
pub fn patches(context: &Context) -> Option<Drawn> {
    let maps = profiles(context, false);
    let high = maps.iter().flat_map(|(_, profile)| profile).map(|mean| mean.mean).reduce(f64::max)?;
    let high = if high > 0.0 { high } else { 1.0 };
    let panel = |(group, profile): &(&Group, Vec<Mean>)| {
        let side = (profile.len() as f64).sqrt().ceil().max(1.0) as usize;
        let told =
            |mean: &Mean| (mean.mean, format!("{}: {:.4} [{:.4}, {:.4}]", group.label, mean.mean, mean.low, mean.high));
        Panel::map(&group.label, side, &profile.iter().map(told).collect::<Vec<_>>(), (0.0, high))
    };
    let panels: Vec<Panel> = maps.iter().map(panel).collect();
    let columns = panels.len().clamp(1, 3);
    let colour_bar = Some(ColourBar { label: "sensitivity".into(), low: 0.0, high });
    Some(context.drawn(
        "patches",
        "Sensitivity by patch",
        "Fraction of touches of each patch that change the predicted class, at the end of training; mean over runs. Hovering over a patch in a browser \
         shows its 95 % interval.",
        Figure { panels, columns, colour_bar, ..Figure::default() },
    ))
}

/// The profile over token positions, all texts aligned at their ends.
pub fn positions(context: &Context) -> Option<Drawn> {
    let profiles = profiles(context, true);
    if profiles.is_empty() {
        return None;
    }
    let from_end = |profile: &[Mean]| -> Vec<(f64, Mean)> {
        profile.iter().enumerate().map(|(site, mean)| (-(site as f64), *mean)).collect()
    };
    let panel = Panel {
        title: String::new(),
        x: Axis::whole("token position, 0 is the last one"),
        y: Axis::fraction("sensitivity"),
        marks: profiles.iter().flat_map(|(group, profile)| group.marks(&from_end(profile))).collect(),
    };
    Some(context.drawn(
        "positions",
        "Sensitivity by token position",
        "Fraction of touches of the token at each position that change the predicted class, at the end of training, texts aligned at their last token. \
         Far to the left few texts are long enough, and intervals are wide. Bands are 95 % intervals: over runs where there are three or more, over \
         texts where there is one.",
        Figure { panels: vec![panel], columns: 1, legend: context.legend(), ..Figure::default() },
    ))
}
