//! Libraries that panic where they should refuse.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether this thread is inside such a library.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls a library that panics at some input that it should refuse: a panic is an error like others here, its words, and says nothing on the
/// screen. What the library may have left half done must be thrown away.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !INSIDE.get() {
                before(panic);
            }
        }));
    });
    let outer = INSIDE.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    INSIDE.set(outer);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        text.unwrap_or("without a reason").to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        assert_eq!(caught(|| 7), Ok(7));
        assert_eq!(
            caught(|| -> u8 { panic!("an axis that is not there: {}", 3) }),
            Err("an axis that is not there: 3".into())
        );
        assert_eq!(caught(|| caught(|| panic!("inner")).is_err()), Ok(true));
        assert!(!INSIDE.get());
    }
}
