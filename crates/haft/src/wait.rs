//! For tests that are not async.

/// Blocks on a future, in a test that is not async.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}
