//! Networks that answer the same to every input: they are insensitive, and have learnt nothing.

use pudica_lab::kinds::boolean::constant_loss;

use crate::findings::counted;
use crate::run::Run;
use crate::sweep::Sweep;

/// Outputs that vary less than this beside the target's are the same.
const SAME: f64 = 0.1;

/// So many touches without a change of the class tell that no touch changes it.
const MANY: f64 = 500.0;

impl Run {
    /// Whether it answers the same to every input, as far as its measures tell.
    pub fn is_constant(&self) -> bool {
        if let Some(fraction) = self.value("train_largest_class_fraction") {
            return fraction >= 1.0;
        }
        if let Some((output, target)) = self.value("output_std").zip(self.value("target_std")) {
            return output < SAME * target;
        }
        // Runs of earlier versions: none of many touches changes the class, though many classes are wrong; or the loss is that of a constant.
        let touches = self.value("sensitivity_inputs").map(|inputs| inputs * self.profile("sites").len().max(1) as f64);
        let never = self.value("sensitivity") == Some(0.0) && touches.is_some_and(|touches| touches >= MANY);
        let wrong = self.value("train_accuracy").is_some_and(|accuracy| accuracy < 0.9);
        let as_constant = self.loss_of_constant().zip(self.value("eval_loss"));
        never && wrong || as_constant.is_some_and(|(constant, loss)| loss > (1.0 - SAME) * constant)
    }

    /// Whether it has the random weights it began with: nothing was to be learnt.
    fn is_untrained(&self) -> bool {
        self.number("train.steps") == Some(0.0) && self.text("model.start") == "random"
    }

    /// The loss that the best constant answer would have, where it is known.
    fn loss_of_constant(&self) -> Option<f64> {
        let variance = self.value("target_std").map(|deviation| deviation * deviation);
        variance.or_else(|| constant_loss(&self.text("target"), self.number("n")?))
    }

    /// Whether the criterion of convergence lets a network pass that answers the same to every input.
    fn lets_constants_pass(&self) -> bool {
        let below = self.number("eval.converged_below");
        self.loss_of_constant().zip(below).is_some_and(|(constant, below)| constant < below)
    }
}

/// Labels longer than this are not listed.
const LONGEST: usize = 60;

/// What a reader must know about constant networks, where there are any or could be.
pub fn warnings(sweep: &Sweep) -> Vec<String> {
    let mut warnings = Vec::new();
    // Runs that have not converged are left out anyway.
    let constant: Vec<&Run> = sweep.kept().filter(|run| !run.is_untrained() && run.is_constant()).collect();
    if !constant.is_empty() {
        let names: Vec<&str> = constant.iter().map(|run| run.label()).filter(|label| label.len() <= LONGEST).collect();
        let named = match (names.len() == constant.len(), names.len()) {
            (true, 1..=4) => format!(" ({})", names.join("; ")),
            _ => String::new(),
        };
        let runs = counted(sweep.kept().count(), "run");
        let give = if constant.len() == 1 { "gives" } else { "give" };
        warnings.push(format!(
            "{} of {runs} {give} the same answer to every input{named}. Low sensitivity or sharpness means nothing there, and statements about \
             the least sensitive network leave such runs out.",
            constant.len()
        ));
    }
    for target in sweep.texts("target") {
        let own = || sweep.runs.iter().filter(|run| run.text("target") == target && !run.is_untrained());
        let passing = own().filter(|run| run.lets_constants_pass()).filter_map(|run| run.number("n")).reduce(f64::min);
        if let Some(n) = passing {
            let below = own().find_map(|run| run.number("eval.converged_below")).unwrap_or(0.0);
            warnings.push(format!(
                "The criterion of convergence, a loss below {below}, is passed by a network that answers the same to every string: for {} at \
                 n = {n}{}.",
                super::layouts::title_of(&target),
                if own().any(|run| run.number("n") > Some(n)) { " and above" } else { "" }
            ));
        }
    }
    warnings
}
