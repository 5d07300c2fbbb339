//! Adds `haft hook AGENT` to the settings of coding agents, removes it again, and says where it is registered now.

use std::path::PathBuf;

use crate::registration::PlaceCondition;
use haft_hook::Agent;
use serde::Serialize;

use crate::clients::InstallScope;
pub use crate::clients::install::InstallEdit;
use crate::clients::install::record::SettingsBackup;
use crate::clients::install::target::{ContentRole, InstallContent, InstallTarget};
use crate::clients::settings_file::EditableFile;
use crate::edit::EditError;
use crate::plain_file;
use crate::problem::Problem;
use crate::site::SetupSite;

use crate::program::{HookPosition, MAX_BYTES};
use crate::programs;
use entries::HookEntries;
use places::{HookFileFormat, HookLayout, HookTarget};
use whole::WholeFile;

pub use crate::program::Switch;
pub use crate::programs::{agent_named, agent_of, registrations};
pub use program::HookLauncher;

pub mod status;
mod entries;
mod format;
mod places;
mod program;
mod toml_hooks;
mod version;
mod whole;

/// Which hooks to edit.
#[derive(Debug, Clone, Copy)]
pub struct HookEditOptions<'a> {
    /// The agent.
    pub agent: Agent,
    /// Whether for the user or for one folder.
    pub level: InstallScope,
    /// Where haft works.
    pub site: SetupSite<'a>,
    /// Whether only to say what would change.
    pub dry_run: bool,
}

/// Adds haft to an agent's hooks. Existing entries of haft keep their text and position.
///
/// # Errors
/// A file cannot be read, understood or written. The files before it are done.
pub fn install(
    order: HookEditOptions<'_>,
    program: &HookLauncher,
) -> Result<Vec<InstallEdit>, Problem> {
    let places = places::places(order.agent, order.level, order.site, program)?;
    let places = choose_places(order.agent, places);
    let home = order.site.home;
    let mut targets = Vec::new();
    for place in &places {
        let target = target(order, place)?;
        // If one of the files would be refused, none is written.
        target.put_in(home, &|text| put(order.agent, place, text), true)?;
        targets.push((place, target));
    }
    let each = targets.iter().map(|(place, target)| {
        let put = |text: &str| put(order.agent, place, text);
        target.put_in(home, &put, order.dry_run)
    });
    each.collect()
}

/// Returns what to do about other hooks after haft's: uninstalling haft moves them up, and an agent that knows reviewed hooks by their
/// position forgets that they were reviewed.
///
/// # Errors
/// There is no home folder.
pub fn hooks_to_review(order: HookEditOptions<'_>) -> Result<Option<String>, Problem> {
    let Some(review) = &programs::hooks(order.agent).review else {
        return Ok(None);
    };
    let mut events = Vec::new();
    for place in places::places(
        order.agent,
        order.level,
        order.site,
        &HookLauncher::default(),
    )? {
        let text = plain_file::read(&place.path, MAX_BYTES).unwrap_or_default();
        let found = spots(order.agent, &place, &text).unwrap_or_default();
        let moved = found.into_iter().filter(|spot| spot.behind > 0);
        events.extend(moved.map(|spot| spot.event));
    }
    let advice = format!(
        "hooks behind haft's moved up ({}): {}",
        events.join(", "),
        review.moved
    );
    Ok((!events.is_empty()).then_some(advice))
}

/// Removes haft from an agent's hooks. A file that is still as haft wrote it gets its original text back; from any other, only haft's
/// entries are removed.
///
/// # Errors
/// As for [`install`].
pub fn uninstall(order: HookEditOptions<'_>) -> Result<Vec<InstallEdit>, Problem> {
    let mut places = places::places(
        order.agent,
        order.level,
        order.site,
        &HookLauncher::default(),
    )?;
    // The file that makes the hooks run goes first.
    places.reverse();
    let mut edits = Vec::new();
    for place in &places {
        edits.push(target(order, place)?.take_out(order.site.home, order.dry_run)?);
    }
    Ok(edits)
}

/// Chooses among files that can hold the same hooks: the one that has haft already, else the one with the user's hooks.
fn choose_places(agent: Agent, places: Vec<HookTarget>) -> Vec<HookTarget> {
    let is_one = |place: &HookTarget| place.condition != PlaceCondition::Always;
    if !places.iter().any(is_one) {
        return places;
    }
    let fits = |place: &&HookTarget| match place.condition {
        PlaceCondition::FileExists => place.path.exists(),
        PlaceCondition::HasHooks => toml_hooks::has_hooks(&place.path),
        PlaceCondition::Always => true,
    };
    let holds = |place: &&HookTarget| holds(agent, place);
    let found = places.iter().find(holds);
    // If there is none, haft makes the first of the list. Only the user makes a file that hides others.
    let last = if programs::hooks(agent).makes_first_file {
        places.first()
    } else {
        places.last()
    };
    let place = found.or_else(|| places.iter().find(fits)).or(last);
    place.cloned().into_iter().collect()
}

fn target(order: HookEditOptions<'_>, place: &HookTarget) -> Result<InstallTarget, Problem> {
    let HookEditOptions { agent, site, .. } = order;
    let within = (order.level == InstallScope::Project).then_some(site.workspace);
    let mut file = EditableFile::locate(&place.path, agent.title(), role(agent).by_hand, within)?;
    let is_program = matches!(place.form, HookFileFormat::Whole { is_program, .. } if is_program);
    if is_program {
        file = file.with_mode(0o755);
    }
    let original = SettingsBackup::of(site.home, &file.path);
    Ok(InstallTarget {
        content: content(agent, place),
        file,
        original,
    })
}

fn content(agent: Agent, place: &HookTarget) -> Box<dyn InstallContent> {
    match &place.form {
        HookFileFormat::Shared(layout) => Box::new(shared(agent, layout)),
        HookFileFormat::Whole { text, is_program } => Box::new(whole(agent, text, *is_program)),
    }
}

fn shared(agent: Agent, layout: &HookLayout) -> HookEntries {
    HookEntries {
        agent,
        layout: layout.clone(),
    }
}

fn whole(agent: Agent, text: &str, is_program: bool) -> WholeFile {
    WholeFile {
        agent,
        text: text.to_owned(),
        is_program,
    }
}

fn put(agent: Agent, place: &HookTarget, before: &str) -> Result<String, EditError> {
    match &place.form {
        HookFileFormat::Shared(layout) => shared(agent, layout).put(before),
        HookFileFormat::Whole { text, is_program } => whole(agent, text, *is_program).put(before),
    }
}

/// Returns the events for which a file registers haft.
fn events(agent: Agent, place: &HookTarget) -> Vec<String> {
    match &place.form {
        HookFileFormat::Shared(layout) => {
            let entries = layout.entries.iter();
            entries.map(|entry| entry.event.clone()).collect()
        }
        HookFileFormat::Whole { text, is_program } => whole(agent, text, *is_program)
            .event(&place.path)
            .into_iter()
            .collect(),
    }
}

/// Finds haft's entries in the text of a file. A file that is haft's as a whole is the entry for its event, or for all events.
fn spots(agent: Agent, place: &HookTarget, before: &str) -> Result<Vec<HookPosition>, EditError> {
    match &place.form {
        HookFileFormat::Shared(layout) => shared(agent, layout).spots(before),
        HookFileFormat::Whole { text, is_program } => {
            Ok(whole(agent, text, *is_program).spots(before, &place.path))
        }
    }
}

/// Whether a file has entries of haft. A file that cannot be read or understood counts as one without: the edit of it will say why.
fn holds(agent: Agent, place: &HookTarget) -> bool {
    let text = plain_file::read(&place.path, MAX_BYTES).unwrap_or_default();
    spots(agent, place, &text).is_ok_and(|spots| !spots.is_empty())
}

/// Returns the files of an agent's hooks as haft would write them if there were none, for users who write them by hand.
///
/// # Errors
/// There is no home folder, or a file's form cannot be written.
pub fn snippet(
    order: HookEditOptions<'_>,
    program: &HookLauncher,
) -> Result<Vec<Snippet>, Problem> {
    let places = places::places(order.agent, order.level, order.site, program)?;
    let each = choose_places(order.agent, places).into_iter().map(|place| {
        let text = put(order.agent, &place, "");
        let text =
            text.map_err(|wrong| wrong.problem("cannot write the hooks", &place.path, ""))?;
        Ok(Snippet {
            file: place.path,
            text,
        })
    });
    each.collect()
}

/// A file, and what to write into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The file.
    pub file: PathBuf,
    /// Its content if it holds nothing else.
    pub text: String,
}

/// Returns what haft's hooks are to an agent's file.
fn role(agent: Agent) -> ContentRole {
    let name = agent.name();
    ContentRole {
        part: format!("hooks of {name}"),
        owner: agent.title(),
        by_hand: format!(
            "nothing was changed; correct the file, or write the hooks into it by hand as `haft hook install {name} --print` shows them"
        ),
    }
}

/// Returns the switch of an agent that denies a call when a hook fails, if it has one.
pub fn switch(agent: Agent) -> Option<Switch> {
    programs::hooks(agent).switch
}

#[cfg(test)]
mod tests;
