//! The architectures that checkpoints may be of, and how to tell them apart by names and shapes.

use pudica_boolean::did_you_mean;
use pudica_nn::Nonlinearity;
use pudica_nn::classifier::Classifier;
use pudica_nn::vision::{
    Activation, Attention, CifarResNetConfig, CnnConfig, ConvMixerConfig, DenseNetConfig, ImageShape, MlpConfig,
    ResNetConfig, TorchvisionResNetConfig, VisionConfig, VitConfig, VitSimpleConfig, VitSmallConfig, VitStyle,
};

use super::StateDict;
use crate::{Choices, ModelError, ModelResult};

/// A network that a checkpoint may be of.
pub(super) struct Found {
    pub(super) config: VisionConfig,
    /// What a reader should know: what was found, and what the file does not tell.
    pub(super) notes: Vec<String>,
}

/// An architecture of this name whose sizes a file tells, or `None` where the tensors that tell them are missing.
type Build = fn(&Shapes) -> Option<Found>;

/// All of them. A name may stand for several: their parameters have different names.
const ARCHITECTURES: [(&str, Build); 17] = [
    ("resnet20", |shapes| cifar_resnet(shapes, 3)),
    ("resnet32", |shapes| cifar_resnet(shapes, 5)),
    ("resnet44", |shapes| cifar_resnet(shapes, 7)),
    ("resnet56", |shapes| cifar_resnet(shapes, 9)),
    ("resnet110", |shapes| cifar_resnet(shapes, 18)),
    ("resnet18", |shapes| torchvision_resnet(shapes, [2, 2, 2, 2], false)),
    ("resnet34", |shapes| torchvision_resnet(shapes, [3, 4, 6, 3], false)),
    ("resnet50", |shapes| torchvision_resnet(shapes, [3, 4, 6, 3], true)),
    ("resnet18", small_resnet18),
    ("vit_cifar10_smmk47", vit_torch),
    ("vit_mnist", vit_residual),
    ("vit-small", vit_small),
    ("vit-simple", vit_simple),
    ("convmixer", convmixer),
    ("densenet121", densenet121),
    ("cnn", cnn),
    ("mlp", mlp),
];

/// The names for `--architecture`.
fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    ARCHITECTURES.iter().for_each(|(name, _)| {
        if !names.contains(name) {
            names.push(name);
        }
    });
    names
}

/// The architecture of a checkpoint: the one that is named, or the first that fits.
pub(super) fn find(state: &StateDict, choices: &Choices) -> ModelResult<Found> {
    let shapes = Shapes { state, image: choices.image };
    let named = choices.architecture.as_deref();
    let candidates = || ARCHITECTURES.iter().filter(|(name, _)| named.is_none_or(|named| named == *name));
    if let Some(named) = named
        && candidates().next().is_none()
    {
        let (like, names) = (did_you_mean(named, names()), names().join(", "));
        return Err(ModelError::Other(format!("there is no architecture '{named}'{like}; there are {names}")));
    }
    let mut nearest: Option<(&str, Misfit)> = None;
    for (name, build) in candidates() {
        let Some(mut found) = build(&shapes) else { continue };
        match misfit(state, &found.config) {
            None => {
                if named.is_none() {
                    let note = format!("By the names and shapes of its tensors, the architecture is {name}.");
                    found.notes.insert(0, note);
                }
                return Ok(found);
            }
            Some(misfit) if nearest.as_ref().is_none_or(|(_, other)| misfit.fraction > other.fraction) => {
                nearest = Some((name, misfit));
            }
            Some(_) => {}
        }
    }
    let all = names().join(", ");
    Err(state.wrong(match (named, nearest) {
        (Some(named), Some((_, misfit))) => format!("is not a {named}: {}", misfit.first),
        (Some(named), None) => {
            let first = state.names().next().unwrap_or_default();
            format!("is not a {named}: its tensors have other names, as {first}")
        }
        (None, Some((name, misfit))) => {
            format!("fits none of the architectures {all}; the nearest is {name}, but {}", misfit.first)
        }
        (None, None) => {
            let first = state.names().next().unwrap_or_default();
            format!("fits none of the architectures {all}: no tensor called {first} begins any of them")
        }
    }))
}

/// How a network differs from the tensors of a file.
pub(crate) struct Misfit {
    /// The fraction of its parameters and buffers that are there.
    pub(crate) fraction: f64,
    /// The first difference, as a part of a sentence.
    pub(crate) first: String,
}

/// Compares names and shapes; `None`: they are the same.
pub(crate) fn misfit<C: Classifier>(state: &StateDict, config: &C) -> Option<Misfit> {
    if let Err(error) = config.check() {
        return Some(Misfit { fraction: 0.0, first: error.to_string() });
    }
    let params = config.params();
    let (mut fitting, mut count, mut first) = (0, 0, None);
    let mut known = std::collections::BTreeSet::new();
    for (name, shape) in params.shapes() {
        known.insert(name);
        count += 1;
        let difference = match state.shape(name) {
            Some(found) if found == shape => {
                fitting += 1;
                continue;
            }
            Some(found) => format!("{name} is {found:?} in the file and {shape:?} in the network"),
            None => format!("the file has no {name}"),
        };
        first.get_or_insert(difference);
    }
    let beyond = || state.names().find(|name| !known.contains(name));
    let first = first.or_else(|| beyond().map(|name| format!("{name} is not one of its parameters")))?;
    Some(Misfit { fraction: f64::from(fitting) / f64::from(count.max(1)), first })
}

/// Sizes that a file tells.
struct Shapes<'a> {
    state: &'a StateDict,
    /// Channels, height and width of the images that the network will be given.
    image: Option<[usize; 3]>,
}

/// Sizes above are no network's; products of them would overflow.
const LARGEST: usize = 1 << 20;

impl Shapes<'_> {
    /// The shape of a tensor of so many dimensions.
    fn of<const N: usize>(&self, name: &str) -> Option<[usize; N]> {
        let shape: [usize; N] = self.state.shape(name)?.try_into().ok()?;
        shape.iter().all(|size| (1..=LARGEST).contains(size)).then_some(shape)
    }

    /// How many of PREFIX0, PREFIX1, .. there are.
    fn count(&self, prefix: &str) -> usize {
        let has = |at: &usize| {
            let start = format!("{prefix}{at}.");
            self.state.names().any(|name| name.starts_with(&start))
        };
        (0..).take_while(has).count()
    }

    /// The images, whose side the file does not tell.
    fn images(&self, channels: usize, side: usize, classes: usize) -> ImageShape {
        ImageShape { channels, side: self.image.map_or(side, |image| image[1]), classes }
    }
}

impl Found {
    fn new(config: VisionConfig) -> Option<Self> {
        Some(Self { config, notes: Vec::new() })
    }

    /// What had to be taken for granted.
    fn assuming(config: VisionConfig, assumed: &str) -> Option<Self> {
        Some(Self { config, notes: vec![format!("The file does not tell {assumed}.")] })
    }
}

fn cifar_resnet(shapes: &Shapes, blocks: usize) -> Option<Found> {
    let [width, channels, ..] = shapes.of::<4>("conv1.weight")?;
    let [classes, _] = shapes.of("linear.weight")?;
    let images = shapes.images(channels, 32, classes);
    Found::new(VisionConfig::CifarResNet(CifarResNetConfig { images, width, blocks: vec![blocks; 3] }))
}

fn torchvision_resnet(shapes: &Shapes, blocks: [usize; 4], bottleneck: bool) -> Option<Found> {
    let [width, channels, ..] = shapes.of::<4>("conv1.weight")?;
    let [classes, _] = shapes.of("fc.weight")?;
    let images = shapes.images(channels, 224, classes);
    let blocks = blocks.to_vec();
    Found::new(VisionConfig::TorchvisionResNet(TorchvisionResNetConfig { images, width, blocks, bottleneck }))
}

fn small_resnet18(shapes: &Shapes) -> Option<Found> {
    let [width, channels, ..] = shapes.of::<4>("conv1.weight")?;
    let [classes, _] = shapes.of("linear.weight")?;
    shapes.of::<4>("layer2.0.shortcut.0.weight")?;
    let images = shapes.images(channels, 32, classes);
    Found::new(VisionConfig::ResNet18(ResNetConfig { images, width, ..ResNetConfig::default() }))
}

/// The side of images that make so many tokens, one of them the class token.
fn side(tokens: usize, patch: usize) -> Option<usize> {
    let across = (tokens - 1).isqrt();
    (across * across == tokens - 1).then_some(across * patch)
}

/// What the names of a ViT's layers begin with.
const LAYERS: &str = "transformer.layers.";

fn vit_torch(shapes: &Shapes) -> Option<Found> {
    let [_, tokens, dim] = shapes.of("pos_embed")?;
    let [_, channels, patch, _] = shapes.of("patch_embed.proj.weight")?;
    let [mlp, _] = shapes.of("transformer.layers.0.linear1.weight")?;
    let [classes, _] = shapes.of("mlp_head.1.weight")?;
    let images = ImageShape { channels, side: side(tokens, patch)?, classes };
    let (depth, style, activation) = (shapes.count(LAYERS), VitStyle::TorchEncoder, Nonlinearity::Relu);
    let config = VitConfig { images, patch, dim, depth, heads: 8, mlp, style, activation, ..VitConfig::default() };
    Found::assuming(VisionConfig::Vit(config), "its 8 attention heads, its ReLUs and that LayerNorms stand behind")
}

fn vit_residual(shapes: &Shapes) -> Option<Found> {
    let [_, tokens, dim] = shapes.of("pos_embedding")?;
    let [_, pixels] = shapes.of("patch_to_embedding.weight")?;
    let [mlp, _] = shapes.of("transformer.layers.0.1.fn.fn.net.0.weight")?;
    let [head, _] = shapes.of("mlp_head.0.weight")?;
    let [classes, _] = shapes.of("mlp_head.2.weight")?;
    let (channels, patch) = patch_of(pixels)?;
    let images = ImageShape { channels, side: side(tokens, patch)?, classes };
    let (depth, style) = (shapes.count(LAYERS), VitStyle::Residual { head });
    let config = VitConfig { images, patch, dim, depth, heads: 8, mlp, style, ..VitConfig::default() };
    Found::assuming(
        VisionConfig::Vit(config),
        "its 8 attention heads and that scores are divided by the root of its width",
    )
}

/// Channels and side of a square patch of so many values: of one channel where that is possible, else of three.
fn patch_of(values: usize) -> Option<(usize, usize)> {
    let square = |channels: usize| {
        let side = (values / channels).isqrt();
        (side * side * channels == values).then_some((channels, side))
    };
    square(1).or_else(|| square(3))
}

/// Heads of the ViTs of `vit_pytorch`, and their width.
fn heads(inner: usize) -> (usize, usize) {
    let width = if inner.is_multiple_of(64) { 64 } else { inner };
    (inner / width, width)
}

/// What both ViTs of `vit_pytorch` leave open.
const HEADS: &str = "the width of its attention heads, which is taken to be 64";

fn vit_small(shapes: &Shapes) -> Option<Found> {
    let [_, tokens, dim] = shapes.of("pos_embedding")?;
    let [values] = shapes.of("to_patch_embedding.to_patch_tokens.1.weight")?;
    let [inner, _] = shapes.of("transformer.layers.0.0.to_qkv.weight")?;
    let [mlp, _] = shapes.of("transformer.layers.0.1.net.1.weight")?;
    let [classes, _] = shapes.of("mlp_head.1.weight")?;
    let (channels, patch) = patch_of(values / 5)?;
    let (heads, dim_head) = heads(inner / 3);
    let config = VitSmallConfig {
        images: ImageShape { channels, side: side(tokens, patch)?, classes },
        patch,
        dim,
        depth: shapes.count(LAYERS),
        heads,
        dim_head,
        mlp,
        attention: Attention::Softmax,
        ..VitSmallConfig::default()
    };
    Found::assuming(VisionConfig::VitSmall(config), HEADS)
}

fn vit_simple(shapes: &Shapes) -> Option<Found> {
    let [dim, values] = shapes.of("to_patch_embedding.2.weight")?;
    let [inner, _] = shapes.of("transformer.layers.0.0.to_qkv.weight")?;
    let [mlp, _] = shapes.of("transformer.layers.0.1.net.1.weight")?;
    let [classes, _] = shapes.of("linear_head.weight")?;
    let (channels, patch) = patch_of(values)?;
    let (heads, dim_head) = heads(inner / 3);
    let images = shapes.images(channels, 8 * patch, classes);
    let depth = shapes.count(LAYERS);
    let config = VitSimpleConfig { images, patch, dim, depth, heads, dim_head, mlp };
    Found::assuming(VisionConfig::VitSimple(config), HEADS)
}

fn convmixer(shapes: &Shapes) -> Option<Found> {
    let [dim, channels, patch, _] = shapes.of("0.weight")?;
    let [_, _, kernel, _] = shapes.of("3.0.fn.0.weight")?;
    let depth = (3..).take_while(|at| shapes.of::<4>(&format!("{at}.0.fn.0.weight")).is_some()).count();
    let [classes, _] = shapes.of(&format!("{}.weight", depth + 5))?;
    let images = shapes.images(channels, 32, classes);
    Found::new(VisionConfig::ConvMixer(ConvMixerConfig { images, patch, dim, depth, kernel }))
}

fn densenet121(shapes: &Shapes) -> Option<Found> {
    let [width, channels, ..] = shapes.of::<4>("conv1.weight")?;
    let [classes, _] = shapes.of("linear.weight")?;
    let images = shapes.images(channels, 32, classes);
    shapes.of::<4>("dense1.0.conv1.weight")?;
    let config = DenseNetConfig { images, growth: width / 2, ..DenseNetConfig::default() };
    Found::new(VisionConfig::DenseNet121(config))
}

fn cnn(shapes: &Shapes) -> Option<Found> {
    let [width, channels, ..] = shapes.of::<4>("conv1.weight")?;
    let [hidden, inputs] = shapes.of("fc1.weight")?;
    let [classes, _] = shapes.of("fc2.weight")?;
    let images = shapes.images(channels, 2 * (inputs / width).isqrt() + 4, classes);
    let config = CnnConfig { images, width, hidden, activation: Activation::LeakyRelu };
    Found::assuming(VisionConfig::Cnn(config), "its activation, which is taken to be a leaky ReLU")
}

fn mlp(shapes: &Shapes) -> Option<Found> {
    let count = shapes.count("layers.");
    let widths: Option<Vec<[usize; 2]>> = (0..count).map(|at| shapes.of(&format!("layers.{at}.weight"))).collect();
    let widths = widths?;
    let (channels, side) = patch_of(widths.first()?[1])?;
    let ([classes, _], hidden) = (*widths.last()?, widths[..count - 1].iter().map(|[outputs, _]| *outputs).collect());
    let images = ImageShape { channels, side, classes };
    let config = MlpConfig { images, hidden, activation: Activation::LeakyRelu };
    Found::assuming(VisionConfig::Mlp(config), "its activation, which is taken to be a leaky ReLU")
}
