//! Synthetic tokens: Definitions 4.1 and 4.2 of Vasudeva et al. (2024).

use serde::{Deserialize, Serialize};

use crate::{DataError, Stream};

/// The largest vocabulary and the longest sequence that can be asked for.
const LARGEST: usize = 1024;

/// A vocabulary (Definition 4.1) and how sequences are made of it (Definition 4.2).
///
/// Tokens are numbered from 0, so the paper's e_1 is token 0. A token's number tells what it is: 0 and 1 are the sparse tokens,
/// 2 .. 2m+2 the frequent ones, the others are irrelevant; of the first two kinds, even tokens belong to label +1, odd ones to -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenTask {
    /// T: tokens in a sequence.
    pub length: usize,
    /// M: different tokens.
    pub vocabulary: usize,
    /// Sparse tokens in a sequence, all of its label.
    pub n_s: usize,
    /// Frequent tokens in a sequence, of both labels.
    pub n_f: usize,
    /// By how many frequent tokens of the sequence's label outnumber the others, at most: floor((n_f + n_d) / 2) are of its label.
    pub n_d: usize,
    /// Different frequent tokens of each label.
    pub m: usize,
}

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// One token for each label.
    Sparse,
    /// m tokens for each label.
    Frequent,
    /// Says nothing about the label.
    Irrelevant,
}

impl TokenKind {
    /// All, in the order of their tokens.
    pub const ALL: [TokenKind; 3] = [TokenKind::Sparse, TokenKind::Frequent, TokenKind::Irrelevant];
}

/// Sequences and their labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSet {
    length: usize,
    /// [rows, length]
    tokens: Vec<u16>,
    /// `[rows]`, each 1 or -1
    labels: Vec<i8>,
}

impl TokenTask {
    /// Whether such sequences exist.
    pub fn check(&self) -> Result<(), DataError> {
        let TokenTask { length, vocabulary, n_s, n_f, n_d, m } = *self;
        let wrong = |problem: String| Err(DataError::Tokens(problem));
        if !(1..=LARGEST).contains(&length) || !(1..=LARGEST).contains(&vocabulary) {
            return wrong(format!(
                "length and vocabulary must be from 1 to {LARGEST}, not {length} and {vocabulary} tokens"
            ));
        }
        if m == 0 || m > LARGEST || 2 * m + 2 > vocabulary {
            return wrong(format!(
                "m = {m} frequent tokens of each label and two sparse ones need a vocabulary of at least {}, not {vocabulary}",
                2 * m.clamp(1, LARGEST) + 2
            ));
        }
        if n_s > length || n_f > length - n_s {
            return wrong(format!("n_s = {n_s} sparse and n_f = {n_f} frequent tokens do not fit into {length}"));
        }
        if n_d > n_f {
            return wrong(format!("n_d = {n_d} must not be above n_f = {n_f}"));
        }
        if n_s + n_f < length && vocabulary == 2 * m + 2 {
            return wrong(format!(
                "sequences have irrelevant tokens but a vocabulary of {vocabulary} has none: take at least {}",
                vocabulary + 1
            ));
        }
        Ok(())
    }

    /// Frequent tokens of the sequence's own label; the other n_f - that many are of the other label.
    pub fn frequent_of_label(&self) -> usize {
        (self.n_f + self.n_d) / 2
    }

    /// What a token is for.
    pub fn kind(&self, token: u16) -> TokenKind {
        match usize::from(token) {
            0 | 1 => TokenKind::Sparse,
            token if token < 2 * self.m + 2 => TokenKind::Frequent,
            _ => TokenKind::Irrelevant,
        }
    }

    /// The label a token speaks for: 1 or -1, 0 if for none.
    pub fn polarity(&self, token: u16) -> i8 {
        match (self.kind(token), token % 2) {
            (TokenKind::Irrelevant, _) => 0,
            (_, 0) => 1,
            _ => -1,
        }
    }

    /// `rows` sequences with uniform labels, their tokens at random positions. With `sparse_of_other_label`, the sparse tokens are those of
    /// the other label: the test set that tells what a predictor relies on.
    pub fn draw(&self, rows: usize, sparse_of_other_label: bool, stream: &mut Stream) -> Result<TokenSet, DataError> {
        self.check()?;
        let mut tokens = Vec::with_capacity(rows * self.length);
        let mut labels = Vec::with_capacity(rows);
        for _ in 0..rows {
            // 0 for label 1, 1 for label -1: what is added to the even token of a pair.
            let side = stream.below(2);
            let start = tokens.len();
            let sparse = side ^ u64::from(sparse_of_other_label);
            tokens.extend(std::iter::repeat_n(sparse as u16, self.n_s));
            for place in 0..self.n_f {
                let side = side ^ u64::from(place >= self.frequent_of_label());
                tokens.push((2 + 2 * stream.below(self.m as u64) + side) as u16);
            }
            let first_irrelevant = 2 * self.m + 2;
            let irrelevant = (self.vocabulary - first_irrelevant) as u64;
            for _ in self.n_s + self.n_f..self.length {
                tokens.push(first_irrelevant as u16 + stream.below(irrelevant) as u16);
            }
            stream.shuffle(&mut tokens[start..]);
            labels.push(if side == 0 { 1 } else { -1 });
        }
        Ok(TokenSet { length: self.length, tokens, labels })
    }
}

impl TokenSet {
    /// How many sequences.
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// Sequence `row` \[length\] and its label.
    pub fn get(&self, row: usize) -> (&[u16], i8) {
        (&self.tokens[row * self.length..(row + 1) * self.length], self.labels[row])
    }

    /// All sequences with their labels.
    pub fn iter(&self) -> impl Iterator<Item = (&[u16], i8)> {
        self.tokens.chunks_exact(self.length).zip(self.labels.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: TokenTask = TokenTask { length: 50, vocabulary: 59, n_s: 3, n_f: 5, n_d: 1, m: 16 };

    #[test]
    fn sequences_are_those_of_definition_4_2() {
        for flipped in [false, true] {
            let set = TASK.draw(2_000, flipped, &mut Stream::new(0, "test", 0)).unwrap();
            let mut seen = vec![0u32; TASK.vocabulary];
            let mut at_first_place = 0;
            for (tokens, label) in set.iter() {
                let count = |kind: TokenKind, polarity: i8| {
                    tokens.iter().filter(|t| TASK.kind(**t) == kind && TASK.polarity(**t) == polarity).count()
                };
                let sparse = if flipped { -label } else { label };
                assert_eq!((count(TokenKind::Sparse, sparse), count(TokenKind::Sparse, -sparse)), (3, 0));
                assert_eq!((count(TokenKind::Frequent, label), count(TokenKind::Frequent, -label)), (3, 2));
                assert_eq!(count(TokenKind::Irrelevant, 0), 42);
                tokens.iter().for_each(|token| seen[usize::from(*token)] += 1);
                at_first_place += u32::from(TASK.kind(tokens[0]) == TokenKind::Sparse);
            }
            // Each frequent token 10,000 / 32 times, each irrelevant one 84,000 / 25 times, positions uniform.
            assert!(seen[2..34].iter().all(|count| (220..410).contains(count)), "{seen:?}");
            assert!(seen[34..].iter().all(|count| (3_100..3_620).contains(count)), "{seen:?}");
            assert!((80..165).contains(&at_first_place), "{at_first_place}");
        }
    }

    #[test]
    fn numbers_tell_kinds() {
        // e_1, e_2, e_3, e_4 and e_{2m+1}, e_{2m+2}, e_{2m+3} of the paper.
        let tokens = [0, 1, 2, 3, 32, 33, 34];
        assert_eq!(tokens.map(|token| TASK.polarity(token)), [1, -1, 1, -1, 1, -1, 0]);
        use TokenKind::{Frequent, Irrelevant, Sparse};
        let kinds = [Sparse, Sparse, Frequent, Frequent, Frequent, Frequent, Irrelevant];
        assert_eq!(tokens.map(|token| TASK.kind(token)), kinds);
    }

    #[test]
    fn equal_names_are_equal_sets() {
        let draw = |seed| TASK.draw(10, false, &mut Stream::new(seed, "test", 0)).unwrap();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(draw(1).rows(), 10);
        assert_eq!(draw(1).get(3).0.len(), 50);
    }

    #[test]
    fn impossible_tasks_are_sentences() {
        let refusal = |task: TokenTask| task.check().unwrap_err().to_string();
        assert!(TASK.check().is_ok());
        assert!(refusal(TokenTask { vocabulary: 33, ..TASK }).contains("at least 34"));
        assert!(refusal(TokenTask { vocabulary: 34, ..TASK }).contains("at least 35"));
        assert!(refusal(TokenTask { length: 7, ..TASK }).contains("do not fit"));
        assert!(refusal(TokenTask { n_s: usize::MAX, ..TASK }).contains("do not fit"));
        assert!(refusal(TokenTask { n_f: usize::MAX, ..TASK }).contains("do not fit"));
        assert!(refusal(TokenTask { n_d: 6, ..TASK }).contains("n_d"));
        assert!(refusal(TokenTask { m: usize::MAX, ..TASK }).contains("vocabulary"));
        assert!(refusal(TokenTask { length: 0, ..TASK }).contains("from 1 to 1024"));
    }
}
