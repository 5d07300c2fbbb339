//! What the shell of a command line holds when the line has ended, reported to a client that gives it to its next line: variables,
//! functions, aliases and options.
//!
//! The shell's standard input is a socket of haft's. While the line runs, bash keeps it on a descriptor that programs do not inherit, and
//! the line itself reads from `/dev/null`, as it does for a client without input. A line that ends its shell itself (`exit`, `exec`,
//! `set -e`) leaves no report.

use std::sync::Arc;
use std::time::Duration;

use haft::policy::join_words;
use haft::shell_report::ShellReport;
use haft_sandbox::{CommandSpec, Program, RunningCommand, SHELL, Sandbox, StartError};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

/// Maximum length of the script around a line: the system takes no longer argument (`MAX_ARG_STRLEN` of Linux, 128 KiB).
const MAX_SCRIPT: usize = 120 << 10;
/// How long haft waits for the end of a report once the command has ended: its bytes are there by then.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prints the exported variables, then the others, as `NAME=VALUE` and a null byte each, arrays as `NAME[]=`, variables with attributes also
/// as `NAME@=`, and the options.
const HELD: &str = r#"/usr/bin/env -0 || builtin printf 'failed\0'; builtin printf 'plain\0'; for _haft in $(builtin compgen -v); do case ${!_haft@a} in *[rilu]*) builtin printf '%s@=\0' "$_haft" ;; esac; case ${!_haft@a} in *[aA]*) builtin printf '%s[]=\0' "$_haft" ;; *[xn]*) ;; *) builtin printf '%s=%s\0' "$_haft" "${!_haft-}" ;; esac; done; builtin printf 'options\0%s\0%s\0'"#;
/// Prints the functions, the aliases, the traps and what the line left in the background.
const MADE: &str = r#"builtin printf 'functions\0'; for _haft in $(builtin compgen -A function); do builtin declare -f "$_haft"; builtin printf '\0'; done; builtin printf 'aliases\0%s\0traps\0%s\0jobs\0%s\0end\0' "$(builtin alias -p)" "$3" "$(builtin jobs -p)""#;

/// Has the shell of a command report to its standard input. False if the command is not a line for a shell.
pub(super) fn make_report(spec: &mut CommandSpec) -> bool {
    let Program::Shell(line) = &spec.program else {
        return false;
    };
    let Some(script) = line.to_str().map(reporting) else {
        return false;
    };
    if script.len() > MAX_SCRIPT {
        return false;
    }
    // Without `--norc` bash takes a socket for the connection of a remote login, and runs startup files.
    let words = [SHELL, "--norc", "-c", &script];
    spec.program = Program::Argv(words.into_iter().map(Into::into).collect());
    true
}

/// Returns the script that runs a line and reports what its shell holds before and after it.
fn reporting(line: &str) -> String {
    let line = join_words(&[line]);
    format!(
        "{{ builtin printf 'before\\0'; {HELD} \"$SHELLOPTS\" \"$BASHOPTS\"; unset _haft; }} >&0 2>/dev/null; \
         eval {line} </dev/null; \
         {{ _haft_status=$?; builtin set -- \"$SHELLOPTS\" \"$BASHOPTS\" \"$(builtin trap -p)\"; builtin set -f +eux; builtin trap - DEBUG ERR RETURN; \
         IFS=$'\\n'; builtin printf 'after\\0'; {HELD} \"$1\" \"$2\"; {MADE}; }} >&0 2>/dev/null; \
         exec </dev/null; exit \"$_haft_status\""
    )
}

/// A report that is being read while its command runs.
#[derive(Debug)]
pub(crate) struct ReportReader(JoinHandle<()>);

impl ReportReader {
    /// Starts a command whose shell reports, and reads the report.
    pub(super) async fn start(
        sandbox: &Sandbox,
        spec: CommandSpec,
        report: Arc<ShellReport>,
    ) -> Result<(RunningCommand, Self), StartError> {
        let (running, socket) = sandbox.start_on_socket(spec).await?;
        Ok((running, Self(tokio::spawn(read(socket, report)))))
    }

    /// Waits for the end of the report, once the command has ended.
    pub(super) async fn finish(mut self) {
        let _ = tokio::time::timeout(PATIENCE, &mut self.0).await;
    }
}

impl Drop for ReportReader {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads a report to its end. What is longer than it may be is read and dropped, so that the shell does not wait.
async fn read(mut socket: UnixStream, report: Arc<ShellReport>) {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 16 << 10];
    while let Ok(count @ 1..) = socket.read(&mut piece).await {
        let room = ShellReport::MAX_BYTES - bytes.len();
        bytes.extend_from_slice(&piece[..count.min(room)]);
    }
    report.give(bytes);
}
