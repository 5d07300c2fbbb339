//! `CommandLines`: the guard for command lines.

use haft_shell::{AsWord, ParseError, inner_command, is_too_long, layers, may_spell, plain_words};

use crate::commands::folders::changes_folder_itself;
use crate::commands::phrase::{MAX_QUOTE, clip};
use crate::commands::remembered::parse_line;
use crate::commands::removal::{
    RemovalContext, line_removes_critical, part_removes_critical, removes_critical,
};
use crate::commands::risk::discards_content;
use crate::guards::{Guard, MinimumVerdict};
use crate::judged_call::JudgedCall;
use crate::places::PolicyContext;
use haft_types::permission::{Effect, PathClaim, Permission};
use haft_types::spec::Risk;
use haft_types::text::visible;

/// Why a removal is asked about.
const CRITICAL_REMOVAL: &str = "it removes a critical path, or one that is only known when it runs";

/// Requires approval of command lines that cannot be judged part by part, and of commands that remove critical paths.
#[derive(Debug, Clone, Default)]
pub struct CommandLines {
    places: PolicyContext,
}

impl CommandLines {
    /// Creates a guard that treats the workspace and the home folder as critical.
    pub fn new(places: PolicyContext) -> Self {
        Self { places }
    }
}

impl Guard for CommandLines {
    fn name(&self) -> &'static str {
        "command-lines"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        effect.changed_path().is_some() || matches!(effect, Effect::Run { .. })
    }

    fn floor(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        Ok(match &permission.effect {
            Effect::Write(claim) | Effect::Remove(claim) if call.runs_command() => {
                target(call, claim)
            }
            Effect::Run { command, .. } if is_too_long(command) => unread(ParseError::TooLong),
            // The tool judged a removal within its line, which says more than the part. Other commands are critical for other reasons.
            Effect::Run { command, .. }
                if permission.risk == Risk::Critical && may_remove(command) =>
            {
                MinimumVerdict::ask(CRITICAL_REMOVAL)
            }
            Effect::Run {
                argv: Some(words), ..
            } if words.is_empty() => MinimumVerdict::deny("the command is empty"),
            Effect::Run {
                argv: Some(words), ..
            } => judge_words(words, &RemovalContext::of(call, &self.places)),
            Effect::Run { command, .. } => match plain_words(command) {
                Some(words) => judge_words(&words, &RemovalContext::of(call, &self.places)),
                None => judge_line(command, &RemovalContext::of(call, &self.places)),
            },
            _ => MinimumVerdict::NONE,
        })
    }
}

/// Whether the effect removes a critical path, in the folders where the call's commands run.
pub(crate) fn is_critical_removal(
    call: &JudgedCall<'_>,
    permission: &Permission,
    places: &PolicyContext,
) -> bool {
    let Effect::Run { command, argv, .. } = &permission.effect else {
        return false;
    };
    if !may_remove(command) {
        return false;
    }
    let ground = RemovalContext::of(call, places);
    match argv {
        Some(words) => removes_critical(words, &ground),
        None => line_removes_critical(command, &ground),
    }
}

/// Whether a command's text may name a program that removes files.
fn may_remove(command: &str) -> bool {
    may_spell(command, "rm") || may_spell(command, "unlink")
}

/// Returns the minimum verdict for running these words.
fn judge_words(words: &[String], ground: &RemovalContext<'_>) -> MinimumVerdict {
    floor_of(words, || removes_critical(words, ground))
}

fn floor_of<W: AsWord>(words: &[W], is_critical: impl Fn() -> bool) -> MinimumVerdict {
    if layers(words).truncated {
        return MinimumVerdict::ask("it nests too many wrappers");
    }
    if is_critical() {
        return MinimumVerdict::ask(CRITICAL_REMOVAL);
    }
    MinimumVerdict::NONE
}

fn unread(why: ParseError) -> MinimumVerdict {
    MinimumVerdict::ask(why.to_string())
        .advise("run one command without shell syntax (no ; & | < > $ * ?), or give argv")
}

fn judge_line(line: &str, ground: &RemovalContext<'_>) -> MinimumVerdict {
    let read = match parse_line(line) {
        Ok(read) => read,
        Err(why) => return unread(why),
    };
    if read.writes.iter().any(|to| !discards_content(&to.text)) {
        return MinimumVerdict::ask("it writes a file that is not judged by itself");
    }
    for part in &read.commands {
        let name = inner_command(&part.words).words.first();
        if name.is_some_and(|name| !name.is_known()) {
            return MinimumVerdict::ask(format!(
                "which command {} runs is only known when it runs",
                clip(&part.text)
            ))
            .advise("name the command");
        }
        let floor = floor_of(&part.words, || part_removes_critical(part, &read, ground));
        if floor != MinimumVerdict::NONE {
            return floor;
        }
    }
    MinimumVerdict::NONE
}

/// Returns the minimum verdict for a redirection's target: asks where it is unclear which file it is.
fn target(call: &JudgedCall<'_>, claim: &PathClaim) -> MinimumVerdict {
    let path = &claim.path;
    if path.starts_with('~') || path.contains(['$', '*', '?', '[', '{', '`', '(']) {
        return MinimumVerdict::ask(format!(
            "which file {} names is only known when it is written",
            visible::short_path(path, MAX_QUOTE)
        ))
        .advise("write the path without ~, variables and patterns");
    }
    if !path.starts_with('/') && changes_folder_itself(call) {
        return MinimumVerdict::ask(format!(
            "the command changes its folder, so {} may be another file",
            visible::short_path(path, MAX_QUOTE)
        ))
        .advise("leave out cd, and write the path relative to the workspace");
    }
    MinimumVerdict::NONE
}
