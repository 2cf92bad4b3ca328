//! The parts of a data set.

/// Which part of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// What networks are trained on.
    Train,
    /// What networks are tested on.
    Test,
}

impl Split {
    /// Both parts.
    pub const ALL: [Self; 2] = [Self::Train, Self::Test];

    /// "train" or "test".
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}
