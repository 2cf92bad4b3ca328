//! Labels as tables and arrays have them: numbers are the model's own, words are numbered in their order.

use std::collections::BTreeMap;

use pudica_boolean::shortened;
use pudica_data::text::MOST_CLASSES;

/// Labels above this are no numbers of classes: every class up to the largest has a name in memory, however short the file is.
const LARGEST: usize = 1 << 17;

/// Labels as they are read, each different word kept once.
#[derive(Default)]
pub(super) struct Labels {
    words: BTreeMap<String, usize>,
    /// The place of each row's word, in the order they were met.
    met: Vec<usize>,
}

impl Labels {
    /// Takes in the next row's label, or says what is wrong with it.
    pub fn add(&mut self, label: &str) -> Result<(), String> {
        let new = self.words.len();
        let place = match self.words.get(label) {
            Some(place) => *place,
            None if label.is_empty() => return Err("there is no label".into()),
            // Numbers may be many: they are the model's.
            None if new >= MOST_CLASSES && label.parse::<usize>().is_err() || new > LARGEST => {
                return Err(format!(
                    "more than {MOST_CLASSES} different labels up to here: is this the column of the classes?"
                ));
            }
            None => {
                self.words.insert(label.to_string(), new);
                new
            }
        };
        self.met.push(place);
        Ok(())
    }

    /// The names of the classes, and the class of each row. Where all labels are whole numbers from 0, each is its class's number; where all
    /// are names that the model gives its classes, these are meant; otherwise classes are numbered in the order of their words.
    pub fn finish(self, of_model: &[String]) -> Result<(Vec<String>, Vec<usize>), String> {
        let numbers: Option<Vec<usize>> = self.words.keys().map(|word| word.parse().ok()).collect();
        let mut class_of = vec![0; self.words.len()];
        let names = match numbers {
            Some(numbers) => {
                let largest = numbers.iter().copied().max().unwrap_or(0);
                if largest > LARGEST {
                    return Err(format!("the label {largest} is too large to be the number of a class"));
                }
                self.words.values().zip(&numbers).for_each(|(place, number)| class_of[*place] = *number);
                numbered(largest + 1)
            }
            None => {
                let words: Vec<String> = self.words.keys().map(|word| shortened(word, 80)).collect();
                let (names, numbers) = numbered_words(words, of_model);
                self.words.values().zip(numbers).for_each(|(place, number)| class_of[*place] = number);
                names
            }
        };
        Ok((names, self.met.into_iter().map(|place| class_of[place]).collect()))
    }
}

/// What a reader must know where classes are numbered by their words, and not by the model's names.
pub(super) fn note(classes: &[String], of_model: &[String]) -> Option<String> {
    if classes.is_empty() || classes == of_model || classes == numbered(classes.len()) {
        return None;
    }
    let first: Vec<String> =
        classes.iter().take(5).enumerate().map(|(class, name)| format!("{class} is {name}")).collect();
    let more = if classes.len() > first.len() { ", and so on" } else { "" };
    let why =
        if of_model.is_empty() { "does not say what its classes are called" } else { "calls its classes otherwise" };
    Some(format!("The model {why}, so they are numbered in the order of their names: {}{more}.", first.join(", ")))
}

/// The names of all classes, and the number of each of these words: the model's own where all of them are names of its classes, in letters of any
/// size; their order otherwise.
pub(super) fn numbered_words(words: Vec<String>, of_model: &[String]) -> (Vec<String>, Vec<usize>) {
    if words.is_empty() {
        return (Vec::new(), Vec::new()); // no labels, whatever the model calls its classes
    }
    let number = |word: &String| of_model.iter().position(|name| name.to_lowercase() == word.to_lowercase());
    match words.iter().map(number).collect::<Option<Vec<usize>>>() {
        Some(numbers) => (of_model.to_vec(), numbers),
        None => {
            let numbers = (0..words.len()).collect();
            (words, numbers)
        }
    }
}

/// The names of classes that have only numbers.
pub(super) fn numbered(classes: usize) -> Vec<String> {
    (0..classes).map(|class| class.to_string()).collect()
}

/// The class that a number of an array says.
pub(super) fn class_of(value: Option<f64>) -> Option<usize> {
    value.filter(|value| (0.0..=LARGEST as f64).contains(value) && value.fract() == 0.0).map(|value| value as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(labels: &[&str]) -> Result<(Vec<String>, Vec<usize>), String> {
        let mut all = Labels::default();
        labels.iter().try_for_each(|label| all.add(label))?;
        all.finish(&["Dry", "mild", "wet", "COLD"].map(String::from))
    }

    #[test]
    fn words_are_sorted_and_numbers_are_kept() {
        let (names, labels) = classes(&["wet", "dry", "wet", "warm"]).unwrap();
        assert_eq!((names, labels), (vec!["dry".into(), "warm".into(), "wet".into()], vec![2, 0, 2, 1]));
        let (names, labels) = classes(&["wet", "dry", "wet", "cold"]).unwrap();
        assert_eq!((names.len(), labels), (4, vec![2, 0, 2, 3]), "as the model numbers them");
        assert_eq!((note(&names, &names), note(&numbered(3), &[]), note(&[], &names)), (None, None, None));
        let told = note(&["a", "b"].map(String::from), &[]).unwrap();
        assert!(told.ends_with("in the order of their names: 0 is a, 1 is b."), "{told}");
        let (names, labels) = classes(&["10", "2", "10"]).unwrap();
        assert_eq!((names.len(), labels), (11, vec![10, 2, 10]));
        // -1 is no class, so these are words.
        assert_eq!(classes(&["-1", "1"]).unwrap().1, [0, 1]);
        assert!(classes(&["1", ""]).unwrap_err().contains("no label"));
        assert_eq!(classes(&["1", "100000"]).unwrap().0.len(), 100_001);
        for large in ["1000000", "99999999"] {
            assert!(classes(&["1", large]).unwrap_err().contains("too large"), "{large}");
        }
        let many: Vec<String> = (0..2000).map(|number| format!("id{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(classes(&many).unwrap_err().contains("is this the column of the classes"));
    }
}
