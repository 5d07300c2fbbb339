//! What a repository's settings make git run, read from the names of their sections and keys.

/// Sections without a name whose settings run nothing in the environment that `git::with_settings` sets up.
const INERT_SECTIONS: &str = "advice alias am apply author blame branch checkout clean clone color column commit committer \
    core diff difftool extensions feature fetch gc gitflow gui help i18n index init interactive \
    lfs maintenance merge mergetool notes pack pull push rebase receive remote rerere safe \
    sequence stash status submodule tag transfer user versionsort web worktree";

/// Sections with a name (`[remote "origin"]`) whose settings run nothing.
const INERT_NAMED: &str =
    "branch color credential difftool gitflow http lfs mergetool remote submodule svn-remote url";

/// Settings of a repository that name programs or lead elsewhere, for git outside a jail, where nothing turns them off.
const PROGRAMS: &[&str] = &[
    "fsmonitor",
    "pager",
    "sshcommand",
    "editor",
    "worktree",
    "alternaterefscommand",
    "askpass",
    "gitproxy",
];

/// What a repository's own settings make git's reading commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SettingsEffect {
    /// Nothing.
    Inert,
    /// Nothing, in the environment of a command that only reads.
    Silenced,
    /// Possibly programs.
    Programs,
}

/// Returns true if a file of settings in the workspace names no program, no hooks and no other file.
pub(super) fn is_inert(text: &str) -> bool {
    let names_hooks = text.to_ascii_lowercase().contains("hookspath");
    !names_hooks && check_sections(text) == SettingsEffect::Inert && !names_program(text)
}

pub(super) fn names_program(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    PROGRAMS.iter().any(|name| text.contains(name))
}

/// Checks every section, and every value that looks like one. A section outside of the lists may run something.
pub(super) fn check_sections(text: &str) -> SettingsEffect {
    let text = text.to_ascii_lowercase();
    let effects = text.split('[').skip(1).map(section_effect);
    effects.max().unwrap_or(SettingsEffect::Inert)
}

/// Returns the name of the first section that may run something, as it is written.
pub(super) fn acting_section(text: &str) -> Option<&str> {
    let mut sections = text.split('[').skip(1);
    let acts = |header: &&str| section_effect(&header.to_ascii_lowercase()) > SettingsEffect::Inert;
    let header = sections.find(acts)?;
    Some(header.split([']', '\n']).next().unwrap_or(header))
}

/// What a section may run, by its text after the bracket, in lower case.
fn section_effect(header: &str) -> SettingsEffect {
    let end = header.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.');
    let (name, rest) = header.split_at(end.unwrap_or(header.len()));
    let named = name.contains('.') || rest.trim_start_matches([' ', '\t']).starts_with('"');
    let name = name.split('.').next().unwrap_or(name);
    match (name, named) {
        // A format may verify signatures with the program named there.
        ("format" | "gpg" | "log" | "pretty", _) => SettingsEffect::Silenced,
        // The settings of a nested repository determine its diffs.
        ("diff", false) if rest.contains("submodule") && !rest.contains("external") => {
            SettingsEffect::Silenced
        }
        // Git fetches missing objects.
        ("extensions" | "remote", _)
            if rest.contains("partialclone") || rest.contains("promisor") =>
        {
            SettingsEffect::Silenced
        }
        ("diff", false) if rest.contains("external") => SettingsEffect::Programs,
        (name, false) if names_section(INERT_SECTIONS, name) => SettingsEffect::Inert,
        (name, true) if names_section(INERT_NAMED, name) => SettingsEffect::Inert,
        _ => SettingsEffect::Programs,
    }
}

pub(super) fn names_section(sections: &str, name: &str) -> bool {
    sections.split(' ').any(|section| section == name)
}

#[cfg(test)]
mod tests {
    use super::{SettingsEffect, acting_section, check_sections};

    #[test]
    fn settings_that_may_run_programs_are_known() {
        for (text, expect) in [
            ("", SettingsEffect::Inert),
            (
                "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@x:y\n[branch \"main\"]\n\tremote = origin\n",
                SettingsEffect::Inert,
            ),
            (
                "[core]\n\tfsmonitor = ./x\n\thooksPath = .husky",
                SettingsEffect::Inert,
            ),
            ("[user]\n\tname = a [b] c", SettingsEffect::Programs),
            ("[diff]\n\talgorithm = histogram", SettingsEffect::Inert),
            ("[diff]\n\texternal = ./x", SettingsEffect::Programs),
            ("[diff] EXTERNAL = ./x", SettingsEffect::Programs),
            ("[diff]\n\tsubmodule = log", SettingsEffect::Silenced),
            (
                "[diff]\n\tsubmodule = log\n\texternal = ./x",
                SettingsEffect::Programs,
            ),
            (
                "[diff]\n\tsubmodule = log\n[diff]\n\texternal = ./x",
                SettingsEffect::Programs,
            ),
            ("[diff \"pdf\"]\n\ttextconv = ./x", SettingsEffect::Programs),
            ("[diff.pdf]\n\ttextconv = ./x", SettingsEffect::Programs),
            (
                "[core] [filter \"x\"] clean = ./x",
                SettingsEffect::Programs,
            ),
            (
                "[FILTER \"lfs\"]\n\tprocess = git-lfs",
                SettingsEffect::Programs,
            ),
            ("[merge \"x\"]\n\tdriver = ./x", SettingsEffect::Programs),
            ("[include]\n\tpath = ../x", SettingsEffect::Programs),
            (
                "[includeIf \"gitdir:x\"]\n\tpath = ../x",
                SettingsEffect::Programs,
            ),
            ("[unknown]\n\tx = y", SettingsEffect::Programs),
            ("[log]\n\tshowSignature = true", SettingsEffect::Silenced),
            ("[format]\n\tpretty = %G?", SettingsEffect::Silenced),
            (
                "[remote \"x\"]\n\tpromisor = true",
                SettingsEffect::Silenced,
            ),
            ("[extensions]\n\tpartialClone = x", SettingsEffect::Silenced),
            ("[gpg]\n\tprogram = ./x", SettingsEffect::Silenced),
            ("[gpg \"ssh\"]\n\tprogram = ./x", SettingsEffect::Silenced),
            ("[alias]\n\tst = status", SettingsEffect::Inert),
            ("[ core]\n", SettingsEffect::Programs),
            ("[]\n", SettingsEffect::Programs),
        ] {
            assert_eq!(check_sections(text), expect, "{text:?}");
        }
    }

    #[test]
    fn the_section_that_may_run_a_program_is_named_as_it_is_written() {
        for (text, expect) in [
            ("[core]\n\tbare = false\n", None),
            ("[core]\n[gpg]\n\tformat = ssh\n", Some("gpg")),
            (
                "[Filter \"lfs\"]\n\tclean = x\n[gpg]\n",
                Some("Filter \"lfs\""),
            ),
            ("[x", Some("x")),
        ] {
            assert_eq!(acting_section(text), expect, "{text:?}");
        }
    }
}
