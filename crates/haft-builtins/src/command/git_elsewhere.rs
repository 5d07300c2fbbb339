//! Which rule would cover a git command that a line runs after it has changed to another folder: rules for commands hold in the folder of the
//! workspace alone, as another one may have a repository with hooks and settings of its own.

use haft::context::CallContext;
use haft::policy::{CommandLine, join_words};

use crate::command::{Commands, RunCommandInput};

impl Commands {
    /// Returns the text that names the rule. `None` if no rule covers the command in the workspace's own folder either.
    pub(super) fn rule_in_folder(
        &self,
        input: &RunCommandInput,
        context: &CallContext,
    ) -> Option<String> {
        let line = Self::line(input).ok()?;
        let words = line.parts.into_iter().filter_map(|part| part.argv);
        let mut words = words.skip_while(|words| folder_of(words).is_none());
        let folder = folder_of(&words.next()?)?.to_owned();
        let git = words.find(|words| words.first().is_some_and(|name| name == "git"))?;
        let [_, action, ..] = git.as_slice() else {
            return None;
        };
        if action.starts_with('-') {
            return None;
        }
        let alone = CommandLine::new(&join_words(&git));
        let wanted = self.workspace_permissions(alone, ".").ok()?;
        context.allows(&wanted).then(|| {
            let there = join_words(&["git", "-C", &folder, action]);
            format!(
                "`git {action}` after `cd {folder}`, where the rules of the workspace's own folder do not hold: for `{there} …`, `Bash({there} *)` does"
            )
        })
    }
}

/// Returns the folder of the workspace to which a command changes.
fn folder_of(words: &[String]) -> Option<&str> {
    match words {
        [cd, folder] if cd == "cd" => {
            let below = !folder.starts_with(['/', '-', '~']) && !folder.contains("..");
            below.then_some(folder)
        }
        _ => None,
    }
}
