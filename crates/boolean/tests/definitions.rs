//! Every measure against its definition: all functions of at most three variables, random larger ones, and closed forms.

use proptest::prelude::*;
use pudica_boolean::analysis::{Quantity, Request, Subject, analyse};
use pudica_boolean::sampled::{Budget, Precision, sample};
use pudica_boolean::{Bits, Convention, Named, Spectrum, TruthTable, flip_counts, sensitivity_profile};
use std::time::Duration;

fn table_of(n: usize, truth: &[bool]) -> TruthTable {
    TruthTable::from_fn(n, |x: &Bits| truth[x.iter().fold(0, |row, bit| 2 * row + usize::from(bit))]).unwrap()
}

/// Checks one function against sums over all inputs, written as the definitions are.
fn check(n: usize, truth: &[bool]) {
    let table = table_of(n, truth);
    let rows = 1usize << n;
    let sign = |bit: bool| if bit { -1.0 } else { 1.0 };
    let flip = |row: usize, i: usize| row ^ 1 << (n - i); // variable x_i, i from 1
    let sensitivity = |row: usize| (1..=n).filter(|&i| truth[row] != truth[flip(row, i)]).count();

    let spectrum = Spectrum::of(&table).unwrap();
    let (mut profile, mut norm, mut degree) = (vec![0.0; n + 1], 0.0, 0);
    for set in 0..rows {
        let chi = |row: usize| sign((row & set).count_ones() % 2 == 1);
        let lambda = (0..rows).map(|row| sign(truth[row]) * chi(row)).sum::<f64>() / rows as f64;
        assert_eq!(spectrum.coefficient(set as u64), lambda);
        let size = set.count_ones() as usize;
        profile[size] += lambda * lambda;
        norm += lambda.abs();
        degree = if lambda != 0.0 { degree.max(size) } else { degree };
    }
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    assert_eq!(spectrum.degree(), degree);
    close(spectrum.spectral_norm(), norm);
    spectrum.degree_profile().iter().zip(&profile).for_each(|(&a, &b)| close(a, b));
    (0..=n).for_each(|k| close(spectrum.weight_above(k), profile[k + 1..].iter().sum()));
    let rho: f64 = 0.3;
    close(spectrum.noise_stability(rho), profile.iter().enumerate().map(|(i, d)| rho.powi(i as i32) * d).sum());

    let counted = sensitivity_profile(&table);
    let average = (0..rows).map(sensitivity).sum::<usize>() as f64 / rows as f64;
    close(counted.average_sensitivity(), average);
    close(spectrum.average_sensitivity(), average); // Eq. 17
    close(spectrum.sum_of_squares(), 1.0); // Parseval
    assert_eq!(counted.max(), (0..rows).map(sensitivity).max().unwrap());
    assert!(degree <= counted.max() * counted.max(), "Huang's bound");
    for value in [false, true] {
        let at = (0..rows).filter(|&row| truth[row] == value).map(sensitivity).max();
        assert_eq!(counted.max_at(value), at);
    }
    for i in 1..=n {
        let flips = (0..rows).filter(|&row| truth[row] != truth[flip(row, i)]).count() as u64;
        assert_eq!((counted.flips[i - 1], flip_counts(&table)[i - 1]), (flips, flips));
    }
    for (s, &count) in counted.histogram().iter().enumerate() {
        assert_eq!(count as usize, (0..rows).filter(|&row| sensitivity(row) == s).count());
    }
}

/// What the command prints, against the definitions, in both conventions.
#[test]
fn the_whole_analysis_of_all_functions_of_at_most_three_variables() {
    for (n, truth) in (1..=3usize).flat_map(|n| (0..1u64 << (1 << n)).map(move |truth| (n, truth))) {
        for convention in [Convention::PlusMinus, Convention::ZeroOne] {
            check_analysis(n, truth, convention);
        }
    }
}

/// The spectrum of biased bits, from sums over all inputs with their probabilities.
#[test]
fn the_biased_spectrum_of_all_functions_of_at_most_3_variables_and_random_ones_of_4_to_6() {
    let small = (1..=3usize).flat_map(|n| (0..1u64 << (1 << n)).map(move |truth| (n, truth)));
    let random = (4..=6).flat_map(|n| (0..8).map(move |seed| (n, random_truth(n, seed))));
    for (n, truth) in small.chain(random) {
        for (p, convention) in [(0.2, Convention::PlusMinus), (0.83, Convention::ZeroOne), (1.0, Convention::PlusMinus)]
        {
            check_biased(n, truth, p, convention);
        }
    }
}

fn random_truth(n: usize, seed: u64) -> u64 {
    Named::Random(seed).boolean_at(n).unwrap().table().unwrap().words()[0]
}

fn check_biased(n: usize, truth: u64, p: f64, convention: Convention) {
    let rows = 1u64 << n;
    let zero_one = |row: u64| (truth >> row & 1) as f64;
    let value = |row: u64| if convention == Convention::ZeroOne { zero_one(row) } else { 1.0 - 2.0 * zero_one(row) };
    let one = |row: u64, bit: usize| row >> bit & 1 == 1;
    let chance = |row: u64, bit: usize| if one(row, bit) { p } else { 1.0 - p };
    let probability = |row: u64| (0..n).map(|bit| chance(row, bit)).product::<f64>();
    // Of mean 0 and variance 1; what has probability 0 does not count.
    let phi = |row: u64, bit: usize| match one(row, bit) {
        _ if p == 0.0 || p == 1.0 => 0.0,
        false => (p / (1.0 - p)).sqrt(),
        true => -((1.0 - p) / p).sqrt(),
    };
    let phi_of = |set: u64, row: u64| (0..n).filter(|bit| one(set, *bit)).map(|bit| phi(row, bit)).product::<f64>();
    let lambda = |set: u64| (0..rows).map(|row| probability(row) * value(row) * phi_of(set, row)).sum::<f64>();
    let all: Vec<f64> = (0..rows).map(lambda).collect();

    let rhos = vec![0.0, 0.4, 1.0];
    let request = Request { convention, rhos, top: 64, p: Some(p), ..Request::default() };
    let subject = Subject::Table(TruthTable::from_words(n, &[truth]).unwrap().into());
    let found = analyse(subject, &request, &mut |_, _| {}).unwrap().biased.unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "n={n} {truth:b} p={p} {convention:?}: {a} {b}");
    for (degree, weight) in found.spectral.degree_profile.unwrap().iter().enumerate() {
        let sets = (0..rows).filter(|set| set.count_ones() as usize == degree);
        close(*weight, sets.map(|set| all[set as usize].powi(2)).sum());
    }
    close(found.spectral.spectral_norm.unwrap(), all.iter().map(|lambda| lambda.abs()).sum());
    let mean_square: f64 = (0..rows).map(|row| probability(row) * value(row).powi(2)).sum();
    close(all.iter().map(|lambda| lambda * lambda).sum(), mean_square);
    close(found.spectral.spectral_weight_above.unwrap()[0], mean_square - all[0].powi(2));
    // y is x with each bit drawn anew with probability 1 - rho.
    for stability in found.spectral.noise_stability.unwrap() {
        let rho = stability.rho;
        let kept = |x: u64, y: u64, bit: usize| if one(x ^ y, bit) { 0.0 } else { rho };
        let given = |x: u64, y: u64| (0..n).map(|bit| kept(x, y, bit) + (1.0 - rho) * chance(y, bit)).product::<f64>();
        let pair = |x: u64, y: u64| probability(x) * given(x, y) * value(x) * value(y);
        close(stability.value, (0..rows).map(|x| (0..rows).map(|y| pair(x, y)).sum::<f64>()).sum());
    }
    let told = found.spectral.top_coefficients.unwrap();
    let set_of = |variables: &[usize]| variables.iter().map(|i| 1u64 << (n - i)).sum::<u64>();
    told.iter().for_each(|coefficient| close(coefficient.value, all[set_of(&coefficient.variables) as usize]));
    assert!(told.is_sorted_by(|a, b| a.value.abs() >= b.value.abs()));
    assert_eq!(told.len(), all.iter().filter(|lambda| lambda.abs() > 1e-12).count());
    assert!(found.checks.all().count() == 2 && found.checks.all().all(|(_, check)| check.holds));
}

fn check_analysis(n: usize, truth: u64, convention: Convention) {
    let rows = 1usize << n;
    let bit = |row: usize| truth >> row & 1 == 1;
    let value = |row: usize| match convention {
        Convention::ZeroOne => f64::from(u8::from(bit(row))),
        _ => 1.0 - 2.0 * f64::from(u8::from(bit(row))),
    };
    let request = Request { convention, rhos: vec![0.5], top: 20, ..Request::default() };
    let subject = Subject::Table(TruthTable::from_words(n, &[truth]).unwrap().into());
    let found = analyse(subject, &request, &mut |_, _| {}).unwrap();
    let number = |quantity: Option<Quantity>| quantity.unwrap().value();
    let mean = (0..rows).map(value).sum::<f64>() / rows as f64;
    let variance = (0..rows).map(|row| (value(row) - mean).powi(2)).sum::<f64>() / rows as f64;
    let context = format!("n={n} {truth:b} {convention:?}");
    assert!(
        (number(found.mean) - mean).abs() < 1e-12 && (number(found.variance) - variance).abs() < 1e-12,
        "{context}"
    );

    let chi = |set: usize, row: usize| if (set & row).count_ones() % 2 == 1 { -1.0 } else { 1.0 };
    let lambda = |set: usize| (0..rows).map(|row| value(row) * chi(set, row)).sum::<f64>() / rows as f64;
    let chow = std::iter::once(0).chain((0..n).rev().map(|place| 1 << place)).map(lambda);
    assert_eq!(found.chow_parameters.unwrap(), chow.collect::<Vec<_>>(), "{context}");
    let mut sizes: Vec<f64> = (0..rows).map(|set| lambda(set).abs()).filter(|size| *size > 0.0).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let told = found.spectral.top_coefficients.unwrap();
    assert_eq!(told.iter().map(|coefficient| coefficient.value.abs()).collect::<Vec<_>>(), sizes, "{context}");
    for coefficient in told {
        let set = coefficient.variables.iter().map(|i| 1 << (n - i)).sum();
        assert_eq!(coefficient.value, lambda(set), "{context}");
    }

    // Balanced, and any m bits fixed leave it so.
    let balanced_with = |fixed: usize| {
        (0..rows).all(|x| {
            let agreeing = || (0..rows).filter(|y| (x ^ y) & fixed == 0);
            2 * agreeing().filter(|y| bit(*y)).count() == agreeing().count()
        })
    };
    let resilient = |m: &usize| (0..rows).filter(|set| set.count_ones() as usize <= *m).all(balanced_with);
    let order = (0..=n).rev().find(resilient).map_or(-1, |m| m as i64);
    assert_eq!(found.resiliency, Some(order), "{context}");
    // Over GF(2): the largest set whose subcube from 0 has an odd number of ones.
    let odd = |set: &usize| (0..rows).filter(|row| row & set == *row && bit(*row)).count() % 2 == 1;
    let degree = (0..rows).filter(odd).map(|set| set.count_ones() as usize).max().unwrap_or(0);
    assert_eq!(found.gf2_degree, Some(degree), "{context}");
    let matters = |i: &usize| (0..rows).any(|row| bit(row) != bit(row ^ 1 << (n - i)));
    assert_eq!(found.relevant_variables.unwrap(), (1..=n).filter(matters).collect::<Vec<_>>(), "{context}");
    let depth = found.decision_tree_depth.unwrap();
    assert!(found.degree.unwrap() <= depth && found.certificate_complexity.unwrap() <= depth && depth <= n);
}

#[test]
fn all_functions_of_at_most_three_variables() {
    for n in 1..=3 {
        for truth in 0..1u64 << (1 << n) {
            check(n, &(0..1 << n).map(|row| truth >> row & 1 == 1).collect::<Vec<_>>());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_functions((n, truth) in (4usize..=10).prop_flat_map(|n| (Just(n), prop::collection::vec(any::<bool>(), 1 << n)))) {
        check(n, &truth);
    }

    #[test]
    fn sampling_covers_the_exact_value(seed in 0u64..1000) {
        let f = Named::Random(seed).boolean_at(12).unwrap();
        let exact = sensitivity_profile(&f.table().unwrap()).average_sensitivity();
        let budget = Budget { precision: Precision::Absolute(0.05), time_limit: Duration::from_secs(20), seed };
        let found = sample(f.as_ref(), &budget, &mut |_, _| {}).average;
        // 3 half-widths: a 95 % interval may miss, one three times as wide practically never does.
        prop_assert!((found.estimate.mean - exact).abs() < 3.0 * (found.ci95[1] - found.estimate.mean), "{found:?} {exact}");
    }
}

#[test]
fn closed_forms() {
    let average = |name: &str, n| {
        let table = name.parse::<Named>().unwrap().boolean_at(n).unwrap().table().unwrap();
        let counted = sensitivity_profile(&table).average_sensitivity();
        assert!((Spectrum::of(&table).unwrap().average_sensitivity() - counted).abs() < 1e-9, "{name} n={n}");
        counted
    };
    let binomial = |n: u64, k: u64| (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64);
    for n in [1usize, 5, 11, 17, 21] {
        let half = 2f64.powi(n as i32 - 1);
        assert_eq!(average("parity", n), n as f64);
        assert_eq!(average("first", n), 1.0);
        assert!((average("majority", n) - n as f64 * binomial(n as u64 - 1, (n as u64 - 1) / 2) / half).abs() < 1e-9);
        assert!((average("and", n) - n as f64 / half).abs() < 1e-12);
        assert!((average("or", n) - n as f64 / half).abs() < 1e-12);
    }
    // Each pair of the inner product has both influences 1/2.
    assert_eq!(average("inner-product", 20), 10.0);
    // Tribes: a variable matters when its tribe is otherwise 1 and no other tribe is.
    let (n, w) = (20, 4);
    let influence = 2f64.powi(1 - w) * (1.0 - 2f64.powi(-w)).powi(n / w - 1);
    assert!((average("tribes:4", n as usize) - f64::from(n) * influence).abs() < 1e-12);
    // Address: each address bit matters when the two data bits differ (1/2), each data bit when addressed.
    assert_eq!(average("address:3", 11), 3.0 * 0.5 + 1.0);
    // A random function is sensitive at half of its bits, within a few standard deviations.
    assert!((average("random:5", 20) - 10.0).abs() < 0.05);
}
