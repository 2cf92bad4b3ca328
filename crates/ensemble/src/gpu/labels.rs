//! Targets as rules the GPU can follow.

use pudica_boolean::Named;
use pudica_data::{Bits, Target};

use super::cuda::unusable;
use crate::EnsembleError;

/// Truth tables are put into GPU memory up to this length: 2 MiB each.
const LONGEST_TABLE: usize = 24;

/// The rules of some targets, as the kernel `label` reads them: for each its kind and where its data begin; and the data.
pub(super) fn rules<'a>(targets: impl Iterator<Item = &'a Target>) -> Result<(Vec<u32>, Vec<u32>), EnsembleError> {
    let (mut rules, mut data) = (Vec::new(), Vec::new());
    for target in targets {
        let begin = data.len() as u32;
        let kind = rule(target, &mut data)?;
        rules.extend([kind, begin]);
    }
    Ok((rules, data))
}

fn rule(target: &Target, data: &mut Vec<u32>) -> Result<u32, EnsembleError> {
    use Named::{And, Dictator, KParity, Majority, Mean, Or, Parity, Threshold};
    let n = target.n();
    match target.name().parse::<Named>() {
        Ok(Parity | Majority | Mean | And | Or | Threshold(_)) => {
            let strings = (0..=n).flat_map(|ones| (0..n).map(move |i| u8::from(i < ones))).collect();
            data.extend(target.labels(&Bits::new(n, strings)?)?.into_iter().map(f32::to_bits));
            Ok(0)
        }
        Ok(KParity(_) | Dictator(_)) => {
            let strings = (0..n).flat_map(|marked| (0..n).map(move |i| u8::from(i == marked))).collect();
            data.extend(target.labels(&Bits::new(n, strings)?)?.into_iter().map(|label| u32::from(label > 0.5)));
            Ok(1)
        }
        _ if n <= LONGEST_TABLE => {
            data.extend(target.table()?.words().iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]));
            Ok(2)
        }
        _ => Err(unusable(format!(
            "{} of {n} bits has no rule the GPU can follow (a truth table is one up to {LONGEST_TABLE} bits); use --device cpu",
            target.name()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel `label` computes.
    fn follow(kind: u32, data: &[u32], x: &[u8]) -> f32 {
        match kind {
            0 => f32::from_bits(data[x.iter().map(|bit| usize::from(*bit)).sum::<usize>()]),
            1 => (x.iter().zip(data).map(|(bit, mark)| u32::from(*bit) & mark).sum::<u32>() % 2) as f32,
            _ => {
                let row = x.iter().fold(0, |row, bit| row << 1 | usize::from(*bit));
                (data[row / 32] >> (row % 32) & 1) as f32
            }
        }
    }

    #[test]
    fn rules_give_the_labels() {
        let names =
            ["parity", "majority", "first", "mean", "kparity:3", "threshold:2", "and", "or", "random:7", "dictator:6"];
        let targets: Vec<Target> = names.iter().map(|name| Target::parse(name, 7).unwrap()).collect();
        let (rules, data) = rules(targets.iter()).unwrap();
        let cube = Bits::cube(7).unwrap();
        for (target, rule) in targets.iter().zip(rules.chunks(2)) {
            let expected = target.labels(&cube).unwrap();
            let found: Vec<f32> = cube.iter().map(|x| follow(rule[0], &data[rule[1] as usize..], x)).collect();
            assert_eq!(found, expected, "{}", target.name());
        }
    }

    #[test]
    fn long_tables_are_refused() {
        let target = Target::parse("inner-product", 30).unwrap();
        assert!(rules([target].iter()).unwrap_err().to_string().contains("--device cpu"));
    }
}
