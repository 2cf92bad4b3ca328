//! The `pudica` command.

fn main() {}
