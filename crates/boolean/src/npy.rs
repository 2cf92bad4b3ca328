//! NumPy's `.npy` files: the header, read with suspicion, and written.

use std::io::{self, Read, Write};

/// What a file's first bytes are.
pub const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The types of values read here, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// One byte, 0 or 1.
    Bool,
    /// One unsigned byte.
    U8,
    /// A signed integer of 8 bits.
    I8,
    /// A signed integer of 16 bits.
    I16,
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 64 bits: what NumPy makes of whole numbers.
    I64,
    /// An unsigned integer of 16 bits.
    U16,
    /// An unsigned integer of 32 bits.
    U32,
    /// An unsigned integer of 64 bits.
    U64,
    /// A 16-bit float.
    F16,
    /// A 32-bit float.
    F32,
    /// A 64-bit float.
    F64,
}

impl Type {
    /// Each with its name in a header, its name in NumPy, and the bytes of one value.
    const ALL: [(Self, &'static str, &'static str, usize); 12] = [
        (Self::Bool, "|b1", "bool", 1),
        (Self::U8, "|u1", "uint8", 1),
        (Self::I8, "|i1", "int8", 1),
        (Self::I16, "<i2", "int16", 2),
        (Self::I32, "<i4", "int32", 4),
        (Self::I64, "<i8", "int64", 8),
        (Self::U16, "<u2", "uint16", 2),
        (Self::U32, "<u4", "uint32", 4),
        (Self::U64, "<u8", "uint64", 8),
        (Self::F16, "<f2", "float16", 2),
        (Self::F32, "<f4", "float32", 4),
        (Self::F64, "<f8", "float64", 8),
    ];

    fn row(self) -> (Self, &'static str, &'static str, usize) {
        Self::ALL.into_iter().find(|row| row.0 == self).unwrap_or(Self::ALL[0])
    }

    /// Bytes of one value.
    pub fn size(self) -> usize {
        self.row().3
    }

    /// What NumPy calls it: `int64`.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// The type that NumPy calls so: `int64`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(.., known, _)| *known == name).map(|(dtype, ..)| dtype)
    }

    /// Whether its values are floats, not integers.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// A value from its [`size`](Self::size) bytes, the first ones of `bytes`; `None` for integers that no f64 is equal to.
    pub fn value(self, bytes: [u8; 8]) -> Option<f64> {
        let [a, b, c, d, ..] = bytes;
        Some(match self {
            Self::Bool | Self::U8 => f64::from(a),
            Self::I8 => f64::from(a as i8),
            Self::I16 => f64::from(i16::from_le_bytes([a, b])),
            Self::I32 => f64::from(i32::from_le_bytes([a, b, c, d])),
            Self::I64 => match i64::from_le_bytes(bytes) {
                value if value.unsigned_abs() <= 1 << 53 => value as f64,
                _ => return None,
            },
            Self::U16 => f64::from(u16::from_le_bytes([a, b])),
            Self::U32 => f64::from(u32::from_le_bytes([a, b, c, d])),
            Self::U64 => match u64::from_le_bytes(bytes) {
                value if value <= 1 << 53 => value as f64,
                _ => return None,
            },
            Self::F16 => half(u16::from_le_bytes([a, b])),
            Self::F32 => f64::from(f32::from_le_bytes([a, b, c, d])),
            Self::F64 => f64::from_le_bytes(bytes),
        })
    }
}

/// The value of a 16-bit float: sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// Type, number and shape of the values that follow the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of each value.
    pub dtype: Type,
    /// How many there are: the product of the shape.
    pub values: u64,
    /// The lengths of the axes, the last one varying fastest.
    pub shape: Vec<u64>,
}

/// Reads the header, magic included; what is wrong with it otherwise.
pub fn read_header(reader: &mut impl Read) -> Result<Header, String> {
    let mut bytes = |count: usize| {
        let mut buffer = vec![0; count];
        reader.read_exact(&mut buffer).map(|()| buffer).map_err(|_| "the .npy header is cut short".to_string())
    };
    let start = bytes(8)?;
    if &start[..6] != MAGIC {
        return Err("this is not a .npy file".into());
    }
    let length = match start[6] {
        1 => bytes(2)?.iter().rev().fold(0, |n, &byte| n << 8 | usize::from(byte)),
        2 | 3 => bytes(4)?.iter().rev().fold(0, |n, &byte| n << 8 | usize::from(byte)),
        version => return Err(format!(".npy version {version} is not known here (1, 2 and 3 are)")),
    };
    if length > 1 << 16 {
        return Err(format!("a .npy header of {length} bytes is not believable"));
    }
    let header = String::from_utf8(bytes(length)?).map_err(|_| "the .npy header is not text".to_string())?;
    parse_header(&header)
}

/// `{'descr': '<f4', 'fortran_order': False, 'shape': (8,), }`
fn parse_header(header: &str) -> Result<Header, String> {
    let after = |key: &str| {
        let start = header.find(&format!("'{key}'")).ok_or(format!("the .npy header has no '{key}'"))?;
        let rest = header[start + key.len() + 2..].trim_start();
        rest.strip_prefix(':').map(str::trim_start).ok_or(format!("the .npy header has no value for '{key}'"))
    };
    let quoted = after("descr")?.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
    let known = Type::ALL.map(|(_, _, name, _)| name).join(", ");
    let Some((descr, _)) = quoted else {
        return Err(format!("structured .npy files are not read here: save one of {known}"));
    };
    let dtype = Type::ALL.iter().find(|(_, known, ..)| *known == descr).map(|(dtype, ..)| *dtype).ok_or_else(|| {
        format!("values of type '{}' are not read here: save one of {known}", crate::shortened(descr, 20))
    })?;
    let shape = after("shape")?.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let (shape, _) = shape.ok_or("the .npy header has no shape")?;
    let sizes = shape.split(',').map(str::trim).filter(|part| !part.is_empty());
    let sizes: Vec<u64> =
        sizes.map(|part| part.parse().map_err(|_| format!("'{part}' is no size"))).collect::<Result<_, _>>()?;
    let values = sizes.iter().try_fold(1u64, |product, &size| product.checked_mul(size));
    let values = values.ok_or("the .npy shape is impossibly large")?;
    if after("fortran_order")?.starts_with("True") && sizes.iter().filter(|&&size| size > 1).count() > 1 {
        return Err("the .npy file is in Fortran order: save it with numpy.ascontiguousarray".into());
    }
    Ok(Header { dtype, values, shape: sizes })
}

/// Writes `count` 64-bit floats as a one-dimensional array.
pub fn write_f64(writer: &mut impl Write, count: u64, values: impl Iterator<Item = f64>) -> io::Result<()> {
    write_header(writer, "<f8", &[count])?;
    values.into_iter().try_for_each(|value| writer.write_all(&value.to_le_bytes()))
}

/// Writes bytes as an array of this shape.
pub fn write_u8(writer: &mut impl Write, shape: &[u64], bytes: &[u8]) -> io::Result<()> {
    write_header(writer, "|u1", shape)?;
    writer.write_all(bytes)
}

fn write_header(writer: &mut impl Write, descr: &str, shape: &[u64]) -> io::Result<()> {
    // A tuple of one needs its comma.
    let shape = match shape {
        [one] => format!("{one},"),
        many => many.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    };
    let dictionary = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic, version, length and header end on a multiple of 64, after a newline.
    let padded = (10 + dictionary.len() + 1).next_multiple_of(64) - 10;
    writer.write_all(MAGIC)?;
    writer.write_all(&[1, 0])?;
    writer.write_all(&(padded as u16).to_le_bytes())?;
    writeln!(writer, "{dictionary:<width$}", width = padded - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let mut file = Vec::new();
        write_f64(&mut file, 4, [1.0, -2.0, 0.5, 0.0].into_iter()).unwrap();
        assert_eq!((file.len() - 32) % 64, 0);
        let mut rest = &file[..];
        assert_eq!(read_header(&mut rest).unwrap(), Header { dtype: Type::F64, values: 4, shape: vec![4] });
        assert_eq!(rest[8..16], (-2.0f64).to_le_bytes());

        let mut file = Vec::new();
        write_u8(&mut file, &[2, 1, 3], &[1, 2, 3, 4, 5, 6]).unwrap();
        let mut rest = &file[..];
        assert_eq!(read_header(&mut rest).unwrap(), Header { dtype: Type::U8, values: 6, shape: vec![2, 1, 3] });
        assert_eq!((rest, (file.len() - 6) % 64), (&[1, 2, 3, 4, 5, 6][..], 0));
    }

    #[test]
    fn values_of_every_type() {
        let value = |dtype: Type, bytes: &[u8]| {
            assert_eq!(bytes.len(), dtype.size(), "{}", dtype.name());
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            dtype.value(padded)
        };
        assert_eq!(value(Type::Bool, &[1]), Some(1.0));
        assert_eq!(value(Type::U8, &[255]), Some(255.0));
        assert_eq!(value(Type::I8, &[255]), Some(-1.0));
        assert_eq!(value(Type::I16, &(-300i16).to_le_bytes()), Some(-300.0));
        assert_eq!(value(Type::I32, &(-70_000i32).to_le_bytes()), Some(-70_000.0));
        assert_eq!(value(Type::I64, &(-5_000_000_000i64).to_le_bytes()), Some(-5e9));
        assert_eq!(value(Type::I64, &((1i64 << 53) + 1).to_le_bytes()), None);
        assert_eq!(value(Type::U16, &65_535u16.to_le_bytes()), Some(65_535.0));
        assert_eq!(value(Type::U32, &u32::MAX.to_le_bytes()), Some(4_294_967_295.0));
        assert_eq!(value(Type::U64, &(1u64 << 53).to_le_bytes()), Some(9_007_199_254_740_992.0));
        assert_eq!(value(Type::U64, &u64::MAX.to_le_bytes()), None);
        // 1/3 rounded, the largest, the smallest, infinity: as the IEEE 754 format has them.
        let halves =
            [(0x3555, 0.333251953125), (0x7bff, 65504.0), (0x8001, -2f64.powi(-24)), (0xfc00, f64::NEG_INFINITY)];
        for (bits, expected) in halves {
            assert_eq!(value(Type::F16, &u16::to_le_bytes(bits)), Some(expected));
        }
        assert_eq!(value(Type::F32, &0.5f32.to_le_bytes()), Some(0.5));
        assert_eq!(value(Type::F64, &(-0.1f64).to_le_bytes()), Some(-0.1));
    }

    #[test]
    fn hostile_headers_are_refused() {
        for (header, part) in [
            ("{'descr': '>i8', 'fortran_order': False, 'shape': (8,), }", "'>i8' are not read here: save one of bool"),
            ("{'descr': '|b1', 'fortran_order': False, 'shape': (8, }", "shape"),
            ("{'descr': '|b1', 'fortran_order': True, 'shape': (2, 4), }", "Fortran"),
            ("{'descr': '|b1', 'shape': (8,), }", "fortran_order"),
            ("{'descr': '|b1', 'fortran_order': False, 'shape': (18446744073709551615, 2), }", "large"),
            ("{'descr': '|b1', 'fortran_order': False, 'shape': (-1,), }", "no size"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (8,), }", "structured"),
            ("", "descr"),
        ] {
            let error = parse_header(header).unwrap_err();
            assert!(error.contains(part), "{header}: {error}");
        }
        assert!(read_header(&mut &b"\x93NUMPY\x02\x00\xff\xff\xff\xff"[..]).unwrap_err().contains("believable"));
        assert!(read_header(&mut &b"\x93NUM"[..]).unwrap_err().contains("cut short"));
        assert!(read_header(&mut &b"\x93NUMPY\x09\x00\x00"[..]).unwrap_err().contains("version 9"));
    }
}
