//! A reader to be tried, and what it is tried with.

use crate::case::Case;
use crate::mutate::Form;
use std::path::Path;

/// Reads bytes, as one of the target's parts: what was read was accepted, or refused in a sentence.
pub type Reader = Box<dyn FnMut(usize, &[u8]) -> Result<(), String>>;

/// Something that reads what others wrote.
pub struct Target {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What is read.
    pub about: &'static str,
    /// Words of the format.
    pub words: &'static [&'static str],
    /// What its files are made of.
    pub form: Form,
    /// What reading may take: so many MiB, and so many bytes per byte of the file.
    pub memory: Memory,
    /// Sound files to begin with.
    pub seeds: fn() -> Vec<Case>,
    /// The reader, which may write into this folder.
    pub reader: fn(&Path) -> Reader,
    /// Executions of the short run that is one of the tests.
    pub short: u64,
}

/// A bound on memory.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Buffers, and what every reader has in memory anyway, in MiB.
    pub constant: usize,
    /// Bytes per byte of the file.
    pub factor: usize,
}

impl Memory {
    /// Bytes that reading a file of this length may take.
    pub fn of(self, length: usize) -> usize {
        (self.constant << 20) + self.factor * length
    }
}
