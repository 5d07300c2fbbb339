//! `SessionEffects`: what a call does to its agent's session: untrusted content that it reads, files that it changes by which commands are
//! defined.

use std::path::Path;

use haft::permission::{Effect, PathClaim, Permission};
use haft::spec::{Risk, ToolSpec};
use haft::untrusted::{UntrustedSource, link_hash, sources};
use haft_builtins::lexical::normalize;
use haft_command::{defines_commands, network_reader};
use haft_hook::CallAction;

use crate::hook::session_marks::SessionMarks;
use crate::problem::Problem;

/// The kind of effect of a command that runs what the session changed. It is asked about whatever rule names the command: the rule was made
/// for what the files said before.
const RUNS_CHANGED: &str = "running what this session changed:";
/// Maximum number of files that a request names.
const MAX_NAMED: usize = 3;

/// What a call does to its session.
#[derive(Debug)]
pub(super) struct SessionEffects {
    read: Vec<UntrustedSource>,
    /// The addresses that it fetches.
    links: Vec<u64>,
    changed: Vec<String>,
    /// The commands that a person approves with the call, though files that the session changed define them.
    commands: Vec<String>,
}

impl SessionEffects {
    /// Derives them from what was judged. `root` is the workspace's.
    pub(super) fn of(
        spec: &ToolSpec,
        actions: &[CallAction],
        permissions: &[Permission],
        root: &Path,
    ) -> Self {
        let mut read = sources(spec, permissions);
        let tool = spec.name.as_str();
        if read.is_empty() && actions.iter().any(CallAction::shows_strangers) {
            read.push(UntrustedSource::recorded(&format!("tool {tool}: {tool}")));
        }
        let (mut links, mut changed, mut commands) = (Vec::new(), Vec::new(), Vec::new());
        for permission in permissions {
            match &permission.effect {
                Effect::Run { command, .. } if permission.risk != Risk::Safe => {
                    if let Some(program) = network_reader(command) {
                        let source = format!("program {program}: {command} by {tool}");
                        read.push(UntrustedSource::recorded(&source));
                    }
                    // A program that is not understood may change the files that it names.
                    let words = command.split_whitespace();
                    let words = words.map(|word| word.trim_matches(['"', '\'']));
                    changed.extend(
                        words
                            .filter(|word| defines_commands(word))
                            .map(|word| absolute(root, word)),
                    );
                    commands.push(command.clone());
                }
                Effect::Write(claim) | Effect::Remove(claim) => {
                    changed.extend(names(claim).map(|path| absolute(root, path)));
                }
                Effect::Connect { url, .. } => links.extend(link_hash(url)),
                _ => {}
            }
        }
        Self {
            read,
            links,
            changed,
            commands,
        }
    }

    /// Returns the untrusted content that the call reads.
    pub(super) fn read(&self) -> &[UntrustedSource] {
        &self.read
    }

    /// Whether the result is what strangers wrote. What a command prints may be the model's own words.
    pub(super) fn shows_strangers_alone(&self) -> bool {
        !self.read.is_empty() && self.commands.is_empty()
    }

    /// Notes them, before the call runs.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn note(&self, marks: &SessionMarks) -> Result<(), Problem> {
        marks.note_read(&self.read)?;
        marks.note_links(self.links.iter().copied());
        marks.note_changed(&self.changed)
    }

    /// Notes that a person let the call's commands run with the files as they are.
    pub(super) fn note_approved(&self, marks: &SessionMarks) {
        for command in &self.commands {
            let files = marks.changed_definitions(command);
            let own = |file: &String| !self.changed.contains(file);
            let files: Vec<String> = files.into_iter().filter(own).collect();
            marks.note_approved(&files);
        }
    }
}

/// Returns an effect for each command that runs what a file says that the session changed. A command that is known to only read runs nothing.
pub(super) fn changed_definitions(marks: &SessionMarks, stated: &[Permission]) -> Vec<Permission> {
    let each = stated.iter().filter_map(|permission| {
        let Effect::Run { command, .. } = &permission.effect else {
            return None;
        };
        if permission.risk == Risk::Safe {
            return None;
        }
        let files = marks.changed_definitions(command);
        let more = files.len().saturating_sub(MAX_NAMED);
        let named = files.get(..files.len().min(MAX_NAMED))?.join(", ");
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        (!files.is_empty()).then(|| Permission {
            effect: Effect::Other {
                kind: RUNS_CHANGED.to_owned(),
                value: format!("{command}, as {named}{more} says"),
            },
            risk: Risk::High,
        })
    });
    each.collect()
}

fn names(claim: &PathClaim) -> impl Iterator<Item = &str> {
    std::iter::once(claim.path.as_str()).chain(claim.target.as_deref())
}

fn absolute(root: &Path, path: &str) -> String {
    normalize(&root.join(path)).to_string_lossy().into_owned()
}
