//! `OutsideRepository`: the git repository of a workspace whose folder lies elsewhere: behind a `.git` file, or in a folder above.
//!
//! A workspace names it `.git`, as if it lay there: `.git/refs/heads/main` is the branch wherever git keeps it, and a linked worktree's own
//! part is `.git/worktrees/NAME`. So every rule, guard and record that knows `.git` holds for it unchanged. The folder is opened once, and
//! paths below `.git` are opened beneath that descriptor.
//!
//! A `.git` file is text that an archive may bring along. It counts only if the repository says the same: that this is its work tree.

use std::fs::{self, Metadata, OpenOptions};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use haft_types::text::visible;
use rustix::fs::{Mode, OFlags};

use super::GIT;
use super::git_file::parse;
use crate::git_index::ObjectHash;

mod belongs;

/// Maximum size of a `.git` file, `commondir` or `gitdir`, in bytes: a path and a word.
const MAX_POINTER: u64 = 8 * 1024;
/// Maximum size of a file of settings, in bytes.
const MAX_SETTINGS: u64 = 256 * 1024;
/// Maximum number of folders above a workspace in which its repository is looked for.
const MAX_ABOVE: usize = 64;

/// A repository outside of the workspace that really is the workspace's own.
#[derive(Debug)]
pub struct OutsideRepository {
    /// The real path of the folder with objects, refs and settings.
    folder: PathBuf,
    /// That folder, opened once.
    pub(super) fd: OwnedFd,
    /// The device and inode of that folder.
    identity: (u64, u64),
    /// The work tree's own part within it: empty, or `worktrees/NAME`.
    own: PathBuf,
    /// The real path of the top of the work tree.
    tree: PathBuf,
    /// The workspace within the work tree: empty, or the folder of a package.
    prefix: PathBuf,
    hash: ObjectHash,
}

impl OutsideRepository {
    /// Returns the real path of the folder with objects, refs and settings.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the work tree's own part, which has its HEAD and index, as the workspace names it: `.git` or
    /// `.git/worktrees/NAME`.
    pub fn own_part(&self) -> PathBuf {
        if self.own == Path::new("") {
            PathBuf::from(GIT)
        } else {
            Path::new(GIT).join(&self.own)
        }
    }

    /// Returns the real path of the top of the work tree.
    pub fn tree(&self) -> &Path {
        &self.tree
    }

    /// Returns the workspace's path within the work tree: empty unless the workspace is a folder of it.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Returns the hash that names its objects.
    pub fn object_hash(&self) -> ObjectHash {
        self.hash
    }

    /// Whether the folder at the path is still the one that was opened.
    pub fn is_still_there(&self) -> bool {
        self.folder
            .symlink_metadata()
            .is_ok_and(|meta| meta.is_dir() && identity(&meta) == self.identity)
    }

    /// Whether both are the same repository, with the same part for the same work tree.
    pub fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity
            && (&self.folder, &self.own, &self.tree) == (&other.folder, &other.own, &other.tree)
    }
}

/// Where the repository of a folder lies.
#[derive(Debug)]
pub(super) enum RepositoryPlace {
    /// In the folder, or nowhere.
    Inside,
    Outside(OutsideRepository),
    /// Something names a repository that is not shown, for this reason.
    Refused(String),
}

/// Looks for the repository of a workspace. `home` is the user's home folder, whose own repository is not shown.
pub(super) fn find(root: &Path, home: Option<&Path>) -> RepositoryPlace {
    let search = RepositorySearch { root, home };
    match search.run() {
        Ok(Some(found)) => RepositoryPlace::Outside(found),
        Ok(None) => RepositoryPlace::Inside,
        Err(why) => RepositoryPlace::Refused(why),
    }
}

struct RepositorySearch<'a> {
    root: &'a Path,
    home: Option<&'a Path>,
}

/// The folders of a repository, before they are checked.
struct RepositoryFolders {
    /// With objects and refs.
    common: PathBuf,
    /// With HEAD and the index.
    own: PathBuf,
    tree: PathBuf,
}

impl RepositorySearch<'_> {
    fn run(&self) -> Result<Option<OutsideRepository>, String> {
        let device = self.root.metadata().map(|meta| meta.dev());
        for tree in self.root.ancestors().take(MAX_ABOVE) {
            let above = tree != self.root;
            if above && tree.metadata().map(|meta| meta.dev()).ok() != device.as_ref().ok().copied()
            {
                // Git does not look on other file systems either.
                return Ok(None);
            }
            let at = tree.join(GIT);
            let Ok(found) = at.symlink_metadata() else {
                if above && self.is_home(tree) {
                    return Ok(None);
                }
                continue;
            };
            if above && self.is_home(tree) {
                let tree = display(tree);
                return Err(format!("{tree} is a home folder, or holds one"));
            }
            if above {
                belongs_to_user(tree)?;
            }
            return self.at(tree, &at, &found);
        }
        Ok(None)
    }

    /// Looks at what is called `.git` in a folder.
    fn at(
        &self,
        tree: &Path,
        at: &Path,
        found: &Metadata,
    ) -> Result<Option<OutsideRepository>, String> {
        let folders = if found.is_dir() {
            if tree == self.root {
                return Ok(None);
            }
            if let Some(named) = setting(at, "core", "worktree")?
                && at.join(&named).canonicalize().ok().as_deref() != Some(tree)
            {
                let (at, named) = (display(at), visible::line(&named));
                return Err(format!("the work tree of {at} is {named}"));
            }
            RepositoryFolders {
                common: at.to_owned(),
                own: at.to_owned(),
                tree: tree.to_owned(),
            }
        } else if found.is_file() {
            match self.named(tree, at)? {
                Some(folders) => folders,
                None => return Ok(None),
            }
        } else {
            let real = at.canonicalize();
            if real.is_ok_and(|real| real.starts_with(self.root)) {
                return Ok(None);
            }
            let at = display(at);
            return Err(format!("{at} is a link, not a folder or a file of git"));
        };
        self.check(folders).map(Some)
    }

    /// Follows a `.git` file. Returns `None` if it leads into the workspace.
    fn named(&self, tree: &Path, at: &Path) -> Result<Option<RepositoryFolders>, String> {
        let text = pointer(at)?;
        let named = text.strip_prefix("gitdir:").map(str::trim_start);
        let named = named.filter(|path| !path.is_empty());
        let named = named.ok_or_else(|| format!("{} names no folder", display(at)))?;
        let own = tree.join(named).canonicalize();
        let own = own.map_err(|error| {
            let (at, named) = (display(at), visible::line(named));
            format!("{at} names {named}: {error}")
        })?;
        if own.starts_with(self.root) {
            return Ok(None);
        }
        let commondir = own.join("commondir");
        if commondir.symlink_metadata().is_err() {
            if !own.join("HEAD").is_file() {
                return Err(format!(
                    "{} is no repository: it has no HEAD",
                    display(&own)
                ));
            }
            belongs::check(&own, tree)?;
            let (common, tree) = (own.clone(), tree.to_owned());
            return Ok(Some(RepositoryFolders { common, own, tree }));
        }
        let common = own.join(pointer(&commondir)?).canonicalize();
        let common = common.map_err(|error| format!("{}: {error}", display(&commondir)))?;
        let is_worktree = own.parent() == Some(&common.join("worktrees"));
        if !is_worktree || common.join("commondir").symlink_metadata().is_ok() {
            let (own, common) = (display(&own), display(&common));
            return Err(format!("{own} is not a worktree of {common}"));
        }
        let back = own.join("gitdir");
        let back_text = pointer(&back)?;
        let to = own.join(&back_text);
        let leads_here = to.file_name().is_some_and(|name| name == GIT)
            && to.parent().and_then(|to| to.canonicalize().ok()).as_deref() == Some(tree);
        if !leads_here {
            let (back, tree) = (display(&back), display(tree));
            let text = visible::line(&back_text);
            return Err(format!(
                "{back} names {text} as its work tree, not {tree}: `git worktree repair` there, if it was moved"
            ));
        }
        let tree = tree.to_owned();
        Ok(Some(RepositoryFolders { common, own, tree }))
    }

    /// Checks the folders themselves, and opens the repository.
    fn check(&self, folders: RepositoryFolders) -> Result<OutsideRepository, String> {
        let RepositoryFolders { common, own, tree } = folders;
        let at = display(&common);
        if self.root.starts_with(&common) || common.starts_with(self.root) {
            return Err(format!("{at} lies around or in the workspace"));
        }
        if self.is_home(&common) {
            return Err(format!("{at} is a home folder, or holds one"));
        }
        for folder in [&common, &own] {
            belongs_to_user(folder)?;
        }
        for (folder, name, is_folder) in [(&own, "HEAD", false), (&common, "objects", true)] {
            let path = folder.join(name);
            let meta = path.symlink_metadata();
            if !meta.is_ok_and(|meta| meta.is_dir() == is_folder && meta.is_file() != is_folder) {
                return Err(format!("{at} is no repository: it has no {name}"));
            }
            belongs_to_user(&path)?;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&common, flags, Mode::empty());
        let fd = fd.map_err(|error| format!("{at}: {}", std::io::Error::from(error)))?;
        let stat = rustix::fs::fstat(&fd).map_err(|error| format!("{at}: {error}"))?;
        let within = |path: &Path, of: &Path| path.strip_prefix(of).map(Path::to_owned);
        Ok(OutsideRepository {
            hash: object_hash(&common)?,
            identity: (stat.st_dev, stat.st_ino),
            own: within(&own, &common).unwrap_or_default(),
            prefix: within(self.root, &tree).unwrap_or_default(),
            fd,
            folder: common,
            tree,
        })
    }

    /// Whether a folder is the user's home, or one above it.
    fn is_home(&self, folder: &Path) -> bool {
        let home = self.home.and_then(|home| home.canonicalize().ok());
        home.is_some_and(|home| home.starts_with(folder))
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// Fails if a file or folder belongs to another user than haft's.
fn belongs_to_user(path: &Path) -> Result<(), String> {
    let meta = path.symlink_metadata();
    let meta = meta.map_err(|error| format!("{}: {error}", display(path)))?;
    if meta.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let (path, uid) = (display(path), meta.uid());
    Err(format!("{path} belongs to another user (uid {uid})"))
}

/// Reads a file that holds a path. It must be a regular file of the user's.
fn pointer(path: &Path) -> Result<String, String> {
    let text = read(path, MAX_POINTER)?;
    belongs_to_user(path)?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Reads a regular file of at most `most` bytes.
fn read(path: &Path, most: u64) -> Result<String, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", display(path));
    // A pipe in its place must not block.
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits();
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(flags.cast_signed());
    let file = options.open(path).map_err(|error| failed(&error))?;
    let meta = file.metadata().map_err(|error| failed(&error))?;
    if !meta.is_file() || meta.len() > most {
        return Err(failed(&format!("it is no file of at most {most} bytes")));
    }
    let mut bytes = Vec::new();
    let read = file.take(most).read_to_end(&mut bytes);
    read.map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|_| failed(&"it is not UTF-8"))
}

/// Returns the hash that names a repository's objects.
fn object_hash(common: &Path) -> Result<ObjectHash, String> {
    let format = setting(common, "extensions", "objectformat")?;
    match format.as_deref() {
        None | Some("sha1") => Ok(ObjectHash::Sha1),
        Some("sha256") => Ok(ObjectHash::Sha256),
        Some(other) => Err(format!(
            "{} names its objects by {}",
            display(common),
            visible::line(other)
        )),
    }
}

/// Returns the value of `SECTION.KEY` in a repository's own settings; `None` if it is not set, an error if they cannot be read.
fn setting(folder: &Path, section: &str, key: &str) -> Result<Option<String>, String> {
    let config = folder.join("config");
    let text = match fs::symlink_metadata(&config) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        _ => read(&config, MAX_SETTINGS)?,
    };
    let settings = parse(&text).ok_or_else(|| format!("git would refuse {}", display(&config)))?;
    let mut found = settings
        .into_iter()
        .filter(|one| one.section == section && one.name.is_none() && one.key == key);
    Ok(found.next_back().map(|one| one.value))
}

fn display(path: &Path) -> String {
    visible::path(&path.to_string_lossy())
}
