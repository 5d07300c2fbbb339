//! `WholeFile`: a file that belongs to haft as a whole, a program named after an event or a plugin. haft never overwrites anyone else's
//! file.

use std::path::Path;

use crate::registration;
use haft_hook::Agent;
use haft_shell::plain_words;

use crate::clients::install::record::InstalledPart;
use crate::clients::install::target::{ContentRole, InstallContent, InstalledEntry};
use crate::edit::EditError;
use crate::hook_settings::role;
use crate::program::HookPosition;

/// The event that represents all events of a plugin.
pub(crate) const PLUGIN: &str = "haft.plugin";

/// A file that belongs to haft.
#[derive(Debug, Clone)]
pub(crate) struct WholeFile {
    pub(crate) agent: Agent,
    pub(crate) text: String,
    pub(crate) is_program: bool,
}

impl WholeFile {
    fn is_ours(&self, text: &str) -> bool {
        !text.is_empty() && registration::is_own_file(self.agent, text)
    }

    /// Returns the event that a file with this name is for; `None` for a plugin's manifest.
    pub(crate) fn event(&self, path: &Path) -> Option<String> {
        let name = path.file_name()?.to_str()?;
        if self.is_program {
            return Some(name.to_owned());
        }
        let is_source = path
            .extension()
            .is_some_and(|extension| extension == "js" || extension == "ts");
        is_source.then(|| PLUGIN.to_owned())
    }

    /// Returns the entry of haft in a text, if haft wrote it.
    pub(crate) fn spots(&self, text: &str, path: &Path) -> Vec<HookPosition> {
        let event = self.event(path).filter(|_| self.is_ours(text));
        let spot = |event: String| HookPosition {
            event,
            item: 0,
            handler: None,
            matcher: None,
            words: command_in(text),
            behind: 0,
            is_alone: true,
        };
        event.map(spot).into_iter().collect()
    }

    /// Replaces an older text of haft.
    pub(crate) fn put(&self, text: &str) -> Result<String, EditError> {
        if text.is_empty() || self.is_ours(text) {
            return Ok(self.text.clone());
        }
        Err(EditError::new("the file is there and haft did not make it"))
    }
}

/// Returns the words of the command that haft's program file starts.
fn command_in(text: &str) -> Vec<String> {
    let mut commands = text.lines().filter_map(|line| line.strip_prefix("exec "));
    commands.next().and_then(plain_words).unwrap_or_default()
}

impl InstallContent for WholeFile {
    fn role(&self) -> ContentRole {
        role(self.agent)
    }

    fn entry(&self, text: &str) -> Result<Option<InstalledEntry>, EditError> {
        Ok((!text.is_empty()).then(|| InstalledEntry::unrecorded(self.is_ours(text))))
    }

    fn missing(&self, _text: &str) -> Vec<String> {
        Vec::new()
    }

    fn without(
        &self,
        text: &str,
        _known: Option<&InstalledPart>,
    ) -> Result<Option<String>, EditError> {
        Ok(self.is_ours(text).then(String::new))
    }

    fn is_spent(&self, text: &str) -> bool {
        text.is_empty()
    }
}
