//! Git commands of a line that only read: whether settings in the workspace make them start programs, and when that counts.

use haft::permission::Permission;
use haft::policy::{CommandLine, CommandPart};
use haft::spec::Risk;

use crate::command::git_sections::SettingsEffect;
use crate::command::{Commands, RunCommandInput, git, index};

/// What a line would need if its reading git commands started no program.
#[derive(Debug)]
pub(super) struct QuietLine {
    pub(super) permissions: Vec<Permission>,
    /// The first of these commands.
    pub(super) reading: String,
    /// What may start a program.
    pub(super) section: String,
    /// Whether the line has another git command, which runs with the same settings.
    pub(super) has_other: bool,
}

impl Commands {
    /// Sets the risk of each part of a line in this environment.
    pub(super) fn rate(
        &self,
        line: CommandLine,
        input: &RunCommandInput,
        cwd: &str,
    ) -> CommandLine {
        let mut line = self.rate_words(line, input, cwd);
        let mut reading = line.parts.iter().filter(|part| reads_git(part)).peekable();
        let any = reading.peek().is_some();
        let compares = reading.any(|part| git::compares_files(part.argv.as_deref()));
        if any && !self.reads_quietly(cwd, line.risk(), compares) {
            for part in line.parts.iter_mut().filter(|part| reads_git(part)) {
                part.risk = Risk::High;
            }
        }
        line
    }

    /// Returns true if git, on a line of this risk, runs no program that settings in the workspace name.
    fn reads_quietly(&self, cwd: &str, risk: Risk, compares: bool) -> bool {
        // In another folder, or within the files that it compares, git may find another repository. The index is checked last because
        // it may be large.
        cwd == "."
            && match git::settings(&self.workspace) {
                SettingsEffect::Inert => true,
                SettingsEffect::Silenced => risk == Risk::Safe,
                SettingsEffect::Programs => false,
            }
            && !(compares && index::may_hold_repositories(&self.workspace))
    }

    /// Returns what the command would need if git's settings in the workspace named no program, and the section that names one.
    /// `None` if that makes no difference.
    pub(super) fn without_git_settings(&self, input: &RunCommandInput) -> Option<QuietLine> {
        let section = git::program_section(&self.workspace)?;
        let cwd = self.workspace.claim(&input.cwd).ok()?;
        let line = self.rate_words(Self::line(input).ok()?, input, &cwd.path);
        let mut reading = line.parts.iter().filter(|part| reads_git(part));
        let first = reading.next()?.command.clone();
        let compares = line
            .parts
            .iter()
            .any(|part| reads_git(part) && git::compares_files(part.argv.as_deref()));
        if cwd.path != "." || compares && index::may_hold_repositories(&self.workspace) {
            return None;
        }
        let has_other = line
            .parts
            .iter()
            .any(|part| part.program() == Some("git") && part.risk > Risk::Safe);
        Some(QuietLine {
            permissions: self.workspace_permissions(line, &cwd.path).ok()?,
            reading: first,
            section,
            has_other,
        })
    }
}

/// Whether a part of a line is a git command that only reads.
fn reads_git(part: &CommandPart) -> bool {
    part.program() == Some("git") && part.risk == Risk::Safe
}
