//! A table of named, typed columns, written as CSV and as Parquet.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

/// The cells of one column; a missing value is `None`.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// Texts.
    Text(Vec<Option<String>>),
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Numbers.
    Real(Vec<Option<f64>>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
}

/// Columns of equal length, in order: [`write_table`](crate::write_table) makes files of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    columns: Vec<(String, Cells)>,
}

impl Table {
    /// Adds a column at the right, as long as those before it.
    pub fn add(&mut self, name: &str, cells: Cells) {
        self.columns.push((name.into(), cells));
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        match self.columns.first() {
            Some((_, Cells::Text(cells))) => cells.len(),
            Some((_, Cells::Whole(cells))) => cells.len(),
            Some((_, Cells::Real(cells))) => cells.len(),
            Some((_, Cells::Flag(cells))) => cells.len(),
            None => 0,
        }
    }

    /// Writes it as CSV: a line of names, then a line for each row; a missing value is empty.
    pub fn write_csv(&self, file: impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(file);
        writer.write_record(self.columns.iter().map(|(name, _)| name))?;
        for row in 0..self.rows() {
            writer.write_record(self.columns.iter().map(|(_, cells)| cells.text(row)))?;
        }
        writer.flush()
    }

    /// Writes it as Parquet, its types kept; a missing value is null.
    pub fn write_parquet(&self, file: impl Write + Send) -> io::Result<()> {
        self.parquet_into(file).map_err(|error| match error {
            // The library wraps the system's error; unwrapping it keeps "the disk is full" recognisable.
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => *source,
                Err(other) => io::Error::other(other),
            },
            other => io::Error::other(other),
        })
    }

    fn parquet_into(&self, file: impl Write + Send) -> Result<(), ParquetError> {
        let fields = self.columns.iter().map(|(name, cells)| cells.parquet_type(name)).collect::<Result<_, _>>()?;
        let schema = Arc::new(Type::group_type_builder("results").with_fields(fields).build()?);
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(file, schema, properties)?;
        let mut group = writer.next_row_group()?;
        for (_, cells) in &self.columns {
            match cells {
                Cells::Text(cells) => {
                    let bytes = cells.iter().map(|cell| cell.as_deref().map(ByteArray::from)).collect::<Vec<_>>();
                    write_column::<ByteArrayType>(&mut group, &bytes)?;
                }
                Cells::Whole(cells) => write_column::<Int64Type>(&mut group, cells)?,
                Cells::Real(cells) => write_column::<DoubleType>(&mut group, cells)?,
                Cells::Flag(cells) => write_column::<BoolType>(&mut group, cells)?,
            }
        }
        group.close()?;
        writer.close()?;
        Ok(())
    }
}

impl Cells {
    fn text(&self, row: usize) -> String {
        let text = match self {
            Cells::Text(cells) => cells[row].clone(),
            Cells::Whole(cells) => cells[row].map(|cell| cell.to_string()),
            // Rust's `{:?}` is the shortest text that reads back as the same number.
            Cells::Real(cells) => cells[row].map(|cell| format!("{cell:?}")),
            Cells::Flag(cells) => cells[row].map(|cell| cell.to_string()),
        };
        text.unwrap_or_default()
    }

    fn parquet_type(&self, name: &str) -> Result<Arc<Type>, ParquetError> {
        let (physical, converted) = match self {
            Cells::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            Cells::Whole(_) => (Physical::INT64, ConvertedType::NONE),
            Cells::Real(_) => (Physical::DOUBLE, ConvertedType::NONE),
            Cells::Flag(_) => (Physical::BOOLEAN, ConvertedType::NONE),
        };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        builder.with_converted_type(converted).build().map(Arc::new)
    }
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    cells: &[Option<T::T>],
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = cells.iter().flatten().cloned().collect();
    let present: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let mut column = group.next_column()?.ok_or_else(|| ParquetError::General("a column is missing".into()))?;
    column.typed::<T>().write_batch(&values, Some(&present), None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    #[test]
    fn both_files_read_back() {
        let mut table = Table::default();
        table.add("name", Cells::Text(vec![Some("a, \"b\"".into()), None]));
        table.add("n", Cells::Whole(vec![Some(4), Some(5)]));
        table.add("loss", Cells::Real(vec![None, Some(0.1 + 0.2)]));
        table.add("ok", Cells::Flag(vec![Some(true), None]));
        let mut csv = Vec::new();
        table.write_csv(&mut csv).unwrap();
        assert_eq!(
            String::from_utf8(csv).unwrap(),
            "name,n,loss,ok\n\"a, \"\"b\"\"\",4,,true\n,5,0.30000000000000004,\n"
        );

        let mut parquet = tempfile::tempfile().unwrap();
        table.write_parquet(&mut parquet).unwrap();
        let reader = SerializedFileReader::new(parquet).unwrap();
        let rows: Vec<Vec<Field>> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().into_columns().into_iter().map(|(_, field)| field).collect())
            .collect();
        assert_eq!(rows[0], [Field::Str("a, \"b\"".into()), Field::Long(4), Field::Null, Field::Bool(true)]);
        assert_eq!(rows[1], [Field::Null, Field::Long(5), Field::Double(0.1 + 0.2), Field::Null]);
    }
}
