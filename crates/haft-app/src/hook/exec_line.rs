//! `ExecLine`: an agent's command line rewritten so that `haft exec` runs it in the jail.

use std::path::Path;

use haft::call::ToolCall;
use haft::policy::join_words;
use haft_builtins::lexical::normalize;
use haft_shell::{parse, plain_words};

use crate::app::App;
use crate::hook::shell_state::ShellState;
use crate::hook::shell_state::given::GivenState;

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
    /// Rewrites a line so that haft's program runs it. `None` if the line only changes the shell's folder.
    pub(super) fn of(shell: AgentShell<'_>, line: &str) -> Option<Self> {
        if let Some(Inner { line, background }) = shell.inner_line(line) {
            return Some(Self {
                line: None,
                call: shell.call(&line, background),
            });
        }
        let before = shell.folder.clone();
        let (mut shell, mut moves, mut rest) = shell.split_moves(line);
        if changes_folder(rest) && !is_followed(rest) {
            // Where it ends is not known: the agent stays where it was, and not halfway.
            (shell.folder, moves, rest) = (before, String::new(), line.trim());
        }
        let words = plain_words(rest);
        if rest.is_empty()
            || words.is_some_and(|words| words.first().is_some_and(|first| first == "cd"))
        {
            return None;
        }
        let detached = detached(rest);
        let background = shell.background || detached.is_some();
        let rest = detached.unwrap_or(rest);
        let line = shell.whole_line(rest, background, detached.is_some())?;
        let line = format!("{moves}{line}");
        Some(Self {
            line: Some(line),
            call: shell.call(rest, background),
        })
    }
}

/// The line that a line of `haft exec` runs.
struct Inner {
    line: String,
    background: bool,
}

/// Returns the command of a line that is nothing but one command, pipeline or list of them that the shell leaves in the background.
fn detached(line: &str) -> Option<&str> {
    let rest = line.strip_suffix('&')?.trim_end();
    let mut plain = rest.to_owned();
    for operator in ["&&", ">&", "&>"] {
        plain = plain.replace(operator, "");
    }
    // `a; b &` leaves only `b` there. An escaped `&` is a word.
    let is_one = !plain.contains(['&', ';', '\n', '#']) && !rest.ends_with(['\\', '&', '|']);
    (is_one && parse(rest).is_ok()).then_some(rest)
}

/// Whether a line may change the folder.
fn changes_folder(line: &str) -> bool {
    let mut words = line.split(|c: char| c.is_whitespace() || ";&|(){}`".contains(c));
    words.any(|word| matches!(word, "cd" | "pushd" | "popd"))
}

/// Whether a line is words alone, commands that all run after each other: joined by `&&`, where all succeed, or by `;` and new lines.
pub(super) fn is_followed(line: &str) -> bool {
    let is_mixed = line.contains("&&") && line.contains([';', '\n']);
    let in_background = line.replace("&&", "").contains(" &");
    let other = ["||", "<<", ";;", "pushd", "popd"];
    let holds_other = line.contains(['(', ')', '{', '}', '`', '\'', '"', '\\', '$', '#'])
        || other.iter().any(|sign| line.contains(sign));
    !(is_mixed || in_background || holds_other)
}

/// Whether a line sends both its output and its errors elsewhere: `> log 2>&1`, `&> log`.
fn is_silent(line: &str) -> bool {
    let both = line.contains("&>") || line.contains(">&");
    let mut outputs = line.match_indices('>').map(|(at, _)| &line[..at]);
    let own = outputs.any(|before| !before.ends_with(['2', '&', '>']));
    line.contains("&>") || own && (both || line.contains("2>"))
}

/// The agent's shell.
pub(super) struct AgentShell<'a> {
    pub(super) app: &'a App,
    /// haft's own program.
    pub(super) program: &'a str,
    /// The name of the agent's session.
    pub(super) session: &'a str,
    /// The folder below the workspace that the shell is in.
    pub(super) folder: String,
    /// Whether the agent goes on while the command runs.
    pub(super) background: bool,
    /// The variables and functions of earlier commands, if they hold for the next one.
    pub(super) state: Option<ShellState>,
}

impl AgentShell<'_> {
    /// The call that `haft exec` makes for a line, with what the session's shell holds by now.
    fn call(&self, line: &str, background: bool) -> ToolCall {
        let given = self.state.as_ref().map(|state| GivenState::of(state, line));
        let given = given.unwrap_or_default();
        let line = given.line(line);
        self.app
            .exec_call_with(line, &self.folder, background, &given.env)
    }

    /// The line that runs another by `haft exec`. Its standard input is closed: what the agent leaves open there never ends.
    fn exec_line(&self, line: &str, background: bool) -> Option<String> {
        let mut words = vec![
            self.program,
            "exec",
            "--workspace",
            self.app.workspace(),
            "--home",
            self.app.home().to_str()?,
            "--session",
            self.session,
            "--wait",
            WAIT,
        ];
        if background {
            words.push("--background");
        }
        if self.state.is_some() {
            words.push("--shell-state");
        }
        words.extend(["--", line]);
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        Some(format!("{} </dev/null", join_words(&words)))
    }

    /// The line that the agent's shell runs: `haft exec`, and what the shell itself does then.
    fn whole_line(&self, line: &str, background: bool, detached: bool) -> Option<String> {
        let exec = self.exec_line(line, background)?;
        if detached {
            // The agent reads the shell's output until every process that holds it open has ended.
            let silence = if is_silent(line) {
                " >/dev/null 2>&1"
            } else {
                ""
            };
            return Some(format!("{exec}{silence} &"));
        }
        Some(match self.last_folder(line) {
            // It follows where the whole line succeeded.
            Some(folder) => format!("{exec} && {}", join_words(&["cd".to_owned(), folder])),
            None => exec,
        })
    }

    /// The line that runs by `haft exec` if this one has that form already: an agent may ask about it once more.
    fn inner_line(&self, line: &str) -> Option<Inner> {
        let (exec, _) = line.rsplit_once(" </dev/null")?;
        let words = plain_words(exec)?;
        let inner = words.last()?;
        let forms = [(false, false), (true, false), (true, true)];
        let form = forms.into_iter().find(|(background, detached)| {
            let whole = self.whole_line(inner, *background, *detached);
            whole.is_some_and(|whole| whole == line)
        })?;
        Some(Inner {
            line: inner.clone(),
            background: form.0,
        })
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

    /// Returns the folder below the workspace in which a line ends that is commands after each other, if it is another than it started in: in the
    /// jail, that change would end with the line.
    fn last_folder(&self, line: &str) -> Option<String> {
        if !is_followed(line) {
            return None;
        }
        let line = line.replace("&&", "\n");
        let root = Path::new(self.app.workspace());
        let start = root.join(&self.folder);
        let mut folder = start.clone();
        for part in line.split([';', '\n']) {
            let words = plain_words(part).unwrap_or_default();
            match words.as_slice() {
                [cd, to] if cd == "cd" && !to.starts_with(['-', '~']) => {
                    folder = normalize(&folder.join(to));
                }
                [cd, ..] if cd == "cd" => return None,
                _ => {}
            }
        }
        let is_below = |path: &Path| path.starts_with(root);
        // One that the line is about to make cannot be resolved yet.
        let real = folder.canonicalize();
        let is_known = is_below(&folder) && real.map_or(true, |real| is_below(&real));
        (folder != start && is_known).then(|| folder.to_str().map(str::to_owned))?
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
