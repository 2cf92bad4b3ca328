//! Targets as rules the GPU can follow.

use pudica_boolean::Named;
use pudica_boolean::expression::Step;
use pudica_data::{Bits, Target};

use super::cuda::unusable;
use crate::EnsembleError;

/// Truth tables are put into GPU memory up to this length: 2 MiB each, 64 MiB where values are real.
const LONGEST_TABLE: usize = 24;

/// Values that an expression may leave waiting: the kernel keeps them in the bits of one word.
const MOST_WAITING: usize = 64;

/// The rules of some targets, as the kernel `label` reads them: for each its kind and where its data begin; and the data.
pub(super) fn rules<'a>(targets: impl Iterator<Item = &'a Target>) -> Result<(Vec<u32>, Vec<u32>), EnsembleError> {
    let (mut rules, mut data) = (Vec::new(), Vec::new());
    let mut known: Vec<(&Target, [u32; 2])> = Vec::new();
    for target in targets {
        // Runs that learn the table of one file read one copy of it.
        let same = known.iter().find(|(other, _)| target.shares_values_with(other));
        let own = match same {
            Some((_, rule)) => *rule,
            None => {
                let begin = data.len() as u32;
                let rule = [rule(target, &mut data)?, begin];
                known.push((target, rule));
                rule
            }
        };
        rules.extend(own);
    }
    Ok((rules, data))
}

fn rule(target: &Target, data: &mut Vec<u32>) -> Result<u32, EnsembleError> {
    use Named::{And, Dictator, KParity, Majority, Mean, Or, Parity, Threshold};
    let n = target.n();
    match target.named() {
        Some(Parity | Majority | Mean | And | Or | Threshold(_)) => {
            let strings = (0..=n).flat_map(|ones| (0..n).map(move |i| u8::from(i < ones))).collect();
            data.extend(target.labels(&Bits::new(n, strings)?)?.into_iter().map(f32::to_bits));
            Ok(0)
        }
        Some(KParity(_) | Dictator(_)) => {
            let strings = (0..n).flat_map(|marked| (0..n).map(move |i| u8::from(i == marked))).collect();
            data.extend(target.labels(&Bits::new(n, strings)?)?.into_iter().map(|label| u32::from(label > 0.5)));
            Ok(1)
        }
        _ if n <= LONGEST_TABLE && target.is_boolean() => {
            data.extend(target.table()?.words().iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]));
            Ok(2)
        }
        _ if n <= LONGEST_TABLE => {
            data.extend(target.values()?.into_iter().map(f32::to_bits));
            Ok(3)
        }
        _ => {
            let steps = target.expression().map(|expression| expression.steps());
            let steps = steps.filter(|steps| most_waiting(steps) <= MOST_WAITING).ok_or_else(|| {
                unusable(format!(
                    "{} of {n} bits has no rule the GPU can follow (a truth table up to {LONGEST_TABLE} bits is one, and an expression that \
                     does not nest too deeply); use --device cpu",
                    pudica_boolean::shortened(target.name(), 60)
                ))
            })?;
            data.push(steps.len() as u32);
            data.extend(steps.iter().map(code));
            Ok(4)
        }
    }
}

/// A step as the kernel reads it: what to do in the lowest three bits, with what in the others.
fn code(step: &Step) -> u32 {
    match *step {
        Step::Variable(i) => (i as u32) << 3,
        Step::Constant(bit) => u32::from(bit) << 3 | 1,
        Step::Not => 2,
        Step::And => 3,
        Step::Xor => 4,
        Step::Or => 5,
        Step::Majority(count) => (count as u32) << 3 | 6,
    }
}

/// The most values on the stack at any time.
fn most_waiting(steps: &[Step]) -> usize {
    let (mut waiting, mut most) = (0usize, 0);
    for step in steps {
        waiting = match step {
            Step::Variable(_) | Step::Constant(_) => waiting + 1,
            Step::Not => waiting,
            Step::And | Step::Xor | Step::Or => waiting.saturating_sub(1),
            Step::Majority(count) => (waiting + 1).saturating_sub(*count),
        };
        most = most.max(waiting);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudica_boolean::memory::Array;
    use pudica_boolean::table::RealTable;
    use pudica_data::Stream;

    /// What the kernel `label` computes.
    fn follow(kind: u32, data: &[u32], x: &[u8]) -> f32 {
        match kind {
            0 => f32::from_bits(data[x.iter().map(|bit| usize::from(*bit)).sum::<usize>()]),
            1 => (x.iter().zip(data).map(|(bit, mark)| u32::from(*bit) & mark).sum::<u32>() % 2) as f32,
            2 => (data[row(x) / 32] >> (row(x) % 32) & 1) as f32,
            3 => f32::from_bits(data[row(x)]),
            _ => {
                let mut stack = 0u64;
                for step in &data[1..=data[0] as usize] {
                    let argument = step >> 3;
                    stack = match step & 7 {
                        0 => stack << 1 | u64::from(x[argument as usize]),
                        1 => stack << 1 | u64::from(argument),
                        2 => stack ^ 1,
                        3 => stack >> 1 & (stack | !1),
                        4 => stack >> 1 ^ (stack & 1),
                        5 => stack >> 1 | (stack & 1),
                        _ => {
                            let ones = (stack << (64 - argument)).count_ones();
                            let below = if argument == 64 { 0 } else { stack >> argument };
                            below << 1 | u64::from(2 * ones > argument)
                        }
                    };
                }
                (stack & 1) as f32
            }
        }
    }

    fn row(x: &[u8]) -> usize {
        x.iter().fold(0, |row, bit| row << 1 | usize::from(*bit))
    }

    #[test]
    fn rules_give_the_labels() {
        let names = [
            "parity",
            "majority",
            "first",
            "mean",
            "kparity:3",
            "threshold:2",
            "and",
            "or",
            "random:7",
            "dictator:6",
            "threshold:n/2",
            "kparity:n-2",
            "expr:x1&!x7|x3",
        ];
        let mut targets: Vec<Target> = names.iter().map(|name| Target::parse(name, 7).unwrap()).collect();
        let values: Vec<f64> = (0..128).map(|row| f64::from(row) / 7.0 - 3.0).collect();
        let real = RealTable::new(7, Array::from(&values[..]), f64::EPSILON).unwrap();
        targets.push(Target::from_table("own", real));
        targets.push(targets[13].clone());
        let (rules, data) = rules(targets.iter()).unwrap();
        assert_eq!(rules[26..28], rules[28..30], "one copy of a table serves all");
        assert_eq!(
            rules.chunks(2).map(|rule| rule[0]).collect::<Vec<_>>(),
            [0, 0, 1, 0, 1, 0, 0, 0, 2, 1, 0, 1, 2, 3, 3]
        );
        let cube = Bits::cube(7).unwrap();
        for (target, rule) in targets.iter().zip(rules.chunks(2)) {
            let expected = target.labels(&cube).unwrap();
            let found: Vec<f32> = cube.iter().map(|x| follow(rule[0], &data[rule[1] as usize..], x)).collect();
            assert_eq!(found, expected, "{}", target.name());
        }
    }

    /// Beyond tables, expressions are followed step by step.
    #[test]
    fn long_expressions_are_compiled() {
        let wide = |count: usize| (1..=count).map(|i| format!("x{i}")).collect::<Vec<_>>().join(",");
        let names = [
            "expr:x1 & !x40 | x3 ^ x39 | 0".to_string(),
            "expr:!(x1 | x2) & (x3 ^ !(x40 & 1)) | maj(x1, x5 & x6, !x40) ^ x7".into(),
            format!("expr:maj({})", wide(40)),
            format!("expr:maj({}) ^ x2", wide(64)),
        ];
        for name in names {
            let target = Target::parse(&name, 70).unwrap();
            let (rules, data) = rules([target.clone()].iter()).unwrap();
            assert_eq!(rules, [4, 0]);
            let strings = Bits::uniform(500, 70, &mut Stream::new(0, "test", 0)).unwrap();
            let found: Vec<f32> = strings.iter().map(|x| follow(4, &data, x)).collect();
            assert_eq!(found, target.labels(&strings).unwrap(), "{name}");
            assert!(found.contains(&0.0) && found.contains(&1.0), "{name}");
        }
        let deep = Target::parse(&format!("expr:maj({})", wide(65)), 70).unwrap();
        assert!(rules([deep].iter()).unwrap_err().to_string().contains("--device cpu"));
    }

    #[test]
    fn long_tables_are_refused() {
        let target = Target::parse("inner-product", 30).unwrap();
        assert!(rules([target].iter()).unwrap_err().to_string().contains("--device cpu"));
    }
}
