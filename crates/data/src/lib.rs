//! What is learnt: targets, samplers and named random streams.
