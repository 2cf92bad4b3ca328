//! What Vasudeva et al. say about classifiers, asked of our runs.

use pudica_statistics::{Mean, order, spearman};

use super::Context;
use super::curves::{at_accuracy, common_accuracy};
use super::robustness::mean_accuracy;
use crate::claims::{Claim, Decision, Parts, apart, single};
use crate::findings::number;
use crate::group::{Group, averaged};
use crate::published::final_sensitivity;
use crate::run::estimate;

/// Sensitivities within this factor of each other are similar.
const SIMILAR: f64 = 2.0;

/// A statement that networks of some kinds are more sensitive than those of others, all through training.
struct Larger {
    recipes: &'static [&'static str],
    figure: &'static str,
    published: &'static str,
    question: &'static str,
    more: &'static [&'static str],
    less: &'static [&'static str],
}

const LARGER: [Larger; 7] = [
    Larger {
        recipes: &["vasudeva/mnist"],
        figure: "sensitivity",
        published: "At the same training accuracy, the ViT is less sensitive than the perceptron.",
        question: "At the same training accuracy, is the perceptron more sensitive than the ViT?",
        more: &["mlp"],
        less: &["vit-small"],
    },
    Larger {
        recipes: &["vasudeva/fashion-mnist"],
        figure: "sensitivity",
        published: "At the same training accuracy, the ViT is less sensitive than perceptrons and CNN.",
        question: "At the same training accuracy, are both perceptrons and the CNN more sensitive than the ViT?",
        more: &["mlp", "cnn"],
        less: &["vit-small"],
    },
    Larger {
        recipes: &["vasudeva/svhn", "vasudeva/cifar10", "vasudeva/robustness"],
        figure: "sensitivity",
        published: "At similar training accuracy, ViTs are less sensitive than CNNs.",
        question: "At the same training accuracy, is every CNN more sensitive than every ViT?",
        more: &["resnet18", "densenet121"],
        less: &["vit-small", "vit-simple"],
    },
    Larger {
        recipes: &["vasudeva/mrpc", "vasudeva/qqp", "vasudeva/qqp-variance", "vasudeva/qqp-validation"],
        figure: "sensitivity",
        published: "RoBERTa is less sensitive than the LSTM all through training.",
        question: "At the same training accuracy, is the LSTM more sensitive than RoBERTa?",
        more: &["lstm"],
        less: &["roberta"],
    },
    Larger {
        recipes: &["vasudeva/qqp-depth"],
        figure: "sensitivity",
        published: "At every depth RoBERTa is less sensitive than LSTMs.",
        question: "At the same training accuracy, is every LSTM more sensitive than every RoBERTa?",
        more: &["lstm"],
        less: &["roberta"],
    },
    Larger {
        recipes: &["vasudeva/qqp-gpt2"],
        figure: "sensitivity",
        published: "GPT-2 is more sensitive than RoBERTa.",
        question: "At the same training accuracy, is GPT-2 more sensitive than RoBERTa?",
        more: &["gpt2"],
        less: &["roberta"],
    },
    Larger {
        recipes: &["vasudeva/qqp-gpt2"],
        figure: "sensitivity",
        published: "GPT-2 is far less sensitive than the LSTM.",
        question: "At the same training accuracy, is the LSTM more sensitive than GPT-2?",
        more: &["lstm"],
        less: &["gpt2"],
    },
];

/// Everything that was published about a recipe and can be asked of its runs.
pub fn claims(context: &Context) -> Vec<Claim> {
    // The question of the page is the first: where corruptions or weight noise were measured, it is about them.
    let mut claims = robustness(context);
    claims.extend(flatness(context));
    let stated = LARGER.iter().filter(|claim| claim.recipes.contains(&context.recipe));
    claims.extend(stated.filter_map(|claim| larger(context, claim)));
    if context.recipe.starts_with("vasudeva/ablation-") {
        claims.extend(similar(context));
    }
    claims.extend(order_at_the_end(context));
    claims.extend(later_tokens(context));
    claims.extend(all_tokens_alike(context));
    claims
}

/// The groups whose networks have learnt something.
fn learnt<'a, 'b>(context: &'b Context<'a>) -> Vec<&'b Group<'a>> {
    context.groups.iter().filter(|group| !group.runs.iter().all(|run| run.is_constant())).collect()
}

fn runs_of(groups: &[&Group]) -> usize {
    groups.iter().map(|group| group.runs.len()).sum()
}

/// Without augmentation and regulariser.
fn is_vanilla(group: &Group) -> bool {
    ["intervene.augment", "intervene.regularise"].iter().all(|key| group.number(key).is_none_or(|value| value == 0.0))
}

/// Sensitivity where all networks have the same training accuracy.
fn at_equal_accuracy(context: &Context, group: &Group) -> Option<Mean> {
    let level = common_accuracy(context.runs().filter(|run| !run.is_constant()))?;
    averaged(
        group.runs.iter().filter(|run| !run.is_constant()).filter_map(|run| Some(at_accuracy(run, level)?.sensitivity)),
    )
}

fn larger(context: &Context, claim: &Larger) -> Option<Claim> {
    let of = |kinds: &[&str]| -> Vec<&Group> {
        let kind = |group: &&&Group| kinds.contains(&group.text("model.kind").as_str()) && is_vanilla(group);
        learnt(context).iter().filter(kind).copied().collect()
    };
    let (more, less) = (of(claim.more), of(claim.less));
    let mut parts = Parts::default();
    for one in &more {
        for other in &less {
            // Texts of several data sets are compared within each.
            if one.text("data.name") == other.text("data.name") {
                let found = apart(at_equal_accuracy(context, one), at_equal_accuracy(context, other));
                // The error of single runs is over their inputs: other seeds are not in it.
                let over = if one.runs.len() + other.runs.len() == 2 { " (over inputs)" } else { "" };
                parts.above(&format!("sensitivity, {} minus {}{over}:", one.label, other.label), found);
            }
        }
    }
    if more.is_empty() || less.is_empty() {
        let words =
            "no two such networks that have learnt something: those that answer the same to every input are left out";
        parts.add(Decision::CannotTell, words.into());
    }
    let runs = runs_of(&more) + runs_of(&less);
    (context.groups.len() > 1).then(|| parts.claim(claim.figure, claim.published, claim.question, runs))
}

/// The ablations: all networks are alike.
fn similar(context: &Context) -> Option<Claim> {
    let groups = learnt(context);
    let (first, others) = groups.split_first()?;
    let own = at_equal_accuracy(context, first);
    let mut parts = Parts::default();
    for other in others {
        let theirs = at_equal_accuracy(context, other);
        // Of positive numbers the logarithm's error is the relative one.
        let log = |mean: Mean| Mean { mean: mean.mean.ln(), std_error: mean.std_error / mean.mean, ..mean };
        let found = apart(theirs.map(log), own.map(log)).filter(|found| found.value.is_finite());
        parts.about(&format!("log of the ratio, {} to {},", other.label, first.label), found, SIMILAR.ln());
    }
    Some(parts.claim(
        "sensitivity",
        "At the same training accuracy, sensitivities are similar.",
        "At the same training accuracy, are sensitivities within a factor of two of each other?",
        runs_of(&groups),
    ))
}

/// Figures 6, 7 and others: the published sensitivities at the end of training, by their order.
fn order_at_the_end(context: &Context) -> Option<Claim> {
    let learnt = learnt(context);
    let shown = learnt.iter().filter_map(|group| {
        let published = final_sensitivity(group.first()).filter(|_| context.shows_published)?;
        Some((group.label.as_str(), published, group.value("sensitivity")?.mean, group.runs.len()))
    });
    let shown: Vec<(&str, f64, f64, usize)> = shown.collect();
    if shown.len() < 3 {
        return None;
    }
    let found = order(&shown.iter().map(|(_, published, ours, _)| (*published, *ours)).collect::<Vec<_>>());
    let words: Vec<String> =
        shown.iter().map(|(label, published, ours, _)| format!("{label} {ours:.4} (published {published})")).collect();
    let probability = found.map_or("no order of equal numbers".into(), |found| {
        format!(
            "rank correlation with the published order {:.2}; {:.0} % of all orders agree as well or better",
            found.rho,
            100.0 * found.as_good
        )
        .replace('-', "−")
    });
    let mut parts = Parts::default();
    parts.add(Decision::ordered(found), format!("{}; {probability}", words.join(", ")));
    Some(parts.claim(
        "sensitivity",
        "Sensitivities at the end of training.",
        "Are networks in the published order of sensitivity at the end of training?",
        shown.iter().map(|(.., runs)| runs).sum(),
    ))
}

/// Section 7: robustness of the trained networks with and without an intervention, and across networks.
fn robustness(context: &Context) -> Vec<Claim> {
    let of = |group: &Group| averaged(group.runs.iter().filter_map(|run| mean_accuracy(run)));
    let vanilla: Vec<&Group> =
        context.groups.iter().filter(|group| group.text("model.kind") == "vit-small" && is_vanilla(group)).collect();
    let mut parts = Parts::default();
    let mut runs = 0;
    for group in context.groups.iter().filter(|group| !is_vanilla(group) && of(group).is_some()) {
        let severity = |other: &&&Group| other.text("measure.severity") == group.text("measure.severity");
        let Some(plain) = vanilla.iter().find(severity) else { continue };
        parts.above(&format!("{} minus {}:", group.label, plain.label), apart(of(group), of(plain)));
        runs += group.runs.len() + plain.runs.len();
    }
    if runs == 0 {
        return Vec::new();
    }
    let points: Vec<(f64, f64)> = learnt(context)
        .iter()
        .flat_map(|group| &group.runs)
        .filter_map(|run| Some((run.value("sensitivity")?, mean_accuracy(run)?.mean)))
        .collect();
    let found = spearman(&points);
    let decision = match found {
        Some(found) if found.high < 0.0 => Decision::Agrees,
        Some(found) if found.low > 0.0 => Decision::Disagrees,
        _ => Decision::CannotTell,
    };
    let words = found.map_or("too few networks".into(), |found| {
        format!("rank correlation {:.2} [{:.2}, {:.2}], p = {}", found.r, found.low, found.high, number(found.p))
            .replace('-', "−")
    });
    let mut across = Parts::default();
    across.add(decision, words);
    let figure = context.groups.iter().map(|group| group.text("measure.severity")).next().unwrap_or_default();
    let figure = format!("corruptions-{figure}-end");
    vec![
        parts.claim(
            &figure,
            "Augmentation and the regulariser improve accuracy on corruptions.",
            "Is mean accuracy on corruptions higher with each intervention than without?",
            runs,
        ),
        across.claim(
            &figure,
            "Less sensitive networks are more accurate on most corruptions.",
            "Does mean accuracy on corruptions fall with sensitivity over all networks?",
            points.len(),
        ),
    ]
}

/// Table 2: the regulariser and the flatness of the minimum.
fn flatness(context: &Context) -> Option<Claim> {
    let regularised = |group: &&Group| group.number("intervene.regularise").is_some_and(|strength| strength > 0.0);
    let with = context.groups.iter().find(regularised)?;
    let without =
        context.groups.iter().find(|group| is_vanilla(group) && group.text("model.kind") == with.text("model.kind"))?;
    let mut parts = Parts::default();
    for (name, title) in [("shop", "ShOp"), ("shpred", "ShPred")] {
        let values = (without.value(name), with.value(name));
        if values.0.is_some() {
            parts.above(&format!("{title} without minus with:"), apart(values.0, values.1));
        }
    }
    with.value("shop").map(|_| {
        parts.claim(
            "",
            "Table 2: the regulariser lowers ShOp from 39.2 to 9.0 and ShPred from 0.535 to 0.398.",
            "Does training with the regulariser lower ShOp and ShPred?",
            with.runs.len() + without.runs.len(),
        )
    })
}

/// Figures 8, 16 and 18: which tokens an LSTM is sensitive to.
fn later_tokens(context: &Context) -> Option<Claim> {
    let mut parts = Parts::default();
    let mut runs = 0;
    for group in learnt(context).into_iter().filter(|group| group.text("model.kind") == "lstm") {
        // Positions are counted from the last token.
        let profile = group.profile("sites").into_iter().enumerate();
        let points: Vec<(f64, f64)> = profile.map(|(place, mean)| (-(place as f64), mean.mean)).collect();
        parts.rising(&format!("{}:", group.label), spearman(&points));
        runs += group.runs.len();
    }
    (runs > 0).then(|| {
        parts.claim(
            "positions",
            "The LSTM is more sensitive to later tokens.",
            "Does the LSTM's sensitivity rise towards the end of the text?",
            runs,
        )
    })
}

/// Figure 8: RoBERTa is sensitive to all tokens alike, but for some bumps.
fn all_tokens_alike(context: &Context) -> Option<Claim> {
    if !["vasudeva/mrpc", "vasudeva/qqp"].contains(&context.recipe) {
        return None;
    }
    let mut parts = Parts::default();
    let mut runs = 0;
    for group in learnt(context).into_iter().filter(|group| group.text("model.kind") == "roberta") {
        let ratios: Option<Vec<Mean>> = group.runs.iter().map(|run| late_to_early(&run.profile("sites"))).collect();
        let found = ratios.and_then(averaged).and_then(|mean| single(&mean));
        parts.about(
            &format!("log of the ratio, later half of positions to earlier, {},", group.label),
            found,
            SIMILAR.ln(),
        );
        runs += group.runs.len();
    }
    (runs > 0).then(|| {
        parts.claim(
            "positions",
            "RoBERTa is uniformly sensitive to all tokens, with bumps at <s>.",
            "Is RoBERTa's sensitivity to later tokens within a factor of two of that to earlier ones?",
            runs,
        )
    })
}

/// The logarithm of the ratio of two means: over the later half of a run's positions, which are counted from the last token, and over the
/// earlier one; nothing where nothing changed in one of them. All positions count alike: of one at which nothing changed it is not known how
/// many texts are that long.
fn late_to_early(profile: &[Mean]) -> Option<Mean> {
    let (late, early) = profile.split_at(profile.len() / 2);
    // Positions are of the same texts, so their errors may agree: that of the mean is taken as if they did.
    let log_of_mean = |half: &[Mean]| {
        let (sum, error) = half.iter().fold((0.0, 0.0), |(sum, error), mean| (sum + mean.mean, error + mean.std_error));
        (sum > 0.0).then(|| ((sum / half.len() as f64).ln(), error / sum))
    };
    let ((late, late_error), (early, early_error)) = (log_of_mean(late)?, log_of_mean(early)?);
    Some(estimate(late - early, Some(late_error.hypot(early_error))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_half_of_positions_is_compared_with_the_earlier_one() {
        // The last token first.
        let profile = |means: [f64; 4]| means.map(|mean| estimate(mean, Some(0.1 * mean)));
        let ratio = late_to_early(&profile([0.2, 0.2, 0.1, 0.1])).unwrap();
        assert!((ratio.mean - 2f64.ln()).abs() < 1e-12 && (ratio.std_error - 0.02f64.sqrt()).abs() < 1e-12);
        // A position at which nothing changed, hence without an error, counts as much as the others.
        assert!(late_to_early(&profile([0.0, 0.2, 0.1, 0.1])).unwrap().mean.abs() < 1e-12);
        assert_eq!(late_to_early(&profile([0.1, 0.1, 0.0, 0.0])), None);
        assert_eq!(late_to_early(&[]), None);
    }
}
