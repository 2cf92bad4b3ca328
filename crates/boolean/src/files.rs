//! Truth tables from files.

use crate::memory::Array;
use crate::npy::{self, Header, Type};
use crate::table::{RealTable, TruthTable};
use crate::{Error, MAX_TABLE_VARIABLES, Result, memory};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// How a table is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Characters 0 and 1, white space ignored.
    Text,
    /// Eight rows a byte, the first row in the most significant bit, as `numpy.packbits` writes them.
    Packed,
    /// NumPy: bool, uint8, float32 or float64.
    Npy,
}

/// A table of either kind.
#[derive(Clone, Debug)]
pub enum Table {
    /// Values in {0,1}.
    Boolean(TruthTable),
    /// Values in R.
    Real(RealTable),
}

/// Reads a table of 2^n rows; without a format, its first bytes tell. Floats that are all 0 or 1, or all +1 or -1 (+1 being
/// 0), are a Boolean function.
pub fn read_table(path: &Path, format: Option<TableFormat>) -> Result<Table> {
    let unreadable = |source| Error::Io { action: "read", path: path.into(), source };
    let wrong = |problem: String| Error::Table { path: path.into(), problem };
    let file = File::open(path).map_err(unreadable)?;
    let mut start = Vec::new();
    (&file).take(4096).read_to_end(&mut start).map_err(unreadable)?;
    let format = format.unwrap_or_else(|| guess_format(&start));
    let mut reader = BufReader::with_capacity(1 << 20, start.as_slice().chain(file));
    match format {
        TableFormat::Text => read_text(&mut reader, path).map(Table::Boolean),
        TableFormat::Packed => read_packed(&mut reader, path).map(Table::Boolean),
        TableFormat::Npy => {
            let header = npy::read_header(&mut reader).map_err(wrong)?;
            read_npy(&mut reader, header, path)
        }
    }
}

fn guess_format(start: &[u8]) -> TableFormat {
    let textual = start.iter().filter(|byte| matches!(byte, b'0' | b'1') || byte.is_ascii_whitespace()).count();
    match () {
        () if start.starts_with(npy::MAGIC) => TableFormat::Npy,
        // Text with a stray character is still text: it deserves that error, not one about its length in bits.
        () if 2 * textual >= start.len() => TableFormat::Text,
        () => TableFormat::Packed,
    }
}

/// n for 2^n rows.
fn variables_of_rows(rows: u64, path: &Path) -> Result<usize> {
    let problem = match rows {
        0 => "the table is empty: 2^n values are needed".into(),
        1 => "the table has one value: a function of n >= 1 variables has 2^n".into(),
        rows if rows.is_power_of_two() && rows.ilog2() as usize <= MAX_TABLE_VARIABLES => {
            return Ok(rows.ilog2() as usize);
        }
        rows if rows.is_power_of_two() => {
            format!("2^{} values are too many: the limit is 2^{MAX_TABLE_VARIABLES}", rows.ilog2())
        }
        rows => {
            let n = rows.ilog2();
            format!(
                "the table has {rows} values, not 2^n: {} (n={n}) or {} (n={}) were expected",
                1u64 << n,
                2u64 << n,
                n + 1
            )
        }
    };
    Err(Error::Table { path: path.into(), problem })
}

fn read_text(reader: &mut impl Read, path: &Path) -> Result<TruthTable> {
    let (mut words, mut rows) = (Vec::new(), 0u64);
    let (mut line, mut column) = (1u64, 0u64);
    for_each_byte(reader, path, |byte| {
        column += 1;
        match byte {
            b'0' | b'1' => {
                push_bit(&mut words, rows, byte == b'1');
                rows += 1;
            }
            b'\n' => (line, column) = (line + 1, 0),
            byte if byte.is_ascii_whitespace() => {}
            byte => {
                return Err(format!("line {line}, column {column}: '{}' is not 0 or 1", byte.escape_ascii()));
            }
        }
        Ok(())
    })?;
    TruthTable::from_words(variables_of_rows(rows, path)?, &words)
}

fn read_packed(reader: &mut impl Read, path: &Path) -> Result<TruthTable> {
    let (mut words, mut rows) = (Vec::new(), 0u64);
    for_each_byte(reader, path, |byte| {
        if rows.is_multiple_of(64) {
            words.push(0u64);
        }
        if let Some(word) = words.last_mut() {
            *word |= u64::from(byte.reverse_bits()) << (rows % 64);
        }
        rows += 8;
        Ok(())
    })?;
    TruthTable::from_words(variables_of_rows(rows, path)?, &words)
}

fn read_npy(reader: &mut impl Read, header: Header, path: &Path) -> Result<Table> {
    let wrong = |problem: String| Error::Table { path: path.into(), problem };
    let n = variables_of_rows(header.values, path)?;
    if header.dtype.size() > 1 {
        memory::check_fits(n, "the table of values", 8 << n, "fewer variables")?;
    }
    // Nothing is allocated from what the header says before the values have come.
    let (mut words, mut reals, mut row) = (Vec::new(), Vec::new(), 0u64);
    let mut value = [0u8; 8];
    let size = header.dtype.size();
    let mut filled = 0;
    for_each_byte(reader, path, |byte| {
        value[filled] = byte;
        filled += 1;
        if filled == size {
            filled = 0;
            if row == header.values {
                return Err(format!("there are more values than the {} of the header", header.values));
            }
            match header.dtype {
                Type::Bool | Type::U8 if value[0] > 1 => return Err(format!("row {row} is {}, not 0 or 1", value[0])),
                Type::Bool | Type::U8 => push_bit(&mut words, row, value[0] == 1),
                Type::F32 => reals.push(f64::from(f32::from_le_bytes([value[0], value[1], value[2], value[3]]))),
                Type::F64 => reals.push(f64::from_le_bytes(value)),
            }
            if reals.last().is_some_and(|real| !real.is_finite()) {
                return Err(format!("row {row} is not a finite number"));
            }
            row += 1;
        }
        Ok(())
    })?;
    if row != header.values || filled != 0 {
        return Err(wrong(format!("the file ends after {row} of {} values", header.values)));
    }
    if size == 1 {
        return TruthTable::from_words(n, &words).map(Table::Boolean);
    }
    let all = |a: f64, b: f64| reals.iter().all(|&real| real == a || real == b);
    let one = if all(0.0, 1.0) {
        Some(1.0)
    } else if all(1.0, -1.0) {
        Some(-1.0)
    } else {
        None
    };
    if let Some(one) = one {
        reals.iter().enumerate().for_each(|(row, &real)| push_bit(&mut words, row as u64, real == one));
        return TruthTable::from_words(n, &words).map(Table::Boolean);
    }
    let epsilon = if header.dtype == Type::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    RealTable::new(n, Array::from(&reals[..]), epsilon).map(Table::Real)
}

fn push_bit(words: &mut Vec<u64>, row: u64, bit: bool) {
    if row.is_multiple_of(64) {
        words.push(0);
    }
    if let Some(word) = words.last_mut() {
        *word |= u64::from(bit) << (row % 64);
    }
}

/// Gives every byte of `reader` to `take`, which may refuse it.
fn for_each_byte(
    reader: &mut impl Read,
    path: &Path,
    mut take: impl FnMut(u8) -> std::result::Result<(), String>,
) -> Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                for &byte in &buffer[..count] {
                    take(byte).map_err(|problem| Error::Table { path: path.into(), problem })?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::Io { action: "read", path: path.into(), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Named;

    fn read(name: &str, bytes: &[u8]) -> Result<Table> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        read_table(&path, None)
    }

    fn npy(descr: &str, count: usize, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({count},), }}\n");
        [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes(), data].concat()
    }

    #[test]
    fn every_format_gives_the_same_table() {
        let f = Named::Address(2).boolean_at(6).unwrap().table().unwrap();
        let bits: Vec<u8> = (0..64).map(|row| u8::from(f.get(row))).collect();
        let text: String =
            bits.iter().enumerate().map(|(i, b)| format!("{b}{}", if i % 8 == 7 { "\n" } else { "" })).collect();
        let packed: Vec<u8> = bits.chunks(8).map(|rows| rows.iter().fold(0, |byte, bit| byte << 1 | bit)).collect();
        let floats = |zero: f32, one: f32| -> Vec<u8> {
            bits.iter().flat_map(|&b| if b == 1 { one } else { zero }.to_le_bytes()).collect()
        };
        for file in [
            text.into_bytes(),
            packed,
            npy("|b1", 64, &bits),
            npy("|u1", 64, &bits),
            npy("<f4", 64, &floats(0.0, 1.0)),
            npy("<f4", 64, &floats(1.0, -1.0)),
        ] {
            match read("table", &file).unwrap() {
                Table::Boolean(table) => assert_eq!(table, f),
                Table::Real(_) => panic!("a Boolean function was read as a real one"),
            }
        }
        assert!(matches!(read("t", &npy("<f4", 64, &floats(0.0, 0.5))).unwrap(), Table::Real(_)));
    }

    #[test]
    fn bad_tables_say_what_is_wrong() {
        let nan = [f32::NAN.to_le_bytes(), 0f32.to_le_bytes()].concat();
        for (bytes, part) in [
            (&b"0110100"[..], "7 values, not 2^n: 4 (n=2) or 8 (n=3)"),
            (b"", "empty"),
            (b"1", "one value"),
            (b"0110\n10x0", "line 2, column 3: 'x'"),
            (b"\xff\x00\x12", "24 values"),
            (&npy("|u1", 8, &[0, 1, 1, 0, 2, 0, 0, 0]), "row 4 is 2"),
            (&npy("|u1", 8, &[0, 1, 1]), "ends after 3 of 8"),
            (&npy("|u1", 2, &[0, 1, 1]), "more values than the 2"),
            (&npy("|u1", 6, &[0; 6]), "6 values, not 2^n"),
            (&npy("<f4", 2, &nan), "row 0 is not a finite"),
            (&npy("<f4", 1 << 40, &[]), "too many"),
            (&npy("<c8", 8, &[]), "<c8"),
        ] {
            let error = read("table", bytes).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(
            read_table(Path::new("/no/such/file"), None)
                .unwrap_err()
                .to_string()
                .starts_with("cannot read /no/such/file")
        );
    }
}
