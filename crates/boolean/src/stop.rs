//! Ending a computation that nobody waits for any more, from another thread.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// What ends the computation that this thread belongs to.
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// What unwinds a computation that is to end. No panic: nothing is printed, and [`until`] takes it.
struct Stopped;

/// Does `work` on threads of its own. Once `stop` is set it ends within moments, and there is no result.
pub fn until<T: Send>(stop: &Arc<AtomicBool>, work: impl FnOnce() -> T + Send) -> Option<T> {
    let heeded = stop.clone();
    let pool = rayon::ThreadPoolBuilder::new().start_handler(move |_| STOP.set(Some(heeded.clone()))).build();
    let done = catch_unwind(AssertUnwindSafe(|| match pool {
        Ok(pool) => pool.install(work),
        Err(_) => work(), // no more threads can be had: it cannot be ended
    }));
    match done {
        Ok(result) => Some(result),
        Err(problem) if problem.is::<Stopped>() => None,
        Err(problem) => resume_unwind(problem),
    }
}

/// Ends the computation that this thread belongs to, if that is wanted. Called in every long loop, about once per millisecond.
pub(crate) fn check() {
    if STOP.with_borrow(|stop| stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))) {
        resume_unwind(Box::new(Stopped));
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::analysis::{Request, Subject, analyse};
    use crate::{BooleanFunction, Error, Result, function};

    /// A function of which a table of 2^n values takes minutes.
    fn slow(n: usize) -> impl BooleanFunction {
        function::boolean(n, |x| {
            std::thread::sleep(Duration::from_micros(200));
            x.ones().is_multiple_of(2)
        })
        .unwrap()
    }

    #[test]
    fn a_computation_ends_when_it_is_told_to() {
        let stop = Arc::new(AtomicBool::new(false));
        assert_eq!(until(&stop, || slow(8).table().unwrap().ones()), Some(128));
        let began = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                stop.store(true, Ordering::Relaxed);
            });
            assert!(until(&stop, || slow(24).table()).is_none());
        });
        assert!(began.elapsed() < Duration::from_secs(20), "all of it takes an hour of one core");
        // Whoever is not told goes on.
        assert!(slow(4).table().is_ok());
    }

    #[test]
    fn errors_and_results_pass() {
        let never = Arc::default();
        let refused: Option<Result<()>> = until(&never, || Err(Error::Parameter("wrong".into())));
        assert_eq!(refused.unwrap().unwrap_err().to_string(), "wrong");
        let subject = || Subject::Function("majority".parse::<crate::Named>().unwrap().at(9).unwrap());
        let alone = analyse(subject(), &Request::default(), &mut |_, _| ()).unwrap();
        let found = until(&never, || analyse(subject(), &Request::default(), &mut |_, _| ())).unwrap().unwrap();
        assert_eq!(found.average_sensitivity, alone.average_sensitivity);
    }
}
