//! What a client may make this process hold.

use std::time::Duration;

/// The longest message, in bytes: a prompt with some pictures.
pub(crate) const MESSAGE: usize = 32 << 20;
/// Messages that wait for the thread that writes.
pub(crate) const QUEUE: usize = 64;
/// Bytes of messages that the client has not taken yet. A client with more counts as gone.
pub(crate) const UNREAD: usize = 64 << 20;
/// Requests of the client under way at once.
pub(crate) const REQUESTS: usize = 64;
/// Sessions open at once. Each has its application.
pub(crate) const SESSIONS: usize = 16;
/// Bytes of a call's arguments or outcome that are shown raw.
pub(crate) const RAW: usize = 64 << 10;
/// Characters of a result that are shown as text.
pub(crate) const TEXT: usize = 32 << 10;
/// Bytes of a running command's output that are shown: the last ones.
pub(crate) const OUTPUT: usize = 16 << 10;
/// Bytes of a picture, as base64, that is shown.
pub(crate) const IMAGE: usize = 4 << 20;
/// Runs that are looked at for one page of a list of sessions.
pub(crate) const PAGE: u32 = 50;
/// Skills that are offered as commands.
pub(crate) const COMMANDS: usize = 200;
/// How long a session's tools have to end when the session is closed.
pub(crate) const CLOSING: Duration = Duration::from_secs(10);
/// How long the client has to take the last messages.
pub(crate) const LAST: Duration = Duration::from_secs(2);
/// How often a run that is to end is told so again: what was said before it began does not count.
pub(crate) const AGAIN: Duration = Duration::from_millis(50);
