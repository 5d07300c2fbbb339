//! Scripts in the jail: a locked Python for each, from a pool of warmed ones.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use haft_sandbox::code::{CodeConfig, CodeJail, Kind};
//! use haft_sandbox::{Config, Sandbox};
//!
//! let sandbox = Sandbox::new(Config::default());
//! let runtime = "
//! import os
//! def warm(): pass
//! def main(bridge, folder):
//!     os.write(bridge, os.read(bridge, 65536).upper())
//! ";
//! let config = CodeConfig { runtime: runtime.into(), ..CodeConfig::default() };
//! let jail = CodeJail::new(&sandbox, config);
//! let script = jail.take(Kind::Plain).await?;
//! script.send(b"hello").await?;
//! let mut frame = [0; 65536];
//! let length = script.recv(&mut frame).await?;
//! assert_eq!(&frame[..length], b"HELLO");
//! # Ok(()) }
//! ```
//!
//! A script reaches nothing but its bridge, a private folder, and what of the system is read-only: it
//! starts no process, opens no socket, sees no `/proc`, no other script and no file of the host's own.
//! Whatever it is to do beyond that, it asks the host for, over the bridge.

mod apart;
mod chosen;
mod datagram;
mod fresh;
mod interpreter;
#[expect(
    unsafe_code,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::many_single_char_names,
    reason = "system calls in order: registers are what the kernel takes and gives"
)]
#[path = "code/lockdown/lock.rs"]
pub(crate) mod lock;
mod locks;
mod pidfd;
mod pool;
mod script;
mod stage;
mod zygote;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use self::chosen::Inner;
pub use self::script::Script;
use crate::strength::{Missing, Strength};
use crate::{Sandbox, StartError};

/// How scripts are run.
#[derive(Debug, Clone)]
pub struct CodeConfig {
    /// The interpreter; none = the first that works of those on this process's `PATH`,
    /// `/usr/bin/python3` and `/usr/local/bin/python3`. Which one works is found by running it. One that
    /// a tool could change is passed over.
    pub python: Option<PathBuf>,
    /// Address space of a script, in MiB.
    pub memory_mb: u64,
    /// The same for a [`Kind::Data`] script, whose libraries alone take some hundred.
    pub data_memory_mb: u64,
    /// Warmed children kept ready, of each kind that was ever asked for.
    pub idle: usize,
    /// After so many scripts another zygote takes the place of the old: its children share one layout
    /// of memory, which should not be worth learning.
    pub recycle_after: u64,
    /// The same by age.
    pub recycle_age: Duration,
    /// The source of the Python module `haft_runtime`, loaded once before any child is made. It has
    /// `warm()`, called some times before any child is made and once in each child that is kept ready, and
    /// `main(bridge, folder)`, called with the bridge's descriptor and the folder's path.
    pub runtime: Arc<str>,
    /// Never a zygote: an interpreter of its own for each script, in the same jail.
    pub force_fresh: bool,
}

impl Default for CodeConfig {
    fn default() -> Self {
        Self {
            python: None,
            memory_mb: 1024,
            data_memory_mb: 4096,
            idle: 2,
            recycle_after: 1000,
            recycle_age: Duration::from_secs(600),
            runtime: "def warm(): pass\ndef main(bridge, folder): pass\n".into(),
            force_fresh: false,
        }
    }
}

/// What a script needs of its interpreter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The standard library.
    #[default]
    Plain,
    /// numpy and pandas too, imported beforehand where they are installed, and whatever else lies in
    /// the interpreter's folders of packages.
    Data,
}

/// What this machine gives scripts, found by doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeProbe {
    /// The interpreter that works; none = there is none.
    pub python: Option<PathBuf>,
    /// Which it is, e.g. `cpython 3.11.2`.
    pub version: String,
    /// Whether children are forked from a zygote; else each script starts an interpreter.
    pub zygote: bool,
    /// Why there is no zygote.
    pub why_not: Option<String>,
    /// Whether numpy or pandas can be imported by [`Kind::Data`] scripts.
    pub data: bool,
    /// How scripts are confined.
    pub strength: Strength,
    /// What is missing where there is no interpreter or no jail, and how to get it.
    pub missing: Option<Missing>,
    /// Interpreters that are not used, each with the reason: they lie where tools write, for instance.
    pub passed_over: Vec<String>,
}

/// Gives out locked interpreters; clones share the pool.
#[derive(Debug, Clone)]
pub struct CodeJail {
    inner: Arc<Inner>,
}

impl CodeJail {
    /// Nothing is started yet. What the sandbox's configuration requires and allows holds here too.
    pub fn new(sandbox: &Sandbox, config: CodeConfig) -> Self {
        Self {
            inner: Arc::new(Inner::new(sandbox.clone(), config)),
        }
    }

    /// What scripts get on this machine; tried once.
    pub async fn probe(&self) -> &CodeProbe {
        &self.inner.chosen().await.probe
    }

    /// Starts a zygote and fills the pool, in the background.
    pub fn warm(&self) {
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move {
            inner.chosen().await;
            inner.fill(Kind::Plain).await;
        });
    }

    /// A locked interpreter: a warmed child if there is one, else one made now, by a zygote or afresh.
    ///
    /// # Errors
    /// [`StartError::NoInterpreter`] where this machine has none, [`StartError::TooWeak`] where the jail is weaker than required,
    /// [`StartError::Shut`] after [`shut`](Self::shut), [`StartError::Interpreter`] where it does not start.
    pub async fn take(&self, kind: Kind) -> Result<Script, StartError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(StartError::NoRuntime);
        }
        let script = self.inner.take(kind).await;
        self.refill(kind);
        script
    }

    /// Ends zygotes and idle children, and returns when they are gone. Scripts that were taken end too.
    pub async fn shut(&self) {
        self.inner.shut().await;
    }

    fn refill(&self, kind: Kind) {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move { inner.fill(kind).await });
    }
}
