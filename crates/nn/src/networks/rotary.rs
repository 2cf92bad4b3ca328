//! Rotary position embeddings (RoPE, Su et al. 2021).

use burn::tensor::{Tensor, TensorData};

use crate::Device;

/// Queries or keys x [batch, l, d] of so many heads, turned by the positions `first` and on: in each head of width w, values k and k + w/2
/// are a point of the plane, turned by position / 10000^(2k/w).
pub(super) fn rotate(x: Tensor<3>, heads: usize, first: usize, device: &Device) -> Tensor<3> {
    let [batch, l, d] = x.dims();
    let (width, half) = (d / heads, d / heads / 2);
    let angles = |wave: fn(f64) -> f64| {
        let angle = |at: usize| {
            let (position, k) = (first + at / half, at % half);
            wave(position as f64 / 10_000f64.powf(2.0 * k as f64 / width as f64))
        };
        let values: Vec<f64> = (0..l * half).map(angle).collect();
        Tensor::<4>::from_data(TensorData::new(values, [1, l, 1, half]), device.constant())
    };
    let (cos, sin) = (angles(f64::cos), angles(f64::sin));
    let x = x.reshape([batch, l, heads, width]);
    let (a, b) = (x.clone().narrow(3, 0, half), x.narrow(3, half, half));
    let turned = Tensor::cat(vec![a.clone() * cos.clone() - b.clone() * sin.clone(), b * cos + a * sin], 3);
    turned.reshape([batch, l, d])
}
