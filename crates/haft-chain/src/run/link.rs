//! `ScriptLink`: the host's end of the bridge. It never blocks on a script that does not read.

use std::collections::VecDeque;
use std::io;

use crate::bridge::frame::{FrameKind, split};
use crate::bridge::message::{Assembler, ScriptMessage};
use crate::bridge::{BridgeError, FRAME, OUTBOX};
use crate::engine::Worker;
use crate::run::watch::{ChainWatch, PollPolicy};

pub(super) struct ScriptLink<'w> {
    worker: &'w dyn Worker,
    assembler: Assembler,
    buffer: Vec<u8>,
    /// Frames for which the socket had no room.
    outbox: VecDeque<Vec<u8>>,
    waiting: usize,
    watch: ChainWatch,
}

/// The result of a receive.
pub(super) enum ReceiveResult {
    /// A part of a message.
    Part,
    /// A complete message.
    Message(ScriptMessage),
    /// The script's end is closed.
    Closed,
}

impl<'w> ScriptLink<'w> {
    pub(super) fn new(worker: &'w dyn Worker, looking: PollPolicy) -> Self {
        Self {
            worker,
            assembler: Assembler::default(),
            buffer: vec![0; FRAME],
            outbox: VecDeque::new(),
            waiting: 0,
            watch: ChainWatch::new(looking),
        }
    }

    /// Receives a frame. Cancel safe. `alone` says whether the script is the only thing to wait for.
    pub(super) async fn recv(&mut self, alone: bool) -> Result<ReceiveResult, BridgeError> {
        while alone && self.watch.looks() {
            match self.worker.try_recv(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::task::yield_now().await;
                }
                received => return self.received(received),
            }
        }
        let received = self.worker.recv(&mut self.buffer).await;
        self.received(received)
    }

    fn received(&mut self, received: io::Result<usize>) -> Result<ReceiveResult, BridgeError> {
        self.watch.again();
        let size = match received {
            Ok(0) => return Ok(ReceiveResult::Closed),
            Ok(size) => size,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(BridgeError::Size(FRAME + 1));
            }
            Err(_) => return Ok(ReceiveResult::Closed),
        };
        let datagram = self.buffer.get(..size).unwrap_or_default();
        let message = self.assembler.take(datagram)?;
        Ok(message.map_or(ReceiveResult::Part, ReceiveResult::Message))
    }

    /// Answers a request, or starts the script (id 0).
    pub(super) fn send(
        &mut self,
        kind: FrameKind,
        id: u32,
        message: &[u8],
    ) -> Result<(), BridgeError> {
        self.assembler.answered(id);
        self.watch.again();
        for frame in split(kind, id, message) {
            if self.outbox.is_empty() {
                match self.worker.try_send(&frame) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // The next receive notices a closed end.
                    Ok(()) | Err(_) => continue,
                }
            }
            self.waiting += frame.len();
            if self.waiting > OUTBOX {
                return Err(BridgeError::Unread);
            }
            self.outbox.push_back(frame);
        }
        Ok(())
    }

    /// Returns whether frames wait for room.
    pub(super) fn is_behind(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Receives a frame, or sends the oldest queued one and returns `None`. Cancel safe.
    pub(super) async fn both(&mut self) -> Option<Result<ReceiveResult, BridgeError>> {
        let sent = async {
            match self.outbox.front() {
                Some(frame) => self.worker.send(frame).await.map(|()| frame.len()),
                None => std::future::pending().await,
            }
        };
        let received = tokio::select! {
            biased;
            sent = sent => Err(sent),
            received = self.worker.recv(&mut self.buffer) => Ok(received),
        };
        match received {
            Ok(received) => Some(self.received(received)),
            Err(Ok(length)) => {
                self.waiting -= length;
                self.outbox.pop_front();
                None
            }
            // The next receive notices a closed end.
            Err(Err(_)) => {
                self.outbox.clear();
                self.waiting = 0;
                None
            }
        }
    }
}
