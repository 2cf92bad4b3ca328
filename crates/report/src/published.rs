//! What Hahn & Rofin (2024) and Vasudeva et al. (2024) published, to stand beside our numbers.

use pudica_data::TokenTask;

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

/// Fig. 3 averages this many converged runs.
pub const FIG_3_RUNS: usize = 39;

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

/// The published sensitivities (sparse only, frequent only) for synthetic tokens, where there are any.
pub fn predictor_sensitivity(task: &TokenTask) -> Option<(f64, f64)> {
    let key = [task.n_s, task.n_f, task.n_d, task.m];
    let found = TOKEN_PREDICTORS.iter().find(|(setting, ..)| *setting == key && task.length == 50);
    found.map(|(_, sparse, frequent)| (*sparse, *frequent))
}

/// Whether Figure 2 and Table 1 of Vasudeva et al. show these data.
pub fn in_figure_2(task: &TokenTask) -> bool {
    [[3, 5, 1, 16], [1, 17, 7, 20]].contains(&[task.n_s, task.n_f, task.n_d, task.m])
}

/// What each published figure shows, in a sentence to read beside ours.
pub fn trend(figure: &str) -> &'static str {
    match figure {
        "fig1" => {
            "PARITY's sharpness rises steadily with n (slope 0.05 a bit) and comes near 1 at n = 30; MAJORITY's stays orders of magnitude lower."
        }
        "fig5" => {
            "PARITY's sharpness rises towards 1; MAJORITY's rises slightly, FIRST's and MEAN's barely or not at all (Table 2)."
        }
        "fig6" => "On one scale, only PARITY leaves the bottom of the panel.",
        "measures" => "Not a published figure: the two other measures of the same runs.",
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
            "Not a published figure. Theorem 6: for PARITY the limit of sharpness is at least 1, whatever the weights, as long as they stay bounded."
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
