//! `KeptFindings`: what an earlier process of this program found to work here, under conditions that still hold.
//!
//! A command line's process would otherwise set up two jails to learn what the third one, its command's, can be. Only what works is kept:
//! what is missing may be mended, and is looked for again. If a kept finding is wrong, the jail does not start, and nothing runs.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process;

/// The namespaces that decide what a process may set up.
const NAMESPACES: [&str; 7] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];
/// Files that say so.
const FILES: [&str; 8] = [
    "/proc/sys/kernel/random/boot_id",
    "/proc/self/cgroup",
    "/proc/self/uid_map",
    "/proc/self/mountinfo",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/user/max_mnt_namespaces",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
];
/// What of `/proc/self/status` says so.
const RIGHTS: [&str; 9] = [
    "Uid",
    "Gid",
    "Groups",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "NoNewPrivs",
    "Seccomp",
];
/// Maximum size of a file, in bytes: a longer one keeps nothing.
const MAX_FILE: u64 = 1 << 20;
/// Maximum number of files; with more, all are removed.
const MAX_KEPT: usize = 64;

/// A folder of findings, which only this user can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFindings {
    folder: PathBuf,
}

impl KeptFindings {
    /// Keeps findings in this folder, which need not exist.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns what was found about this, under the conditions that hold now.
    pub fn get(&self, about: &str) -> Option<String> {
        let conditions = conditions(about).ok()?;
        let mut text = String::new();
        let file = fs::File::open(self.file(&conditions)).ok()?;
        file.take(MAX_FILE).read_to_string(&mut text).ok()?;
        let (finding, under) = text.split_once('\n')?;
        (under == conditions).then(|| finding.to_owned())
    }

    /// Keeps a finding, a line. That it cannot be kept costs time alone.
    pub fn put(&self, about: &str, finding: &str) {
        let _ = conditions(about).and_then(|conditions| self.write(&conditions, finding));
    }

    /// Forgets everything, as something is not as it was found.
    pub fn forget(&self) {
        // Without the folder there is nothing to forget.
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn write(&self, conditions: &str, finding: &str) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.folder)?;
        if fs::read_dir(&self.folder)?.count() >= MAX_KEPT {
            self.forget();
            builder.create(&self.folder)?;
        }
        let file = self.file(conditions);
        let draft = file.with_extension(process::id().to_string());
        let mut options = OpenOptions::new();
        let mut written = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        written.write_all(format!("{finding}\n{conditions}").as_bytes())?;
        fs::rename(&draft, &file)
    }

    /// Returns the file for these conditions; another one of the same name is known by its text.
    fn file(&self, conditions: &str) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        conditions.hash(&mut hasher);
        self.folder.join(format!("{:016x}", hasher.finish()))
    }
}

/// Returns everything that decides whether the same works again: the boot, this program, its rights, namespaces, groups and mounts.
fn conditions(about: &str) -> io::Result<String> {
    let mut text = format!("{about}\n");
    let program = fs::metadata("/proc/self/exe")?;
    let stamp = (
        program.dev(),
        program.ino(),
        program.size(),
        program.mtime(),
        program.ctime(),
    );
    let _ = writeln!(text, "{stamp:?}");
    for name in NAMESPACES {
        let namespace = fs::read_link(Path::new("/proc/self/ns").join(name))?;
        let _ = writeln!(text, "{}", namespace.display());
    }
    let status = fs::read_to_string("/proc/self/status")?;
    for line in status.lines() {
        if line
            .split_once(':')
            .is_some_and(|(name, _)| RIGHTS.contains(&name))
        {
            let _ = writeln!(text, "{line}");
        }
    }
    for file in FILES {
        // Not every kernel has each.
        let content = fs::read_to_string(file).unwrap_or_default();
        let _ = writeln!(text, "{file}: {content}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::KeptFindings;

    #[test]
    fn a_finding_is_kept_for_what_it_is_about_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptFindings::in_folder(folder.path().join("findings"));
        assert_eq!(kept.get("jail"), None);
        kept.put("jail", "full");
        assert_eq!(kept.get("jail"), Some("full".to_owned()));
        assert_eq!(kept.get("another"), None);
        // Found under other conditions: by another program, before a boot.
        for file in std::fs::read_dir(folder.path().join("findings")).unwrap() {
            let file = file.unwrap().path();
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(&file, text.replace("boot_id: ", "boot_id: 0")).unwrap();
        }
        assert_eq!(kept.get("jail"), None);
        kept.put("jail", "full");
        for number in 0..2 * super::MAX_KEPT {
            kept.put(&number.to_string(), "x");
        }
        let count = std::fs::read_dir(folder.path().join("findings"))
            .unwrap()
            .count();
        assert!(count <= super::MAX_KEPT, "{count}");
        kept.forget();
        assert_eq!(kept.get("1"), None);
    }
}
