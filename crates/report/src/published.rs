//! What Hahn & Rofin (2024) and Vasudeva et al. (2024) published, to stand beside our numbers.

use crate::run::Run;

/// A row of their Table 2: least squares of sharpness on n = 4..30 over converged runs.
pub struct Table2Row {
    /// The target.
    pub target: &'static str,
    /// Slope.
    pub slope: f64,
    /// Pearson correlation.
    pub r: f64,
    /// p-value of slope = 0.
    pub p: f64,
}

/// Their Table 2.
pub const TABLE_2: [Table2Row; 4] = [
    Table2Row { target: "parity", slope: 5.0e-2, r: 0.88, p: 6e-72 },
    Table2Row { target: "majority", slope: 1.8e-3, r: 0.67, p: 2e-36 },
    Table2Row { target: "first", slope: 6.4e-5, r: 0.16, p: 0.0075 },
    Table2Row { target: "mean", slope: -1.9e-5, r: -0.07, p: 0.22 },
];

/// Theorem 6 for PARITY: the sharpness that long inputs approach; published runs come near it at n = 30.
pub const PARITY_LIMIT: f64 = 1.0;

/// Fig. 3 shows this window around convergence, in steps.
pub const FIG_3_WINDOW: (i64, i64) = (-5_000, 15_000);

/// Table 3 of Vasudeva et al. (its second and fifth rows are Table 1): n_s, n_f, n_d, m, and the sensitivity of the predictors that use
/// only sparse and only frequent tokens.
const TOKEN_PREDICTORS: [([usize; 4], f64, f64); 6] = [
    ([3, 3, 1, 6], 0.0, 0.1315),
    ([3, 5, 1, 16], 0.0, 0.2878),
    ([3, 7, 1, 28], 0.0, 0.4502),
    ([1, 7, 7, 10], 0.0339, 0.0),
    ([1, 17, 7, 20], 0.0339, 0.0),
    ([1, 32, 7, 36], 0.0339, 0.0),
];

/// The published sensitivities (sparse only, frequent only) for sequences of 50 tokens with these n_s, n_f, n_d and m, where there are any.
pub fn predictor_sensitivity(task: [usize; 4]) -> Option<(f64, f64)> {
    let found = TOKEN_PREDICTORS.iter().find(|(published, ..)| *published == task);
    found.map(|(_, sparse, frequent)| (*sparse, *frequent))
}

/// Whether Figure 2 and Table 1 of Vasudeva et al. show these data.
pub fn in_figure_2(task: [usize; 4]) -> bool {
    [[3, 5, 1, 16], [1, 17, 7, 20]].contains(&task)
}

/// What each published figure shows, in a sentence to read beside ours.
pub fn trend(figure: &str) -> &'static str {
    match figure {
        "fig1" => {
            "PARITY's sharpness rises steadily with n (slope 0.05 per bit) and comes near 1 at n = 30; MAJORITY's stays orders of magnitude lower."
        }
        "fig5" => {
            "PARITY's sharpness rises towards 1; MAJORITY's rises slightly, FIRST's and MEAN's barely or not at all (Table 2)."
        }
        "fig6" => "On one scale, only PARITY leaves the bottom of the panel.",
        "fig7" => "MAJORITY's sharpness rises up to n = 512; FIRST and MEAN show no trend.",
        "fig8" => "On one scale, MAJORITY rises above FIRST and MEAN.",
        "fig2" => {
            "log blowup falls as the parameter norm grows, and for PARITY longer inputs lie above shorter ones at the same norm."
        }
        "fig9" => "All four functions trade blowup against norm; only for PARITY does the tradeoff move with n.",
        "fig10" => {
            "At n = 5 PARITY lies among the other functions; at n = 10, 15 and 20 it needs a larger norm at the same blowup."
        }
        "fig3" => {
            "Averaged over 39 converged runs at n = 25: sharpness jumps at the step where the loss falls, then declines to a level well above 0."
        }
        "fig12" => {
            "At every weight decay sharpness jumps as the loss falls; with weight decay above 0 the norm then falls and the blowup rises."
        }
        "fig14" => "With weight decay, norm falls and log blowup rises along a line.",
        "fig13" => {
            "After 100,000 steps, zero weight decay ends with lower sharpness than 0.1, yet far above that of insensitive functions."
        }
        "fig4" => {
            "Learnt functions T1 are less sensitive than the random f, and refitting them ends in flatter minima; the fewer training strings, the more so."
        }
        "fig15" => "Sharpness on the training strings alone is almost the same as on all strings.",
        "constructions" => {
            "Theorem 6: for PARITY the limit of sharpness is at least 1, whatever the weights, as long as they stay bounded."
        }
        "fig2-tokens" => {
            "Left: OOD accuracy drops to 0, alignment with the sparse direction is close to 1 and attention is highest on sparse tokens. Right: OOD accuracy stays high, alignment with the frequent direction is close to 1 and attention is highest on frequent tokens."
        }
        "fig10-top" => "As the left column of Figure 2: the layer uses the sparse tokens, OOD accuracy drops to 0.",
        "fig10-bottom" => {
            "As the right column of Figure 2: the layer uses the frequent tokens, OOD accuracy stays high."
        }
        "fig11" => "Sharpness stays low to hundreds of bits, with no clear rise.",
        _ => "",
    }
}

/// Sensitivity at the end of training in Sections 5 and 6 of Vasudeva et al.: data, network, what tells it from others of its kind (an
/// activation or an attention), and the value.
const FINAL_SENSITIVITIES: [(&str, &str, &str, f64); 16] = [
    ("fashion-mnist", "mlp", "leaky-relu", 0.0559),
    ("fashion-mnist", "mlp", "sigmoid", 0.0505),
    ("fashion-mnist", "cnn", "", 0.0453),
    ("fashion-mnist", "vit-small", "", 0.0098),
    ("cifar10", "vit-small", "", 0.0050),
    ("cifar10", "vit-simple", "", 0.0014),
    ("cifar10", "resnet18", "", 0.0827),
    ("cifar10", "densenet121", "", 0.3673),
    ("svhn", "resnet18", "", 0.0516),
    ("svhn", "vit-small", "", 0.0147),
    ("mrpc", "lstm", "", 0.15),
    ("mrpc", "roberta", "softmax", 0.002),
    ("mrpc", "roberta", "relu", 0.001),
    ("qqp", "lstm", "", 0.09),
    ("qqp", "roberta", "softmax", 0.03),
    ("qqp", "roberta", "relu", 0.02),
];

/// The published sensitivity at the end of training of such a network, whatever its size, where there is one: with the published noise, on
/// the training set, without intervention.
pub fn final_sensitivity(run: &Run) -> Option<f64> {
    let (data, kind) = (run.text("data.name"), run.text("model.kind"));
    let variance = match data.as_str() {
        "fashion-mnist" => 5.0,
        "cifar10" | "svhn" => 1.0,
        _ => 15.0,
    };
    let as_published = run.number("measure.variance") == Some(variance)
        && run.text("measure.set") == "train"
        && run.text("measure.nudge") != "replace";
    let vanilla = ["intervene.augment", "intervene.regularise"].iter().all(|key| run.number(key) == Some(0.0));
    let variant = run.text(if kind == "mlp" { "model.activation" } else { "model.attention" });
    let alike = |(of, network, detail, _): &&(&str, &str, &str, f64)| {
        *of == data && *network == kind && (detail.is_empty() || *detail == variant)
    };
    let found = FINAL_SENSITIVITIES.iter().find(alike).filter(|_| as_published && vanilla);
    found.map(|(.., value)| *value)
}

/// Table 2: ShOp and ShPred of ViT-small on CIFAR-10, without and with the regulariser.
pub fn weight_noise(run: &Run) -> Option<(f64, f64)> {
    let same = run.text("data.name") == "cifar10"
        && run.text("model.kind") == "vit-small"
        && run.number("measure.sharpness") == Some(0.005)
        && run.number("intervene.augment") == Some(0.0);
    let regularised = run.number("intervene.regularise").is_some_and(|strength| strength > 0.0);
    same.then_some(if regularised { (9.025, 0.3982) } else { (39.166, 0.5346) })
}

/// The number of the published figure that a figure of classifiers stands for, and what that shows; empty where there is none.
pub fn classifier_figure(recipe: &str, figure: &str) -> (&'static str, &'static str) {
    const SIMILAR: &str = "At the same training accuracy, sensitivities are similar.";
    match (recipe, figure) {
        ("vasudeva/mnist", "sensitivity") => {
            ("Figure 11", "At the same training accuracy, the ViT is less sensitive than the perceptron.")
        }
        ("vasudeva/fashion-mnist", "sensitivity") => (
            "Figure 4",
            "Training accuracies match closely; at the end, sensitivity is 0.0559 (perceptron, LeakyReLU), 0.0505 (sigmoid), 0.0453 (CNN) and 0.0098 (ViT).",
        ),
        ("vasudeva/svhn", "sensitivity") => {
            ("Figure 5", "At the end, sensitivity is 0.0516 (ResNet-18) and 0.0147 (ViT-small).")
        }
        ("vasudeva/cifar10", "sensitivity" | "training") => (
            "Figure 6",
            "Accuracies are similar; at the end, sensitivity is 0.3673 (DenseNet-121), 0.0827 (ResNet-18), 0.0050 (ViT-small) and 0.0014 (ViT-simple).",
        ),
        ("vasudeva/ablation-optimizer", "sensitivity") => {
            ("Figure 12", "Adam's is slightly higher than SGD's; both are similar.")
        }
        ("vasudeva/ablation-depth", "sensitivity") => ("Figure 13 (a)", SIMILAR),
        ("vasudeva/ablation-heads", "sensitivity") => ("Figure 13 (b)", SIMILAR),
        ("vasudeva/mrpc", "sensitivity") => (
            "Figure 7 (a)",
            "RoBERTa is less sensitive than the LSTM all through training; at the end, 0.15 (LSTM), 0.002 (softmax) and 0.001 (ReLU).",
        ),
        ("vasudeva/qqp", "sensitivity") => (
            "Figure 7 (b)",
            "RoBERTa is less sensitive than the LSTM all through training; at the end, 0.09 (LSTM), 0.03 (softmax) and 0.02 (ReLU).",
        ),
        ("vasudeva/mrpc", "positions") => {
            ("Figure 8 (a)", "The LSTM is more sensitive to later tokens; RoBERTa is uniform, with bumps at <s>.")
        }
        ("vasudeva/qqp", "positions") => {
            ("Figure 8 (b)", "The LSTM is more sensitive to later tokens; RoBERTa is uniform, with bumps at <s>.")
        }
        ("vasudeva/qqp-variance", "sensitivity" | "positions") => {
            ("Figure 16", "As with variance 15: the LSTM is more sensitive, and most to recent tokens.")
        }
        ("vasudeva/qqp-validation", "sensitivity") => {
            ("Figure 17", "As on the training set: RoBERTa is less sensitive than the LSTM.")
        }
        ("vasudeva/qqp-gpt2", "sensitivity") => {
            ("Figure 18", "GPT-2 is more sensitive than RoBERTa, and far less than the LSTM.")
        }
        ("vasudeva/qqp-gpt2", "positions") => {
            ("Figure 18", "GPT-2's profile is more like the LSTM's: higher at recent tokens.")
        }
        ("vasudeva/qqp-depth", "sensitivity") => (
            "Figure 19",
            "LSTMs are alike at all depths; RoBERTa with 4 layers is slightly less sensitive than with 8 or 12, and all are below the LSTMs.",
        ),
        ("vasudeva/robustness", "corruptions-2") => (
            "Figure 9",
            "ViTs are less sensitive and more accurate than CNNs on almost all corruptions; augmentation and regularisation lower sensitivity and help, most on noise and blur.",
        ),
        ("vasudeva/robustness", "corruptions-1") => ("Figure 14", "As at severity 2; the gains are smaller."),
        ("vasudeva/robustness", "corruptions-2-end") => {
            ("Figure 15", "Less sensitive networks are more accurate on most corruptions.")
        }
        _ => ("", ""),
    }
}
