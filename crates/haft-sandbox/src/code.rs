//! Scripts in the jail: a locked Python for each, from a pool of warmed ones.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use haft_sandbox::code::{CodeConfig, CodeJail, LibrarySet};
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
//! let script = jail.take(LibrarySet::Plain).await?;
//! script.send(b"hello").await?;
//! let mut frame = [0; 65536];
//! let length = script.recv(&mut frame).await?;
//! assert_eq!(&frame[..length], b"HELLO");
//! # Ok(()) }
//! ```
//!
//! A script can reach only its bridge, a private folder, and the read-only parts of the system: it starts
//! no process, opens no socket, and sees no `/proc`, no other script and no file of the host's own.
//! For anything beyond that, it asks the host over the bridge.

mod apart;
mod chosen;
mod datagram;
mod fresh;
mod interpreter;
mod locks;
mod pidfd;
mod pool;
mod script;
mod stage;
mod zygote;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use self::chosen::CodeJailState;
pub use self::script::Script;
use crate::strength::{MissingFeature, Strength};
use crate::{Sandbox, StartError};

/// The configuration of a [`CodeJail`]: the interpreter, the limits of a script, and the children kept ready.
#[derive(Debug, Clone)]
pub struct CodeConfig {
    /// The interpreter; `None` = the first that works of those on this process's `PATH`,
    /// `/usr/bin/python3` and `/usr/local/bin/python3`. The jail finds out which one works by running it, and passes
    /// over one that a tool could change.
    pub python: Option<PathBuf>,
    /// Address space of a script, in MiB.
    pub memory_mb: u64,
    /// Address space of a [`LibrarySet::Data`] script, in MiB; its libraries alone take some hundred.
    pub data_memory_mb: u64,
    /// The number of warmed children kept ready, of each kind that was ever requested.
    pub idle: usize,
    /// The number of scripts after which a new zygote replaces the old one: its children share one memory
    /// layout, which should not be worth learning.
    pub recycle_after: u64,
    /// The age at which a zygote is replaced.
    pub recycle_age: Duration,
    /// The source of the Python module `haft_runtime`, loaded once before any child is created. It defines
    /// `warm()`, called several times before any child is created and once in each child that is kept ready, and
    /// `main(bridge, folder)`, called with the bridge's descriptor and the folder's path.
    pub runtime: Arc<str>,
    /// Never use a zygote: start an interpreter for each script, in the same jail.
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

/// The libraries that a script needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum LibrarySet {
    /// The standard library.
    #[default]
    Plain,
    /// Also numpy and pandas, imported beforehand if they are installed, and everything else in the interpreter's
    /// package folders.
    Data,
}

/// What this machine provides for scripts, found by trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeProbe {
    /// The interpreter that works; `None` = there is none.
    pub python: Option<PathBuf>,
    /// Its name and version, e.g. `cpython 3.11.2`.
    pub version: String,
    /// Whether children are forked from a zygote; otherwise each script starts an interpreter.
    pub zygote: bool,
    /// Why there is no zygote.
    pub why_not: Option<String>,
    /// Whether numpy or pandas can be imported by [`LibrarySet::Data`] scripts.
    pub data: bool,
    /// How scripts are confined.
    pub strength: Strength,
    /// What is missing if there is no interpreter or no jail, and how to get it.
    pub missing: Option<MissingFeature>,
    /// Interpreters that are not used, each with the reason, for example that it lies where tools write.
    pub passed_over: Vec<String>,
}

/// Hands out locked interpreters; clones share the pool.
#[derive(Debug, Clone)]
pub struct CodeJail {
    inner: Arc<CodeJailState>,
}

impl CodeJail {
    /// Creates a jail for scripts; nothing is started yet. What the sandbox's configuration requires and allows applies here too.
    pub fn new(sandbox: &Sandbox, config: CodeConfig) -> Self {
        Self {
            inner: Arc::new(CodeJailState::new(sandbox.clone(), config)),
        }
    }

    /// Returns what scripts get on this machine; tries only once.
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
            inner.fill(LibrarySet::Plain).await;
        });
    }

    /// Returns a locked interpreter: a warmed child if there is one, else one created now, by a zygote or from scratch.
    ///
    /// # Errors
    /// [`StartError::NoInterpreter`] if this machine has none, [`StartError::TooWeak`] if the jail is weaker than required,
    /// [`StartError::Shut`] after [`shut_down`](Self::shut_down), [`StartError::Interpreter`] if it does not start.
    pub async fn take(&self, kind: LibrarySet) -> Result<Script, StartError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(StartError::NoRuntime);
        }
        let script = self.inner.take(kind).await;
        self.refill(kind);
        script
    }

    /// Kills zygotes and idle children, and returns when they are gone. Scripts already handed out are killed too.
    pub async fn shut_down(&self) {
        self.inner.shut_down().await;
    }

    fn refill(&self, kind: LibrarySet) {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move { inner.fill(kind).await });
    }
}
