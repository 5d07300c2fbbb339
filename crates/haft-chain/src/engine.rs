//! `Engine`: runs a script, behind one trait, so that other interpreters or sandboxes can be added.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use haft::future::BoxFuture;

/// An engine that runs scripts.
pub trait Engine: Send + Sync + fmt::Debug {
    /// Describes the language, its version and the available imports to the model, in one sentence.
    fn describe(&self) -> String;

    /// Takes an interpreter that serves exactly one script. The engine may inspect the script, `code`, only to
    /// choose the interpreter.
    fn start<'a>(&'a self, code: &'a str) -> BoxFuture<'a, Result<Box<dyn Worker>, EngineError>>;
}

/// An interpreter. Dropping it kills its whole process tree.
pub trait Worker: Send + Sync {
    /// Receives one datagram; returns 0 bytes if the script's end is closed. Cancel safe.
    fn recv<'a>(&'a self, frame: &'a mut [u8]) -> BoxFuture<'a, io::Result<usize>>;

    /// Receives one datagram without waiting.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none yet, else the error of the connection to the script.
    fn try_recv(&self, frame: &mut [u8]) -> io::Result<usize>;

    /// Sends one datagram as a whole without waiting.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is no room, else the error of the connection to the script.
    fn try_send(&self, frame: &[u8]) -> io::Result<()>;

    /// Sends one datagram, waiting for room. Cancel safe: if the future is dropped, the datagram was not sent.
    fn send<'a>(&'a self, frame: &'a [u8]) -> BoxFuture<'a, io::Result<()>>;

    /// Returns the script's private folder. It exists until the worker is dropped, even if the script was killed.
    fn folder(&self) -> BorrowedFd<'_>;

    /// Returns the path by which the script refers to that folder.
    fn folder_path(&self) -> &str;

    /// Returns how strongly the interpreter is confined: the word used in outcomes.
    fn strength(&self) -> String;

    /// Kills it at once.
    fn kill(&self);

    /// Waits until its whole process tree is gone.
    fn ended(&self) -> BoxFuture<'_, ()>;
}

/// The error when no interpreter is available.
#[derive(Debug, thiserror::Error)]
#[error("start an interpreter: {message}")]
pub struct EngineError {
    /// The reason.
    pub message: String,
    /// How to fix it.
    pub advice: Option<String>,
}
