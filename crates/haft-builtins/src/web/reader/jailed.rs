//! `JailedReader`: reads each file in a separate process in the jail.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use haft::bounds::{CallerClass, ShareKey};
use haft_sandbox::{CommandSpec, Mounts, ProcessLimits, Sandbox};

use super::slots::ReaderSlots;
use super::worker::{HEADER, WORKER, decode_answer, encode_task};
use super::{MAX_TEXT, PageReader, ReadError, ReadPage, ReadTask};
use crate::picture::PictureReader;
use crate::web::network::BoxFuture;

/// Memory limit of a reader, in MiB.
const MEMORY_MB: u64 = 512;
/// Maximum time for one file.
const FILE_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of a reader's answer, in bytes.
const MAX_ANSWER: usize = MAX_TEXT + HEADER;

/// Runs a program in the jail whose `main` calls [`worker`](super::worker()) when its first argument is [`WORKER`].
#[derive(Debug, Clone)]
pub struct JailedReader {
    sandbox: Sandbox,
    program: PathBuf,
    slots: ReaderSlots,
}

impl JailedReader {
    /// Creates a reader with this sandbox and program; the program is an absolute path.
    pub fn new(sandbox: Sandbox, program: PathBuf) -> Self {
        Self {
            sandbox,
            program,
            slots: ReaderSlots::default(),
        }
    }

    async fn run(
        &self,
        task: ReadTask,
        file: Bytes,
        who: &ShareKey,
    ) -> Result<ReadPage, ReadError> {
        let to_error = |e: &dyn ToString| ReadError(e.to_string());
        let _slot = self.slots.take(who).await?;
        let started = self.sandbox.start_jailed(self.spec(&task, &file)).await;
        let running = started.map_err(|e| to_error(&e))?;
        let exit = running.wait().await;
        if exit.success() {
            let answer = running.stdout().text(0, MAX_ANSWER).text;
            return decode_answer(&answer)
                .ok_or_else(|| ReadError("its reader ended within its answer".into()));
        }
        let stderr = running.stderr().text(0, 300).text;
        let why = stderr.lines().last().unwrap_or_default().trim();
        Err(ReadError(if why.is_empty() {
            "its reader ended at a limit of time or memory".to_owned()
        } else {
            why.to_owned()
        }))
    }

    fn spec(&self, task: &ReadTask, file: &[u8]) -> CommandSpec {
        let mounts = Mounts {
            read_only: vec![self.program.clone()],
            ..Mounts::default()
        };
        let argv = [self.program.as_os_str(), WORKER.as_ref()];
        let mut spec = CommandSpec::argv(argv, "/tmp")
            .with_mounts(mounts)
            .with_timeout(FILE_TIMEOUT)
            .with_stdin(encode_task(task, file));
        spec.limits = ProcessLimits {
            memory_mb: Some(MEMORY_MB),
            pids: Some(16),
            file_mb: Some(1),
            cpu_s: Some(FILE_TIMEOUT.as_secs()),
            tmp_mb: 1,
            ..ProcessLimits::default()
        };
        spec.log_cap = MAX_ANSWER;
        spec
    }
}

impl PictureReader for JailedReader {
    fn thumbnail(&self, file: Bytes) -> BoxFuture<'_, Option<String>> {
        // Its pictures have a reader of their own, and a request shows few of them.
        let who = CallerClass::Operator.into();
        Box::pin(async move { Some(self.run(ReadTask::Picture, file, &who).await.ok()?.text) })
    }
}

impl PageReader for JailedReader {
    fn read(
        &self,
        task: ReadTask,
        file: Bytes,
        who: ShareKey,
    ) -> BoxFuture<'_, Result<ReadPage, ReadError>> {
        Box::pin(async move { self.run(task, file, &who).await })
    }
}
