//! `Engine`: what runs a script, behind one trait, so that another interpreter or another wall can come.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use haft::future::BoxFuture;

/// What runs scripts.
pub trait Engine: Send + Sync + fmt::Debug {
    /// For the model: the language, its version, what there is to import. One sentence.
    fn describe(&self) -> String;

    /// Takes an interpreter that serves one script and none after it. `code` is the script, of which an engine may only
    /// conclude what it needs.
    fn start<'a>(&'a self, code: &'a str) -> BoxFuture<'a, Result<Box<dyn Worker>, EngineError>>;
}

/// One interpreter. Dropping it ends its whole tree.
pub trait Worker: Send + Sync {
    /// Receives one datagram; 0 bytes where the script's end is closed. Safe to drop and to ask again.
    fn recv<'a>(&'a self, frame: &'a mut [u8]) -> BoxFuture<'a, io::Result<usize>>;

    /// Receives one datagram that is there, or `WouldBlock`.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where there is none yet, else what the connection to the script fails with.
    fn try_recv(&self, frame: &mut [u8]) -> io::Result<usize>;

    /// Sends one datagram whole, or `WouldBlock`.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where there is no room, else what the connection to the script fails with.
    fn try_send(&self, frame: &[u8]) -> io::Result<()>;

    /// Sends one datagram, waiting for room. Safe to drop and to ask again: a dropped one was not sent.
    fn send<'a>(&'a self, frame: &'a [u8]) -> BoxFuture<'a, io::Result<()>>;

    /// The script's private folder. It stays until the worker is dropped, also when the script was killed.
    fn folder(&self) -> BorrowedFd<'_>;

    /// How the script names that folder.
    fn folder_path(&self) -> &str;

    /// How strongly it is confined: the word of outcomes.
    fn strength(&self) -> String;

    /// Ends it at once.
    fn kill(&self);

    /// Completes when its whole tree is gone.
    fn ended(&self) -> BoxFuture<'_, ()>;
}

/// Why no interpreter could be had.
#[derive(Debug, thiserror::Error)]
#[error("start an interpreter: {message}")]
pub struct EngineError {
    /// Why.
    pub message: String,
    /// What to do about it.
    pub advice: Option<String>,
}
