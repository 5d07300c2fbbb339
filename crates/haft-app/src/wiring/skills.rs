//! Where skills are discovered, which of them may be used, and the tools for them.

use std::path::PathBuf;

use std::collections::BTreeSet;
use std::sync::Arc;

use haft::skill::set::{SkillFilter, SkillRoot, SkillSet, WORKSPACE_FOLDERS};
use haft::workspace::Workspace;
use haft_builtins::skills::{SKILL_TOOLS, SKILLS, SkillOptions, SkillTools};

use crate::config::Settings;
use crate::config::typed::SKILLS_AS_TOOLS;
use crate::problem::Problem;
use crate::site::Site;
use crate::wiring::offer::ToolOffer;

/// The user's own folders below `HOME`, after `$XDG_CONFIG_HOME/haft/skills`.
const HOME_FOLDERS: [&str; 2] = [".agents/skills", ".claude/skills"];

/// Returns the offers of the skill tools, which appear while there is a skill.
pub(crate) fn offers() -> impl Iterator<Item = ToolOffer> {
    SKILL_TOOLS.into_iter().map(|name| ToolOffer {
        name: name.to_owned(),
        bundle: SKILLS,
        default: true,
    })
}

/// Builds the skill tools that are on.
pub(crate) fn tools(
    settings: &Settings,
    workspace: &Workspace,
    set: &Arc<SkillSet>,
    on: &BTreeSet<String>,
) -> Result<Arc<SkillTools>, Problem> {
    let on: Vec<String> = SKILL_TOOLS
        .into_iter()
        .filter(|name| on.contains(*name))
        .map(str::to_owned)
        .collect();
    let options = SkillOptions {
        // A user who turns the bundle off wants none of its tools.
        as_tools: settings.get(SKILLS_AS_TOOLS) && !on.is_empty(),
        on,
        ..SkillOptions::new(workspace.clone())
    };
    SkillTools::new(Arc::clone(set), options)
        .map_err(|e| Problem::failed(format!("cannot offer the skills: {e}")))
}

/// Returns the set of skills; nothing is read yet.
pub(crate) fn set(at: &Site, settings: &Settings) -> SkillSet {
    let filter = SkillFilter {
        allow: texts(settings, "skills.allow"),
        deny: texts(settings, "skills.deny"),
    };
    SkillSet::new(roots(at, settings), filter)
}

/// Returns the workspace's folders, those from the settings and the user's; the first one wins.
fn roots(at: &Site, settings: &Settings) -> Vec<SkillRoot> {
    let workspace = WORKSPACE_FOLDERS
        .map(|folder| SkillRoot::workspace(&at.workspace, folder, settings.trusted));
    let home = at.environment.folder("HOME");
    let named = texts(settings, "skills.dirs").into_iter().map(|text| {
        let below_home = text.strip_prefix("~/").zip(home.as_ref());
        let path = below_home.map(|(rest, home)| home.join(rest));
        SkillRoot::configured(
            at.workspace
                .join(path.unwrap_or_else(|| PathBuf::from(text))),
        )
    });
    let config = at.environment.folder("XDG_CONFIG_HOME");
    let config = config.or_else(|| Some(home.as_ref()?.join(".config")));
    let own = config.map(|config| config.join("haft/skills"));
    let at_home = home
        .iter()
        .flat_map(|home| HOME_FOLDERS.map(|folder| home.join(folder)));
    let user = own.into_iter().chain(at_home).map(SkillRoot::user);
    workspace.into_iter().chain(named).chain(user).collect()
}

fn texts(settings: &Settings, key: &str) -> Vec<String> {
    let items = settings.items(key).into_iter();
    let texts = items.filter_map(|(value, _)| value.as_str());
    texts.map(str::to_owned).collect()
}
