//! The networks, one file each.

pub mod token_attention;
