//! A command's output for results and progress events: bounded, each byte once, with a note on what was left out.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::artifact::source::ByteSource;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::progress::{self, Progress, ProgressStream};
use haft::result::Artifact;
use haft::shape::long::LongText;
use haft_sandbox::{Exit, Follower, Log, RunningCommand, WaitOutcome};

/// Tokens of a result that are reserved for everything except the output.
const RESERVED_TOKENS: usize = 400;
/// Number of latest bytes shown of a stream that was not stored completely.
const TAIL_BYTES: usize = 64 << 10;

/// The position of a reader in both streams.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    pub(crate) out: u64,
    pub(crate) err: u64,
    /// What the command had written to its terminal.
    pub(crate) drawn: u64,
}

/// The positions up to which results have returned, and progress events have shown, a command's output.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OutputCursors {
    pub(crate) reported: Cursor,
    pub(crate) screen: Cursor,
}

impl OutputCursors {
    pub(crate) fn new(reported: Cursor, screen: Cursor) -> Self {
        Self { reported, screen }
    }
}

/// The output of both streams since a cursor, for a result.
#[derive(Debug, Default)]
pub(crate) struct NewOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The complete texts of the parts that are shown shortened.
    pub(crate) artifacts: Vec<Artifact>,
    /// True if part of the output is not stored anywhere.
    pub(crate) cut: bool,
}

/// Returns the output since the cursor, and moves the cursor to its end.
pub(crate) async fn tell(
    running: &RunningCommand,
    from: &mut Cursor,
    context: &CallContext,
) -> Result<NewOutput, ToolError> {
    if let Some(terminal) = running.terminal() {
        from.drawn = terminal.written();
        running.show_line();
    }
    let (out, cut_out) = piece(running, |running| running.stdout(), &mut from.out);
    let (err, cut_err) = piece(running, |running| running.stderr(), &mut from.err);
    let mut shown = context.show(vec![out, err], true, RESERVED_TOKENS).await?;
    let (err, out) = (
        shown.pop().unwrap_or_default(),
        shown.pop().unwrap_or_default(),
    );
    Ok(NewOutput {
        stdout: out.text,
        stderr: err.text,
        artifacts: out.artifact.into_iter().chain(err.artifact).collect(),
        cut: cut_out || cut_err,
    })
}

/// Returns the output of a stream since `from`, and whether part of it is not stored anywhere.
fn piece(
    running: &RunningCommand,
    log: fn(&RunningCommand) -> &Log,
    from: &mut u64,
) -> (LongText, bool) {
    let of = log(running);
    let total = of.text_end();
    let range = of.unbroken(*from);
    let range = range.start..range.end.min(total);
    let cut = range.start > *from || range.end < total;
    let newest = total.saturating_sub(TAIL_BYTES as u64).max(range.end);
    let long = LongText {
        total: total - *from,
        end: if range.end < total {
            of.read(newest, TAIL_BYTES).bytes
        } else {
            Vec::new()
        },
        source: Arc::new(OutputPiece {
            running: running.clone(),
            log,
            kept: range,
        }),
    };
    *from = total;
    (long, cut)
}

/// A part of a command's stream.
struct OutputPiece {
    running: RunningCommand,
    log: fn(&RunningCommand) -> &Log,
    kept: Range<u64>,
}

impl ByteSource for OutputPiece {
    fn size(&self) -> u64 {
        self.kept.end - self.kept.start
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let most = left.min(buffer.len());
        (self.log)(&self.running).read_at(self.kept.start + offset, &mut buffer[..most])
    }
}

/// The result of waiting for a command.
#[derive(Debug)]
pub(crate) enum CommandWait {
    Ended(Exit),
    /// The deadline passed, or the call must end.
    GoesOn,
}

impl CommandWait {
    /// Returns the exit, if the command ended.
    pub(crate) fn exit(self) -> Option<Exit> {
        match self {
            Self::Ended(exit) => Some(exit),
            Self::GoesOn => None,
        }
    }
}

/// Waits for the command to end, until `deadline` or the end of the call, and streams its output meanwhile.
pub(crate) async fn follow(
    running: &RunningCommand,
    shown: &mut Cursor,
    context: &CallContext,
    deadline: Instant,
) -> CommandWait {
    let progress = context.progress();
    let exit = tokio::select! {
        biased;
        exit = watched(running, shown, &progress, deadline) => exit,
        _ = context.ending() => running.exit(),
    };
    exit.map_or(CommandWait::GoesOn, CommandWait::Ended)
}

async fn watched(
    running: &RunningCommand,
    shown: &mut Cursor,
    progress: &Progress,
    deadline: Instant,
) -> Option<Exit> {
    if !progress.is_watched() {
        return running.wait_until(deadline).await;
    }
    let pace = progress.pace();
    // A user who types sees each key at once.
    let is_watched = running
        .terminal()
        .is_some_and(|terminal| terminal.screen().is_some());
    let gather = if is_watched {
        Duration::ZERO
    } else {
        pace.gather
    };
    // The command blocks if its output must be delivered completely.
    let exact = progress.is_exact().then(|| Followers::of(running, shown));
    let written = |r: &RunningCommand| r.live().total() + r.stderr().total();
    // Read before what it counts is shown: a command may write, and then wait for long, at any moment.
    let mut seen = shown.out + shown.err;
    loop {
        let waited = running.wait_for(|r| written(r) != seen, deadline).await;
        let late = waited == WaitOutcome::TimedOut;
        // Collects output for a moment or up to a size, so that a flood becomes few events.
        let enough = seen.saturating_add(pace.bytes as u64);
        let soon = deadline.min(Instant::now() + gather);
        let exit = match waited {
            WaitOutcome::Ended(exit) => Some(exit),
            WaitOutcome::Matched => match running.wait_for(|r| written(r) >= enough, soon).await {
                WaitOutcome::Ended(exit) => Some(exit),
                WaitOutcome::Matched | WaitOutcome::TimedOut => None,
            },
            WaitOutcome::TimedOut => None,
        };
        seen = written(running);
        match &exact {
            Some(followers) => followers.show(running, shown, progress).await,
            None => show(running, shown, progress),
        }
        if exit.is_some() {
            progress.close(ProgressStream::Stdout);
            progress.close(ProgressStream::Stderr);
            return exit;
        }
        if late || Instant::now() >= deadline {
            return None;
        }
    }
}

/// Readers of both streams that apply backpressure to the command.
struct Followers<'a> {
    out: Follower<'a>,
    err: Follower<'a>,
}

impl<'a> Followers<'a> {
    fn of(running: &'a RunningCommand, shown: &Cursor) -> Self {
        Self {
            out: running.live().follow(shown.out),
            err: running.stderr().follow(shown.err),
        }
    }

    /// Sends the output not seen yet, as fast as it is consumed.
    async fn show(&self, running: &RunningCommand, shown: &mut Cursor, progress: &Progress) {
        loop {
            progress.room().await;
            let [mut out, mut err] = streams(running, shown);
            let sent = [out.send_next(progress), err.send_next(progress)];
            self.out.reached(shown.out);
            self.err.reached(shown.err);
            if sent == [false, false] {
                return;
            }
        }
    }
}

/// Sends the output that the progress channel has not seen yet.
pub(crate) fn show(running: &RunningCommand, shown: &mut Cursor, progress: &Progress) {
    if !progress.is_watched() {
        return;
    }
    for mut stream in streams(running, shown) {
        while stream.send_next(progress) {}
    }
}

/// A stream, and how far it has been shown.
struct StreamFeed<'a> {
    log: &'a Log,
    from: &'a mut u64,
    stream: ProgressStream,
}

fn streams<'a>(running: &'a RunningCommand, shown: &'a mut Cursor) -> [StreamFeed<'a>; 2] {
    let Cursor { out, err, .. } = shown;
    [
        StreamFeed {
            log: running.live(),
            from: out,
            stream: ProgressStream::Stdout,
        },
        StreamFeed {
            log: running.stderr(),
            from: err,
            stream: ProgressStream::Stderr,
        },
    ]
}

impl StreamFeed<'_> {
    /// Sends the next piece and returns whether there was one.
    fn send_next(&mut self, progress: &Progress) -> bool {
        // A piece must have room for one whole character, because characters are never split.
        let chunk = self.log.text(*self.from, progress.pace().bytes.max(4));
        if chunk.next == *self.from {
            return false;
        }
        *self.from = chunk.next;
        if chunk.lost > 0 {
            let of = self.stream.as_str();
            progress.info(format!("[… {} bytes of {of} left out …]", chunk.lost));
        }
        let piece = progress::StreamChunk {
            text: chunk.text.into(),
            bytes: chunk.bytes.map(Into::into),
        };
        progress.send_at(self.stream, chunk.offset, piece);
        true
    }
}
