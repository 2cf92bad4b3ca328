//! How a photograph is to be turned: cameras store what the sensor saw, and a note (EXIF).

use super::Shape;

/// The tag of the note.
const ORIENTATION: u16 = 0x0112;

/// What an EXIF block says, 1 to 8; 1, as it is, where it says nothing that can be understood.
pub(super) fn of_exif(exif: &[u8]) -> u16 {
    let big = exif.starts_with(b"MM");
    let bytes = |at: usize, count: usize| exif.get(at..at.checked_add(count)?);
    let number = |at: usize, count: usize| {
        let add = |sum: usize, byte: &u8| sum << 8 | usize::from(*byte);
        let bytes = bytes(at, count)?;
        Some(if big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
    };
    let find = || {
        let table = number(4, 4)?;
        let entry = |index: usize| table.checked_add(2 + 12 * index);
        let found = (0..number(table, 2)?)
            .find(|index| entry(*index).and_then(|at| number(at, 2)) == Some(usize::from(ORIENTATION)))?;
        number(entry(found)? + 8, 2)
    };
    find().filter(|found| (2..=8).contains(found)).unwrap_or(1) as u16
}

/// The picture as it is to be seen: \[height, width, channels\].
pub(super) fn turned(shape: Shape, pixels: Vec<u8>, orientation: u16) -> (Shape, Vec<u8>) {
    if orientation <= 1 {
        return (shape, pixels);
    }
    let Shape { height, width, channels } = shape;
    let upright = if orientation >= 5 { Shape { height: width, width: height, channels } } else { shape };
    let mut found = Vec::with_capacity(pixels.len());
    for y in 0..upright.height {
        for x in 0..upright.width {
            // By where row 0 and column 0 of what is stored are seen: 6 is right and top.
            let (row, column) = match orientation {
                2 => (y, width - 1 - x),
                3 => (height - 1 - y, width - 1 - x),
                4 => (height - 1 - y, x),
                5 => (x, y),
                6 => (height - 1 - x, y),
                7 => (height - 1 - x, width - 1 - y),
                _ => (x, width - 1 - y),
            };
            found.extend_from_slice(&pixels[(row * width + column) * channels..][..channels]);
        }
    }
    (upright, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A note as cameras write it: the byte order, one table of one entry.
    fn note(big: bool, orientation: u16) -> Vec<u8> {
        let two = |number: u16| if big { number.to_be_bytes() } else { number.to_le_bytes() };
        let four = |number: u32| if big { number.to_be_bytes() } else { number.to_le_bytes() };
        let mut exif = if big { b"MM".to_vec() } else { b"II".to_vec() };
        exif.extend(
            [&two(42)[..], &four(8), &two(1), &two(0x0112), &two(3), &four(1), &two(orientation), &two(0)].concat(),
        );
        exif
    }

    #[test]
    fn the_note_is_read_in_both_orders_and_nonsense_is_none() {
        for orientation in 1..=8 {
            assert_eq!(
                (of_exif(&note(true, orientation)), of_exif(&note(false, orientation))),
                (orientation, orientation)
            );
        }
        assert_eq!((of_exif(&note(true, 9)), of_exif(b""), of_exif(b"MM"), of_exif(&[0xff; 40])), (1, 1, 1, 1));
        let whole = note(false, 6);
        (0..whole.len() - 2).for_each(|end| assert!([1, 6].contains(&of_exif(&whole[..end]))));
    }

    /// The letter F, 5 x 3, as EXIF's standard shows its eight ways.
    #[test]
    fn every_orientation_shows_the_same_letter() {
        let letter = ["###", "#..", "##.", "#..", "#.."].concat().into_bytes();
        let stored = [
            ("###/#../##./#../#..", 1),
            ("###/..#/.##/..#/..#", 2),
            ("..#/..#/.##/..#/###", 3),
            ("#../#../##./#../###", 4),
            ("#####/#.#../#....", 5),
            ("#..../#.#../#####", 6),
            ("....#/..#.#/#####", 7),
            ("#####/..#.#/....#", 8),
        ];
        for (rows, orientation) in stored {
            let (height, width) = (rows.split('/').count(), rows.find('/').unwrap());
            let pixels = rows.replace('/', "").into_bytes();
            let found = turned(Shape { height, width, channels: 1 }, pixels, orientation);
            assert_eq!(found, (Shape { height: 5, width: 3, channels: 1 }, letter.clone()), "{orientation}");
        }
    }
}
