//! A server that is a process: started by the sandbox, connected through its pipes, stopped in steps.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::audit::redact::Redactor;
use haft::future::BoxFuture;
use haft_builtins::command::CommandSurroundings;
use haft_mcp::client::pipe::{LONGEST, PipeWire, ServerProcess};
use haft_mcp::client::{ClientError, Wire};
use haft_mcp::upstream::Connector;
use haft_sandbox::{CommandSpec, Places, RunningCommand, Sandbox};

/// How long a process may take to exit by itself, and again after it was asked to.
const EXIT_GRACE: Duration = Duration::from_secs(2);
/// Bytes of its stderr that an error includes.
const MAX_STDERR_TAIL: usize = 2048;
/// Bytes of it that are searched for secrets, so that none is cut where the included part starts.
const REDACTION_WINDOW: usize = 16 * 1024;

/// Programs that run the file that they are given.
const INTERPRETERS: [&str; 16] = [
    "bash", "bun", "dash", "deno", "java", "ksh", "lua", "node", "nodejs", "perl", "php", "python",
    "ruby", "sh", "tsx", "zsh",
];

/// What is started, and how it is confined.
pub(crate) struct ServerCommand {
    pub(crate) sandbox: Sandbox,
    /// Whether the sandbox is a jail; otherwise, the program must be one that no tool can change.
    pub(crate) is_jailed: bool,
    pub(crate) places: Places,
    /// The program and its arguments.
    pub(crate) words: Vec<String>,
    /// Folders that are searched for a program named without one, outside a jail.
    pub(crate) path: Vec<PathBuf>,
    /// Everything except the words.
    pub(crate) spec: CommandSpec,
    pub(crate) surroundings: CommandSurroundings,
    /// Hides haft's own secrets in its last words.
    pub(crate) redactor: Redactor,
}

impl Connector for ServerCommand {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>> {
        Box::pin(async move {
            let unreachable = ClientError::Unreachable;
            let spec = self.spec().map_err(unreachable)?;
            let started = self.sandbox.converse(spec).await;
            let (running, input, output) = started.map_err(|e| unreachable(e.to_string()))?;
            let redactor = self.redactor.clone();
            let process = Box::new(StdioServer { running, redactor });
            Ok(Arc::new(PipeWire::new(input, output, process, LONGEST)) as Arc<dyn Wire>)
        })
    }
}

impl ServerCommand {
    fn spec(&self) -> Result<CommandSpec, String> {
        self.check_program()?;
        let mut words = self.words.clone();
        let mut spec = self.spec.clone();
        if self.is_jailed {
            self.surroundings.add_to(&mut spec);
        } else if let Some(program) = words.first_mut() {
            let found = find(program, &self.path)?;
            let refused = |e: haft_sandbox::PathRefusal| e.to_string();
            self.places.check_startable(&found).map_err(refused)?;
            // Programs that it starts by name are searched next to it first: `npx` starts the `node` that it came with.
            spec.path_first.extend(found.parent().map(Path::to_owned));
            *program = found.display().to_string();
        }
        spec.program = CommandSpec::argv(words, &spec.cwd).program;
        Ok(spec)
    }
}

impl ServerCommand {
    /// Refuses a program that tools can change, even in a jail: what they put there would run with the server's secrets and network. For an
    /// interpreter, this concerns the file that it is given.
    fn check_program(&self) -> Result<(), String> {
        let Some((program, arguments)) = self.words.split_first() else {
            return Err("no program is named".to_owned());
        };
        let interprets = INTERPRETERS.contains(&strip_version(program));
        let files = arguments.iter().filter(|_| interprets).map(Path::new);
        let files = files.filter(|file| file.is_file());
        let named = Path::new(program);
        let mut programs = named
            .is_absolute()
            .then_some(named)
            .into_iter()
            .chain(files);
        match programs.find(|file| self.places.may_change(file)) {
            Some(file) => Err(format!(
                "`{}` lies in a folder that tools may change: move it elsewhere",
                file.display()
            )),
            None => Ok(()),
        }
    }
}

/// Returns the name of a program without folder and version: `python` for `/usr/bin/python3.11`.
fn strip_version(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Finds a program by its path, or by its name in one of these folders.
fn find(program: &str, path: &[PathBuf]) -> Result<PathBuf, String> {
    let named = Path::new(program);
    if named.is_absolute() {
        return Ok(named.to_owned());
    }
    if program.contains('/') {
        return Err(format!(
            "`{program}` is neither a name nor an absolute path"
        ));
    }
    let mut places = path.iter().map(|folder| folder.join(program));
    let found = places.find(|place| place.is_file());
    found.ok_or_else(|| format!("there is no program `{program}` in PATH"))
}

struct StdioServer {
    running: RunningCommand,
    redactor: Redactor,
}

impl ServerProcess for StdioServer {
    fn stderr_tail(&self) -> String {
        let log = self.running.stderr();
        let from = log.total().saturating_sub(REDACTION_WINDOW as u64);
        let bytes = log.read(from, REDACTION_WINDOW).bytes;
        // They go to the model, and may contain the server's own secrets.
        let text = String::from_utf8_lossy(&bytes);
        let text = self.redactor.redact(&text);
        let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_STDERR_TAIL));
        text[from..].to_owned()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self
                .running
                .wait_until(Instant::now() + EXIT_GRACE)
                .await
                .is_some()
            {
                return;
            }
            self.running.terminate();
            if self
                .running
                .wait_until(Instant::now() + EXIT_GRACE)
                .await
                .is_none()
            {
                self.running.kill();
                self.running.wait().await;
            }
        })
    }
}
