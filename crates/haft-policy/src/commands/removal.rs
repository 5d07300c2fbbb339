//! Removals that could destroy a whole system, home or workspace: clause 15 of the shell rules.

use std::cell::OnceCell;

use haft_command::{folder_of, removed};
use haft_shell::{AsWord, Expansions, Layer, fragments, layers};

use crate::commands::folders::{changes_to_unknown_folder, folders, within};
use crate::commands::remembered::parse_line;
use crate::judged_call::JudgedCall;
use crate::places::PolicyContext;
use haft_files::paths::clean;

/// Maximum nesting of scripts (`sh -c "sh -c …"`) that are inspected; deeper ones are critical.
const MAX_SCRIPT_DEPTH: usize = 8;

/// The folders where a removal runs, and what must not be removed there. The folders are computed on first use.
#[derive(Debug)]
pub(crate) struct RemovalContext<'a> {
    places: &'a PolicyContext,
    call: Option<&'a JudgedCall<'a>>,
    folders: OnceCell<BaseFolders>,
}

/// The folders where relative paths start.
#[derive(Debug, Clone)]
struct BaseFolders {
    /// The folders, relative to the workspace or absolute.
    paths: Vec<String>,
    /// Whether it may run in an unknown folder.
    anywhere: bool,
}

impl<'a> RemovalContext<'a> {
    /// Creates the context of a command that runs at the workspace's root.
    pub(crate) fn root(places: &'a PolicyContext) -> Self {
        Self {
            places,
            call: None,
            folders: OnceCell::new(),
        }
    }

    /// Creates the context of a call, whose commands run in the folders that its `cwd` and each `cd` name.
    pub(crate) fn of(call: &'a JudgedCall<'a>, places: &'a PolicyContext) -> Self {
        Self {
            call: Some(call),
            ..Self::root(places)
        }
    }

    fn folders(&self) -> &BaseFolders {
        self.folders.get_or_init(|| BaseFolders {
            paths: self.call.map_or_else(|| vec![".".to_owned()], folders),
            anywhere: self.call.is_some_and(changes_to_unknown_folder),
        })
    }
}

/// Whether the words remove a critical path, also within wrappers and in text passed to a shell.
pub(crate) fn removes_critical<W: AsWord>(words: &[W], ground: &RemovalContext<'_>) -> bool {
    words_remove_critical(words, ground, 0)
}

fn words_remove_critical<W: AsWord>(
    words: &[W],
    ground: &RemovalContext<'_>,
    depth: usize,
) -> bool {
    let all = layers(words);
    let direct = all.commands.iter().any(|layer| {
        removed(*layer).is_some_and(|words| {
            let mut words = words.into_iter();
            layer.fed || words.any(|word| is_critical(*layer, word, ground))
        })
    });
    let mut scripts = all.scripts.iter();
    direct
        || scripts.any(|text| {
            depth >= MAX_SCRIPT_DEPTH || script_removes_critical(text, ground, depth + 1)
        })
}

/// Whether a script removes a critical path. It is a command line of its own and may change the folder. One that cannot
/// be parsed is searched for the commands that it shows.
fn script_removes_critical(text: &str, ground: &RemovalContext<'_>, depth: usize) -> bool {
    let Ok(read) = parse_line(text) else {
        let seen = fragments(text).commands;
        return seen
            .iter()
            .any(|words| words_remove_critical(words, ground, depth));
    };
    let mut within_it = ground.folders().clone();
    for folder in read
        .commands
        .iter()
        .filter_map(|part| folder_of(&part.words))
    {
        within_it.anywhere |= folder.is_empty();
        let next = within_it.paths.last().map(|last| within(last, folder));
        within_it.paths.extend(next);
    }
    let ground = RemovalContext {
        places: ground.places,
        call: None,
        folders: OnceCell::from(within_it),
    };
    let mut parts = read.commands.iter();
    parts.any(|part| words_remove_critical(&part.words, &ground, depth))
}

fn is_critical<W: AsWord>(layer: Layer<'_, W>, word: &W, ground: &RemovalContext<'_>) -> bool {
    if word.is_known() {
        // A program may replace the word with any path.
        return !layer.knows(word) || is_critical_path(word.text(), ground);
    }
    let open = word.expansions();
    let text = word.text();
    if open.intersects(Expansions::OUTPUT | Expansions::TILDE)
        || (open.intersects(Expansions::BRACE) && text.contains(['/', '~', '.', '*', '?']))
    {
        return true;
    }
    let mut spellings = without_variables(text, ground.places).into_iter();
    spellings.any(|path| is_critical_pattern(&path, ground))
}

/// Whether a path is critical if each of its glob patterns matches everything: `dir/*` counts as `dir`, and `*` as the
/// working directory.
fn is_critical_pattern(path: &str, ground: &RemovalContext<'_>) -> bool {
    if path.is_empty() {
        return false;
    }
    let mut path = path;
    loop {
        let trimmed = path.trim_end_matches('/');
        path = if trimmed.is_empty() { "/" } else { trimmed };
        match path.rsplit_once('/') {
            Some((folder, name)) if !folder.is_empty() && is_any_name(name) => path = folder,
            _ => return is_any_name(path) || is_critical_path(path, ground),
        }
    }
}

/// Whether a pattern matches nearly every name: it has no literal characters except dots.
fn is_any_name(name: &str) -> bool {
    let mut rest = String::new();
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        match c {
            '[' => drop(chars.by_ref().find(|c| *c == ']')),
            '*' | '?' | '.' => {}
            c => rest.push(c),
        }
    }
    name.contains(['*', '?', '[']) && rest.is_empty()
}

/// Returns the text in two spellings. In the first, variables are empty, except those that name a critical path
/// (`$HOME`, `$PWD`); in the second, each has the default that the text gives for it (`${x:-/}`).
fn without_variables(word: &str, places: &PolicyContext) -> [String; 2] {
    let (mut text, mut given) = (String::new(), String::new());
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        given.push_str(before);
        let braced = after
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'));
        let (body, behind) = braced.unwrap_or_else(|| {
            let word = |c: char| c != '_' && !c.is_ascii_alphanumeric();
            let end = after.find(word).unwrap_or(after.len());
            // `$@` and similar variables are one character.
            after.split_at(end.max(after.chars().next().map_or(0, char::len_utf8)))
        });
        let end = body.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
        let (name, operation) = body.split_at(end.unwrap_or(body.len()));
        let value = match name {
            "HOME" => places.home.as_deref().unwrap_or("/home/user"),
            "PWD" | "OLDPWD" => ".",
            _ => "",
        };
        text.push_str(value);
        let word = operation.trim_start_matches(':').strip_prefix(['-', '+']);
        given.push_str(word.unwrap_or(value));
        rest = behind;
    }
    [text + rest, given + rest]
}

/// Whether the path is the root, one of its direct children, a home, the working directory or one of its parents, a `~` or `*` that
/// a shell would expand, or leads to other folders through a process.
fn is_critical_path(target: &str, ground: &RemovalContext<'_>) -> bool {
    if target.is_empty() || target.starts_with('~') || matches!(target, "*" | "./*") {
        return !target.is_empty();
    }
    let path = clean(target);
    if path.starts_with('/') {
        return is_critical_place(&path, ground.places);
    }
    let climbs = path == "." || path.split('/').all(|part| part == "..");
    if climbs || (ground.folders().anywhere && path.starts_with("..")) {
        return true;
    }
    let workspace = ground.places.workspace.as_deref();
    ground.folders().paths.iter().any(|folder| {
        let path = within(folder, &path);
        let path = match workspace {
            Some(workspace) => within(workspace, &path),
            None => path,
        };
        path.starts_with('/') && is_critical_place(&path, ground.places)
    })
}

/// Whether an absolute path is critical, see [`is_critical_path`].
fn is_critical_place(path: &str, places: &PolicyContext) -> bool {
    let parts = path.split('/').filter(|part| !part.is_empty()).count();
    let holds = |folder: &Option<String>| {
        folder.as_ref().is_some_and(|folder| {
            folder
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let somebodys_home = parts == 2 && (path.starts_with("/home/") || path.starts_with("/Users/"));
    let process = path.starts_with("/proc/") || path.starts_with("/dev/fd/");
    parts < 2 || process || somebodys_home || holds(&places.workspace) || holds(&places.home)
}
