//! What a call would change, for a terminal: first what it means, then the files as diffs, and one line for what a meaning covers.

use std::collections::HashSet;

use haft::approval::ApprovalId;
use haft::approval::meaning::{Meaning, MeaningKind, Picture};
use haft::approval::preview::{Aspect, ContentPage, FileChange, FileChangeKind, Hunk};
use haft::approval::snapshot::CallSnapshot;
use haft_app::view::approvals::file::FileSides;
use haft_app::view::when::size;
use similar::{ChangeTag, TextDiff};

use crate::screen::{BOLD, DIM, GREEN, RED, YELLOW, styled, visible};

/// Maximum number of files without content that are named for one reason.
const MAX_NAMED: usize = 20;

/// Returns the lines about a request's files; none if it changes none.
pub(super) fn lines(request: &ApprovalId, snapshot: &CallSnapshot) -> Vec<String> {
    let mut out: Vec<String> = snapshot.meanings.iter().flat_map(meaning).collect();
    let covers = snapshot.meanings.iter().flat_map(|meaning| &meaning.covers);
    let covers: HashSet<&str> = covers.map(String::as_str).collect();
    let (covered, shown): (Vec<&FileChange>, Vec<&FileChange>) = snapshot
        .preview
        .iter()
        .partition(|file| file.is_among(&covers));
    out.extend(folded(&snapshot.meanings, &covered));
    out.extend(files(&shown));
    let of_meanings = snapshot.meanings.iter().find_map(short_file);
    let short = first_short(&shown)
        .or(of_meanings)
        .map(|file| ("not all is shown", file));
    let short = short.or_else(|| {
        Some((
            "files that are only counted can be read",
            first_short(&covered)?,
        ))
    });
    if let Some((what, file)) = short {
        let path = visible::path(&file.whole_name());
        let advice = format!("{what}: `haft approvals show {request} --file {path}`");
        out.push(styled(DIM, &advice));
    }
    out
}

fn is_short(file: &FileChange) -> bool {
    file.clipped || file.folded.is_some() && file.files.is_none()
}

fn first_short<'a>(files: &[&'a FileChange]) -> Option<&'a FileChange> {
    files.iter().copied().find(|file| is_short(file))
}

/// Returns the first file of a meaning or its parts that is not shown in full.
fn short_file(meaning: &Meaning) -> Option<&FileChange> {
    let own = meaning.files.iter().find(|file| is_short(file));
    own.or_else(|| meaning.parts.iter().find_map(short_file))
}

/// Returns a path with the target of its links.
pub(super) fn leading_to(path: String, target: Option<&str>) -> String {
    match target {
        Some(target) => format!("{path} → {}", styled(BOLD, &visible::path(target))),
        None => path,
    }
}

/// Returns one file of a request as a diff of what is there and what it becomes.
pub(crate) fn sides(file: &FileSides) -> Vec<String> {
    let mut out = vec![styled(BOLD, &visible::path(&file.path))];
    let sides = [("before", &file.before), ("after", &file.after)];
    for (name, side) in sides {
        let what = match side {
            None => "no file".to_owned(),
            Some(page) if page.binary => format!("{}, not a text", size(page.bytes)),
            Some(page) => size(page.bytes),
        };
        out.push(styled(DIM, &format!("  {name:<6} {what}")));
    }
    let text = |side: &Option<ContentPage>| {
        let page = side.as_ref();
        page.map(|page| page.text.clone()).unwrap_or_default()
    };
    out.extend(diff(&Hunk {
        // Lines are numbered from the beginning of the page.
        before_line: 1,
        after_line: 1,
        before: text(&file.before),
        after: text(&file.after),
    }));
    let next = sides
        .iter()
        .filter_map(|(_, side)| side.as_ref()?.next)
        .min();
    if let Some(next) = next {
        out.push(styled(DIM, &format!("the next part: `--offset {next}`")));
    }
    out
}

/// Returns one line for git's own files, and one for others that a meaning covers.
fn folded(meanings: &[Meaning], covered: &[&FileChange]) -> Vec<String> {
    let of_git = |file: &&FileChange| {
        let mut covering = meanings
            .iter()
            .filter(|meaning| meaning.covers.contains(&file.path));
        covering.any(|meaning| is_git(meaning.kind))
    };
    // What git ignores is counted in its title.
    let counted: HashSet<&str> = meanings
        .iter()
        .filter(|meaning| meaning.kind == MeaningKind::Ignored)
        .flat_map(|meaning| &meaning.covers)
        .map(String::as_str)
        .collect();
    let covered = covered.iter().copied();
    let covered = covered.filter(|file| !counted.contains(&*file.path));
    let (git, others): (Vec<&FileChange>, Vec<&FileChange>) = covered.partition(of_git);
    let said = meanings
        .iter()
        .any(|meaning| meaning.kind == MeaningKind::GitInternals);
    let mut out = Vec::new();
    if !git.is_empty() && !said {
        out.push(styled(DIM, &format!("git's own files: {}", git.len())));
    }
    if !others.is_empty() {
        let names: Vec<String> = others
            .iter()
            .take(MAX_NAMED)
            .map(|file| visible::path(&file.path))
            .collect();
        let more = match others.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let line = format!("shown above: {}{more}", names.join(", "));
        out.push(styled(DIM, &line));
    }
    out
}

fn is_git(kind: MeaningKind) -> bool {
    use MeaningKind as Kind;
    matches!(
        kind,
        Kind::Commit
            | Kind::Amend
            | Kind::Merge
            | Kind::Rebase
            | Kind::CherryPick
            | Kind::Tag
            | Kind::Branch
            | Kind::Stash
            | Kind::Reset
            | Kind::Checkout
            | Kind::Staged
            | Kind::GitInternals
    )
}

/// Returns what changes amount to: the title, the warnings, further facts, the parts as a list, then the files as diffs.
pub(crate) fn meaning(meaning: &Meaning) -> Vec<String> {
    let mut out = vec![styled(BOLD, &visible::line(&meaning.title))];
    let warn = |text: &String| styled(YELLOW, &format!("  ! {}", visible::line(text)));
    out.extend(meaning.warnings.iter().map(warn));
    let line = |text: &String| format!("  {}", visible::line(text));
    out.extend(meaning.lines.iter().map(line));
    if let Some(pictures) = &meaning.pictures {
        let sides = [("before", &pictures.before), ("after", &pictures.after)];
        let sides = sides
            .iter()
            .filter_map(|(name, side)| Some((name, side.as_ref()?)));
        out.extend(sides.map(|(name, side)| format!("  {name:<6} {}", picture(side))));
    }
    for part in &meaning.parts {
        out.push(format!("  - {}", visible::line(&part.title)));
        let inner = self::meaning(part).into_iter().skip(1);
        out.extend(inner.map(|line| format!("    {line}")));
    }
    let shown: Vec<&FileChange> = meaning.files.iter().collect();
    out.extend(files(&shown));
    out
}

fn picture(picture: &Picture) -> String {
    let (width, height) = (picture.width, picture.height);
    let kind = visible::line(&picture.media_type);
    format!("{width} × {height}, {kind}, {}", size(picture.bytes))
}

/// Returns one line for empty folders that are made, and one for those that are deleted.
fn empty_folders(files: &[&FileChange]) -> Vec<String> {
    let mut out = Vec::new();
    for (action, what) in [
        (FileChangeKind::Create, "new empty".to_owned()),
        (
            FileChangeKind::Delete,
            format!("{} empty", styled(RED, "deleted")),
        ),
    ] {
        let is_one = |file: &&&FileChange| file.aspect == Aspect::Folder && file.action == action;
        let all: Vec<&FileChange> = files.iter().filter(is_one).copied().collect();
        let count: u64 = all.iter().map(|file| file.files.unwrap_or(1)).sum();
        let named = all.iter().filter(|file| file.files.is_none());
        let named = named.take(MAX_NAMED).map(|file| visible::path(&file.path));
        let named: Vec<String> = named.collect();
        let more = match count.saturating_sub(named.len() as u64) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let noun = if count == 1 { "folder" } else { "folders" };
        if count > 0 {
            out.push(format!("{count} {what} {noun}: {}{more}", named.join(", ")));
        }
    }
    out
}

/// Returns the files as diffs, and those without content in a list.
fn files(files: &[&FileChange]) -> Vec<String> {
    let mut out = Vec::new();
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    let is_file = |file: &&&FileChange| file.aspect != Aspect::Folder;
    for file in files.iter().filter(is_file) {
        let reason = file.folded.as_deref().filter(|_| file.files.is_none());
        if let Some(why) = reason {
            let at = reasons.iter().position(|(known, _)| *known == why);
            let at = at.unwrap_or_else(|| {
                reasons.push((why, 0));
                reasons.len() - 1
            });
            reasons[at].1 += 1;
            if reasons[at].1 > MAX_NAMED {
                continue;
            }
        }
        out.extend(change(file));
    }
    for (why, count) in reasons.iter().filter(|(_, count)| *count > MAX_NAMED) {
        let more = count - MAX_NAMED;
        out.push(format!("… and {more} more: {}", visible::line(why)));
    }
    out.extend(empty_folders(files));
    out
}

/// Returns what would happen to a file: where links lead, and a diff.
fn change(file: &FileChange) -> Vec<String> {
    let path = styled(BOLD, &visible::path(&file.path));
    if let Some(files) = file.files {
        let bytes = file.after_bytes.map(|bytes| format!(", {}", size(bytes)));
        let bytes = bytes.unwrap_or_default();
        return vec![format!("{path} (and below: {files} more files{bytes})")];
    }
    let path = leading_to(path, file.target.as_deref());
    let mut out = vec![format!("{path} ({})", what(file))];
    if let Some(why) = &file.folded {
        out.push(format!(
            "  not shown: {}{}",
            visible::line(why),
            facts(file)
        ));
        return out;
    }
    if file.binary {
        out.push(format!(
            "  not a text: its content is not shown{}",
            facts(file)
        ));
    }
    if file.binary || file.action == FileChangeKind::Delete {
        return out;
    }
    let mut is_unseen = file.action == FileChangeKind::Change && !file.clipped;
    for (nth, piece) in file.pieces().iter().enumerate() {
        let lines = diff(piece);
        is_unseen &= lines.is_empty();
        if nth > 0 && !lines.is_empty() {
            out.push("…".to_owned());
        }
        out.extend(lines);
    }
    if is_unseen && file.before_sha256 != file.after_sha256 {
        out.push(format!("  what changes is [redacted]{}", facts(file)));
    }
    if file.escaped {
        out.push("  bytes that are not UTF-8 are shown as \\xNN".to_owned());
    }
    if file.clipped {
        out.push(format!("  not all of it is shown{}", facts(file)));
    }
    out
}

/// Returns what happens to a file, in a few words. A path that ends like them is in quotes.
fn what(file: &FileChange) -> String {
    match (file.aspect, file.action) {
        (Aspect::Mode, _) => "mode".to_owned(),
        (Aspect::Link, FileChangeKind::Create) => "new link".to_owned(),
        (Aspect::Link, FileChangeKind::Delete) => styled(RED, "link deleted"),
        (Aspect::BecomesLink, _) => "becomes a link".to_owned(),
        (Aspect::WasLink, _) => "was a link".to_owned(),
        (_, FileChangeKind::Create) => "new file".to_owned(),
        (_, FileChangeKind::Change) => "changed".to_owned(),
        (_, FileChangeKind::Delete) => styled(RED, "deleted"),
        (_, FileChangeKind::Move) => {
            let to = file.to.as_deref().unwrap_or_default();
            format!("moved to {}", styled(BOLD, &visible::path(to)))
        }
    }
}

/// Returns the size and the hash that a file gets, in brackets.
fn facts(file: &FileChange) -> String {
    let bytes = file.after_bytes.or(file.before_bytes).map(size);
    let hash = file.after_sha256.as_deref().and_then(|hash| hash.get(..12));
    let hash = hash.map(|hash| format!("sha256 {hash}…"));
    let facts: Vec<String> = bytes.into_iter().chain(hash).collect();
    if facts.is_empty() {
        return String::new();
    }
    format!(" ({})", facts.join(", "))
}

/// Returns changed lines with three unchanged ones around them, each with its number: in the old text if the line is removed, else in
/// the new one.
fn diff(piece: &Hunk) -> Vec<String> {
    const AROUND: usize = 3;
    let (before, after) = (piece.before_line as usize, piece.after_line as usize);
    let diff = TextDiff::from_lines(&*piece.before, &*piece.after);
    let mut out = Vec::new();
    for group in diff.grouped_ops(AROUND) {
        if !out.is_empty() {
            out.push("…".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = visible::block(change.value().trim_end_matches('\n'));
            let new = change.new_index().map(|nth| nth + after);
            let nth = new.or(change.old_index().map(|nth| nth + before));
            let nth = styled(DIM, &format!("{:>4}", nth.unwrap_or(0)));
            out.push(match change.tag() {
                ChangeTag::Delete => format!("{nth} {}", styled(RED, &format!("-{line}"))),
                ChangeTag::Insert => format!("{nth} {}", styled(GREEN, &format!("+{line}"))),
                ChangeTag::Equal => format!("{nth}  {line}"),
            });
        }
    }
    out
}
