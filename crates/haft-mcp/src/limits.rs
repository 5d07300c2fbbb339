//! `ServerLimits`: bounds of what clients may make the server hold.

use std::time::Duration;

use haft::bounds::Shares;

/// Bounds of what clients may make the server hold. Over HTTP clients with the operator's token have a share of their own
/// beside these, an eighth as large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// The longest message, in bytes.
    pub message_bytes: usize,
    /// Tools or resources on one page of a list.
    pub page: usize,
    /// Requests under way on standard input; more wait unread.
    pub in_flight: usize,
    /// Calls under way over HTTP.
    pub calls: usize,
    /// Other requests under way over HTTP: lists, and what is read.
    pub reads: usize,
    /// Bytes of request bodies, and of the arguments of calls under way, held at once over HTTP.
    pub body_bytes: usize,
    /// Bytes of answers that clients have not taken yet, over HTTP.
    pub answer_bytes: usize,
    /// Calls of stateless clients at once that run on while their clients ask somebody.
    pub parked: usize,
    /// Bytes of what clients are asked for calls, and of what they said before they were asked.
    pub parked_bytes: usize,
    /// Calls of stateless clients at once that became tasks, ended ones among them until they are forgotten.
    pub tasks: usize,
    /// Bytes of results of tasks.
    pub task_bytes: usize,
    /// After how long a call becomes a task, where its client has the extension.
    pub task_after: Duration,
    /// Bytes of progress that clients have not taken yet.
    pub progress_bytes: usize,
    /// Legacy HTTP sessions at once, and stateless clients at once. Where there are more, the one that is missed least ends.
    pub sessions: usize,
    /// Streams of changes at once over HTTP.
    pub streams: usize,
    /// How long a session may lie unused.
    pub idle: Duration,
    /// The same for one that was never used after it began.
    pub unused: Duration,
    /// Silence on a stream before a sign of life is sent; also how long an HTTP answer waits before it becomes a stream.
    pub keep_alive: Duration,
    /// How long requests under way may still take after the client closed standard input.
    pub grace: Duration,
    /// How long a client on standard input may leave standard output unread before it counts as gone.
    pub unread: Duration,
    /// How long a call waits for an approval where the client shows no progress: clients give up after a minute.
    pub hold: Duration,
    /// The longest artifact that `resources/read` gives whole, in bytes.
    pub resource_bytes: u64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            page: 200,
            in_flight: 1024,
            calls: 512,
            reads: 32,
            body_bytes: 256 << 20,
            answer_bytes: 128 << 20,
            parked: 256,
            parked_bytes: 16 << 20,
            tasks: 256,
            task_bytes: 64 << 20,
            task_after: Duration::from_secs(2),
            progress_bytes: 64 << 20,
            sessions: 1024,
            streams: 256,
            idle: Duration::from_mins(30),
            unused: Duration::from_mins(1),
            keep_alive: Duration::from_secs(15),
            grace: Duration::from_secs(1),
            unread: Duration::from_mins(2),
            hold: Duration::from_secs(50),
            resource_bytes: 4 << 20,
        }
    }
}

/// So many for clients, and the operator's part beside. Strangers have none.
pub(crate) fn shares(clients: usize) -> Shares<usize> {
    Shares {
        strangers: 0,
        clients,
        operator: (clients / 8).max(1),
    }
}
