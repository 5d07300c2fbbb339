//! What an earlier process decided to show of `/etc`, for as long as nothing that it looked at has changed.
//!
//! To decide, every file of the settings folders is read and its digest compared. A file is taken as unchanged if its inode, size, rights and
//! times are: no program can set the time of the last change (`ctime`).

use std::fmt::Write as _;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use md5::{Digest as _, Md5};

use super::{EtcCandidates, EtcFolders, SystemFiles, decide};
use crate::findings::KeptFindings;
use crate::places::PathRefusal;

/// Maximum number of files and folders whose times are compared; with more, nothing is kept.
const MOST_ENTRIES: usize = 16_384;
/// Maximum depth of folders: none is looked at below it.
const DEEPEST: usize = 9;
/// Between the parts of a line.
const PART: char = '\t';
/// Between the path of a folder that is left out and the reason.
const REASON: char = '\u{1f}';

/// Decides what is shown, or returns what an earlier process decided about the same files.
pub(super) fn find(system: &SystemFiles, findings: &KeptFindings) -> EtcFolders {
    let Some(about) = FileStamps::of(system) else {
        return decide(system);
    };
    let kept = findings.get(&about);
    if let Some(kept) = kept.and_then(|line| from_line(&line, &system.etc)) {
        return kept;
    }
    let found = decide(system);
    if let Some(line) = to_line(&found) {
        findings.put(&about, &line);
    }
    found
}

/// The digest of what decides whether files are unchanged.
struct FileStamps {
    digest: Md5,
    left: usize,
}

impl FileStamps {
    /// Returns the text that names the state of all files that decide; `None` if they are too many.
    fn of(system: &SystemFiles) -> Option<String> {
        let mut stamps = Self {
            digest: Md5::new(),
            left: MOST_ENTRIES,
        };
        let EtcCandidates { listed, settings } = EtcCandidates::of(system);
        for name in listed.iter().chain(&settings) {
            let path = system.etc.join(name);
            // A listed one may be a link to what is shown.
            stamps.tree(&path, fs::metadata(&path).ok().as_ref(), DEEPEST)?;
        }
        for list in [&system.dpkg, &system.ucf] {
            stamps.file(list, fs::metadata(list).ok().as_ref());
        }
        let mut text = "etc ".to_owned();
        for byte in stamps.digest.finalize() {
            let _ = write!(text, "{byte:02x}");
        }
        Some(text)
    }

    /// Adds a file or folder and what is in it. Links in it are not followed.
    fn tree(&mut self, path: &Path, meta: Option<&Metadata>, depth: usize) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        self.file(path, meta);
        if !meta.is_some_and(Metadata::is_dir) {
            return Some(());
        }
        let depth = depth.checked_sub(1)?;
        for entry in fs::read_dir(path).ok()? {
            let entry = entry.ok()?;
            self.tree(&entry.path(), Some(&entry.metadata().ok()?), depth)?;
        }
        Some(())
    }

    fn file(&mut self, path: &Path, meta: Option<&Metadata>) {
        self.digest.update(path.as_os_str().as_bytes());
        self.digest.update([0]);
        let Some(meta) = meta else { return };
        let times = [
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec(),
        ];
        let others = [meta.dev(), meta.ino(), meta.size()];
        let rights = [meta.mode(), meta.uid(), meta.gid()];
        let numbers = times.map(i64::to_le_bytes);
        self.digest.update(numbers.as_flattened());
        self.digest
            .update(others.map(u64::to_le_bytes).as_flattened());
        self.digest
            .update(rights.map(u32::to_le_bytes).as_flattened());
    }
}

/// Returns the line that [`from_line`] reads; `None` for names that no line can hold.
fn to_line(found: &EtcFolders) -> Option<String> {
    let mut parts = Vec::new();
    for (kind, paths) in [('s', &found.shown), ('c', &found.closed)] {
        for path in paths {
            parts.push(format!("{kind}{}", path.to_str()?));
        }
    }
    for PathRefusal { path, why } in &found.left_out {
        parts.push(format!("l{}{REASON}{why}", path.to_str()?));
    }
    let is_plain = |part: &String| {
        let reasons = part.matches(REASON).count();
        !part.contains([PART, '\n']) && reasons == usize::from(part.starts_with('l'))
    };
    parts
        .iter()
        .all(is_plain)
        .then(|| parts.join(&PART.to_string()))
}

/// Returns what was decided, from its line.
fn from_line(line: &str, etc: &Path) -> Option<EtcFolders> {
    let mut found = EtcFolders::default();
    for part in line.split(PART).filter(|part| !part.is_empty()) {
        let mut rest = part.chars();
        match rest.next()? {
            's' => found.shown.push(below(rest.as_str())?),
            'c' => found.closed.push(inside(rest.as_str(), etc)?),
            'l' => {
                let (path, why) = rest.as_str().split_once(REASON)?;
                let (path, why) = (inside(path, etc)?, why.to_owned());
                found.left_out.push(PathRefusal { path, why });
            }
            _ => return None,
        }
    }
    Some(found)
}

/// Returns a path that leads down and nowhere else.
fn below(text: &str) -> Option<PathBuf> {
    let path = PathBuf::from(text);
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    path.components().all(is_plain).then_some(path)
}

fn inside(text: &str, etc: &Path) -> Option<PathBuf> {
    let path = Path::new(text);
    below(path.strip_prefix(etc).ok()?.to_str()?).map(|rest| etc.join(rest))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};

    use super::super::shipped::md5_text;
    use super::super::{EtcFolders, SystemFiles};
    use super::{find, from_line, to_line};
    use crate::findings::KeptFindings;
    use crate::places::PathRefusal;

    /// Writes a file anew, as an editor does: with another inode.
    fn write(path: &Path, text: &str) {
        let draft = path.with_extension("draft");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&draft, text).unwrap();
        fs::rename(&draft, path).unwrap();
    }

    fn system(root: &Path) -> SystemFiles {
        let etc = root.join("etc");
        let (settings, own) = (etc.join("tool/deep/tool.conf"), etc.join("own/own.conf"));
        write(&settings, "level = 3\n");
        write(&own, "mine\n");
        let digest = md5_text(b"level = 3\n");
        let status = format!("Conffiles:\n {} {digest}\n", settings.display());
        write(&root.join("status"), &status);
        SystemFiles {
            etc,
            dpkg: root.join("status"),
            ucf: root.join("hashfile"),
            owner: rustix::process::getuid().as_raw(),
        }
    }

    /// What is found is always what would be decided now.
    fn check(system: &SystemFiles, findings: &KeptFindings, shown: &[&str], left_out: usize) {
        for _ in 0..2 {
            let found = find(system, findings);
            let tools = found.shown.iter().filter(|name| name.starts_with("tool"));
            let tools: Vec<_> = tools.filter_map(|name| name.to_str()).collect();
            assert_eq!((&*tools, found.left_out.len()), (shown, left_out));
        }
    }

    #[test]
    fn what_was_decided_holds_until_something_there_changes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let findings = KeptFindings::in_folder(root.join("findings"));
        let system = system(&root);
        let kept = || fs::read_dir(root.join("findings")).unwrap().count();
        check(&system, &findings, &["tool"], 1);
        assert_eq!(kept(), 1);
        let file = system.etc.join("tool/deep/tool.conf");
        for (text, mode, shown) in [
            ("level = 4\n", 0o644, None),
            ("level = 3\n", 0o644, Some("tool")),
            ("level = 3\n", 0o640, None),
            ("level = 3\n", 0o666, None),
            ("level = 3\n", 0o444, Some("tool")),
        ] {
            write(&file, text);
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let left_out = 1 + usize::from(shown.is_none());
            check(&system, &findings, shown.as_slice(), left_out);
        }
        write(&system.etc.join("tool/more.conf"), "");
        check(&system, &findings, &[], 2);
        fs::remove_dir_all(system.etc.join("tool")).unwrap();
        check(&system, &findings, &[], 1);
    }

    #[test]
    fn a_line_holds_what_was_decided_and_nothing_that_leads_elsewhere() {
        let etc = Path::new("/etc");
        let found = EtcFolders {
            shown: vec!["ssl/certs".into(), "with space".into()],
            closed: vec!["/etc/ssl/certs/a.key".into()],
            left_out: vec![PathRefusal {
                path: "/etc/own".into(),
                why: "is left out: own.conf is not known as a package's".into(),
            }],
        };
        let line = to_line(&found).unwrap();
        let read = from_line(&line, etc).unwrap();
        assert_eq!(
            (read.shown, read.closed, read.left_out),
            (found.shown, found.closed, found.left_out)
        );
        for name in ["a\tb", "a\nb", "a\u{1f}b"] {
            let shown = vec![PathBuf::from(name)];
            let found = EtcFolders {
                shown,
                ..EtcFolders::default()
            };
            assert_eq!(to_line(&found), None, "{name:?}");
        }
        for line in [
            "s../root",
            "s/root",
            "ca",
            "c/root/.ssh",
            "c/etc/../root",
            "l/etc/a",
            "xa",
        ] {
            assert!(from_line(line, etc).is_none(), "{line}");
        }
        assert!(from_line("", etc).is_some_and(|found| found.shown.is_empty()));
    }
}
