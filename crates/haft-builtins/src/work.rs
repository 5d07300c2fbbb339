//! Runs blocking work off the async threads and stops it when its call ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft::error::ToolError;
use tokio::runtime::Handle;

/// Sets the flag when the call's future is dropped: on a deadline, a cancellation or a disconnected client.
struct DropFlag(Arc<AtomicBool>);

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a blocking thread; `work` should call its argument regularly to check whether to stop.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let flag = Arc::new(AtomicBool::new(false));
    let ends = DropFlag(Arc::clone(&flag));
    let stop = move || flag.load(Ordering::Relaxed);
    let done = match Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(move || work(&stop)).await,
        // Outside tokio there is no thread pool.
        Err(_) => return work(&stop),
    };
    drop(ends);
    match done {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(ToolError::unavailable("the host is shutting down")),
    }
}
