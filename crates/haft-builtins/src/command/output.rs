//! A command's output for results and screens: bounded, each byte once, what was left out said.

use std::time::Instant;

use haft::context::CallContext;
use haft::progress::{Progress, Stream};
use haft_sandbox::{Exit, Log, Running, Waited};

/// Most bytes of one stream that one result takes; a larger output keeps its beginning and its end.
pub(crate) const MAX_SHOWN: usize = 1 << 20;
/// The part of it that is the beginning.
const HEAD: usize = MAX_SHOWN / 4;
/// Most bytes read from a log at once.
const CHUNK: usize = 64 << 10;

/// How far a reader of both streams has come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    pub(crate) out: u64,
    pub(crate) err: u64,
}

/// How far results have told a command's output, and how far screens have shown it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shown {
    pub(crate) told: Cursor,
    pub(crate) screen: Cursor,
}

/// A piece of a stream for a result.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// Bytes were left out.
    pub(crate) cut: bool,
}

/// What a log holds from `from` on, and where the next reading starts.
pub(crate) fn take(log: &Log, from: &mut u64) -> Piece {
    let mut piece = Piece {
        text: String::new(),
        cut: false,
    };
    let total = log.total();
    let size = usize::try_from(total.saturating_sub(*from)).unwrap_or(usize::MAX);
    if size <= MAX_SHOWN {
        read(log, from, total, &mut piece);
        return piece;
    }
    read(log, from, *from + HEAD as u64, &mut piece);
    let tail = total - (MAX_SHOWN - HEAD) as u64;
    if tail > *from {
        skipped(&mut piece, tail - *from);
        *from = tail;
    }
    read(log, from, total, &mut piece);
    piece
}

fn read(log: &Log, from: &mut u64, end: u64, piece: &mut Piece) {
    while *from < end {
        let most = usize::try_from(end - *from)
            .unwrap_or(CHUNK)
            .clamp(4, CHUNK);
        let chunk = log.text(*from, most);
        if chunk.lost > 0 {
            skipped(piece, chunk.lost);
        }
        if chunk.next == *from {
            return;
        }
        piece.text.push_str(&chunk.text);
        *from = chunk.next;
    }
}

fn skipped(piece: &mut Piece, bytes: u64) {
    piece.cut = true;
    let words = ["\n[… ", &bytes.to_string(), " bytes left out …]\n"];
    piece.text.extend(words);
}

/// What a wait for a command came to.
#[derive(Debug)]
pub(crate) enum Followed {
    /// It ended.
    Ended(Exit),
    /// The deadline passed, or the call must end.
    GoesOn,
}

impl Followed {
    /// How it ended, if it did.
    pub(crate) fn exit(self) -> Option<Exit> {
        match self {
            Self::Ended(exit) => Some(exit),
            Self::GoesOn => None,
        }
    }
}

/// Waits for the end, at most until `deadline` and as long as the call may take, showing the output as it comes.
pub(crate) async fn follow(
    running: &Running,
    shown: &mut Cursor,
    context: &CallContext,
    deadline: Instant,
) -> Followed {
    let progress = context.progress();
    let exit = tokio::select! {
        biased;
        exit = watched(running, shown, &progress, deadline) => exit,
        _ = context.ending() => running.exit(),
    };
    exit.map_or(Followed::GoesOn, Followed::Ended)
}

async fn watched(
    running: &Running,
    shown: &mut Cursor,
    progress: &Progress,
    deadline: Instant,
) -> Option<Exit> {
    if !progress.is_watched() {
        return running.wait_until(deadline).await;
    }
    let pace = progress.pace();
    loop {
        let written = |r: &Running| r.stdout().total() + r.stderr().total();
        let seen = written(running);
        let waited = running.wait_for(|r| written(r) != seen, deadline).await;
        let late = waited == Waited::TimedOut;
        // Gathered for a moment or up to a size, so that a flood becomes few events.
        let enough = seen.saturating_add(pace.bytes as u64);
        let soon = deadline.min(Instant::now() + pace.gather);
        let exit = match waited {
            Waited::Ended(exit) => Some(exit),
            Waited::Matched => match running.wait_for(|r| written(r) >= enough, soon).await {
                Waited::Ended(exit) => Some(exit),
                Waited::Matched | Waited::TimedOut => None,
            },
            Waited::TimedOut => None,
        };
        show(running, shown, progress);
        if exit.is_some() {
            progress.close(Stream::Stdout);
            progress.close(Stream::Stderr);
            return exit;
        }
        if late || Instant::now() >= deadline {
            return None;
        }
    }
}

/// Sends a screen what it has not seen yet.
pub(crate) fn show(running: &Running, shown: &mut Cursor, progress: &Progress) {
    if !progress.is_watched() {
        return;
    }
    // A character is never cut in two, so a piece must have room for one.
    let most = progress.pace().bytes.max(4);
    let streams = [
        (running.stdout(), &mut shown.out, Stream::Stdout),
        (running.stderr(), &mut shown.err, Stream::Stderr),
    ];
    for (log, from, stream) in streams {
        loop {
            let chunk = log.text(*from, most);
            if chunk.next == *from {
                break;
            }
            *from = chunk.next;
            if chunk.lost > 0 {
                let of = stream.as_str();
                progress.info(format!("[… {} bytes of {of} left out …]", chunk.lost));
            }
            progress.send_at(stream, chunk.offset, chunk.text);
        }
    }
}
