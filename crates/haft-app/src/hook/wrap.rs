//! `Wrapped`: a command of an agent, in another form: run by haft in its jail.

use std::path::{Component, Path};

use haft::call::ToolCall;
use haft::policy::join_words;
use haft_hook::Call;
use haft_shell::plain_words;

use crate::app::App;
use crate::hook::only_line;

/// Seconds that a wrapped command waits for a decision about what it did: agents end their shells after a time of their own, most of
/// them after two minutes.
const WAIT: &str = "60";

/// A command that runs by `haft exec`.
#[derive(Debug)]
pub(super) struct Wrapped {
    /// The line that the agent is to run instead; none where it is that one already.
    pub(super) line: Option<String>,
    /// The call that `haft exec` makes.
    pub(super) call: ToolCall,
}

impl Wrapped {
    /// Wraps a call so that haft's program runs it; none if it is not a plain command line, or only changes the shell's folder. `folder` is
    /// where the command starts, below the workspace.
    pub(super) fn of(app: &App, program: &str, call: &Call, folder: &str) -> Option<Self> {
        let line = only_line(call)?;
        let shell = Shell {
            app,
            program,
            folder: folder.to_owned(),
        };
        if let Some(inner) = shell.unwrapped(line) {
            return Some(Self {
                line: None,
                call: app.exec_call(&[inner], folder),
            });
        }
        let (shell, moves, rest) = shell.moved(line);
        let words = plain_words(rest);
        if words.is_some_and(|words| words.first().is_none_or(|first| first == "cd")) {
            return None;
        }
        let wrapped = format!("{moves}{}", shell.wrapped(rest)?);
        Some(Self {
            line: Some(wrapped),
            call: app.exec_call(&[rest.to_owned()], &shell.folder),
        })
    }
}

/// The agent's shell: where it stands.
struct Shell<'a> {
    app: &'a App,
    /// haft's own program.
    program: &'a str,
    folder: String,
}

impl Shell<'_> {
    /// The line that runs another by `haft exec`. What the agent leaves open as standard input is nothing to wait for.
    fn wrapped(&self, line: &str) -> Option<String> {
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

    /// What a line runs that is a wrapped one already: an agent may ask about it once more.
    fn unwrapped(&self, line: &str) -> Option<String> {
        let words = plain_words(line.strip_suffix(" </dev/null")?)?;
        let inner = words.last()?;
        (self.wrapped(inner)? == line).then(|| inner.clone())
    }

    /// Changes of the folder with which a line begins: the shell that is left with them, what has the agent's own shell make them, and
    /// the rest of the line. In the jail they would end with the command, and the agent would go on in the old folder.
    fn moved(self, line: &str) -> (Self, String, &str) {
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

    /// The folder below the workspace that a line changes to first, and what follows.
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
        // Where links lead is another matter: only folders that are what they seem.
        let is_plain =
            |part: Component<'_>| matches!(part, Component::Normal(_) | Component::RootDir);
        let real = to.canonicalize().ok().filter(|real| real.is_dir())?;
        let below = real.strip_prefix(root).ok()?;
        let folder = below.to_str()?;
        let folder = if folder.is_empty() { "." } else { folder };
        real.components()
            .all(is_plain)
            .then(|| (folder.to_owned(), after.trim()))
    }
}
