//! Sharing the machine's cores.

use std::thread::{ScopedJoinHandle, available_parallelism, scope};

/// Does `work` on `jobs` threads at once, each computing on its own share of the cores: groups of runs that share one pool of threads wait
/// for each other. `None` stands for a thread that panicked.
pub(crate) fn side_by_side<T: Send>(jobs: usize, work: impl Fn() -> T + Sync) -> Vec<Option<T>> {
    let cores = available_parallelism().map_or(1, usize::from);
    let on_a_share = || match rayon::ThreadPoolBuilder::new().num_threads((cores / jobs.max(1)).max(1)).build() {
        Ok(share) => share.install(&work),
        Err(_) => work(), // no more threads to be had: the common pool serves
    };
    scope(|scope| {
        let threads: Vec<ScopedJoinHandle<T>> = (0..jobs).map(|_| scope.spawn(on_a_share)).collect();
        threads.into_iter().map(|thread| thread.join().ok()).collect()
    })
}
