//! Batches of token sequences, on the host and on a device.

use burn::tensor::{Int, Tensor};

use crate::{Device, NnError};

/// The token that fills up: it is read, but nothing that is computed from it.
const PADDING: u32 = 0;

/// Padded lengths are multiples of this, which matrix multiplications like.
const PADDED_TO: usize = 8;

/// Token sequences, each of its own length.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sequences {
    /// The tokens of each sequence.
    pub ids: Vec<Vec<u32>>,
    /// What is added to one embedding of each sequence; empty: nothing to any of them.
    pub touches: Vec<Option<Touch>>,
}

/// A vector added to one embedding of a sequence, after the embeddings' LayerNorm.
#[derive(Debug, Clone, PartialEq)]
pub struct Touch {
    /// Which token, from 0.
    pub position: usize,
    /// One value for each feature of an embedding.
    pub noise: Vec<f32>,
}

impl Sequences {
    /// Sequences as they are.
    pub fn new(ids: Vec<Vec<u32>>) -> Self {
        Self { ids, touches: Vec::new() }
    }

    /// Whether a network of this vocabulary, longest sequence and width takes them.
    pub(super) fn check(&self, vocabulary: usize, longest: usize, width: usize) -> Result<(), NnError> {
        let wrong = |index: usize, problem: String| Err(NnError::Batch(format!("sequence {index} {problem}")));
        if self.ids.is_empty() {
            return Err(NnError::Batch("it has no sequences".to_string()));
        }
        if !self.touches.is_empty() && self.touches.len() != self.ids.len() {
            let problem = format!("{} touches for {} sequences", self.touches.len(), self.ids.len());
            return Err(NnError::Batch(problem));
        }
        for (index, ids) in self.ids.iter().enumerate() {
            if ids.is_empty() {
                return wrong(index, "has no tokens".to_string());
            }
            if ids.len() > longest {
                return wrong(index, format!("has {} tokens, the network takes {longest} at most", ids.len()));
            }
            if let Some(id) = ids.iter().find(|id| **id as usize >= vocabulary) {
                return wrong(index, format!("has the token {id}, but the vocabulary ends at {}", vocabulary - 1));
            }
            let Some(Some(touch)) = self.touches.get(index) else { continue };
            if touch.position >= ids.len() {
                return wrong(index, format!("is touched at {}, but has {} tokens", touch.position, ids.len()));
            }
            if touch.noise.len() != width {
                return wrong(index, format!("is touched by {} values, embeddings have {width}", touch.noise.len()));
            }
        }
        Ok(())
    }
}

/// Token sequences on a device, as rows one after the other: padded to one length (transformers), or sorted by length and packed, all
/// first tokens before all second ones (LSTM).
#[derive(Debug, Clone)]
pub struct TextBatch {
    /// The token of each row: \[rows\]
    pub(super) ids: Tensor<1, Int>,
    /// What is added to some rows' embeddings: which rows \[touched\], and values \[touched, width\].
    pub(super) touches: Option<(Tensor<1, Int>, Tensor<2>)>,
    /// The row of each sequence's last token: \[sequences\]
    pub(super) ends: Tensor<1, Int>,
    pub(super) layout: Layout,
}

/// Where the rows of a batch are from.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // one for each batch
pub(super) enum Layout {
    /// Row b * length + t is token t of sequence b.
    Padded {
        sequences: usize,
        length: usize,
        /// 0 for tokens, minus infinity for padding: \[sequences, length\]; `None` where there is no padding.
        mask: Option<Tensor<2>>,
    },
    /// The rows of step t are the tokens t of the sequences that have so many, the longest first.
    Packed {
        /// How many sequences each step has, never more than the step before.
        sizes: Vec<usize>,
    },
}

impl TextBatch {
    /// Of a padded batch: how many sequences, their common length, and the mask \[sequences, length\] of padding.
    pub(super) fn padded(&self) -> Result<(usize, usize, Option<Tensor<2>>), NnError> {
        match &self.layout {
            Layout::Padded { sequences, length, mask } => Ok((*sequences, *length, mask.clone())),
            Layout::Packed { .. } => Err(NnError::Batch("it is packed, a transformer's is padded".to_string())),
        }
    }

    /// [`Classifier::tensors`](crate::classifier::Classifier::tensors): of padded batches. How packed ones are computed depends on the lengths
    /// of their sequences.
    #[cfg(feature = "torch")]
    pub(super) fn tensors(&self) -> Option<Vec<tch::Tensor>> {
        use crate::native::{constant, integers};
        let (Layout::Padded { mask, .. }, None) = (&self.layout, &self.touches) else { return None };
        let rows = [integers(&self.ids), integers(&self.ends)].into_iter();
        rows.chain(mask.as_ref().map(constant)).collect()
    }

    /// Of a packed batch: how many sequences each step has.
    pub(super) fn packed(&self) -> Result<&[usize], NnError> {
        match &self.layout {
            Layout::Packed { sizes } => Ok(sizes),
            Layout::Padded { .. } => Err(NnError::Batch("it is padded, an LSTM's is packed".to_string())),
        }
    }
}

impl Sequences {
    /// On a device, each sequence padded at its end to the length of the longest; `most` is what the network can take.
    pub(super) fn padded(&self, most: usize, device: &Device) -> TextBatch {
        let (sequences, longest) = (self.ids.len(), self.ids.iter().map(Vec::len).max().unwrap_or(0));
        let length = longest.next_multiple_of(PADDED_TO).min(most);
        let mut ids = vec![PADDING; sequences * length];
        let mut mask = vec![f32::NEG_INFINITY; sequences * length];
        for (index, own) in self.ids.iter().enumerate() {
            ids[index * length..][..own.len()].copy_from_slice(own);
            mask[index * length..][..own.len()].fill(0.0);
        }
        let full = self.ids.iter().all(|own| own.len() == length);
        let mask = (!full).then(|| device.floats(mask, [sequences, length]));
        let layout = Layout::Padded { sequences, length, mask };
        self.on_device(ids, |index, position| index * length + position, layout, device)
    }

    /// On a device, packed by length.
    pub(super) fn packed(&self, device: &Device) -> TextBatch {
        let mut order: Vec<usize> = (0..self.ids.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(self.ids[*index].len()));
        let longest = self.ids.iter().map(Vec::len).max().unwrap_or(0);
        let at_least = |tokens: usize| order.partition_point(|index| self.ids[*index].len() >= tokens);
        let sizes: Vec<usize> = (1..=longest).map(at_least).collect();
        let ids =
            sizes.iter().enumerate().flat_map(|(step, size)| order[..*size].iter().map(move |b| self.ids[*b][step]));
        let ids = ids.collect();
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, index)| rank[*index] = at);
        let starts: Vec<usize> = std::iter::once(0)
            .chain(sizes.iter().scan(0, |sum, size| {
                *sum += size;
                Some(*sum)
            }))
            .collect();
        self.on_device(ids, |index, position| starts[position] + rank[index], Layout::Packed { sizes }, device)
    }

    fn on_device(
        &self,
        ids: Vec<u32>,
        row: impl Fn(usize, usize) -> usize,
        layout: Layout,
        device: &Device,
    ) -> TextBatch {
        let integers = |values: Vec<i64>| {
            let count = values.len();
            device.numbers(values, [count])
        };
        let touched = self.touches.iter().enumerate().filter_map(|(at, touch)| Some((at, touch.as_ref()?)));
        let (mut rows, mut noise) = (Vec::new(), Vec::new());
        for (index, touch) in touched {
            rows.push(row(index, touch.position) as i64);
            noise.extend_from_slice(&touch.noise);
        }
        let count = rows.len();
        let touches = (count > 0).then(|| {
            let shape = [count, noise.len() / count];
            (integers(rows), device.floats(noise, shape))
        });
        let ends = self.ids.iter().enumerate().map(|(index, own)| row(index, own.len() - 1) as i64).collect();
        TextBatch { ids: integers(ids.into_iter().map(i64::from).collect()), touches, ends: integers(ends), layout }
    }
}
