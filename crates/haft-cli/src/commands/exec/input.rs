//! The standard input of `haft exec`, passed on to its command.

use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use haft::input::CallInput;
use rustix::fs::{FileType, fstat};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe::Receiver;

/// Returns standard input if it is a pipe, a socket or a file. A terminal stays with haft, which asks its questions there.
pub(super) fn stdin_data() -> Option<Arc<CallInput>> {
    let kind = fstat(io::stdin()).ok()?.st_mode;
    let is_data = matches!(
        FileType::from_raw_mode(kind),
        FileType::Fifo | FileType::Socket | FileType::RegularFile
    );
    is_data.then(|| Arc::new(CallInput::new(StdinSource(None))))
}

/// Standard input. A thread reads it once the command runs, so that haft never makes a file non-blocking that other programs share.
struct StdinSource(Option<Receiver>);

impl StdinSource {
    fn open() -> io::Result<Receiver> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut theirs = File::from(theirs);
        // The thread ends with its input, its reader or the process.
        thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || io::copy(&mut io::stdin().lock(), &mut theirs))?;
        Receiver::from_owned_fd(ours)
    }
}

impl AsyncRead for StdinSource {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let opened = match self.0.take() {
            Some(receiver) => receiver,
            None => Self::open()?,
        };
        let receiver = self.0.insert(opened);
        Pin::new(receiver).poll_read(context, buffer)
    }
}
