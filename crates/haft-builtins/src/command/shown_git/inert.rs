//! Which of the user's git settings commands get: an allow-list of keys, by families, each with the reason why it is inert.
//!
//! A setting counts as inert if it names no program, no file, no place to connect to and no credential. What is not listed is not passed:
//! new versions of git have new keys.

use haft::workspace::git_file::Setting;

/// Keys of sections without a name. `*` stands for every key.
const PLAIN: &[(&str, &str)] = &[
    // Who the author is.
    ("user", "name email useconfigonly"),
    ("author", "name email"),
    ("committer", "name email"),
    // How text is stored: line ends, white space, names.
    (
        "core",
        "autocrlf eol safecrlf whitespace quotepath precomposeunicode abbrev commentchar commentstring checkstat trustctime \
         bigfilethreshold compression loosecompression preloadindex longpaths protecthfs protectntfs",
    ),
    // What is printed, and how: colours, columns, hints, dates, order.
    ("color", "*"),
    ("column", "*"),
    ("advice", "*"),
    ("status", "*"),
    ("versionsort", "*"),
    ("i18n", "*"),
    (
        "log",
        "abbrevcommit date decorate diffmerges excludedecoration follow graphcolors initialdecorationset mailmap showroot",
    ),
    (
        "blame",
        "blankboundary coloring date markignoredlines markunblamablelines showemail showroot",
    ),
    ("format", "pretty"),
    (
        "grep",
        "column extendedregexp fallbacktonoindex fullname linenumber patterntype threads",
    ),
    ("help", "autocorrect"),
    ("tag", "sort"),
    // What the commands do with commits and branches, by switches alone.
    ("init", "defaultbranch"),
    ("branch", "autosetupmerge autosetuprebase sort"),
    (
        "checkout",
        "defaultremote guess workers thresholdforparallelism",
    ),
    ("clone", "defaultremotename rejectshallow"),
    ("commit", "cleanup status verbose"),
    ("pull", "ff octopus rebase twohead"),
    (
        "fetch",
        "all parallel prune prunetags showforcedupdates writecommitgraph",
    ),
    (
        "push",
        "autosetupremote default followtags usebitmaps useforceifincludes",
    ),
    (
        "merge",
        "autostash branchdesc conflictstyle defaulttoupstream directoryrenames ff log renamelimit renames renormalize stat suppressdest \
         verbosity",
    ),
    (
        "rebase",
        "abbreviatecommands autosquash autostash backend forkpoint instructionformat maxlabellength missingcommitscheck rebasemerges \
         reschedulefailedexec stat updaterefs",
    ),
    (
        "diff",
        "algorithm autorefreshindex colormoved colormovedws context dirstat dstprefix ignoresubmodules indentheuristic interhunkcontext \
         mnemonicprefix noprefix relative renamelimit renames srcprefix statgraphwidth statnamewidth suppressblankempty wordregex \
         wserrorhighlight",
    ),
    ("rerere", "autoupdate enabled"),
    ("stash", "*"),
    ("submodule", "fetchjobs recurse"),
    ("worktree", "guessremote userelativepaths"),
    ("index", "skiphash threads version"),
];

/// Keys of sections with a name.
const NAMED: &[(&str, &str)] = &[
    ("color", "*"),
    // Patterns and switches of a kind of file; its programs are not passed.
    ("diff", "algorithm binary funcname wordregex xfuncname"),
];

/// Settings that only what a person sees depends on: nobody misses them in a command.
const FOR_PEOPLE: &[&str] = &[
    "browser",
    "delta",
    "difftool",
    "gitk",
    "gui",
    "guitool",
    "help",
    "instaweb",
    "interactive",
    "man",
    "mergetool",
    "pager",
    "sequence",
    "web",
];
const FOR_PEOPLE_KEYS: &[(&str, &str)] = &[
    ("core", "editor"),
    ("core", "pager"),
    ("diff", "guitool"),
    ("diff", "tool"),
    ("merge", "guitool"),
    ("merge", "tool"),
];

/// What becomes of a setting of the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingKind {
    /// It is passed as it is.
    Inert,
    /// A driver's filter: it is passed where its programs are found.
    Filter,
    /// The content of a file that it names is passed.
    Patterns(PatternFile),
    /// A key that signs: its name, or the public key itself.
    SigningKey,
    /// A program that signs: it is passed if it is one that signs in a jail.
    SigningProgram(&'static str),
    /// It is not passed, and nobody misses it.
    ForPeople,
    /// It is not passed.
    Left,
}

/// A file of patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternFile {
    Ignored,
    Attributes,
}

/// Returns what becomes of a setting.
pub(super) fn kind(setting: &Setting) -> SettingKind {
    let Setting {
        section, name, key, ..
    } = setting;
    let (section, key) = (&**section, &**key);
    match (section, name, key) {
        ("core", None, "excludesfile") => return SettingKind::Patterns(PatternFile::Ignored),
        ("core", None, "attributesfile") => return SettingKind::Patterns(PatternFile::Attributes),
        ("filter", Some(_), "clean" | "smudge" | "process" | "required") => {
            return SettingKind::Filter;
        }
        ("pretty", None, _) => return SettingKind::Inert,
        ("user", None, "signingkey") => return SettingKind::SigningKey,
        ("gpg", None, "format") if matches!(&*setting.value, "openpgp" | "ssh") => {
            return SettingKind::Inert;
        }
        ("gpg", None, "program") => return SettingKind::SigningProgram("gpg"),
        ("gpg", Some(format), "program") if format == "openpgp" => {
            return SettingKind::SigningProgram("gpg");
        }
        ("gpg", Some(format), "program") if format == "ssh" => {
            return SettingKind::SigningProgram("ssh-keygen");
        }
        // Another name of a command of git; with `!` it is a line for a shell.
        ("alias", _, _) if !setting.value.trim_start().starts_with('!') => {
            return SettingKind::Inert;
        }
        ("include", None, "path") | ("includeif", Some(_), "path") => {
            return SettingKind::ForPeople;
        }
        _ => {}
    }
    let listed = if name.is_some() { NAMED } else { PLAIN };
    let is_listed = listed.iter().any(|(of, keys)| {
        *of == section
            && (*keys == "*" || keys.split_ascii_whitespace().any(|listed| listed == key))
    });
    if is_listed {
        return SettingKind::Inert;
    }
    let for_people = FOR_PEOPLE.contains(&section) || FOR_PEOPLE_KEYS.contains(&(section, key));
    if for_people {
        SettingKind::ForPeople
    } else {
        SettingKind::Left
    }
}

#[cfg(test)]
mod tests {
    use haft::workspace::git_file::Setting;

    use super::{PatternFile, SettingKind, kind};

    #[test]
    fn only_what_names_no_program_file_place_or_credential_is_passed() {
        use SettingKind::{Filter, ForPeople, Inert, Left, Patterns, SigningKey, SigningProgram};
        for (key, value, expect) in [
            ("user.name", "A", Inert),
            ("user.signingKey", "x", SigningKey),
            ("gpg.format", "ssh", Inert),
            ("gpg.format", "x509", Left),
            ("gpg.ssh.program", "x", SigningProgram("ssh-keygen")),
            ("gpg.openpgp.program", "x", SigningProgram("gpg")),
            ("gpg.x509.program", "x", Left),
            ("gpg.ssh.defaultKeyCommand", "x", Left),
            ("core.autocrlf", "input", Inert),
            ("core.excludesFile", "~/x", Patterns(PatternFile::Ignored)),
            (
                "core.attributesFile",
                "x",
                Patterns(PatternFile::Attributes),
            ),
            ("core.hooksPath", "x", Left),
            ("core.fsmonitor", "x", Left),
            ("core.sshCommand", "x", Left),
            ("core.editor", "x", ForPeople),
            ("core.worktree", "/", Left),
            ("color.ui", "auto", Inert),
            ("color.diff.meta", "red", Inert),
            ("alias.st", "status -s", Inert),
            ("alias.x", " !rm -rf /", Left),
            ("filter.lfs.clean", "git-lfs clean -- %f", Filter),
            ("filter.lfs.other", "x", Left),
            ("diff.external", "x", Left),
            ("diff.pdf.textconv", "x", Left),
            ("diff.pdf.xfuncname", "x", Inert),
            ("diff.tool", "x", ForPeople),
            ("merge.x.driver", "x", Left),
            ("merge.conflictStyle", "zdiff3", Inert),
            ("commit.gpgSign", "true", Left),
            ("commit.template", "~/x", Left),
            ("gpg.program", "x", SigningProgram("gpg")),
            ("credential.helper", "store", Left),
            ("http.https://h/.extraHeader", "x", Left),
            ("url.https://u:p@h/.insteadOf", "x", Left),
            ("init.templateDir", "x", Left),
            ("init.defaultBranch", "main", Inert),
            ("push.gpgSign", "true", Left),
            ("remote.origin.url", "x", Left),
            ("safe.directory", "*", Left),
            ("include.path", "x", ForPeople),
            ("new.key", "x", Left),
        ] {
            let setting = Setting::from_pair(key, value.to_owned()).unwrap();
            assert_eq!(kind(&setting), expect, "{key}");
        }
    }
}
