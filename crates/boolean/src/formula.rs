//! Whole numbers that depend on n: `n/3`, `(n + 1) / 2`, `2*n - 1`. Division rounds down.

/// How deeply parentheses may nest.
const MAX_DEPTH: usize = 50;

/// The value of `text` at `n`, or what is wrong with it. Where `n` is not known, only formulas without it have a value.
pub fn whole(text: &str, n: Option<usize>) -> Result<u64, String> {
    let mut parser = Parser { rest: text.trim(), n, depth: 0 };
    let value = parser.sum()?;
    match parser.rest.chars().next() {
        Some(character) => Err(format!("'{character}' is not expected there")),
        None if value < 0 => Err(format!("its value is {value}, below 0")),
        None => u64::try_from(value).map_err(|_| TOO_LARGE.into()),
    }
}

const TOO_LARGE: &str = "its value is too large";

struct Parser<'a> {
    rest: &'a str,
    n: Option<usize>,
    depth: usize,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<i128, String> {
        let mut value = self.product()?;
        while let Some(operator) = self.take(['+', '-']) {
            let next = self.product()?;
            let result = if operator == '+' { value.checked_add(next) } else { value.checked_sub(next) };
            value = result.ok_or(TOO_LARGE)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.factor()?;
        while let Some(operator) = self.take(['*', '/']) {
            value = match (operator, self.factor()?) {
                ('/', 0) => return Err("it divides by 0".into()),
                ('/', next) => value.div_euclid(next),
                (_, next) => value.checked_mul(next).ok_or(TOO_LARGE)?,
            };
        }
        Ok(value)
    }

    fn factor(&mut self) -> Result<i128, String> {
        if self.take(['(', '(']).is_some() {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(format!("parentheses nest more than {MAX_DEPTH} deep"));
            }
            let value = self.sum()?;
            self.depth -= 1;
            return self.take([')', ')']).map(|_| value).ok_or_else(|| "a '(' is not closed".into());
        }
        if self.take(['n', 'N']).is_some() {
            return self.n.map(|n| n as i128).ok_or_else(|| "it depends on n".into());
        }
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.rest.split_at(digits);
        if number.is_empty() {
            return Err("a whole number, n or '(' is missing".into());
        }
        self.rest = rest.trim_start();
        number.parse::<u64>().map(i128::from).map_err(|_| format!("{number} is too large"))
    }

    /// The next character, if it is one of these two, with the blanks after it.
    fn take(&mut self, wanted: [char; 2]) -> Option<char> {
        let next = self.rest.chars().next().filter(|character| wanted.contains(character))?;
        self.rest = self.rest[next.len_utf8()..].trim_start();
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        for (text, value) in [
            ("7", 7),
            ("n", 10),
            ("n/3", 3),
            ("(n+2)/3", 4),
            ("2*n - 1", 19),
            ("n/2+1", 6),
            ("n - n/4 - 1", 7),
            ("(n-20)/3 + 4", 0), // -10/3 rounds down to -4
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(whole(text, Some(10)), Ok(value), "{text}");
        }
        assert_eq!(whole("12/5", None), Ok(2));
    }

    #[test]
    fn mistakes() {
        for (text, part) in [
            ("", "missing"),
            ("x", "missing"),
            ("n/", "missing"),
            ("n 3", "'3' is not expected"),
            ("n-11", "is -1, below 0"),
            ("n/(n-10)", "divides by 0"),
            ("(n", "not closed"),
            ("n)", "')' is not expected"),
            ("99999999999999999999", "too large"),
            ("18446744073709551615*18446744073709551615*18446744073709551615", "too large"),
            ("18446744073709551615+1", "too large"),
        ] {
            let error = whole(text, Some(10)).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(whole("n/2", None), Err("it depends on n".into()));
        assert!(whole(&"(".repeat(100_000), Some(1)).unwrap_err().contains("nest"));
    }
}
