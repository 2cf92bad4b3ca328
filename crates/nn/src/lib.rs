//! What learns: architectures on burn, weights in and out, training.
