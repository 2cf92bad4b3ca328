//! From strings to outputs, for all replicas at once.

mod attention;
mod compact;

use super::buffers::{Activations, Images};
use super::cuda::{Arg, Cuda, Grid, Matrix, Product, THREADS};
use super::shape::{Dims, LayerPlaces, Places};
use crate::EnsembleError;

/// Rows that a block of feed_forward_backward does at a time: TILE in tensor.cu.
const TILE: usize = 128;

/// How many times it does so: enough to earn back the loading of its matrices, few enough that blocks end together.
const TILES: usize = 10;

/// Blocks that it does `rows` rows in.
pub(super) fn tile_blocks(rows: usize) -> usize {
    rows.div_ceil(TILE * TILES)
}

/// Threads of a block of first_layer: FIRST_WARPS in first_layer.cu. Two of them do a row.
fn first_threads(halves_a_factor: usize) -> usize {
    if halves_a_factor == 1 { 384 } else { 256 }
}

/// Strings that a block of the kernels in narrow.cu has: STRINGS there.
pub(super) const NARROW_STRINGS: usize = 128;

/// Which networks on which strings.
#[derive(Clone, Copy)]
pub(super) struct Inputs {
    /// Parameters [R, P], as [`Net::widened`] gives them.
    pub(super) parameters: u64,
    /// Strings [sets, B, n], a byte for each bit. Replica r reads set r modulo `sets`.
    pub(super) bits: u64,
    pub(super) sets: usize,
}

/// What of an image [128, pitch] a matrix fills: its columns and rows come in groups of so many, of which so many are there. Columns and the
/// sizes of groups are powers of two.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) columns: usize,
    pub(super) pitch: usize,
    pub(super) groups: (usize, usize),
    pub(super) row_groups: (usize, usize),
}

impl Extent {
    /// All of it: [128, 128].
    pub(super) const WHOLE: Self = Self { columns: 128, pitch: 128, groups: (128, 128), row_groups: (128, 128) };
}

/// The networks of one shape on the GPU.
pub(super) struct Net<'a> {
    pub(super) cuda: &'a Cuda,
    pub(super) dims: &'a Dims,
    pub(super) places: &'a Places,
}

pub(super) fn pointer(at: u64) -> Arg {
    Arg::Pointer(at)
}

pub(super) fn long(value: usize) -> Arg {
    Arg::Long(value as u64)
}

pub(super) fn int(value: usize) -> Arg {
    Arg::Int(value as i32)
}

impl Net<'_> {
    /// Parameters [R, P] kept as f32, as networks are computed with them: themselves, or a copy in `a`.
    pub(super) fn widened(&self, kept: u64, a: &Activations) -> Result<u64, EnsembleError> {
        if !self.cuda.is_double() {
            return Ok(kept);
        }
        let size = a.replicas * self.places.total;
        let arguments = [pointer(a.parameters.at()), pointer(kept), long(size)];
        self.cuda.launch("widen", self.elements(size, 1, 2.0), &arguments)?;
        Ok(a.parameters.at())
    }

    /// Fills `a` with the forward pass: with all that the way back needs, or only what leads to outputs and norms.
    pub(super) fn forward(&self, inputs: &Inputs, a: &Activations, keep: bool) -> Result<(), EnsembleError> {
        self.tables(inputs, a)?;
        // Strings may have been drawn beside.
        self.cuda.meet()?;
        match self.first_layer_memory() {
            Some(shared) if !keep && self.is_compact() => return self.compact_forward(inputs, a, shared),
            Some(shared) => {
                let kernel = match keep {
                    true if self.keeps_halves(0) => "first_layer_halves",
                    true => "first_layer_kept",
                    false => "first_layer",
                };
                self.first_layer(inputs, a, kernel, shared)?;
            }
            None => {
                self.table_attention(inputs, a)?;
                self.feed_forward(inputs, a, 0)?;
            }
        }
        for layer in 1..self.dims.layers {
            match self.dims.is_middle(layer) {
                true => self.middle_attention(inputs, a, layer)?,
                false => self.last_attention(inputs, a, layer)?,
            }
            self.feed_forward(inputs, a, layer)?;
        }
        let top = self.dims.layers - 1;
        let places = &self.places.layers[top];
        let strings = a.strings;
        self.cuda.launch(
            "head",
            self.rows(strings, a.replicas, 1.0),
            &[
                pointer(a.outputs.at()),
                pointer(a.layers[top].norm2.at()),
                pointer(inputs.parameters),
                long(self.places.total),
                long(self.places.head),
                long(self.places.head_bias),
                long(places.scale2),
                long(places.shift2),
                int(strings),
            ],
        )
    }

    /// Layer 1: everything about tokens is a table of 2n rows.
    fn tables(&self, inputs: &Inputs, a: &Activations) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, .. } = *self.dims;
        let (r, width) = (a.replicas, self.dims.head_width());
        let places = &self.places.layers[0];
        self.cuda.launch(
            "embed",
            Grid { blocks: (2 * n as u32, r as u32, 1), threads: 128, shared: 0, numbers: 0.0 },
            &[
                pointer(a.tokens.at()),
                pointer(inputs.parameters),
                long(self.places.total),
                long(self.places.token),
                long(self.places.position),
                int(n),
            ],
        )?;
        let tokens = Matrix::at(a.tokens.at(), 0, d, 2 * n * d);
        let weight = self.weight(inputs, places.in_weight, d);
        let qkv = Matrix::at(a.token_qkv.at(), 0, 3 * d, 2 * n * 3 * d);
        self.multiply((2 * n, 3 * d, d), 1.0, tokens, weight.transposed(), 0.0, qkv, r)?;
        self.add_bias(inputs, a.token_qkv.at(), places.in_bias, (2 * n, 3 * d), r)?;
        for head in 0..heads {
            let part = |third: usize| Matrix::at(a.token_qkv.at(), third * d + head * width, 3 * d, 2 * n * 3 * d);
            let scores = Matrix::at(a.scores.at(), head * 4 * n * n, 2 * n, heads * 4 * n * n);
            self.multiply((2 * n, 2 * n, width), self.score_scale(), part(0), part(1).transposed(), 0.0, scores, r)?;
            let out = self.weight(inputs, places.out_weight + head * width, d);
            let values = Matrix::at(a.values.at(), head * 2 * n * d, d, heads * 2 * n * d);
            self.multiply((2 * n, d, width), 1.0, part(2), out.transposed(), 0.0, values, r)?;
        }
        Ok(())
    }

    /// What first_layer and attend_narrow read instead of scores and bits: exponents and words.
    fn exponents_and_words(&self, inputs: &Inputs, a: &Activations) -> Result<(), EnsembleError> {
        let Dims { n, heads, .. } = *self.dims;
        let warps = |count: usize, replicas: usize, numbers: usize| Grid {
            blocks: (count.div_ceil(THREADS / 32) as u32, replicas as u32, 1),
            threads: THREADS as u32,
            shared: 0,
            numbers: numbers as f64,
        };
        self.cuda.launch(
            "exponents",
            warps(heads * 2 * n, a.replicas, 2 * a.replicas * heads * 4 * n * n),
            &[pointer(a.exponents.at()), pointer(a.largest.at()), pointer(a.scores.at()), int(n)],
        )?;
        let [strings, columns] = &a.words;
        self.cuda.launch(
            "pack",
            warps(n.div_ceil(32) * a.strings.div_ceil(32), inputs.sets, 0),
            &[pointer(strings.at()), pointer(columns.at()), pointer(inputs.bits), int(a.strings), int(n)],
        )
    }

    /// Bytes of shared memory of a block of `first_layer`, laid out as there; nothing where layer 1 is computed otherwise.
    fn first_layer_memory(&self) -> Option<u32> {
        let Dims { n, d, heads, ff, .. } = *self.dims;
        let factors = d * self.dims.value_columns().1 + 2 * ff * d;
        // BLOCK_FLOATS in block.cu, room for one more, and the table: LINE in weights.cu.
        let floats = ff + 2 * d + 4 + 2 * n * 68 * heads;
        if self.dims.is_tiled() { self.cuda.tensor_memory(factors, floats) } else { None }
    }

    /// Whether a layer keeps its norms and hidden numbers as halves for the way back. Passes that keep nothing are then those of `compact`.
    pub(super) fn keeps_halves(&self, layer: usize) -> bool {
        layer == 0 && self.cuda.keeps_halves() && self.is_compact() && self.first_layer_memory().is_some()
    }

    /// Of two kernels that read a layer's second norm, the one for what it is kept as: numbers, or halves.
    pub(super) fn for_norm(&self, layer: usize, kernels: [&'static str; 2]) -> &'static str {
        kernels[usize::from(self.keeps_halves(layer))]
    }

    /// Bytes of shared memory of a block of `mixing_backward`; nothing where layer 1's attention goes back otherwise.
    pub(super) fn mixing_memory(&self) -> Option<u32> {
        let Dims { n, d, heads, layers, .. } = *self.dims;
        if !self.dims.is_tiled() || n > 31 || heads != 2 || layers == 1 || !self.cuda.is_hopper() {
            return None;
        }
        // It has some of its own beside.
        let own = 1024;
        self.first_layer_memory()?;
        let all = self.cuda.tensor_memory(3 * d * d, 2 * n * 68 * heads + own / size_of::<f32>())?;
        Some(all - own as u32)
    }

    /// The image of a matrix [128, columns] of each replica, for kernels on tensor cores: in the place `which` of its powers, from `begin`
    /// on of its halves. `across` is what it is stored by beside a stride of 1.
    pub(super) fn prepare(
        &self,
        images: &Images,
        (which, begin): (usize, usize),
        matrix: Matrix,
        extent: Extent,
        r: usize,
    ) -> Result<(), EnsembleError> {
        let (down, across) = if matrix.transposed { (1, matrix.row) } else { (matrix.row, 1) };
        let half = self.cuda.halves_a_factor();
        let Extent { columns, pitch, groups: (group, real), row_groups: (tall, filled) } = extent;
        let mut arguments = vec![
            pointer(images.halves.at() + (size_of::<u16>() * half * begin) as u64),
            long(images.stride),
            pointer(self.cuda.after(images.powers.at(), 2 * which * r)),
            pointer(self.cuda.after(matrix.pointer, matrix.offset)),
            long(matrix.stride),
        ];
        let power = |of: usize| of.trailing_zeros() as usize;
        arguments.extend([down, across, power(columns), pitch, power(group), real, power(tall), filled].map(int));
        let numbers = (2 * r * columns * self.dims.d) as f64;
        let shared = (size_of::<f32>() * 128 * (columns + 1)) as u32;
        let grid = Grid { blocks: (1, r as u32, 1), threads: 1024, shared, numbers };
        self.cuda.launch("prepare", grid, &arguments)
    }

    /// Layer 1 from the tables on, in one kernel: first_layer_kept, which stores what the way back needs, or one that does not.
    fn first_layer(
        &self,
        inputs: &Inputs,
        a: &Activations,
        kernel: &'static str,
        shared: u32,
    ) -> Result<(), EnsembleError> {
        let Dims { n, d, heads, ff, .. } = *self.dims;
        let (r, m, mixed) = (a.replicas, self.dims.positions(0), self.dims.mixed());
        let (rows, own, places) = (a.strings * m, &a.layers[0], &self.places.layers[0]);
        let Some(images) = &a.images else { return Ok(()) };
        let total = self.places.total;
        let warps = |count: usize| Grid {
            blocks: (count.div_ceil(THREADS / 32) as u32, r as u32, 1),
            threads: THREADS as u32,
            shared: 0,
            numbers: (2 * r * count * d) as f64,
        };
        self.exponents_and_words(inputs, a)?;
        self.cuda.launch("centre_values", warps(mixed), &[pointer(a.values.at()), int(mixed)])?;
        self.fold(inputs, a, 0)?;
        let (group, pitch) = self.dims.value_columns();
        let values = Matrix::at(a.values.at(), 0, d, mixed * d).transposed();
        let extent = Extent { columns: heads * group, pitch, groups: (group, 2 * n), ..Extent::WHOLE };
        self.prepare(images, (0, 0), values, extent, r)?;
        let folded = Matrix::at(own.weight.at(), 0, d, ff * d);
        self.prepare(images, (1, d * pitch), folded, Extent::WHOLE, r)?;
        let second = self.weight(inputs, places.weight2, ff);
        self.prepare(images, (2, d * pitch + ff * d), second, Extent::WHOLE, r)?;
        self.cuda.launch(
            "residuals",
            warps(2 * n),
            &[
                pointer(images.residuals.at()),
                pointer(a.tokens.at()),
                pointer(inputs.parameters),
                long(total),
                long(places.out_bias),
                pointer(images.powers.at()),
                int(2 * n),
            ],
        )?;
        self.cuda.count_flops((2 * r * rows * d * (mixed + 2 * ff)) as f64);
        let threads = first_threads(self.cuda.halves_a_factor());
        let mix = if self.mixing_memory().is_some() { 0 } else { a.mix.at() };
        let mixed = if mix == 0 { 0 } else { mixed };
        let stored = match kernel {
            "first_layer_kept" => 2 * d + ff + mixed,
            "first_layer_halves" => d + ff / 2 + mixed,
            "first_layer_compact" => d / 2,
            _ => d,
        };
        self.cuda.launch(
            kernel,
            Grid {
                blocks: (rows.div_ceil(threads / 2 * TILES) as u32, r as u32, 1),
                threads: threads as u32,
                shared,
                numbers: (r * rows * stored) as f64,
            },
            &[
                pointer(mix),
                pointer(own.norm1.at()),
                pointer(own.variance1.at()),
                pointer(own.hidden.at()),
                pointer(own.norm2.at()),
                pointer(own.variance2.at()),
                pointer(images.kept.at()),
                pointer(a.scores.at()),
                pointer(a.exponents.at()),
                pointer(images.halves.at()),
                long(images.stride),
                pointer(images.powers.at()),
                pointer(images.residuals.at()),
                pointer(own.bias.at()),
                pointer(images.bounds.at()),
                pointer(inputs.parameters),
                long(total),
                long(places.bias2),
                long(places.scale1),
                long(places.shift1),
                pointer(a.words[0].at()),
                int(a.strings),
                int(n),
                int(m),
                int(inputs.sets),
                int(pitch),
            ],
        )
    }

    /// Output projection, residual and first norm.
    fn project(
        &self,
        inputs: &Inputs,
        a: &Activations,
        layer: usize,
        mixed: u64,
        residual: u64,
    ) -> Result<(), EnsembleError> {
        let (r, d, places) = (a.replicas, self.dims.d, &self.places.layers[layer]);
        let rows = a.strings * self.dims.positions(layer);
        let norm1 = Matrix::at(a.layers[layer].norm1.at(), 0, d, rows * d);
        let weight = self.weight(inputs, places.out_weight, d);
        self.multiply((rows, d, d), 1.0, Matrix::at(mixed, 0, d, rows * d), weight.transposed(), 0.0, norm1, r)?;
        self.cuda.launch(
            "norm_residual",
            self.rows(rows, r, 3.0),
            &[
                pointer(a.layers[layer].norm1.at()),
                pointer(a.layers[layer].variance1.at()),
                pointer(residual),
                pointer(inputs.parameters),
                long(self.places.total),
                int(0),
                long(0),
                long(0),
                long(places.out_bias),
                int(rows),
            ],
        )
    }

    /// Feed-forward block, residual and second norm.
    fn feed_forward(&self, inputs: &Inputs, a: &Activations, layer: usize) -> Result<(), EnsembleError> {
        let Dims { d, ff, .. } = *self.dims;
        let (r, own) = (a.replicas, &a.layers[layer]);
        let rows = a.strings * self.dims.positions(layer);
        let LayerPlaces { weight2, bias2, scale1, shift1, .. } = self.places.layers[layer];
        self.fold(inputs, a, layer)?;
        let norm1 = Matrix::at(own.norm1.at(), 0, d, rows * d);
        let hidden = Matrix::at(own.hidden.at(), 0, ff, rows * ff);
        let folded = Matrix::at(own.weight.at(), 0, d, ff * d);
        self.multiply((rows, ff, d), 1.0, norm1, folded.transposed(), 0.0, hidden, r)?;
        self.cuda.launch(
            "bias_relu",
            Grid {
                blocks: ((rows * ff).div_ceil(THREADS * 4) as u32, r as u32, 1),
                threads: THREADS as u32,
                shared: 0,
                numbers: (2 * r * rows * ff) as f64,
            },
            &[pointer(own.hidden.at()), pointer(own.bias.at()), long(rows * ff)],
        )?;
        let norm2 = Matrix::at(own.norm2.at(), 0, d, rows * d);
        let weight = self.weight(inputs, weight2, ff);
        self.multiply((rows, d, ff), 1.0, hidden, weight.transposed(), 0.0, norm2, r)?;
        self.cuda.launch(
            "norm_residual",
            self.rows(rows, r, 3.0),
            &[
                pointer(own.norm2.at()),
                pointer(own.variance2.at()),
                pointer(own.norm1.at()),
                pointer(inputs.parameters),
                long(self.places.total),
                int(1),
                long(scale1),
                long(shift1),
                long(bias2),
                int(rows),
            ],
        )
    }

    /// The first norm's scale and shift into the first feed-forward layer.
    fn fold(&self, inputs: &Inputs, a: &Activations, layer: usize) -> Result<(), EnsembleError> {
        let own = &a.layers[layer];
        let LayerPlaces { weight1, bias1, scale1, shift1, .. } = self.places.layers[layer];
        let bounds = a.images.as_ref().map_or(0, |images| images.bounds.at());
        self.fold_into([own.weight.at(), own.bias.at(), bounds], inputs, [weight1, bias1, scale1, shift1], a.replicas)
    }

    /// The scale and shift of a norm into the matrix [ff, d] and bias that read it, at these places: into a weight, a bias and, where
    /// given, the most that outputs can be.
    fn fold_into(
        &self,
        out: [u64; 3],
        inputs: &Inputs,
        places: [usize; 4],
        replicas: usize,
    ) -> Result<(), EnsembleError> {
        let mut arguments: Vec<Arg> = out.into_iter().map(pointer).collect();
        arguments.extend([pointer(inputs.parameters), long(self.places.total)]);
        arguments.extend(places.into_iter().map(long));
        self.cuda.launch("fold", self.rows(self.dims.ff, replicas, 2.0), &arguments)
    }

    /// A layer's output at every `stride`-th of its rows from `first` on.
    fn scale_shift(
        &self,
        inputs: &Inputs,
        a: &Activations,
        layer: usize,
        out: u64,
        (rows, stride, first): (usize, usize, usize),
    ) -> Result<(), EnsembleError> {
        let size = rows * self.dims.d;
        let places = &self.places.layers[layer];
        self.cuda.launch(
            self.for_norm(layer, ["scale_shift", "scale_shift_halves"]),
            self.elements(size, a.replicas, 2.0),
            &[
                pointer(out),
                pointer(a.layers[layer].norm2.at()),
                pointer(inputs.parameters),
                long(self.places.total),
                long(places.scale2),
                long(places.shift2),
                int(rows),
                int(stride),
                int(first),
            ],
        )
    }

    fn add_bias(
        &self,
        inputs: &Inputs,
        x: u64,
        bias: usize,
        (rows, columns): (usize, usize),
        replicas: usize,
    ) -> Result<(), EnsembleError> {
        let arguments =
            [pointer(x), pointer(inputs.parameters), long(self.places.total), long(bias), int(rows), int(columns)];
        self.cuda.launch("add_bias", self.elements(rows * columns, replicas, 2.0), &arguments)
    }

    /// A kernel over rows of n scores; the first of the arrays is written too.
    pub(super) fn softmax(&self, kernel: &'static str, arrays: &[u64], rows: usize) -> Result<(), EnsembleError> {
        let n = self.dims.n;
        let blocks = (rows.div_ceil(THREADS / 32) as u32, 1, 1);
        let mut arguments: Vec<Arg> = arrays.iter().map(|array| pointer(*array)).collect();
        arguments.extend([long(rows), int(n)]);
        let numbers = ((arrays.len() + 1) * rows * n) as f64;
        self.cuda.launch(kernel, Grid { blocks, threads: THREADS as u32, shared: 0, numbers }, &arguments)
    }

    /// What scores are multiplied by.
    pub(super) fn score_scale(&self) -> f64 {
        1.0 / (self.dims.head_width() as f64).sqrt()
    }

    /// A weight matrix of every replica whose stored rows are `row` long.
    pub(super) fn weight(&self, inputs: &Inputs, place: usize, row: usize) -> Matrix {
        Matrix::at(inputs.parameters, place, row, self.places.total)
    }

    /// C [m, n] = alpha A [m, k] B [k, n] + beta C
    #[allow(clippy::too_many_arguments)] // the arguments of the formula
    pub(super) fn multiply(
        &self,
        (m, n, k): (usize, usize, usize),
        alpha: f64,
        a: Matrix,
        b: Matrix,
        beta: f64,
        c: Matrix,
        batch: usize,
    ) -> Result<(), EnsembleError> {
        self.cuda.product(Product { m, n, k, alpha, a, b, beta, c, batch, halves: false })
    }

    /// A group of lanes for each of `rows` rows of d numbers; `passes` over them for the record.
    pub(super) fn rows(&self, rows: usize, replicas: usize, passes: f64) -> Grid {
        let blocks = (rows.div_ceil(self.groups()) as u32, replicas as u32, 1);
        Grid { blocks, threads: THREADS as u32, shared: 0, numbers: passes * (rows * replicas * self.dims.d) as f64 }
    }

    /// Rows of d numbers that a block works on at a time: GROUPS in common.cu.
    pub(super) fn groups(&self) -> usize {
        THREADS / self.dims.d.next_power_of_two().min(32)
    }

    /// A thread for each of `size` elements.
    pub(super) fn elements(&self, size: usize, replicas: usize, passes: f64) -> Grid {
        Grid::elements(size, replicas, passes)
    }
}
