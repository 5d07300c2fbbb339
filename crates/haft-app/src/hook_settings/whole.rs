//! Files that are haft's as a whole: programs named as an event, plugins. What another wrote is never overwritten.

use std::path::Path;

use haft_hook::{Agent, setup};
use haft_shell::plain_words;

use crate::clients::install::record::Record;
use crate::clients::install::target::{Content, Entry};
use crate::clients::jsonc::Wrong;
use crate::hook_settings::by_hand;
use crate::hook_settings::json_hooks::Spot;

/// The event that stands for all of a plugin's.
pub(crate) const PLUGIN: &str = "haft.plugin";

/// A file that is haft's.
#[derive(Debug, Clone)]
pub(crate) struct WholeFile {
    pub(crate) agent: Agent,
    pub(crate) text: String,
    pub(crate) is_program: bool,
}

impl WholeFile {
    fn is_ours(&self, text: &str) -> bool {
        !text.is_empty() && setup::is_own_file(self.agent, text)
    }

    /// The event that a file of this name stands for; none for the description of a plugin.
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

    /// The event that it is registered for.
    pub(crate) fn spots(&self, text: &str, path: &Path) -> Vec<Spot> {
        let event = self.event(path).filter(|_| self.is_ours(text));
        let spot = |event: String| Spot {
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

    /// The text in place of an older one of haft's.
    pub(crate) fn put(&self, text: &str) -> Result<String, Wrong> {
        if text.is_empty() || self.is_ours(text) {
            return Ok(self.text.clone());
        }
        Err(Wrong {
            what: "the file is there and haft did not make it".to_owned(),
            at: 0..0,
        })
    }
}

/// The words of the command that a program of haft's starts.
fn command_in(text: &str) -> Vec<String> {
    let mut commands = text.lines().filter_map(|line| line.strip_prefix("exec "));
    commands.next().and_then(plain_words).unwrap_or_default()
}

impl Content for WholeFile {
    fn owner(&self) -> &'static str {
        self.agent.title()
    }

    fn by_hand(&self) -> String {
        by_hand(self.agent)
    }

    fn entry(&self, text: &str) -> Result<Option<Entry>, Wrong> {
        Ok((!text.is_empty()).then(|| Entry::unrecorded(self.is_ours(text))))
    }

    fn has_parent(&self, _text: &str) -> bool {
        true
    }

    fn without(&self, text: &str, _record: Option<&Record>) -> Result<Option<String>, Wrong> {
        Ok(self.is_ours(text).then(String::new))
    }

    fn is_spent(&self, text: &str) -> bool {
        text.is_empty()
    }
}
