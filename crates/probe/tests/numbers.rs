//! Measures of small networks give the numbers they gave when each had a loop of its own (commit 0f23b66), up to the rounding of other
//! processors; on one and the same they are equal to the bit.

use pudica_data::{Stream, Target, Task};
use pudica_ensemble::{Member, Precision, Shape, Strings, cpu};
use pudica_nn::classifier::{Classifier, Model};
use pudica_nn::text::{Gpt2Config, LstmConfig, RobertaConfig, Sequences, TextConfig};
use pudica_nn::vision::{ImageBatch, ImageShape, MlpConfig, VisionConfig};
use pudica_nn::{Architecture, Device, EncoderConfig, TrainingState};
use pudica_probe::classifier::{WeightNoiseConfig, image_sensitivity, text_sensitivity, weight_noise};
use pudica_probe::{
    Budget, EmbeddingNoise, Estimate, Nudge, PatchGrid, PatchNoise, PatchReplacement, ProbeError, SensitivityConfig,
    SharpnessConfig, WordReplacement, network_sensitivity, sharpness,
};

/// Mean, standard error and units.
fn close(found: &Estimate, (mean, std_error, samples): (f64, f64, u64)) {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-5 * (b.abs() + 0.1);
    let equal = near(found.mean, mean) && near(found.std_error.unwrap(), std_error) && found.samples == samples;
    assert!(equal, "{found:?}, expected {mean} ± {std_error} over {samples}");
}

fn engine(n: usize) -> Box<dyn pudica_ensemble::Engine> {
    let encoder = EncoderConfig { d: 8, ff: 8, ..EncoderConfig::paper(n) };
    let architecture = Architecture::Encoder(encoder.clone());
    let member = |seed| Member {
        task: Task::new(Target::parse("parity", n).unwrap()),
        seed,
        adamw: Default::default(),
        state: TrainingState::new(architecture.initial_weights(seed).unwrap()),
    };
    cpu(Shape { encoder, batch: 8 }, vec![member(3), member(5)], Precision::F32).unwrap()
}

#[test]
fn sharpness_of_encoders() {
    let mut engine = engine(5);
    let config = SharpnessConfig { rho: 0.05, draws: 3, plus_minus: true };
    let mut check = |count: u64, network: usize, rise: (f64, f64), shift: (f64, f64)| {
        let batches = (0..count).map(|index| Strings::Fresh { rows: 12, purpose: "test", index });
        let found = sharpness(engine.as_mut(), batches, &config, "sharpness").unwrap()[network];
        close(&found.loss_rise, (rise.0, rise.1, 3));
        close(&found.output_shift, (shift.0, shift.1, 3));
    };
    check(1, 0, (0.3896341864281269, 0.5746199817509294), (0.34659106936053674, 0.16216429477504854));
    check(1, 1, (-0.44799437012943955, 0.562960390538055), (0.0789755642289898, 0.053287029362451915));
    check(3, 0, (-0.023617423153605765, 0.300578337825447), (0.19862240604718565, 0.07740909653469617));
    check(3, 1, (-0.011465947158740109, 0.3426720428587675), (0.09915336613879346, 0.029526830753307552));
}

#[test]
fn sensitivity_of_encoders_of_many_bits() {
    let found = network_sensitivity(engine(21).as_mut(), 21, &SensitivityConfig::new(30), &[3, 5]).unwrap();
    close(&found[0].as_ref().unwrap().real, (0.07257348203328155, 0.0005286288196707367, 30));
    close(&found[1].as_ref().unwrap().real, (0.7161103324891683, 0.020107019093751365, 30));
}

fn pictures(count: usize) -> ImageBatch {
    let mut stream = Stream::new(3, "pictures", count as u64);
    let values = (0..count * 16).map(|_| stream.uniform_f32(-1.0, 1.0)).collect();
    ImageBatch::new(values, [1, 4, 4]).unwrap()
}

fn perceptron() -> Model<VisionConfig> {
    let images = ImageShape { channels: 1, side: 4, classes: 3 };
    let config = VisionConfig::Mlp(MlpConfig { images, hidden: vec![8], ..Default::default() });
    Model::new(&config, &config.initial_weights(1).unwrap(), &config.initial_buffers(), &Device::cpu()).unwrap()
}

#[test]
fn weight_noise_of_a_perceptron() {
    let check = |batches: Vec<ImageBatch>, l1, l2, labels| {
        let found = weight_noise(&perceptron(), batches, &WeightNoiseConfig { deviation: 0.3, draws: 5 }, 7).unwrap();
        close(&found.output_shift_l1, l1);
        close(&found.output_shift_l2, l2);
        close(&found.label_changes, labels);
    };
    check(
        vec![pictures(5)],
        (1.704365501999855, 0.21660473434811006, 5),
        (1.1380328836400635, 0.12702475311699665, 5),
        (0.24000000000000002, 0.11661903789690602, 5),
    );
    check(
        vec![pictures(5), pictures(4), pictures(7)],
        (1.6607384479721077, 0.025577258124558928, 3),
        (1.086551701359022, 0.026107195726164805, 3),
        (0.425, 0.10596238645741234, 3),
    );
}

#[test]
fn patch_sensitivity_of_a_perceptron() {
    let grid = PatchGrid::new([1, 4, 4], 2).unwrap();
    let check = |nudge: &dyn Nudge<Vec<f32>>, total, mean, first: f64| {
        let budget = Budget::new(5, 6, 2, "sensitivity");
        let done = |_| Ok::<_, ProbeError>(());
        let found = image_sensitivity(&perceptron(), &pictures(7), nudge, &budget, done).unwrap();
        close(&found.total, total);
        close(&found.mean, mean);
        assert!((found.by_site[0].mean() - first).abs() < 1e-12);
    };
    check(
        &PatchNoise { grid, variance: 4.0 },
        (0.9142857142857141, 0.26853089866422253, 7),
        (0.2285714285714286, 0.06713272466605565, 7),
        0.2,
    );
    check(
        &PatchReplacement { grid, low: -1.0, high: 1.0 },
        (0.05714285714285714, 0.03688555567816588, 7),
        (0.014285714285714287, 0.009221388919541468, 7),
        0.02857142857142857,
    );
}

#[test]
fn sensitivity_of_text_networks() {
    let mut stream = Stream::new(0, "sequences", 0);
    let mut ids = || (0..3 + stream.below(6)).map(|_| stream.below(20) as u32).collect::<Vec<u32>>();
    let sequences = Sequences::new((0..20).map(|_| ids()).collect());
    let check = |config: TextConfig, embedding, words| {
        let weights = config.initial_weights(3).unwrap();
        let weights = weights.with_data(weights.data().iter().map(|w| 3.0 * w).collect()).unwrap();
        let model = Model::new(&config, &weights, &config.initial_buffers(), &Device::cpu()).unwrap();
        let measure = |nudge: &dyn Nudge<_>| {
            let budget = Budget::new(3, 16, 0, "test");
            text_sensitivity(&model, &sequences, nudge, &budget, |_| Ok::<_, ProbeError>(())).unwrap().mean
        };
        close(&measure(&EmbeddingNoise { variance: 2.0, width: 8 }), embedding);
        close(&measure(&WordReplacement { words: 4..19 }), words);
    };
    let roberta = RobertaConfig { vocabulary: 20, d: 8, layers: 1, heads: 2, length: 12, ..Default::default() };
    let gpt2 = Gpt2Config { vocabulary: 20, d: 8, layers: 1, heads: 2, length: 12, ..Default::default() };
    let lstm = LstmConfig { vocabulary: 20, d: 8, layers: 1, length: 12, ..Default::default() };
    check(
        TextConfig::Roberta(roberta),
        (0.03389830508474577, 0.01167697112440407, 20),
        (0.047619047619047616, 0.015261006969508753, 20),
    );
    check(
        TextConfig::Gpt2(gpt2),
        (0.02824858757062147, 0.010685756945922033, 20),
        (0.062271062271062265, 0.016582770297540295, 20),
    );
    check(
        TextConfig::Lstm(lstm),
        (0.05649717514124293, 0.03026122641923283, 20),
        (0.11721611721611723, 0.028757985391989312, 20),
    );
}
