//! `ServerLimits`: limits on what clients may make the server hold.

use std::time::Duration;

use haft::bounds::{PrincipalShares, Shares};

/// Limits on what clients may make the server hold. Over HTTP, each principal has this much of what is counted by caller (calls,
/// reads, bytes of bodies, answers and progress, parked calls, tasks, sessions, streams); all principals together have four times as much.
/// Clients with the operator's token have a share in addition, a quarter as large as a principal's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum length of a message, in bytes.
    pub message_bytes: usize,
    /// Tools or resources per page of a list.
    pub page: usize,
    /// Requests in progress on standard input; more wait unread.
    pub in_flight: usize,
    /// Calls in progress over HTTP.
    pub calls: usize,
    /// Other requests in progress over HTTP: lists and reads.
    pub reads: usize,
    /// Bytes of request bodies, and of the arguments of calls in progress, held at a time over HTTP.
    pub body_bytes: usize,
    /// Bytes of answers that clients have not received yet, over HTTP.
    pub answer_bytes: usize,
    /// Number of stateless clients' calls that run while their clients ask the user.
    pub parked: usize,
    /// Bytes of what clients are asked during calls, and of their answers in advance.
    pub parked_bytes: usize,
    /// Number of stateless clients' calls that became tasks, including ended ones until they are dropped.
    pub tasks: usize,
    /// Bytes of task results.
    pub task_bytes: usize,
    /// Time after which a call becomes a task, if its client supports tasks.
    pub task_after: Duration,
    /// Bytes of progress that clients have not received yet.
    pub progress_bytes: usize,
    /// Number of handshake-era HTTP sessions, and of stateless clients. One more ends the most dispensable one.
    pub sessions: usize,
    /// Number of change streams over HTTP.
    pub streams: usize,
    /// How long a session may be idle.
    pub idle: Duration,
    /// How long a session may be idle if it was never used after its opening.
    pub unused: Duration,
    /// Silence on a stream before a keep-alive is sent; also how long an HTTP answer may take before the response becomes a stream.
    pub keep_alive: Duration,
    /// How long requests in progress may still take after the client closed standard input.
    pub grace: Duration,
    /// How long a client on standard input may leave standard output unread before it counts as gone.
    pub unread: Duration,
    /// How long a call waits for an approval if the client shows no progress: clients give up after a minute.
    pub hold: Duration,
    /// Maximum size of an artifact that `resources/read` returns whole, in bytes.
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
            body_bytes: 64 << 20,
            answer_bytes: 64 << 20,
            parked: 128,
            parked_bytes: 8 << 20,
            tasks: 128,
            task_bytes: 32 << 20,
            task_after: Duration::from_secs(2),
            progress_bytes: 16 << 20,
            sessions: 512,
            streams: 128,
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

/// Returns shares with this number for each principal, plus the operator's. Strangers have none.
pub(crate) fn shares(each: usize) -> PrincipalShares {
    PrincipalShares::by_principal(Shares {
        strangers: 0,
        clients: each,
        operator: (each / 4).max(1),
    })
}
