//! `ExecLine`: an agent's command line rewritten so that `haft exec` runs it in the jail.

use std::path::Path;

use haft::call::ToolCall;
use haft::policy::join_words;
use haft_shell::plain_words;

use crate::app::App;

/// How many seconds a jailed command waits for a decision about what it changed. Most agents end their shell after two minutes.
const WAIT: &str = "60";

/// A command line that runs by `haft exec`.
#[derive(Debug)]
pub(super) struct ExecLine {
    /// The line that the agent is to run instead; `None` if its own is that line already.
    pub(super) line: Option<String>,
    /// The call that `haft exec` makes.
    pub(super) call: ToolCall,
}

impl ExecLine {
    /// Rewrites a line so that haft's program runs it. `folder` is where it starts, below the workspace. `None` if the line only changes
    /// the shell's folder.
    pub(super) fn of(app: &App, program: &str, line: &str, folder: &str) -> Option<Self> {
        let shell = AgentShell {
            app,
            program,
            folder: folder.to_owned(),
        };
        if let Some(inner) = shell.inner_line(line) {
            return Some(Self {
                line: None,
                call: app.exec_call(&[inner], folder),
            });
        }
        let (shell, moves, rest) = shell.split_moves(line);
        let words = plain_words(rest);
        if words.is_some_and(|words| words.first().is_none_or(|first| first == "cd")) {
            return None;
        }
        let line = format!("{moves}{}", shell.exec_line(rest)?);
        Some(Self {
            line: Some(line),
            call: app.exec_call(&[rest.to_owned()], &shell.folder),
        })
    }
}

/// The agent's shell.
struct AgentShell<'a> {
    app: &'a App,
    /// haft's own program.
    program: &'a str,
    /// The folder below the workspace that the shell is in.
    folder: String,
}

impl AgentShell<'_> {
    /// The line that runs another by `haft exec`. Its standard input is closed: what the agent leaves open there never ends.
    fn exec_line(&self, line: &str) -> Option<String> {
        let words = [
            self.program,
            "exec",
            "--workspace",
            self.app.workspace(),
            "--home",
            self.app.home().to_str()?,
            "--wait",
            WAIT,
            "--",
            line,
        ];
        let words = join_words(&words.map(str::to_owned));
        Some(format!("{words} </dev/null"))
    }

    /// The line that runs by `haft exec` if this one has that form already: an agent may ask about it once more.
    fn inner_line(&self, line: &str) -> Option<String> {
        let words = plain_words(line.strip_suffix(" </dev/null")?)?;
        let inner = words.last()?;
        (self.exec_line(inner)? == line).then(|| inner.clone())
    }

    /// Splits off the changes of folder that a line begins with. Returns the shell after them, the text that has the agent's own shell make
    /// them, and the rest of the line. In the jail they would end with the command, and the agent would still be in the old folder.
    fn split_moves(self, line: &str) -> (Self, String, &str) {
        let (mut shell, mut moves, mut rest) = (self, String::new(), line.trim());
        while let Some((folder, after)) = shell.first_move(rest) {
            let whole = Path::new(shell.app.workspace()).join(&folder);
            let Some(whole) = whole.to_str() else { break };
            moves.push_str(&join_words(&["cd".to_owned(), whole.to_owned()]));
            moves.push_str(" && ");
            (shell.folder, rest) = (folder, after);
        }
        (shell, moves, rest)
    }

    /// The folder below the workspace that a line changes to first, and the rest of the line.
    fn first_move<'l>(&self, line: &'l str) -> Option<(String, &'l str)> {
        let end = line.find(['&', ';', '\n', '|']).unwrap_or(line.len());
        let (first, after) = line.split_at(end);
        let after = match after.strip_prefix("&&") {
            Some(after) => after,
            None if after.starts_with(['&', '|']) || after.starts_with(";;") => return None,
            None => after.strip_prefix([';', '\n']).unwrap_or(after),
        };
        let words = plain_words(first)?;
        let [cd, to] = words.as_slice() else {
            return None;
        };
        if cd != "cd" || to.starts_with('-') {
            return None;
        }
        let root = Path::new(self.app.workspace());
        let to = root.join(&self.folder).join(to);
        let real = to.canonicalize().ok().filter(|real| real.is_dir())?;
        let below = real.strip_prefix(root).ok()?;
        let folder = below.to_str()?;
        let folder = if folder.is_empty() { "." } else { folder };
        Some((folder.to_owned(), after.trim()))
    }
}
