//! The GPU's scratchpads against those of `pudica_nn`. Without a GPU these tests say so and pass.

mod checks;

use checks::{goes_on_as_if_never_stopped, noise_agrees, off};
use pudica_data::{Bits, Stream, Target, Task};
use pudica_ensemble::{Engine, Member, Strings, gpu_scratchpad, one_by_one};
use pudica_nn::{AdamWConfig, Architecture, Device, Embed, EncoderDecoderConfig, Network, Parameter, TrainingState};

struct Case {
    config: EncoderDecoderConfig,
    batch: usize,
}

/// Tiles that are full and not, one warp and many, both ways to embed; no longer than PUDICA_LONGEST where that is set, since an emulated GPU
/// (tests/kernels/emulate.py) is slow.
fn cases() -> Vec<Case> {
    let longest = longest().unwrap_or(usize::MAX);
    all_cases().into_iter().filter(|case| case.config.n <= longest).collect()
}

fn longest() -> Option<usize> {
    std::env::var("PUDICA_LONGEST").ok().map(|longest| longest.parse().unwrap())
}

fn all_cases() -> Vec<Case> {
    let case = |n, layers, embed, batch| Case {
        config: EncoderDecoderConfig { layers, embed, ..EncoderDecoderConfig::paper(n) },
        batch,
    };
    use Embed::{Add, Concat};
    vec![
        case(1, 2, Concat, 3),
        case(5, 2, Concat, 7),
        case(16, 1, Add, 8),
        case(39, 2, Concat, 16),
        case(64, 3, Add, 5),
        case(145, 2, Concat, 6),
        case(530, 2, Concat, 3), // more keys than a block has warps for at once
    ]
}

impl Case {
    fn architecture(&self) -> Architecture {
        Architecture::EncoderDecoder(self.config.clone())
    }

    /// Away from where runs start, since biases of 0 and scales of 1 hide mistakes.
    fn members(&self) -> Vec<Member> {
        let member = |seed: u64| {
            let task = Task::new(Target::parse("parity", self.config.n).unwrap()).with_scratchpad().unwrap();
            let mut weights = self.architecture().initial_weights(seed).unwrap();
            let mut noise = Stream::new(seed, "test", 0);
            weights.data_mut().iter_mut().for_each(|weight| *weight += 0.1 * noise.normal_f32());
            let adamw = AdamWConfig { lr: 1e-4 * (1.0 + seed as f64), weight_decay: 0.1, ..Default::default() };
            Member { task, seed, adamw, state: TrainingState::new(weights) }
        };
        (0..3).map(member).collect()
    }

    fn on_gpu(&self) -> Box<dyn Engine> {
        gpu_scratchpad(&self.config, self.batch, self.members()).unwrap()
    }

    fn reference(&self) -> Box<dyn Engine> {
        one_by_one(&self.architecture(), self.batch, self.members(), &Device::cpu()).unwrap()
    }

    fn name(&self) -> String {
        format!("{:?} batch {}", self.config, self.batch)
    }
}

/// Whether there is a GPU that computes scratchpads: those of compute capability 7.5 do not.
fn there_is_a_gpu() -> bool {
    let smallest = &all_cases()[0];
    match gpu_scratchpad(&smallest.config, smallest.batch, smallest.members()) {
        Ok(_) => true,
        Err(problem) => {
            eprintln!("skipped: {problem}");
            false
        }
    }
}

/// To the rounding of factors with 10 bits of mantissa.
#[test]
fn outputs_and_norms_agree() {
    if !there_is_a_gpu() {
        return;
    }
    let mut failures = Vec::new();
    for case in cases() {
        let (mut found, mut expected) = (case.on_gpu(), case.reference());
        let n = case.config.n;
        let shared = Bits::uniform(9, n, &mut Stream::new(1, "shared", 0)).unwrap();
        let each: Vec<Bits> =
            (0..3).map(|index| Bits::uniform(4, n, &mut Stream::new(index, "each", 0)).unwrap()).collect();
        let fresh = Strings::Fresh { rows: 6, purpose: "evaluate", index: 3 };
        for (which, strings) in [fresh, Strings::Shared(&shared), Strings::Each(&each)].into_iter().enumerate() {
            let (a, b) = (found.norms(strings).unwrap(), expected.norms(strings).unwrap());
            for (a, b) in a.iter().zip(&b) {
                assert_eq!(a.names, b.names);
                for (norm, name) in a.names.iter().enumerate() {
                    let of = |all: &[f32]| all.iter().skip(norm).step_by(a.names.len()).copied().collect::<Vec<f32>>();
                    let pairs = [
                        (&a.unbiased_max, &b.unbiased_max),
                        (&a.unbiased_mean, &b.unbiased_mean),
                        (&a.theory_max, &b.theory_max),
                        (&a.theory_mean, &b.theory_mean),
                    ];
                    for (a, b) in pairs {
                        let off = off(&of(a), &of(b));
                        if off.is_nan() || off > 5e-3 {
                            failures.push(format!("{} strings {which}: {name} off by {off:.1e}", case.name()));
                        }
                    }
                }
            }
            let (a, b) = (found.predict(strings).unwrap(), expected.predict(strings).unwrap());
            for (a, b) in a.iter().zip(&b) {
                let off = off(a, b);
                // Seen: 5e-3 of outputs for two strings of one bit.
                if off.is_nan() || off > if n == 1 { 1e-2 } else { 3e-3 } {
                    failures.push(format!("{} strings {which}: outputs off by {off:.1e}", case.name()));
                }
            }
            let (a, b) = (found.evaluate(strings).unwrap(), expected.evaluate(strings).unwrap());
            for (a, b) in a.iter().zip(&b) {
                if (a.0.sqrt() - b.0.sqrt()).abs() > 5e-3 || (a.1 - b.1).abs() > 0.02 {
                    failures.push(format!("{} strings {which}: scores {a:?} {b:?}", case.name()));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The moments of keys' biases, which cancel in the softmax.
fn key_biases(state: &TrainingState) -> impl Iterator<Item = f32> {
    let biases = state.weights.layout().iter().filter(|own| own.name.ends_with("in_proj_bias"));
    biases.flat_map(|own| {
        let third = own.range.len() / 3;
        state.first_moment[own.range.start + third..own.range.start + 2 * third].iter().copied()
    })
}

#[test]
fn biases_of_keys_have_no_gradient_in_the_reference() {
    let mut engine = cases()[1].reference();
    engine.advance(1).unwrap();
    let state = engine.state(0).unwrap();
    assert!(key_biases(&state).all(|moment| moment == 0.0));
    assert_eq!(key_biases(&state).count(), 6 * 32);
}

/// Of every parameter, and the losses of the steps that follow.
#[test]
fn gradients_agree() {
    if !there_is_a_gpu() {
        return;
    }
    let mut failures = Vec::new();
    for case in cases() {
        let (mut found, mut expected) = (case.on_gpu(), case.reference());
        found.advance(1).unwrap();
        expected.advance(1).unwrap();
        for replica in 0..found.replicas() {
            let (a, b) = (found.state(replica).unwrap(), expected.state(replica).unwrap());
            let all = off(&a.first_moment, &b.first_moment);
            assert!(key_biases(&a).chain(key_biases(&b)).all(|moment| moment == 0.0), "{}", case.name());
            eprintln!("{}, replica {replica}: gradient off by {all:.2e}", case.name());
            // Seen: at most 9.5e-3, of seven strings of 5 bits, whose gradients almost cancel; mostly 1e-3.
            if all.is_nan() || all > 1e-2 {
                failures.push(format!("{}, replica {replica}: gradient off by {all:.1e}", case.name()));
                for Parameter { name, range, .. } in b.weights.layout() {
                    let off = off(&a.first_moment[range.clone()], &b.first_moment[range.clone()]);
                    failures.push(format!("    {name}: {off:.1e}"));
                }
            }
        }
        let (a, b) = (found.advance(3).unwrap(), expected.advance(3).unwrap());
        for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
            // Their roots are how far outputs are from labels.
            if a.is_nan() || (a.sqrt() - b.sqrt()).abs() > 5e-3 {
                failures.push(format!("{}: losses {a} {b}", case.name()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Where an output is not so near 1/2 that rounding decides what is read next.
#[test]
fn own_outputs_are_read_as_one_after_the_other() {
    if !there_is_a_gpu() {
        return;
    }
    let (mut compared, mut all) = (0, 0);
    for case in cases().into_iter().filter(|case| case.config.n < 100) {
        let mut engine = case.on_gpu();
        let strings = Bits::uniform(6, case.config.n, &mut Stream::new(5, "decode", 0)).unwrap();
        let found = engine.decode(Strings::Shared(&strings)).unwrap().unwrap();
        for (replica, found) in found.iter().enumerate() {
            let weights = engine.state(replica).unwrap().weights;
            let network = Network::new(&case.architecture(), weights, &Device::cpu()).unwrap();
            let expected = network.decode(&strings).unwrap();
            for (a, b) in found.chunks(case.config.n).zip(expected.chunks(case.config.n)) {
                let clear = b.iter().take_while(|output| (*output - 0.5).abs() > 0.02).count();
                (compared, all) = (compared + clear, all + b.len());
                for (a, b) in a[..clear].iter().zip(&b[..clear]) {
                    assert!((a - b).abs() < 0.02, "{}: {a} {b}", case.name());
                }
            }
        }
    }
    assert!(2 * compared > all, "{compared} of {all}");
}

/// The GPU draws its own noise: equal in distribution, not in numbers. None is on the positions of either stack.
#[test]
fn noise_agrees_in_the_mean() {
    if !there_is_a_gpu() {
        return;
    }
    let case = &cases()[1];
    let strings = Strings::Fresh { rows: 16, purpose: "sharpness", index: 0 };
    noise_agrees(&mut *case.on_gpu(), &mut *case.reference(), strings, if longest().is_some() { 20 } else { 300 });
}

#[test]
fn resumed_scratchpads_go_on_as_if_never_stopped() {
    if !there_is_a_gpu() {
        return;
    }
    let case = cases().pop().unwrap();
    goes_on_as_if_never_stopped(
        || case.members(),
        |members| gpu_scratchpad(&case.config, case.batch, members).unwrap(),
    );
}
