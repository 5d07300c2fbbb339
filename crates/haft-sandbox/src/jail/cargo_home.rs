//! Shows cargo's home at the path that it has outside of the jail.
//!
//! Cargo notes with what it builds where the sources of packages lie, and builds all of them again where that path has changed: in the jail
//! what was built outside, and outside what was built in the jail. So there are links at the user's path to what lies in the command's own home.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::plan::{RootEntry, SupervisorPlan};
use crate::command::CommandSpec;
use crate::strength::Strength;

const VARIABLE: &str = "CARGO_HOME";
/// Where programs are installed, which is the command's own.
const INSTALLED: &str = "CARGO_INSTALL_ROOT";
/// Its place in a home.
const AT: &str = ".cargo";
const REGISTRY: &str = ".cargo/registry";

/// All that cargo keeps there (`cargo::util::context`), besides programs, which are shown themselves.
const NAMES: [&str; 9] = [
    ".global-cache",
    ".package-cache",
    ".package-cache-mutate",
    "config",
    "config.toml",
    "credentials",
    "credentials.toml",
    "git",
    "registry",
];

/// Adds the links and the variables to the plan, if the command sees the user's registry and nothing else lies in the way.
pub(super) fn show(plan: &mut SupervisorPlan, spec: &CommandSpec, scratch: &Path) {
    let Some(folder) = user_folder(spec) else {
        return;
    };
    if plan.strength() <= Strength::LandlockSeccomp || is_taken(plan, &folder) {
        return;
    }
    let own = scratch.join(AT);
    plan.entries.push(RootEntry::Dir {
        target: folder.clone(),
    });
    plan.entries.extend(NAMES.map(|name| RootEntry::Link {
        target: folder.join(name),
        to: own.join(name),
    }));
    for (name, value) in [(VARIABLE, &folder), (INSTALLED, &own)] {
        if !is_set(spec, name) {
            let mut variable = OsString::from(format!("{name}="));
            variable.push(value);
            plan.env.push(variable);
        }
    }
}

/// Returns the user's, unless the command has another one.
fn user_folder(spec: &CommandSpec) -> Option<PathBuf> {
    let mut views = spec.mounts.home.iter();
    let registry = views.find(|view| view.at == Path::new(REGISTRY))?;
    let folder = registry.folder.as_deref()?;
    let named = folder.ends_with(REGISTRY) && !is_set(spec, VARIABLE);
    named.then(|| folder.parent().map(Path::to_owned)).flatten()
}

fn is_set(spec: &CommandSpec, name: &str) -> bool {
    spec.env.contains_key(OsStr::new(name))
}

/// Whether something of the host is shown over the folder, or in the place of a link.
fn is_taken(plan: &SupervisorPlan, folder: &Path) -> bool {
    plan.entries.iter().any(|entry| {
        let above = folder.starts_with(entry.target()) && !matches!(entry, RootEntry::Dir { .. });
        let rest = entry.target().strip_prefix(folder);
        let at = rest.is_ok_and(|rest| NAMES.iter().any(|name| rest.starts_with(name)));
        above || at
    }) || folder.starts_with(super::prepared::SCRATCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{HomeFolder, OverlayFolders};
    use crate::jail::plan::BindMode;

    fn spec(registry: &str) -> CommandSpec {
        let mut spec = CommandSpec::line("true", "/w");
        spec.mounts.home.push(HomeFolder {
            folder: Some(registry.into()),
            at: REGISTRY.into(),
            view: OverlayFolders {
                upper: "/u".into(),
                work: "/v".into(),
            },
        });
        spec
    }

    fn bind(target: &str) -> RootEntry {
        RootEntry::Bind {
            source: target.into(),
            target: target.into(),
            kind: BindMode::ReadOnly,
        }
    }

    #[test]
    fn cargos_home_when_nothing_is_in_its_way_has_the_path_that_it_has_outside() {
        let set = |name: &str| {
            let mut spec = spec("/home/u/.cargo/registry");
            spec.env.insert(name.into(), "/x".into());
            spec
        };
        for (spec, other, variables) in [
            (spec("/home/u/.cargo/registry"), "/home/u/.cargo/bin", 2),
            (spec("/home/u/.cargo/registry"), "/home/v", 2),
            (set(INSTALLED), "/w", 1),
            (set(VARIABLE), "/w", 0),
            (spec("/disk/registry"), "/w", 0),
            (spec("/tmp/u/.cargo/registry"), "/w", 0),
            (spec("/home/u/.cargo/registry"), "/home/u", 0),
            (spec("/home/u/.cargo/registry"), "/home/u/.cargo", 0),
            (spec("/home/u/.cargo/registry"), "/home/u/.cargo/git/db", 0),
            (CommandSpec::line("true", "/w"), "/w", 0),
        ] {
            let mut plan = SupervisorPlan::default();
            plan.set_strength(Strength::Full);
            plan.entries.push(bind(other));
            show(&mut plan, &spec, Path::new("/tmp"));
            assert_eq!(plan.env.len(), variables, "{other}: {:?}", spec.env);
            let links = if variables == 0 { 0 } else { 1 + NAMES.len() };
            assert_eq!(plan.entries.len(), 1 + links, "{other}");
        }
    }
}
