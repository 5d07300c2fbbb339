//! `NamedByGit`: what the settings of a workspace's repositories name in the workspace: hooks, further settings, programs.
//!
//! Git runs or obeys these files as it obeys the settings themselves, so they are judged like them, whichever tool changes them.
//! Settings outside of the workspace are the user's own and not read here.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::git_file::{Setting, parse};
use super::place::clean;
use super::{Workspace, canonical_prefix, is_git};

mod words;

use words::{HOOKS, SettingTarget, Word, naming, program_words};

/// Maximum size of a file of settings, in bytes.
const MAX_SETTINGS: u64 = 256 * 1024;
/// Maximum number of files of settings that are read, with those that they include.
const MAX_FILES: usize = 2_000;
/// Maximum depth of includes, as in git.
const MAX_DEPTH: usize = 10;
/// Maximum number of paths.
const MAX_NAMED: usize = 1_000;

/// A path that settings name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPath {
    /// The settings that name it, as their path would be if the repository's folder was called `.git`.
    pub settings: PathBuf,
    /// Whether git looks for a folder there.
    pub is_folder: bool,
    /// Whether git only reads it, or takes it for absent, if it is empty. Of a program that is not known.
    pub may_be_empty: bool,
}

/// The paths below the root that the settings of repositories name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedByGit {
    paths: BTreeMap<PathBuf, NamedPath>,
    unread: Option<String>,
}

impl NamedByGit {
    /// Reads the settings of the repositories in these folders. `pointers` are the `.git` files and `commondir` files, each with the
    /// folder that it names.
    pub(super) fn read(
        workspace: &Workspace,
        repositories: impl Iterator<Item = PathBuf>,
        pointers: &[(PathBuf, PathBuf)],
    ) -> Self {
        let mut reading = Reading {
            workspace,
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            files: 0,
            found: Self::default(),
        };
        let trees = working_trees(pointers);
        for folder in repositories {
            let alias = if is_git(&folder) {
                folder.join("config")
            } else {
                folder.join(super::GIT).join("config")
            };
            let mut bases = trees.get(&folder).cloned().unwrap_or_default();
            if folder.file_name().is_some_and(|name| name == super::GIT) {
                bases.extend(folder.parent().map(Path::to_owned));
            }
            bases.push(folder.clone());
            for name in ["config", "config.worktree"] {
                let mut seen = HashSet::new();
                let mut file = SettingsFile {
                    alias: &alias,
                    bases: &bases,
                    seen: &mut seen,
                };
                reading.file(&folder.join(name), &mut file, 0);
            }
        }
        reading.found
    }

    /// Returns each path, sorted.
    pub fn paths(&self) -> impl Iterator<Item = (&PathBuf, &NamedPath)> {
        self.paths.iter()
    }

    /// Returns what names a path, something in it or a folder above it.
    pub fn at(&self, path: &Path) -> Option<&NamedPath> {
        let mut above = path.ancestors().filter(|at| *at != Path::new(""));
        let below = || {
            let next = self.paths.range(path.to_owned()..).next();
            next.filter(|(named, _)| named.starts_with(path) && path != Path::new(""))
                .map(|(_, named)| named)
        };
        above.find_map(|at| self.paths.get(at)).or_else(below)
    }

    /// Returns why there may be more, as a clause; `None` if all are known.
    pub fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }
}

/// Returns the working trees of each repository's folder, for the settings that its worktrees and submodules share too.
fn working_trees(pointers: &[(PathBuf, PathBuf)]) -> HashMap<PathBuf, Vec<PathBuf>> {
    let mut trees: HashMap<PathBuf, Vec<PathBuf>> = HashMap::new();
    let is_git = |pointer: &Path| pointer.file_name().is_some_and(|name| name == super::GIT);
    for (pointer, target) in pointers.iter().filter(|(pointer, _)| is_git(pointer)) {
        let tree = pointer.parent().unwrap_or(Path::new("")).to_owned();
        trees.entry(target.clone()).or_default().push(tree);
    }
    for (pointer, common) in pointers.iter().filter(|(pointer, _)| !is_git(pointer)) {
        let folder = pointer.parent().unwrap_or(Path::new(""));
        if let Some(own) = trees.get(folder).cloned() {
            trees.entry(common.clone()).or_default().extend(own);
        }
    }
    trees
}

/// A file of settings, with those that include it.
struct SettingsFile<'a> {
    alias: &'a Path,
    /// The folders to which its paths may be relative.
    bases: &'a [PathBuf],
    seen: &'a mut HashSet<PathBuf>,
}

struct Reading<'a> {
    workspace: &'a Workspace,
    home: Option<PathBuf>,
    files: usize,
    found: NamedByGit,
}

impl Reading<'_> {
    /// Reads a file of settings, if it exists. `path` is relative to the root.
    fn file(&mut self, path: &Path, file: &mut SettingsFile<'_>, depth: usize) {
        let full = self.workspace.root().join(path);
        let why = match full.metadata() {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return;
            }
            Err(error) => error.to_string(),
            Ok(_) if depth > MAX_DEPTH || self.files >= MAX_FILES => {
                "there are too many".to_owned()
            }
            Ok(meta) if !meta.is_file() => "it is no file".to_owned(),
            Ok(meta) if meta.len() > MAX_SETTINGS => "it is longer than 256 KiB".to_owned(),
            Ok(_) => {
                let real = canonical_prefix(&full);
                if !file.seen.insert(real.clone()) {
                    return;
                }
                self.files += 1;
                match read(&real).map(|text| parse(&text)) {
                    Ok(Some(settings)) => {
                        let folder = path.parent().unwrap_or(Path::new(""));
                        for setting in &settings {
                            self.setting(setting, folder, file, depth);
                        }
                        return;
                    }
                    Ok(None) => "git would refuse it".to_owned(),
                    Err(error) => error.to_string(),
                }
            }
        };
        let shown = haft_types::text::visible::path(&path.to_string_lossy());
        let why = format!("git's settings in {shown} cannot be read: {why}");
        self.found.unread.get_or_insert(why);
    }

    /// Notes what a setting names. `folder` is that of its file.
    fn setting(
        &mut self,
        setting: &Setting,
        folder: &Path,
        file: &mut SettingsFile<'_>,
        depth: usize,
    ) {
        match naming(setting) {
            SettingTarget::Nothing => {}
            SettingTarget::Hooks => {
                for base in file.bases {
                    self.hooks(base, &setting.value, file.alias);
                }
            }
            SettingTarget::File => {
                for base in file.bases {
                    let at = self.place(base, &setting.value);
                    self.add(at, file.alias, NamedKind::File);
                }
            }
            SettingTarget::Settings => {
                let at = self.place(folder, &setting.value);
                self.add(at.clone(), file.alias, NamedKind::File);
                if let Some(at) = at {
                    self.file(&at, file, depth + 1);
                }
            }
            SettingTarget::Programs => {
                for word in program_words(&setting.value) {
                    for base in file.bases {
                        self.program(base, &word, file.alias);
                    }
                }
            }
        }
    }

    fn hooks(&mut self, base: &Path, value: &str, alias: &Path) {
        let Some(at) = self.place(base, value) else {
            return;
        };
        if at == Path::new("") {
            // The root holds other files, too.
            for hook in HOOKS {
                self.add(Some(PathBuf::from(hook)), alias, NamedKind::Hook);
            }
        } else {
            self.add(Some(at), alias, NamedKind::Folder);
        }
    }

    /// Notes a word of a command line.
    fn program(&mut self, base: &Path, word: &Word, alias: &Path) {
        let Some(at) = self.place(base, &word.text) else {
            return;
        };
        let found = self.workspace.root().join(&at).metadata().ok();
        let counts = match &found {
            Some(meta) if meta.is_dir() => word.is_interpreted,
            Some(_) => true,
            None => word.is_certain,
        };
        if counts {
            self.add(Some(at), alias, NamedKind::Program);
        }
    }

    /// Returns the path below the root that a setting means, without following links.
    fn place(&self, base: &Path, value: &str) -> Option<PathBuf> {
        let home = |rest: &str| Some(self.home.as_ref()?.join(rest));
        let path = match value.strip_prefix("~/") {
            Some(rest) => home(rest)?,
            None => PathBuf::from(value),
        };
        if !path.is_absolute() {
            return (!value.is_empty()).then(|| clean(&base.join(path)))?;
        }
        clean(self.workspace.below_root(&path)?)
    }

    /// Adds a path, and where links lead from it.
    fn add(&mut self, at: Option<PathBuf>, alias: &Path, named: NamedKind) {
        let Some(at) = at.filter(|at| *at != Path::new("")) else {
            return;
        };
        let root = self.workspace.root();
        let real = canonical_prefix(&root.join(&at));
        let real = real.strip_prefix(root).ok().map(Path::to_owned);
        for path in real.into_iter().chain([at]) {
            if path == Path::new("") {
                continue;
            }
            if self.found.paths.len() >= MAX_NAMED {
                let why = "git's settings name too many files";
                self.found.unread.get_or_insert(why.to_owned());
                return;
            }
            let entry = self.found.paths.entry(path);
            entry.or_insert_with(|| NamedPath {
                settings: alias.to_owned(),
                is_folder: named == NamedKind::Folder,
                may_be_empty: matches!(
                    named,
                    NamedKind::Folder | NamedKind::File | NamedKind::Hook
                ),
            });
        }
    }
}

/// What a setting names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedKind {
    Folder,
    File,
    Hook,
    Program,
}

fn read(path: &Path) -> std::io::Result<String> {
    // What takes the place of the file meanwhile must not block.
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(flags.cast_signed());
    let mut bytes = Vec::new();
    let file: fs::File = options.open(path)?;
    file.take(MAX_SETTINGS + 1).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
