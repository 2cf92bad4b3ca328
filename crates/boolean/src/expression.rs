//! Boolean expressions: `x1 & (x2 | !x3) ^ x4`, `maj(x1, x2, x3)`.
//!
//! From tightest to loosest: `!` (or `~`, `not`), `&` (`&&`, `and`), `^` (`xor`), `|` (`||`, `or`), as in Rust, C and Python.
//! Variables are x1, x2, ...; 0 and 1 are constants; `maj(a, b, ...)` is 1 where more of its arguments are 1 than 0.

use crate::error::shortened;
use crate::function::BooleanFunction;
use crate::vertical::LaneCounter;
use crate::{Error, MAX_SAMPLED_VARIABLES, Result, memory};
use std::fmt;

/// How deeply parentheses and negations may nest: enough for people, too little to exhaust the stack.
const MAX_DEPTH: usize = 500;

/// A parsed expression, as a function of n variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    n: usize,
    steps: Vec<Step>,
    /// Without blanks, every operator in its shortest spelling.
    text: String,
}

/// What is done with a stack of values: an expression is its steps one after the other, operands before operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Puts x_{i+1} on the stack.
    Variable(usize),
    /// Puts a constant on the stack.
    Constant(bool),
    /// Negates the topmost value.
    Not,
    /// Replaces the two topmost values.
    And,
    /// Replaces the two topmost values.
    Xor,
    /// Replaces the two topmost values.
    Or,
    /// Replaces so many values: 1 where more than half of them are.
    Majority(usize),
}

impl Expression {
    /// Parses `text`. `n` is the number of variables of the function; by default the largest index that occurs.
    pub fn parse(text: &str, n: Option<usize>) -> Result<Self> {
        let mut parser = Parser { text, tokens: tokens(text)?, next: 0, steps: Vec::new(), depth: 0 };
        parser.either(LOOSEST_FIRST)?;
        if let Some((column, token)) = parser.tokens.get(parser.next) {
            let problem = match token {
                Token::Close => "this ')' has no '(' before it".into(),
                token => format!("expected an operator (&, |, ^) here, not '{token}'"),
            };
            return Err(at(text, *column, problem));
        }
        let spelled = parser.tokens.iter().map(|(_, token)| token.to_string()).collect();
        let parsed = Self { n: 0, steps: parser.steps, text: spelled };
        let n = n.unwrap_or(parsed.least_variables());
        parsed.on(n)
    }

    /// The same as a function of `n` variables; those that do not occur in it do not matter.
    pub fn on(self, n: usize) -> Result<Self> {
        memory::check_variables(n)?;
        let least = self.least_variables();
        if least > n {
            return Err(Error::Variables(format!(
                "the expression uses x{least}, but n={n}: n must be {least} or more"
            )));
        }
        Ok(Self { n, ..self })
    }

    /// The largest index that occurs, at least 1.
    pub fn least_variables(&self) -> usize {
        let index = |step: &Step| if let Step::Variable(i) = step { i + 1 } else { 1 };
        self.steps.iter().map(index).max().unwrap_or(1)
    }

    /// How it is computed.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl BooleanFunction for Expression {
    fn variables(&self) -> usize {
        self.n
    }

    fn lanes(&self, x: &[u64]) -> u64 {
        let mut stack = Vec::with_capacity(16);
        for step in &self.steps {
            let value = match step {
                Step::Variable(i) => x[*i],
                Step::Constant(bit) => 0u64.wrapping_sub(u64::from(*bit)),
                Step::Not => !stack.pop().unwrap_or(0),
                Step::Majority(count) => {
                    let mut counter = LaneCounter::default();
                    stack.drain(stack.len().saturating_sub(*count)..).for_each(|lanes| counter.add(lanes));
                    counter.at_least(count / 2 + 1)
                }
                operator => {
                    let (b, a) = (stack.pop().unwrap_or(0), stack.pop().unwrap_or(0));
                    match operator {
                        Step::And => a & b,
                        Step::Xor => a ^ b,
                        _ => a | b,
                    }
                }
            };
            stack.push(value);
        }
        stack.pop().unwrap_or(0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Variable(usize),
    Constant(bool),
    Not,
    And,
    Xor,
    Or,
    Majority,
    Open,
    Close,
    Comma,
}

/// The operators between two operands.
const LOOSEST_FIRST: &[Token] = &[Token::Or, Token::Xor, Token::And];

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Variable(i) => write!(f, "x{}", i + 1),
            Self::Constant(bit) => write!(f, "{}", u8::from(*bit)),
            Self::Not => write!(f, "!"),
            Self::And => write!(f, "&"),
            Self::Xor => write!(f, "^"),
            Self::Or => write!(f, "|"),
            Self::Majority => write!(f, "maj"),
            Self::Open => write!(f, "("),
            Self::Close => write!(f, ")"),
            Self::Comma => write!(f, ","),
        }
    }
}

/// An error at a 1-based column (in characters).
fn at(text: &str, column: usize, problem: String) -> Error {
    let (text, place) = excerpt(text, column);
    let marker = format!("{}^", " ".repeat(place - 1));
    Error::Expression { column, problem, text, marker }
}

/// What surrounds a column of a long text, and the column's place in it.
fn excerpt(text: &str, column: usize) -> (String, usize) {
    /// Characters shown on either side.
    const AROUND: usize = 50;
    const CUT: &str = "...";
    let start = column.saturating_sub(1 + AROUND);
    let mut shown: String = text.chars().skip(start).take(2 * AROUND).collect();
    if text.chars().nth(start + 2 * AROUND).is_some() {
        shown += CUT;
    }
    match start {
        0 => (shown, column),
        _ => (format!("{CUT}{shown}"), column - start + CUT.len()),
    }
}

/// Splits `text`, each token with its column.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut next = 0;
    while next < characters.len() {
        let (start, character) = (next, characters[next]);
        let column = start + 1;
        next += 1;
        let token = match character {
            c if c.is_whitespace() => continue,
            '!' | '~' | '¬' => Token::Not,
            '&' | '|' => {
                // Twice means the same.
                next += usize::from(characters.get(next) == Some(&character));
                if character == '&' { Token::And } else { Token::Or }
            }
            '∧' => Token::And,
            '^' | '⊕' => Token::Xor,
            '∨' => Token::Or,
            '(' => Token::Open,
            ')' => Token::Close,
            ',' => Token::Comma,
            c if c.is_ascii_alphanumeric() || c == '_' => {
                while next < characters.len() && (characters[next].is_ascii_alphanumeric() || characters[next] == '_') {
                    next += 1;
                }
                let word: String = characters[start..next].iter().collect();
                match word.to_lowercase().as_str() {
                    "0" | "false" => Token::Constant(false),
                    "1" | "true" => Token::Constant(true),
                    "not" => Token::Not,
                    "and" => Token::And,
                    "xor" => Token::Xor,
                    "or" => Token::Or,
                    "maj" | "majority" => Token::Majority,
                    lower => match lower.strip_prefix('x').map(str::parse::<usize>) {
                        Some(Ok(0)) => return Err(at(text, column, "variables start at x1, there is no x0".into())),
                        Some(Ok(i)) if i <= MAX_SAMPLED_VARIABLES => Token::Variable(i - 1),
                        Some(Ok(_)) => {
                            return Err(at(text, column, format!("'{word}' is beyond x{MAX_SAMPLED_VARIABLES}")));
                        }
                        _ => {
                            let word = shortened(&word, 30);
                            return Err(at(text, column, format!("'{word}' is not a variable: write x1, x2, ...")));
                        }
                    },
                }
            }
            c => {
                return Err(at(
                    text,
                    column,
                    format!("unexpected '{c}'; operators are ! & ^ | maj(...) and parentheses"),
                ));
            }
        };
        tokens.push((column, token));
    }
    Ok(tokens)
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
    next: usize,
    steps: Vec<Step>,
    depth: usize,
}

impl Parser<'_> {
    /// A chain of the first of `operators`, whose operands are chains of the tighter ones that follow it.
    fn either(&mut self, operators: &[Token]) -> Result<()> {
        let Some((&operator, tighter)) = operators.split_first() else { return self.operand() };
        self.either(tighter)?;
        while self.tokens.get(self.next).is_some_and(|(_, token)| *token == operator) {
            self.next += 1;
            self.either(tighter)?;
            self.steps.push(match operator {
                Token::Or => Step::Or,
                Token::Xor => Step::Xor,
                _ => Step::And,
            });
        }
        Ok(())
    }

    /// A variable, a constant, a negation or something in parentheses.
    fn operand(&mut self) -> Result<()> {
        let Some(&(column, token)) = self.tokens.get(self.next) else {
            let end = self.text.chars().count() + 1;
            return Err(at(self.text, end, "the expression ends where a variable, '!' or '(' should follow".into()));
        };
        self.next += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(at(self.text, column, format!("nested more than {MAX_DEPTH} deep")));
        }
        match token {
            Token::Variable(i) => self.steps.push(Step::Variable(i)),
            Token::Constant(bit) => self.steps.push(Step::Constant(bit)),
            Token::Not => {
                self.operand()?;
                self.steps.push(Step::Not);
            }
            Token::Open => {
                self.either(LOOSEST_FIRST)?;
                self.close(column)?;
            }
            Token::Majority => self.majority(column)?,
            token => {
                let problem = format!("expected a variable, '!' or '(' here, not '{token}'");
                return Err(at(self.text, column, problem));
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// The arguments of the `maj` at `column`.
    fn majority(&mut self, column: usize) -> Result<()> {
        let Some((open, Token::Open)) = self.tokens.get(self.next).copied() else {
            return Err(at(self.text, column, "write maj(a, b, c): its arguments stand in parentheses".into()));
        };
        let mut count = 0;
        loop {
            self.next += 1; // '(' or ','
            self.either(LOOSEST_FIRST)?;
            count += 1;
            if self.tokens.get(self.next).is_none_or(|(_, token)| *token != Token::Comma) {
                break;
            }
        }
        self.close(open)?;
        if count > MAX_SAMPLED_VARIABLES {
            return Err(at(self.text, column, format!("maj takes at most {MAX_SAMPLED_VARIABLES} arguments")));
        }
        self.steps.push(Step::Majority(count));
        Ok(())
    }

    /// The ')' of the '(' at `open`.
    fn close(&mut self, open: usize) -> Result<()> {
        match self.tokens.get(self.next) {
            Some((_, Token::Close)) => self.next += 1,
            Some((column, token)) => {
                return Err(at(self.text, *column, format!("expected an operator or ')' here, not '{token}'")));
            }
            None => return Err(at(self.text, open, "this '(' is never closed".into())),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bits, TruthTable};

    fn equals(text: &str, n: usize, f: impl Fn(&Bits) -> bool + Send + Sync) {
        let parsed = Expression::parse(text, Some(n)).unwrap();
        assert_eq!(parsed.table().unwrap(), TruthTable::from_fn(n, f).unwrap(), "{text}");
    }

    #[test]
    fn precedence_is_that_of_rust() {
        equals("x1 & (x2 | !x3) ^ x4", 4, |x| x.get(0) & (x.get(1) | !x.get(2)) ^ x.get(3));
        equals("x1 | x2 ^ x3 & x4", 4, |x| x.get(0) | x.get(1) ^ x.get(2) & x.get(3));
        equals("not x1 and x2 or ~x3 xor 1", 3, |x| !x.get(0) & x.get(1) | !x.get(2) ^ true);
        equals("!!x2", 2, |x| x.get(1));
        equals("x1 && x2 || !x3 && x1", 3, |x| x.get(0) & x.get(1) | !x.get(2) & x.get(0));
        equals("x1^x2^x3^x4^x5^x6^x7^x8", 8, |x| x.ones() % 2 == 1);
    }

    #[test]
    fn n_is_the_largest_variable_unless_said() {
        assert_eq!(Expression::parse("x3", None).unwrap().variables(), 3);
        assert_eq!(Expression::parse("x3", Some(5)).unwrap().variables(), 5);
        assert_eq!(Expression::parse("1", None).unwrap().variables(), 1);
        assert!(Expression::parse("x3", Some(2)).unwrap_err().to_string().contains("n must be 3 or more"));
        assert_eq!(Expression::parse("x3", None).unwrap().on(7).unwrap().variables(), 7);
        assert!(Expression::parse("x3", None).unwrap().on(2).is_err());
    }

    #[test]
    fn majorities_of_anything() {
        equals("maj(x1, x2, x3)", 3, |x| x.ones() >= 2);
        equals("maj(x1, x2)", 2, |x| x.ones() == 2);
        equals("maj(x2)", 2, |x| x.get(1));
        equals("!maj(x1 & x2, x3 | x4, x1 ^ x4) | maj(x1, maj(x2, x3, x4), 1)", 4, |x| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|i| x.get(i));
            let most = |bits: [bool; 3]| bits.iter().filter(|bit| **bit).count() >= 2;
            !most([a & b, c | d, a ^ d]) | most([a, most([b, c, d]), true])
        });
    }

    #[test]
    fn it_is_spelled_without_blanks_and_read_again() {
        for (text, spelled) in [
            (" x1 and (x2 || not X3) xor true ", "x1&(x2|!x3)^1"),
            ("majority( x1 ,x2, ~ x3)", "maj(x1,x2,!x3)"),
            ("((x1))", "((x1))"),
        ] {
            let parsed = Expression::parse(text, None).unwrap();
            assert_eq!(parsed.to_string(), spelled);
            assert_eq!(Expression::parse(spelled, None).unwrap(), parsed);
        }
    }

    #[test]
    fn errors_point_at_the_column() {
        for (text, column, part) in [
            ("x1 & & x2", 6, "not '&'"),
            ("x1 &&& x2", 6, "not '&'"),
            ("x1 | | x2", 6, "not '|'"),
            ("x1 x2", 4, "expected an operator"),
            ("(x1 | x2", 1, "never closed"),
            ("x1 | x2)", 8, "no '('"),
            ("x1 &", 5, "ends where"),
            ("", 1, "ends where"),
            ("y1", 1, "not a variable"),
            ("x0", 1, "no x0"),
            ("x1 $ x2", 4, "unexpected '$'"),
            ("()", 2, "not ')'"),
            ("x99999999999999999999", 1, "not a variable"),
            ("x10001", 1, "beyond"),
            ("maj x1", 1, "maj(a, b, c)"),
            ("maj(x1, x2", 4, "never closed"),
            ("maj()", 5, "not ')'"),
            ("maj(x1,)", 8, "not ')'"),
            ("x1, x2", 3, "not ','"),
        ] {
            match Expression::parse(text, None) {
                Err(Error::Expression { column: found, problem, .. }) => {
                    assert_eq!(found, column, "{text}: {problem}");
                    assert!(problem.contains(part), "{text}: {problem}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn deep_nesting_is_refused_not_a_crash() {
        let deep = "(".repeat(100_000) + "x1";
        assert!(Expression::parse(&deep, None).unwrap_err().to_string().contains("nested"));
        assert!(Expression::parse(&"!".repeat(100_000), None).is_err());
        let long = vec!["x1"; 100_000].join(" ^ ") + " ^ y";
        match Expression::parse(&long, None).unwrap_err() {
            Error::Expression { column, text, marker, .. } => {
                assert_eq!((column, text.chars().nth(marker.len() - 1)), (500_001, Some('y')));
                assert!(text.starts_with("...") && text.len() < 150, "{text}");
            }
            other => panic!("{other}"),
        }
        assert!(Expression::parse(&"y".repeat(100_000), None).unwrap_err().to_string().len() < 300);
        let long = vec!["x1"; 100_000].join(" ^ ");
        assert_eq!(Expression::parse(&long, None).unwrap().table().unwrap().ones(), 0);
    }
}
