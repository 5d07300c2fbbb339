//! The names that a copy may be of: strips what editors, tools and users add to a file's name.

use std::borrow::Cow;

/// Maximum number of originals found for one name.
const MAX_ORIGINALS: usize = 12;
/// Maximum length of an inspected name, in bytes: no file name is longer.
const MAX_NAME: usize = 255;
/// Separators between a name and a copy marker.
const SEPARATORS: [char; 4] = ['.', '-', '_', ' '];
/// Copy markers at the end of a name, optionally followed by a number.
const COPY_MARKERS: &[&str] = &[
    "back",
    "backup",
    "bak",
    "bck",
    "bk",
    "bkp",
    "copy",
    "disabled",
    "mine",
    "new",
    "old",
    "orig",
    "original",
    "ours",
    "prev",
    "previous",
    "rej",
    "sav",
    "save",
    "saved",
    "temp",
    "theirs",
    "tmp",
    // Left by package managers, downloads and merges.
    "crdownload",
    "download",
    "pacnew",
    "pacorig",
    "pacsave",
    "part",
    "partial",
    "rpmnew",
    "rpmorig",
    "rpmsave",
    "dpkg-bak",
    "dpkg-new",
    "dpkg-old",
    "dpkg-tmp",
    "ucf-new",
    "ucf-old",
    // The same file, compressed.
    "bz2",
    "gz",
    "lz4",
    "xz",
    "zip",
    "zst",
];
/// Copy markers that count only with a number after them (`_LOCAL_4711`).
const NUMBERED: &[&str] = &["base", "local", "r", "remote"];
/// Suffixes of the files that editors keep beside an open file (Kate's swap file; Vim's undo file, without its `~`).
/// The editor puts a dot before the name.
const SWAP_SUFFIXES: &[&str] = &[".kate-swp", ".un"];

/// Returns every name that this one may be a copy of, stripping step by step; empty for most names.
pub(super) fn originals(name: &str) -> Vec<Cow<'_, str>> {
    let mut found: Vec<Cow<'_, str>> = Vec::new();
    if name.len() > MAX_NAME {
        return found;
    }
    add(&mut found, name, step(name));
    let mut at = 0;
    while let Some(inner) = found.get(at) {
        let inner = inner.clone().into_owned();
        let more = step(&inner).into_iter();
        let more = more.map(|each| Cow::Owned(each.into_owned())).collect();
        add(&mut found, name, more);
        at += 1;
    }
    found
}

fn add<'n>(found: &mut Vec<Cow<'n, str>>, name: &str, more: Vec<Cow<'n, str>>) {
    for each in more {
        if found.len() < MAX_ORIGINALS && each != name && !found.contains(&each) {
            found.push(each);
        }
    }
}

/// Whether any name with this extension (`.bak`) is a copy.
pub(super) fn is_ending(extension: &str) -> bool {
    without_end(&format!("x{extension}")) == Some("x")
}

/// Returns the names with one addition stripped.
fn step(name: &str) -> Vec<Cow<'_, str>> {
    let mut names: Vec<Cow<'_, str>> = Vec::new();
    let bare = |text: &str| !text.is_empty() && text != "." && text != "..";
    names.extend(without_start(name).filter(|rest| bare(rest)).map(Cow::from));
    if let Some(rest) = without_swap(name).filter(|rest| bare(rest)) {
        names.push(rest.into());
        names.extend(
            rest.strip_prefix('.')
                .filter(|rest| bare(rest))
                .map(Cow::from),
        );
    }
    names.extend(without_end(name).filter(|rest| bare(rest)).map(Cow::from));
    names.extend(draft_of(name).filter(|rest| bare(rest)).map(Cow::from));
    // `secrets (1).yml`, `secrets.bak.yml`.
    if let Some((stem, extension)) = name.rsplit_once('.')
        && extension.chars().all(|c| c.is_ascii_alphanumeric())
        && let Some(stem) = without_end(stem).filter(|rest| bare(rest))
    {
        names.push(format!("{stem}.{extension}").into());
    }
    names
}

/// Strips the prefix of Emacs (`#X#`, `.#X`), of office programs (`.~lock.X#`, `~$X`) and of `Copy of X`.
fn without_start(name: &str) -> Option<&str> {
    let hashed = name
        .strip_prefix('#')
        .or_else(|| name.strip_prefix(".~lock."));
    if let Some(rest) = hashed {
        return Some(rest.strip_suffix('#').unwrap_or(rest));
    }
    let prefixes = [".#", "~$"]
        .iter()
        .find_map(|start| name.strip_prefix(start));
    prefixes.or_else(|| {
        let (start, rest) = name.split_at_checked("copy".len())?;
        let (between, rest) = rest.split_once(" of ").or(rest.split_once("_of_"))?;
        let counted = between
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, ' ' | '(' | ')'));
        (start.eq_ignore_ascii_case("copy") && counted).then_some(rest)
    })
}

/// Returns the open file that a swap file belongs to, with a leading dot that may be the editor's.
fn without_swap(name: &str) -> Option<&str> {
    let name = name.strip_suffix('~').unwrap_or(name);
    let named = SWAP_SUFFIXES.iter().find_map(|end| name.strip_suffix(end));
    named.or_else(|| {
        let (rest, end) = name.rsplit_once('.')?;
        let of_vim = end.len() == 3
            && end.get(..2)?.eq_ignore_ascii_case("sw")
            && end.ends_with(|c: char| c.is_ascii_lowercase());
        of_vim.then_some(rest)
    })
}

/// Returns the file that a program is about to replace by renaming a temporary file: `.X.a1B2c3`.
fn draft_of(name: &str) -> Option<&str> {
    let (rest, end) = name.strip_prefix('.')?.rsplit_once('.')?;
    let random = matches!(end.len(), 6 | 8 | 10 | 16);
    (random && end.chars().all(|c| c.is_ascii_alphanumeric())).then_some(rest)
}

/// Strips the end of `X~`, `X.~1~`, `X.bak`, `X-old2`, `X copy 2`, `X (1)`, `X.1`, `X.2026-01-31`, `X.sync-conflict-…`.
fn without_end(name: &str) -> Option<&str> {
    if let Some(rest) = name.strip_suffix('~') {
        let counted = rest.trim_end_matches(|c: char| c.is_ascii_digit());
        return Some(counted.strip_suffix(".~").unwrap_or(rest));
    }
    if let Some(rest) = name.strip_suffix(')') {
        let (rest, _) = rest.rsplit_once('(')?;
        return Some(rest.trim_end());
    }
    if let Some((rest, _)) = name.split_once(".sync-conflict-") {
        return Some(rest);
    }
    let number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '_' | ':' | 'T' | 'Z' | ' ');
    let uncounted = name.trim_end_matches(number);
    let is_counted = name.ends_with(|c: char| c.is_ascii_digit() || c == 'Z') && uncounted != name;
    let head = if is_counted {
        uncounted.trim_end_matches(SEPARATORS)
    } else {
        name
    };
    let words = COPY_MARKERS
        .iter()
        .chain(NUMBERED.iter().filter(|_| is_counted));
    let mut cut = words.filter_map(|word| strip_word(head, word));
    cut.next().or_else(|| {
        let digits = name[uncounted.len()..].chars();
        let digits = digits.filter(char::is_ascii_digit).count();
        let apart = head.len() < uncounted.len() || name[uncounted.len()..].starts_with(SEPARATORS);
        // A dot and any number, or another separator and a date.
        let dotted = uncounted.ends_with('.');
        (is_counted && apart && (dotted || digits >= 6)).then_some(head)
    })
}

/// Returns the text before a word and its separator.
fn strip_word<'n>(name: &'n str, word: &str) -> Option<&'n str> {
    let at = name.len().checked_sub(word.len())?;
    let (rest, end) = name.split_at_checked(at)?;
    let parted = rest.trim_end_matches(SEPARATORS);
    (end.eq_ignore_ascii_case(word) && parted.len() < rest.len()).then_some(parted)
}

#[cfg(test)]
mod tests {
    use super::originals;

    #[test]
    fn what_copies_carry_is_taken_off() {
        for (name, original) in [
            (".env~", ".env"),
            (".env.~12~", ".env"),
            (".env.swp", ".env"),
            (".credentials.json.swo", "credentials.json"),
            (".credentials.json.kate-swp", "credentials.json"),
            (".npmrc.un~", ".npmrc"),
            ("#.env#", ".env"),
            (".#.env", ".env"),
            ("~$secrets.yml", "secrets.yml"),
            ("Copy of secrets.yml", "secrets.yml"),
            ("Copy (2) of secrets.yml", "secrets.yml"),
            (".npmrc.bak", ".npmrc"),
            (".npmrc.BAK2", ".npmrc"),
            (".npmrc_old", ".npmrc"),
            (".npmrc.save.1", ".npmrc"),
            (".npmrc.orig.gz", ".npmrc"),
            (".npmrc.1", ".npmrc"),
            (".npmrc.1700000000", ".npmrc"),
            (".npmrc-2026-01-31T10:00:00Z", ".npmrc"),
            (".npmrc_LOCAL_4711", ".npmrc"),
            (".npmrc (Somebody's conflicted copy)", ".npmrc"),
            ("secrets copy 2.yml", "secrets.yml"),
            ("secrets - Copy.yml", "secrets.yml"),
            ("secrets (1).yml", "secrets.yml"),
            ("secrets.bak.yml", "secrets.yml"),
            (
                "secrets.sync-conflict-20260131-101010-ABC.yml",
                "secrets.yml",
            ),
            (".secrets.yml.a1B2c3", "secrets.yml"),
            ("a.tfstate.1700000000.backup", "a.tfstate"),
            (".env~~.bak.old", ".env"),
        ] {
            let found = originals(name);
            assert!(
                found.iter().any(|each| each == original),
                "{name}: {found:?}"
            );
        }
    }

    #[test]
    fn other_names_are_no_copies() {
        for name in [
            "",
            ".",
            "~",
            "#",
            "##",
            "bak",
            ".bak",
            "(1)",
            "a",
            "main.rs",
            ".env",
            ".env.local",
            ".env.example",
            "id_rsa",
            "renew",
            "golden",
            "log4j",
            "a.b.c",
            "x2",
            "utf-8",
            "python3.12",
            "résumé",
            ".~lock.#",
        ] {
            let found = originals(name);
            let found: Vec<_> = found.iter().filter(|each| *each != "python3").collect();
            assert!(found.is_empty(), "{name}: {found:?}");
        }
        let long = "~".repeat(300);
        assert!(originals(&long).is_empty() && originals(&long[..250]).len() <= 12);
    }
}
