//! Truth tables from files.

use crate::memory::Array;
use crate::npy::{self, Header, Type};
use crate::table::{RealTable, TruthTable};
use crate::{Error, MAX_TABLE_VARIABLES, Result, memory};
use sha2::{Digest, Sha256};
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
    /// NumPy: bool, uint8, int8 to int64, float32 or float64.
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

impl From<TruthTable> for Table {
    fn from(table: TruthTable) -> Self {
        Self::Boolean(table)
    }
}

impl From<RealTable> for Table {
    fn from(table: RealTable) -> Self {
        Self::Real(table)
    }
}

impl Table {
    /// n, the number of variables.
    pub fn variables(&self) -> usize {
        match self {
            Self::Boolean(table) => table.variables(),
            Self::Real(table) => table.variables(),
        }
    }
}

/// Reads a table of 2^n rows; without a format, its first bytes tell. Numbers that are all 0 or 1, or all +1 or -1 (+1 being
/// 0), are a Boolean function.
pub fn read_table(path: &Path, format: Option<TableFormat>) -> Result<Table> {
    read(path, format, &mut |_| {})
}

/// Reads a table as [`read_table`] does, and the first 12 hexadecimal digits of the SHA-256 of its file.
pub fn read_table_with_digest(path: &Path) -> Result<(Table, String)> {
    let mut hasher = Sha256::new();
    let table = read(path, None, &mut |bytes| hasher.update(bytes))?;
    let digest = hasher.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    Ok((table, digest))
}

/// The table that these values are, as a `.npy` file of them would be; `name` is what messages call it.
pub fn table_of(dtype: Type, bytes: &[u8], name: &str) -> Result<Table> {
    let values = (bytes.len() / dtype.size()) as u64;
    read_npy(&mut &*bytes, Header { dtype, values, shape: vec![values] }, Path::new(name))
}

/// Reads a table; `see` is given all bytes of the file on the way.
fn read(path: &Path, format: Option<TableFormat>, see: &mut dyn FnMut(&[u8])) -> Result<Table> {
    let unreadable = |source| Error::Io { action: "read", path: path.into(), source };
    let wrong = |problem: String| Error::Table { path: path.into(), problem };
    let file = File::open(path).map_err(unreadable)?;
    if is_endless(&file).map_err(unreadable)? {
        return Err(wrong("this is a device, not a file".into()));
    }
    let mut start = Vec::new();
    (&file).take(4096).read_to_end(&mut start).map_err(unreadable)?;
    let format = format.unwrap_or_else(|| guess_format(&start));
    let mut reader = BufReader::with_capacity(1 << 20, Seen { reader: start.as_slice().chain(file), see });
    match format {
        TableFormat::Text => read_text(&mut reader, path).map(Table::Boolean),
        TableFormat::Packed => read_packed(&mut reader, path).map(Table::Boolean),
        TableFormat::Npy => {
            let header = npy::read_header(&mut reader).map_err(wrong)?;
            read_npy(&mut reader, header, path)
        }
    }
}

/// A reader that shows what is read to somebody else.
struct Seen<'a, R> {
    reader: R,
    see: &'a mut dyn FnMut(&[u8]),
}

impl<R: Read> Read for Seen<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        (self.see)(&buffer[..count]);
        Ok(count)
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
        rows if rows > 1 << MAX_TABLE_VARIABLES => {
            format!("{rows} values are too many: the limit is 2^{MAX_TABLE_VARIABLES}")
        }
        rows if rows.is_power_of_two() => return Ok(rows.ilog2() as usize),
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

/// /dev/zero and its like never end; a terminal does, and pipes do.
#[cfg(unix)]
fn is_endless(file: &File) -> io::Result<bool> {
    use std::io::IsTerminal;
    use std::os::unix::fs::FileTypeExt;
    let kind = file.metadata()?.file_type();
    Ok(kind.is_block_device() || kind.is_char_device() && !file.is_terminal())
}

#[cfg(not(unix))]
fn is_endless(_: &File) -> io::Result<bool> {
    Ok(false)
}

/// Rows as they come, packed; refuses more than can be a table or would fit in memory.
#[derive(Default)]
struct Rows {
    words: Vec<u64>,
    count: u64,
}

impl Rows {
    /// Takes the next 1 or 8 rows, the first of them as the lowest bit.
    fn push(&mut self, bits: u8, count: u64) -> std::result::Result<(), String> {
        if self.count.is_multiple_of(64) {
            self.make_room()?;
            self.words.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= u64::from(bits) << (self.count % 64);
        }
        self.count += count;
        Ok(())
    }

    fn make_room(&mut self) -> std::result::Result<(), String> {
        /// Words for which memory is not asked about: 1 MiB.
        const FEW: usize = 1 << 17;
        if self.count == 1 << MAX_TABLE_VARIABLES {
            return Err(format!("there are more than 2^{MAX_TABLE_VARIABLES} values, the limit"));
        }
        if self.words.len() < self.words.capacity() {
            return Ok(());
        }
        let more = self.words.len().max(1024);
        // While growing, and while the table is made of them, they are there twice.
        let bytes = 2 * 8 * (self.words.len() + more) as u64;
        match memory::available() {
            Some(free) if more >= FEW && bytes > free => Err(format!(
                "the table does not fit in memory: {} values have come, and this process may have {}",
                self.count,
                memory::human_bytes(free)
            )),
            _ => {
                self.words.reserve_exact(more);
                Ok(())
            }
        }
    }

    fn table(self, path: &Path) -> Result<TruthTable> {
        TruthTable::from_words(variables_of_rows(self.count, path)?, &self.words)
    }
}

fn read_text(reader: &mut impl Read, path: &Path) -> Result<TruthTable> {
    let mut rows = Rows::default();
    let (mut line, mut column) = (1u64, 0u64);
    for_each_byte(reader, path, |byte| {
        column += 1;
        match byte {
            b'0' | b'1' => rows.push(byte - b'0', 1)?,
            b'\n' => (line, column) = (line + 1, 0),
            byte if byte.is_ascii_whitespace() => {}
            byte => {
                return Err(format!("line {line}, column {column}: '{}' is not 0 or 1", byte.escape_ascii()));
            }
        }
        Ok(())
    })?;
    rows.table(path)
}

fn read_packed(reader: &mut impl Read, path: &Path) -> Result<TruthTable> {
    let mut rows = Rows::default();
    for_each_byte(reader, path, |byte| rows.push(byte.reverse_bits(), 8))?;
    rows.table(path)
}

fn read_npy(reader: &mut impl Read, header: Header, path: &Path) -> Result<Table> {
    let n = variables_of_rows(header.values, path)?;
    match header.dtype {
        Type::Bool | Type::U8 => {
            let mut rows = Rows::default();
            for_each_value(reader, &header, path, |row, value| match value {
                0.0 | 1.0 => rows.push(value as u8, 1),
                _ => Err(format!("row {row} is {value}, not 0 or 1")),
            })?;
            rows.table(path).map(Table::Boolean)
        }
        dtype => {
            memory::check_fits(n, "the table of values", 8 << n, "take a table of fewer variables")?;
            // Pages that nothing is written to take no memory: a header that lies costs nothing.
            let mut reals = Array::<f64>::zeros(1 << n);
            for_each_value(reader, &header, path, |row, value| {
                if !value.is_finite() {
                    return Err(format!("row {row} is not a finite number"));
                }
                if value.abs() > LARGEST {
                    return Err(format!(
                        "row {row} is {value:e}; values beyond ±{LARGEST:e} cannot be squared and summed: scale them"
                    ));
                }
                reals[row as usize] = value;
                Ok(())
            })?;
            let rounding = match dtype {
                Type::F16 => 2f64.powi(-10),
                Type::F32 => f64::from(f32::EPSILON),
                _ => f64::EPSILON,
            };
            boolean_or_real(n, reals, rounding)
        }
    }
}

/// The largest real value: the squares of 2^30 sums of 2^30 such values are still numbers.
const LARGEST: f64 = 1e100;

fn boolean_or_real(n: usize, reals: Array<f64>, epsilon: f64) -> Result<Table> {
    let all = |a: f64, b: f64| reals.iter().all(|&real| real == a || real == b);
    let one = if all(0.0, 1.0) {
        1.0
    } else if all(1.0, -1.0) {
        -1.0
    } else {
        return RealTable::new(n, reals, epsilon).map(Table::Real);
    };
    let mut table = TruthTable::zeros(n)?;
    reals.iter().enumerate().filter(|(_, real)| **real == one).for_each(|(row, _)| table.set(row as u64, true));
    Ok(Table::Boolean(table))
}

/// Gives every value, with its row, to `take`, which may refuse it. There must be as many as the header says.
fn for_each_value(
    reader: &mut impl Read,
    header: &Header,
    path: &Path,
    mut take: impl FnMut(u64, f64) -> std::result::Result<(), String>,
) -> Result<()> {
    let (size, mut value, mut filled, mut row) = (header.dtype.size(), [0u8; 8], 0, 0u64);
    for_each_byte(reader, path, |byte| {
        value[filled] = byte;
        filled += 1;
        if filled < size {
            return Ok(());
        }
        filled = 0;
        if row == header.values {
            return Err(format!("there are more values than the {} of the header", header.values));
        }
        let number = header.dtype.value(value).ok_or_else(|| format!("row {row} has more than 53 bits"))?;
        take(row, number)?;
        row += 1;
        Ok(())
    })?;
    if row != header.values || filled != 0 {
        let problem = format!("the file ends after {row} of {} values", header.values);
        return Err(Error::Table { path: path.into(), problem });
    }
    Ok(())
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
            npy("|i1", 64, &bits),
            npy("<i4", 64, &bits.iter().flat_map(|&b| i32::from(b).to_le_bytes()).collect::<Vec<_>>()),
            npy("<i8", 64, &bits.iter().flat_map(|&b| i64::from(b).to_le_bytes()).collect::<Vec<_>>()),
            npy("<i8", 64, &bits.iter().flat_map(|&b| (1 - 2 * i64::from(b)).to_le_bytes()).collect::<Vec<_>>()),
        ] {
            match read("table", &file).unwrap() {
                Table::Boolean(table) => assert_eq!(table, f),
                Table::Real(_) => panic!("a Boolean function was read as a real one"),
            }
        }
        assert!(matches!(read("t", &npy("<f4", 64, &floats(0.0, 0.5))).unwrap(), Table::Real(_)));
        match read("t", &npy("|i1", 4, &[0, 1, 2, 253])).unwrap() {
            Table::Real(table) => assert_eq!(table.values(), [0.0, 1.0, 2.0, -3.0]),
            Table::Boolean(_) => panic!("2 and -3 are no truth values"),
        }
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
            (&npy("<f8", 2, &[1e308f64.to_le_bytes(), [0; 8]].concat()), "row 0 is 1e308; values beyond ±1e100"),
            (&npy("<i8", 2, &[i64::MAX.to_le_bytes(), [0; 8]].concat()), "row 0 has more than 53 bits"),
            (&npy("<f4", 1 << 40, &[]), "too many"),
            (&npy("|u1", usize::MAX, &[]), "18446744073709551615 values are too many"),
            (&npy("<f8", 1 << 24, &[0; 80]), "ends after 10 of 16777216 values"),
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

    /// The digest is `sha256sum`'s, also of files longer than a buffer.
    #[test]
    fn the_digest_is_that_of_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let digest = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read_table_with_digest(&path).unwrap().1
        };
        assert_eq!(digest(b"0110"), "a5c3dd48facf");
        let long = npy("<f8", 1 << 18, &vec![0; 8 << 18]);
        let whole: String = Sha256::digest(&long).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest(&long), whole[..12]);
    }

    #[cfg(unix)]
    #[test]
    fn devices_that_never_end_are_refused() {
        for device in ["/dev/zero", "/dev/urandom"] {
            let error = read_table(Path::new(device), None).unwrap_err().to_string();
            assert_eq!(error, format!("{device}: this is a device, not a file"));
        }
    }
}
