//! Where skills are looked for, and which of them may be used: from trust, settings and the user's folders.

use std::path::PathBuf;

use haft::skill::set::{Filter, Root, SkillSet, WORKSPACE_FOLDERS};

use crate::invocation::Invocation;
use crate::settings::Settings;

/// The user's own folders below `HOME`, after `$XDG_CONFIG_HOME/haft/skills`.
const HOME_FOLDERS: [&str; 2] = [".agents/skills", ".claude/skills"];

/// The set; nothing is read yet.
pub(crate) fn set(at: &Invocation, settings: &Settings) -> SkillSet {
    let filter = Filter {
        allow: texts(settings, "skills.allow"),
        deny: texts(settings, "skills.deny"),
    };
    SkillSet::new(roots(at, settings), filter)
}

/// The workspace's folders, those of the settings, the user's; the first wins.
fn roots(at: &Invocation, settings: &Settings) -> Vec<Root> {
    let workspace =
        WORKSPACE_FOLDERS.map(|folder| Root::workspace(&at.workspace, folder, settings.trusted));
    let home = at.environment.folder("HOME");
    let named = texts(settings, "skills.dirs").into_iter().map(|text| {
        let below_home = text.strip_prefix("~/").zip(home.as_ref());
        let path = below_home.map(|(rest, home)| home.join(rest));
        Root::configured(
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
    let user = own.into_iter().chain(at_home).map(Root::user);
    workspace.into_iter().chain(named).chain(user).collect()
}

fn texts(settings: &Settings, key: &str) -> Vec<String> {
    let items = settings.items(key).into_iter();
    let texts = items.filter_map(|(value, _)| value.as_str());
    texts.map(str::to_owned).collect()
}
