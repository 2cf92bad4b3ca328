//! Inputs as the tensors that a graph takes.

use half::f16;

use super::graph::{Element, Port, inputs, the_one, vocabulary};
use crate::{Choices, Image, Input, ModelError, ModelResult, Normalisation, Takes};
use tract_onnx::pb::GraphProto;

/// The most inputs that a graph may demand at a time, and the most numbers.
const MOST_AT_ONCE: usize = 1 << 16;
const MOST_NUMBERS: usize = 1 << 28;

/// The most numbers that a graph is tried on when it is opened, and the longest side of images or sequences.
const MOST_TRIED: usize = 1 << 20;
const LONGEST_TRIED: usize = 1 << 14;

/// Numbers in the type that a graph takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    F16(Vec<f16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    U8(Vec<u8>),
    I8(Vec<i8>),
    I32(Vec<i32>),
    I64(Vec<i64>),
}

impl Values {
    /// Numbers in another type; whole ones stay what they are.
    fn of(numbers: Vec<f32>, element: Element) -> Self {
        match element {
            Element::F16 => Self::F16(numbers.into_iter().map(f16::from_f32).collect()),
            Element::F64 => Self::F64(numbers.into_iter().map(f64::from).collect()),
            Element::Bool => Self::Bool(numbers.into_iter().map(|number| number != 0.0).collect()),
            Element::U8 => Self::U8(numbers.into_iter().map(|number| number as u8).collect()),
            Element::I8 => Self::I8(numbers.into_iter().map(|number| number as i8).collect()),
            Element::I32 => Self::I32(numbers.into_iter().map(|number| number as i32).collect()),
            Element::I64 => Self::I64(numbers.into_iter().map(|number| number as i64).collect()),
            Element::F32 | Element::Other(_) => Self::F32(numbers),
        }
    }
}

/// A tensor for one input of a graph.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Feed {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Values,
}

/// What the axes of the input mean, without the axis of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// [channels, height, width], [height, width, channels] or, of one channel, [height, width].
    Images { channels_last: bool, channels: bool },
    /// Numbers.
    Rows,
    /// One number, without an axis for it.
    Number,
    /// Tokens.
    Tokens,
}

/// How inputs are given to a graph.
#[derive(Debug, Clone)]
pub(super) struct Feeder {
    input: Port,
    /// Inputs beside the tokens: ones for the mask, zeros for the kinds, 0, 1, 2, ... for positions.
    beside: Vec<(Port, Beside)>,
    layout: Layout,
    /// Whether the first axis is the batch's.
    batched: bool,
    /// The length of that axis, where it is fixed.
    pub fixed_batch: Option<usize>,
    /// What the model takes.
    pub takes: Takes,
    /// What had to be guessed, in sentences.
    pub notes: Vec<String>,
    choices: Choices,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Mask,
    Kinds,
    Positions,
}

impl Beside {
    fn named(name: &str) -> Option<Self> {
        match name {
            "attention_mask" | "input_mask" => Some(Self::Mask),
            "token_type_ids" | "segment_ids" => Some(Self::Kinds),
            "position_ids" => Some(Self::Positions),
            _ => None,
        }
    }
}

impl Feeder {
    /// Finds out what the input is and what its axes mean.
    pub fn new(graph: &GraphProto, choices: &Choices) -> Result<Self, String> {
        let all = inputs(graph);
        let has_main = all.iter().any(|port| Beside::named(&port.name).is_none());
        let is_beside = |port: &Port| {
            Beside::named(&port.name).filter(|_| has_main && choices.input.as_deref() != Some(&port.name))
        };
        let beside: Vec<(Port, Beside)> =
            all.iter().filter_map(|port| Some((port.clone(), is_beside(port)?))).collect();
        let main: Vec<Port> = all.iter().filter(|port| is_beside(port).is_none()).cloned().collect();
        let count = main.len();
        let input = the_one(main.clone(), choices.input.as_deref(), "input")?;
        if count > 1 {
            let others: Vec<String> = main.iter().filter(|port| port.name != input.name).map(Port::to_string).collect();
            return Err(format!(
                "needs {} beside '{}', and there is nothing to give it",
                others.join(", "),
                input.name
            ));
        }
        if let Element::Other(name) = input.element {
            return Err(format!("takes {input}: inputs of type {name} cannot be made here"));
        }
        let Some(shape) = input.shape.clone() else {
            return Err(format!(
                "does not say the shape of its input {input}: export it with shapes (a batch of any size is fine)"
            ));
        };
        let mut notes = Vec::new();
        let float = input.element.is_float();
        let (layout, batched, takes) = match (shape.as_slice(), float || input.element == Element::Bool) {
            (&[_, a, b, c], _) => {
                let channels_last = channels_last([a, b, c], choices, &mut notes);
                let [channels, height, width] = if channels_last { [c, a, b] } else { [a, b, c] };
                (Layout::Images { channels_last, channels: true }, true, Takes::Images { channels, height, width })
            }
            (&[Some(3), height, width], true) => {
                let takes = Takes::Images { channels: Some(3), height, width };
                (Layout::Images { channels_last: false, channels: true }, false, takes)
            }
            (&[_, height, width], true) => {
                notes.push(format!("The input {input} is taken as images of one channel."));
                let takes = Takes::Images { channels: Some(1), height, width };
                (Layout::Images { channels_last: false, channels: false }, true, takes)
            }
            (&[_, width], true) => (Layout::Rows, true, Takes::Rows { width }),
            (&[Some(width)], true) => (Layout::Rows, false, Takes::Rows { width: Some(width) }),
            (&[None], true) => (Layout::Number, true, Takes::Rows { width: Some(1) }),
            (&[_, length], false) => {
                let vocabulary = vocabulary(graph, &input.name);
                (Layout::Tokens, true, Takes::Tokens { length, vocabulary })
            }
            (&[length], false) => {
                (Layout::Tokens, false, Takes::Tokens { length, vocabulary: vocabulary(graph, &input.name) })
            }
            _ => return Err(format!("takes {input}, which is neither images, nor rows of numbers, nor tokens")),
        };
        let integers = !float && matches!(layout, Layout::Images { .. });
        if integers {
            notes.push(format!(
                "The network takes pixels as whole numbers ({}): values from 0 to 1 are given as round(255 x value), and normalising is left to it.",
                input.element
            ));
        }
        let fixed_batch = if batched { shape[0] } else { Some(1) };
        let at_once = fixed_batch
            .iter()
            .chain(shape.iter().skip(1).flatten())
            .fold(1_usize, |size, axis| size.saturating_mul(*axis));
        if fixed_batch.is_some_and(|batch| batch > MOST_AT_ONCE) || at_once > MOST_NUMBERS {
            return Err(format!("takes {input}, which is too many numbers at once"));
        }
        let choices = Choices { normalisation: choices.normalisation.clone().filter(|_| !integers), ..choices.clone() };
        Ok(Self { input, beside, layout, batched, fixed_batch, takes, notes, choices })
    }

    /// What is done to images first.
    pub fn normalisation(&self) -> Option<&Normalisation> {
        self.choices.normalisation.as_ref()
    }

    /// The shape of one input in the graph, without the batch; the error says what does not fit.
    pub fn shape_of(&self, input: &Input, model: &str) -> ModelResult<Vec<usize>> {
        let refused = |given: String| ModelError::Takes { model: model.into(), takes: self.takes.to_string(), given };
        match (self.layout, input) {
            (Layout::Images { channels_last, channels }, Input::Image(Image { shape: [c, h, w], values })) => {
                let [c, h, w] = [*c, *h, *w];
                let Takes::Images { channels: own, height, width } = &self.takes else {
                    return Err(refused("images".into()));
                };
                let fits = |own: &Option<usize>, given| own.is_none_or(|own| own == given);
                if !(fits(own, c) && fits(height, h) && fits(width, w))
                    || values.len() != c * h * w
                    || values.is_empty()
                {
                    return Err(refused(format!("{c} x {h} x {w}")));
                }
                Ok(match (channels, channels_last) {
                    (false, _) => vec![h, w],
                    (true, false) => vec![c, h, w],
                    (true, true) => vec![h, w, c],
                })
            }
            (Layout::Rows | Layout::Number, Input::Row(values)) => {
                self.check_width(values.len(), "numbers").map_err(refused)
            }
            (Layout::Rows | Layout::Number, Input::Bits(bits)) => self.check_width(bits.len(), "bits").map_err(refused),
            (Layout::Tokens, Input::Bits(bits)) => self.check_length(bits.len(), "bits").map_err(refused),
            (Layout::Tokens, Input::Row(values)) => {
                if let Some(value) = values.iter().find(|value| value.fract() != 0.0 || value.abs() > 16_777_216.0) {
                    return Err(refused(format!("rows with {value}, which is no whole number")));
                }
                self.check_length(values.len(), "numbers").map_err(refused)
            }
            (Layout::Tokens, Input::Tokens(sequence)) => {
                if sequence.touch.is_some() {
                    return Err(ModelError::Lacks {
                        model: model.into(),
                        runtime: "ONNX".into(),
                        what: "embeddings that can be reached",
                    });
                }
                let Takes::Tokens { vocabulary, .. } = &self.takes else { return Err(refused("tokens".into())) };
                let unknown =
                    vocabulary.and_then(|vocabulary| sequence.ids.iter().find(|id| **id as usize >= vocabulary));
                if let (Some(unknown), Some(vocabulary)) = (unknown, vocabulary) {
                    return Err(refused(format!("of token {unknown}, and it knows only 0 to {}", vocabulary - 1)));
                }
                self.check_length(sequence.ids.len(), "tokens").map_err(refused)
            }
            (_, input) => Err(refused(format!("{:?}", input.kind()).to_lowercase())),
        }
    }

    fn check_width(&self, given: usize, what: &str) -> Result<Vec<usize>, String> {
        match (&self.takes, self.layout) {
            (_, Layout::Number) if given == 1 => Ok(Vec::new()),
            (Takes::Rows { width }, Layout::Rows) if given > 0 && width.is_none_or(|width| width == given) => {
                Ok(vec![given])
            }
            _ => Err(format!("{given} {what}")),
        }
    }

    /// Shorter sequences are filled up only where a mask tells the network so.
    fn check_length(&self, given: usize, what: &str) -> Result<Vec<usize>, String> {
        let Takes::Tokens { length, .. } = &self.takes else { return Err(what.into()) };
        let masked = self.beside.iter().any(|(_, beside)| *beside == Beside::Mask);
        match length {
            _ if given == 0 => Err("empty".into()),
            None => Ok(vec![given]),
            Some(length) if *length == given || (*length > given && masked) => Ok(vec![*length]),
            Some(length) if *length > given => Err(format!(
                "{given} {what}, and it has no input 'attention_mask' that would tell it to ignore what fills them up"
            )),
            Some(_) => Err(format!("{given} {what}")),
        }
    }

    /// The tensors of a batch of inputs whose [`Feeder::shape_of`] is `shape`; the last one is repeated until there are `batch`.
    pub fn feeds(&self, inputs: &[&Input], shape: &[usize], batch: usize) -> Vec<Feed> {
        let size: usize = shape.iter().product();
        let full: Vec<usize> = self.batched.then_some(batch).into_iter().chain(shape.iter().copied()).collect();
        let rows: Vec<&Input> =
            inputs.iter().copied().chain(inputs.last().copied().into_iter().cycle()).take(batch).collect();
        let main = match (self.layout, self.input.element) {
            // Identities of tokens may be larger than an f32 tells apart.
            (Layout::Tokens, element @ (Element::I32 | Element::I64)) => {
                let ids = rows.iter().flat_map(|input| {
                    let own = self.whole(input);
                    let fill = size.saturating_sub(own.len());
                    own.into_iter().chain(std::iter::repeat_n(0, fill))
                });
                match element {
                    Element::I32 => Values::I32(ids.map(|id| id as i32).collect()),
                    _ => Values::I64(ids.collect()),
                }
            }
            (layout, element) => {
                let mut numbers = Vec::with_capacity(batch * size);
                rows.iter().for_each(|input| {
                    let end = numbers.len() + size;
                    self.write(input, layout, &mut numbers);
                    numbers.resize(end, 0.0);
                });
                Values::of(numbers, element)
            }
        };
        let beside = self.beside.iter().map(|(port, beside)| {
            let value = |input: &&Input, position: usize| match beside {
                Beside::Mask => f32::from(position < length(input)),
                Beside::Kinds => 0.0,
                Beside::Positions => position as f32,
            };
            let numbers = rows.iter().flat_map(|input| (0..size).map(move |position| value(input, position))).collect();
            Feed { name: port.name.clone(), shape: full.clone(), values: Values::of(numbers, port.element) }
        });
        let main = Feed { name: self.input.name.clone(), shape: full.clone(), values: main };
        std::iter::once(main).chain(beside.collect::<Vec<_>>()).collect()
    }

    /// Tokens, bits or whole numbers as they are given to a network that takes whole numbers.
    fn whole(&self, input: &Input) -> Vec<i64> {
        match input {
            Input::Tokens(sequence) => sequence.ids.iter().map(|id| i64::from(*id)).collect(),
            Input::Bits(bits) => bits.iter().map(|bit| self.bit(*bit) as i64).collect(),
            Input::Row(values) => values.iter().map(|value| *value as i64).collect(),
            Input::Image(_) | Input::Text(..) => Vec::new(),
        }
    }

    fn bit(&self, bit: u8) -> f32 {
        let one = bit != 0;
        match self.choices.signs {
            true => {
                if one {
                    1.0
                } else {
                    -1.0
                }
            }
            false => f32::from(one),
        }
    }

    /// Appends one input's numbers.
    fn write(&self, input: &Input, layout: Layout, numbers: &mut Vec<f32>) {
        match (input, layout) {
            (Input::Image(image), Layout::Images { channels_last, .. }) => {
                let [channels, height, width] = image.shape;
                let pixels = height * width;
                let start = numbers.len();
                match &self.choices.normalisation {
                    Some(normalisation) => numbers.extend(normalisation.apply(image)),
                    None => numbers.extend_from_slice(&image.values),
                }
                if !self.input.element.is_float() {
                    numbers[start..].iter_mut().for_each(|value| *value = (255.0 * *value).round().clamp(0.0, 255.0));
                }
                if channels_last && channels > 1 {
                    let planes = numbers.split_off(start);
                    numbers.extend(
                        (0..pixels)
                            .flat_map(|pixel| (0..channels).map(move |channel| (channel, pixel)))
                            .map(|(channel, pixel)| planes[channel * pixels + pixel]),
                    );
                }
            }
            (Input::Row(values), _) => numbers.extend_from_slice(values),
            (Input::Bits(bits), _) => numbers.extend(bits.iter().map(|bit| self.bit(*bit))),
            (input, _) => numbers.extend(self.whole(input).into_iter().map(|id| id as f32)),
        }
    }

    /// Inputs to try a network on before somebody's are there, all different; nothing where its size is not known, or too large to be tried.
    pub fn examples(&self, count: usize, side: usize) -> Option<Vec<Input>> {
        // Numbers between 0 and 1 without a pattern.
        let number = |index: usize, at: usize| ((index * 7919 + at * 104_729 + 1) as f32 * 0.618_034).fract();
        let shape = self.example_shape(side).filter(|shape| !self.is_large(shape))?;
        let size = shape.iter().product();
        let example = |index: usize| {
            let numbers = (0..size).map(|at| number(index, at));
            Some(match (&self.takes, shape.as_slice()) {
                (Takes::Images { .. }, &[c, h, w]) => {
                    Input::Image(Image { shape: [c, h, w], values: numbers.collect() })
                }
                (Takes::Tokens { vocabulary, .. }, _) => {
                    let most = vocabulary.unwrap_or(2).max(1) as f32;
                    let ids = numbers.map(|number| (number * most) as u32).collect();
                    Input::Tokens(pudica_probe::Sequence { ids, touch: None })
                }
                (Takes::Rows { .. }, _) => Input::Row(numbers.collect()),
                _ => return None,
            })
        };
        (0..count).map(example).collect()
    }

    /// The shape of an input to try the network on.
    fn example_shape(&self, side: usize) -> Option<Vec<usize>> {
        Some(match &self.takes {
            Takes::Images { channels, height, width } => {
                let known = self.choices.image.map(|image| image.map(Some)).unwrap_or_default();
                let [c, h, w] = [channels.or(known[0]), height.or(known[1]), width.or(known[2])];
                vec![c.unwrap_or(3), h.unwrap_or(side), w.unwrap_or(side)]
            }
            Takes::Rows { width } => vec![(*width)?],
            Takes::Tokens { length, .. } => vec![length.unwrap_or(8)],
            Takes::Texts | Takes::Anything => return None,
        })
    }

    /// Whether inputs are of a known size that is too large to try the network on them: a few bytes of a file can ask for gigabytes, or for
    /// millions of steps of a recurrent network.
    pub fn is_too_large_to_try(&self) -> bool {
        self.size_is_known() && self.example_shape(0).is_some_and(|shape| self.is_large(&shape))
    }

    fn is_large(&self, shape: &[usize]) -> bool {
        let numbers = shape.iter().chain(&self.fixed_batch).fold(1_usize, |size, axis| size.saturating_mul(*axis));
        let is_sequence = !matches!(self.takes, Takes::Rows { .. });
        numbers > MOST_TRIED || (is_sequence && shape.iter().any(|axis| *axis > LONGEST_TRIED))
    }

    /// Whether the sizes of its inputs are known without seeing one.
    pub fn size_is_known(&self) -> bool {
        match &self.takes {
            Takes::Images { height, width, .. } => {
                self.choices.image.is_some() || (height.is_some() && width.is_some())
            }
            Takes::Rows { width } => width.is_some(),
            Takes::Tokens { length, .. } => length.is_some(),
            Takes::Texts | Takes::Anything => false,
        }
    }
}

/// Tokens, bits or numbers of an input.
fn length(input: &Input) -> usize {
    match input {
        Input::Tokens(sequence) => sequence.ids.len(),
        Input::Bits(bits) => bits.len(),
        Input::Row(values) => values.len(),
        Input::Image(_) | Input::Text(..) => 0,
    }
}

/// Which axis of an image the channels are, by their number: 1, 3 or 4.
fn channels_last([a, b, c]: [Option<usize>; 3], choices: &Choices, notes: &mut Vec<String>) -> bool {
    if let Some(chosen) = choices.channels_last {
        return chosen;
    }
    let channels = |axis: Option<usize>| matches!(axis, Some(1 | 3 | 4));
    // The image's own number of channels decides where both could be.
    let fits = |axis: Option<usize>| channels(axis) && choices.image.is_none_or(|[own, ..]| axis == Some(own));
    let (first, last) = if channels(a) && channels(c) { (fits(a), fits(c)) } else { (channels(a), channels(c)) };
    if first == last {
        let show = |axis: Option<usize>| axis.map_or("?".into(), |axis| axis.to_string());
        notes.push(format!(
            "Which axis of its images ({} x {} x {}) are the channels is not clear; the first was taken (layout=nhwc after the path if it is the last).",
            show(a),
            show(b),
            show(c)
        ));
    }
    last && !first
}
