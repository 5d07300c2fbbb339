//! Limits on what a client can make this process hold.

use std::time::Duration;

/// The longest message, in bytes: a prompt with a few images.
pub(crate) const MESSAGE: usize = 32 << 20;
/// Messages queued for the writing thread.
pub(crate) const QUEUE: usize = 64;
/// Bytes of messages that the client has not read. A client with more counts as disconnected.
pub(crate) const UNREAD: usize = 64 << 20;
/// Concurrent requests of the client.
pub(crate) const REQUESTS: usize = 64;
/// Sessions open at the same time. Each has its own application.
pub(crate) const SESSIONS: usize = 16;
/// Bytes of a call's arguments or outcome shown as raw data.
pub(crate) const RAW: usize = 64 << 10;
/// Characters of a result shown as text.
pub(crate) const TEXT: usize = 32 << 10;
/// Bytes of a running command's output that are shown: the last ones.
pub(crate) const OUTPUT: usize = 16 << 10;
/// Bytes of an image, as base64, that is shown.
pub(crate) const IMAGE: usize = 4 << 20;
/// Runs examined for one page of the session list.
pub(crate) const PAGE: u32 = 50;
/// Skills offered as commands.
pub(crate) const COMMANDS: usize = 200;
/// How long a session's tools may take to end when the session is closed.
pub(crate) const CLOSING: Duration = Duration::from_secs(10);
/// How long the client may take to read the last messages.
pub(crate) const LAST: Duration = Duration::from_secs(2);
/// How often to repeat the cancellation of a run: one that came before the run started has no effect.
pub(crate) const AGAIN: Duration = Duration::from_millis(50);
