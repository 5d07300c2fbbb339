//! Keeps git from showing placeholders to the user: their names stand in the repository's `info/exclude` as long as they exist.
//!
//! The file is written in place: a jail may have covered it. Its block is made anew from what is a placeholder at that moment, so the next
//! command repairs what a killed host left.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use haft_types::beneath::open_beneath;
use rustix::fs::{FlockOperation, OFlags, flock};

use super::placeholder::is_placeholder;
use super::replaced::ReplacedNames;

/// The file, in the workspace.
const EXCLUDE: &str = ".git/info/exclude";
/// Maximum size of the file, in bytes; a larger one is left alone.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum number of names in it.
const MAX_NAMES: usize = 1_000;
const BEGIN: &str = "# haft: empty files that hold the places of protected names while a command works here; haft removes these lines";
const END: &str = "# haft: end";
/// How often to try to lock the file, and how long between: a command may hold such a lock for ever.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(2);

/// The names of a workspace's placeholders in its repository's `info/exclude`. Dropping it, after the placeholders, removes those that are
/// gone.
#[derive(Debug)]
pub(crate) struct ExcludedNames {
    workspace: PathBuf,
    /// Shows a file of the user again as soon as it takes a placeholder's place.
    replaced: Option<ReplacedNames>,
}

impl ExcludedNames {
    /// Adds these files of the workspace.
    pub(crate) fn add(workspace: &Path, names: &[PathBuf]) -> Self {
        let workspace = workspace.to_owned();
        let paths: Vec<PathBuf> = names.iter().map(|name| workspace.join(name)).collect();
        let shown = workspace.clone();
        let files = paths.iter().map(PathBuf::as_path);
        let replaced = ReplacedNames::watch(files, move || refresh(&shown, &[])).ok();
        // After the watch has begun, so that none is replaced unseen.
        refresh(&workspace, names);
        Self {
            workspace,
            replaced,
        }
    }
}

impl Drop for ExcludedNames {
    fn drop(&mut self) {
        // Nothing else changes the file from here on.
        self.replaced = None;
        refresh(&self.workspace, &[]);
    }
}

/// Makes haft's block of the file anew, with these names besides those in it. Where there is no repository, or its file is not an ordinary
/// one, git shows the placeholders.
pub(crate) fn refresh(workspace: &Path, names: &[PathBuf]) {
    // If it fails, git shows them; they hold their places all the same.
    let _ = try_refresh(workspace, names);
}

fn try_refresh(workspace: &Path, names: &[PathBuf]) -> io::Result<()> {
    let root = File::open(workspace)?;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file: File = open_beneath(&root, Path::new(EXCLUDE), flags)?.into();
    let meta = file.metadata()?;
    if !meta.is_file() || meta.nlink() != 1 || meta.len() > MAX_BYTES {
        return Ok(());
    }
    let mut before = text(&file)?;
    if names.is_empty() && !before.contains(BEGIN) {
        return Ok(());
    }
    lock(&file)?;
    file.seek(SeekFrom::Start(0))?;
    before = text(&file)?;
    let after = rewritten(&before, names, |name| {
        let meta = fs::symlink_metadata(workspace.join(name));
        meta.is_ok_and(|meta| meta.is_file() && is_placeholder(&meta))
    });
    if after == before {
        return Ok(());
    }
    let pairs = before.bytes().zip(after.bytes());
    let same = pairs.take_while(|(old, new)| old == new).count();
    file.seek(SeekFrom::Start(same as u64))?;
    file.write_all(&after.as_bytes()[same..])?;
    file.set_len(after.len() as u64)
}

fn text(file: &File) -> io::Result<String> {
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn lock(file: &File) -> io::Result<()> {
    for _ in 0..TRIES {
        if flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Err(io::Error::other("another process has locked the file"))
}

/// Returns the text of the file with a block of those of its names, and of these, that are placeholders.
fn rewritten(text: &str, names: &[PathBuf], is_held: impl Fn(&str) -> bool) -> String {
    let mut own: BTreeSet<String> = names.iter().filter_map(|name| pattern(name)).collect();
    let (mut out, mut inside) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        match line.trim_end_matches('\n') {
            BEGIN => inside = true,
            END if inside => inside = false,
            // A block that was cut off ends with the first line that is none of its names.
            name if inside && name.starts_with('/') => {
                own.extend(pattern(Path::new(&name[1..])));
            }
            _ => {
                inside = false;
                out.push_str(line);
            }
        }
    }
    own.retain(|name| is_held(name));
    if own.is_empty() {
        return out;
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out.extend([BEGIN, "\n"]);
    for name in own.iter().take(MAX_NAMES) {
        out.extend(["/", name, "\n"]);
    }
    out.extend([END, "\n"]);
    out
}

/// Returns a path as git's patterns write it without escapes; `None` for one that needs some, or leads elsewhere.
fn pattern(path: &Path) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    let below = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let text = path.to_str()?;
    (below && !text.is_empty() && text.chars().all(plain)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_holds_the_placeholders_and_nothing_else_changes() {
        let block = |names: &[&str]| {
            let names: String = names.iter().flat_map(|name| ["/", name, "\n"]).collect();
            format!("{BEGIN}\n{names}{END}\n")
        };
        let held = |name: &str| !name.starts_with("gone");
        for (text, names, expect) in [
            ("*.o\n".to_owned(), &[][..], "*.o\n".to_owned()),
            (
                "*.o\n".to_owned(),
                &[".b", ".a", "gone"],
                format!("*.o\n{}", block(&[".a", ".b"])),
            ),
            (
                format!("x\n{}y\n", block(&[".a", "gone"])),
                &["c/d.json"],
                format!("x\ny\n{}", block(&[".a", "c/d.json"])),
            ),
            (format!("x\n{}", block(&["gone"])), &[], "x\n".to_owned()),
            // Cut off, and with names that are none.
            (
                format!("x\n{BEGIN}\n/gone\n*.o\n"),
                &[],
                "x\n*.o\n".to_owned(),
            ),
            (
                format!("{BEGIN}\n/../up\n/a b\n/*\n//etc\n{END}\n"),
                &["../x", "/etc", "a\nb", ""],
                String::new(),
            ),
            (
                format!("{END}\nx"),
                &[".a"],
                format!("{END}\nx\n{}", block(&[".a"])),
            ),
        ] {
            let names: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            assert_eq!(rewritten(&text, &names, held), expect, "{text:?}");
        }
    }
}
