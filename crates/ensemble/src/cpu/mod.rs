//! The ensemble on this machine's cores.
//!
//! A replica's step, top to bottom: draw its batch and join repeated strings ([`distinct`]); compute what does not depend on the
//! string ([`prepared`], [`tables`]); put the strings through the network and back in blocks that stay in cache ([`gradient`],
//! [`block`], one file for each kind of attention, [`second_half`] for the rest of a layer); add up and update ([`adamw`]).
//! Everything is written once for f32 and f64; weights, moments and [`adamw`] are f32 in both.

mod adamw;
mod block;
mod distinct;
mod engine;
mod folded_half;
mod folding;
mod gradient;
mod last_attention;
mod layout;
mod matrix;
mod middle_attention;
mod norm;
mod passes;
mod prepared;
mod real;
mod replica;
mod second_half;
mod table_attention;
mod tables;
#[cfg(test)]
mod tests;
mod wide;

pub use engine::cpu;
pub(crate) use layout::{LayerAt, Layout};
