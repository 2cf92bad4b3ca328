//! The ensemble on this machine's cores.

use crate::{Engine, EnsembleError, Member, Shape};

/// An ensemble on this machine's cores. The members must fit the shape, stand at one step and train on equally many strings.
pub fn cpu(shape: Shape, members: Vec<Member>) -> Result<Box<dyn Engine>, EnsembleError> {
    crate::reference::reference(shape, members)
}
