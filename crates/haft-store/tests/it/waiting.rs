//! Futures in tests that are not async.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

/// Waits for a future, on a runtime of its own.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}
