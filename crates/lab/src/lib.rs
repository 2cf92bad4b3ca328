//! Recipe, plan, runs, store, statistics.
