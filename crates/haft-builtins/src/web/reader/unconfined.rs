//! `UnconfinedReader`: reads files on threads of this process, for a program that runs entirely in a container.

use std::time::Duration;

use bytes::Bytes;
use haft::bounds::ShareKey;
use tokio::sync::oneshot;

use super::slots::ReaderSlots;
use super::{PageReader, ReadError, ReadPage, ReadTask, STACK_BYTES, read_here};
use crate::web::network::BoxFuture;

/// Maximum time that a call waits for one file. The thread continues.
const FILE_TIMEOUT: Duration = Duration::from_secs(15);

/// Reads files on threads of this process. A hostile file can occupy a thread and use memory without limit, so use this only for
/// tests and for a program that is confined by other means. Otherwise use
/// [`JailedReader`](super::JailedReader).
#[derive(Debug, Clone, Default)]
pub struct UnconfinedReader(ReaderSlots);

impl UnconfinedReader {
    async fn run(&self, task: ReadTask, file: Bytes, who: ShareKey) -> Result<ReadPage, ReadError> {
        let late = || ReadError("it takes too long to read".to_owned());
        let (send, receive) = oneshot::channel();
        let permit = self.0.take(&who).await?;
        let work = async move {
            let thread = std::thread::Builder::new()
                .name("haft-reader".to_owned())
                .stack_size(STACK_BYTES);
            let started = thread.spawn(move || {
                let read = read_here(&task, &file);
                drop(permit);
                // The receiver no longer exists if the call ended in the meantime.
                let _ = send.send(read);
            });
            started.map_err(|e| ReadError(e.to_string()))?;
            let read = receive.await;
            read.unwrap_or_else(|_| Err("its reader failed".to_owned()))
                .map_err(ReadError)
        };
        tokio::time::timeout(FILE_TIMEOUT, work)
            .await
            .unwrap_or_else(|_| Err(late()))
    }
}

impl PageReader for UnconfinedReader {
    fn read(
        &self,
        task: ReadTask,
        file: Bytes,
        who: ShareKey,
    ) -> BoxFuture<'_, Result<ReadPage, ReadError>> {
        Box::pin(self.run(task, file, who))
    }
}
