//! What is piped into `haft exec`, for its command.

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

/// Standard input, where it is a pipe, a socket or a file; a terminal stays with haft, which asks there.
pub(super) fn piped() -> Option<Arc<CallInput>> {
    let kind = fstat(io::stdin()).ok()?.st_mode;
    let is_data = matches!(
        FileType::from_raw_mode(kind),
        FileType::Fifo | FileType::Socket | FileType::RegularFile
    );
    is_data.then(|| Arc::new(CallInput::new(Input(None))))
}

/// Standard input, read by a thread once the command runs: what it shares with other programs is never switched to another mode.
struct Input(Option<Receiver>);

impl Input {
    fn open() -> io::Result<Receiver> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut theirs = File::from(theirs);
        // It ends with its input, its reader or the process.
        thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || io::copy(&mut io::stdin().lock(), &mut theirs))?;
        Receiver::from_owned_fd(ours)
    }
}

impl AsyncRead for Input {
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
