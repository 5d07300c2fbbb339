//! `BoxFuture`: the return type of async methods of trait objects; `run_blocking`: blocking work on another thread.

use std::future::ready;
use std::io;
use std::pin::Pin;

use tokio::runtime::Handle;

/// A future that a method of a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs blocking disk work away from the threads that run tasks. It starts with this call, not when the future is first polled, and
/// completes even if the future is dropped. Without a runtime it runs here, before this returns.
///
/// # Errors
/// The runtime is shutting down, or the work panicked.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let text = haft_types::future::run_blocking(|| std::fs::read_to_string("/no/such/file"));
/// assert!(text.await.unwrap().is_err());
/// # });
/// ```
pub fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> BoxFuture<'static, io::Result<T>> {
    let Ok(runtime) = Handle::try_current() else {
        return Box::pin(ready(Ok(work())));
    };
    let working = runtime.spawn_blocking(work);
    Box::pin(async move { working.await.map_err(io::Error::other) })
}
