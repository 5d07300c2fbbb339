//! `Finder`: searches managers' folders; [`Places`] has admitted every path that it keeps.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::version::choose;
use super::{FoundToolchain, ToolchainPart, ToolchainSearch, Toolchains};
use crate::places::{PathPurpose, PathRefusal, Places};

/// Maximum number of entries examined per folder.
const MOST_NAMES: usize = 1_000;
/// Maximum number of bytes of a file that names versions.
const MOST_BYTES: u64 = 16 << 10;
/// The parts of an installation. Not `etc`: global settings of npm and others may contain tokens.
const INSTALLATION: &[&str] = &[
    "bin", "lib", "lib64", "libexec", "include", "share", "go", "VERSION", "go.env", "release",
];

/// The search and its results so far.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    pub(super) search: &'a ToolchainSearch,
    places: &'a Places,
    all: Toolchains,
}

/// A toolchain under construction, below one manager's folder.
#[derive(Debug)]
pub(super) struct ToolchainBuilder {
    root: PathBuf,
    found: FoundToolchain,
}

impl<'a> Finder<'a> {
    pub(super) fn new(places: &'a Places, search: &'a ToolchainSearch) -> Self {
        Self {
            search,
            places,
            all: Toolchains::default(),
        }
    }

    pub(super) fn finish(self) -> Toolchains {
        self.all
    }

    /// Returns the folder that a variable names, else the first of these below the home that exists.
    pub(super) fn folder(&self, variable: &str, defaults: &[&str]) -> Option<PathBuf> {
        let named = self.search.variables.get(variable).map(PathBuf::from);
        let named = named.filter(|path| path.is_absolute());
        named.filter(|path| path.is_dir()).or_else(|| {
            let home = self.search.home.as_ref()?;
            let mut below = defaults.iter().map(|folder| home.join(folder));
            below.find(|path| path.is_dir())
        })
    }

    /// Starts a toolchain below a manager's folder, which may itself be a symbolic link, but not to a home folder or one that contains one.
    pub(super) fn kit(&mut self, name: &'static str, folder: &Path) -> Option<ToolchainBuilder> {
        let root = match self.places.admit(folder, PathPurpose::Named) {
            Ok(root) => root,
            // A folder that every jail shows only needs its place on `PATH`.
            Err(_) if self.places.is_shown(folder) => folder.to_owned(),
            Err(refused) => {
                self.refuse(refused);
                return None;
            }
        };
        let found = FoundToolchain {
            name,
            version: None,
            parts: Vec::new(),
            path: Vec::new(),
            variables: Vec::new(),
        };
        Some(ToolchainBuilder { root, found })
    }

    /// Adds a folder or file of the kit, if it exists and a jail may show it.
    pub(super) fn add(&mut self, kit: &mut ToolchainBuilder, part: &str) -> bool {
        let path = kit.root.join(part);
        if !path.exists() {
            return false;
        }
        if self.places.is_shown(&path) {
            return true;
        }
        match self.places.admit(&path, PathPurpose::Below(&kit.root)) {
            Ok(path) => {
                kit.found.parts.push(ToolchainPart::Shown(path));
                true
            }
            Err(refused) => {
                self.refuse(refused);
                false
            }
        }
    }

    /// Adds a single program; if it is a symbolic link, by the file of the same name that it leads to.
    pub(super) fn add_program(&mut self, kit: &mut ToolchainBuilder, part: &str) -> bool {
        let path = kit.root.join(part);
        let Some(to) = fs::read_link(&path).ok() else {
            return is_program(&path) && self.add(kit, part);
        };
        let Ok(real) = path.canonicalize() else {
            return false;
        };
        let beside = real.parent() == path.parent();
        if !is_program(&real) || !(beside || real.file_name() == path.file_name()) {
            return false;
        }
        let folder = real.parent().unwrap_or(Path::new("/"));
        match self.places.admit(&real, PathPurpose::Below(folder)) {
            Ok(real) => {
                let shown = ToolchainPart::Shown(real);
                if !kit.found.parts.contains(&shown) {
                    kit.found.parts.push(shown);
                }
                kit.found.parts.push(ToolchainPart::Link { path, to });
                true
            }
            Err(refused) => {
                self.refuse(refused);
                false
            }
        }
    }

    /// Adds the parts of an installation in this folder, and its programs to `PATH`; returns whether there are any programs.
    pub(super) fn add_installation(&mut self, kit: &mut ToolchainBuilder, folder: &str) -> bool {
        let before = kit.found.path.len();
        for part in INSTALLATION {
            let part = format!("{folder}/{part}");
            if !self.add(kit, &part) {
                continue;
            }
            match part.rsplit('/').next() {
                Some("bin") => kit.add_to_path(&part),
                // The only installation whose programs are one folder further down.
                Some("go") if kit.root.join(&part).join("bin").is_dir() => {
                    kit.add_to_path(&format!("{part}/bin"));
                }
                _ => {}
            }
        }
        kit.found.path.len() > before
    }

    /// Keeps a kit that has a program to run.
    pub(super) fn keep(&mut self, kit: ToolchainBuilder) {
        if !kit.found.path.is_empty() {
            self.all.found.push(kit.found);
        }
    }

    /// Returns which version in a folder to use: the workspace's choice, what is on `PATH`, then these wishes, then the
    /// newest.
    pub(super) fn version(
        &self,
        folder: &Path,
        files: &[(&str, &str)],
        wishes: Vec<String>,
    ) -> Option<String> {
        let mut all = Vec::new();
        if let Some(workspace) = &self.search.workspace {
            for (file, tool) in files {
                all.extend(requested_versions(&workspace.join(file), tool));
            }
        }
        let path = self.search.variables.get("PATH");
        for on_path in std::env::split_paths(path.map_or("", String::as_str)) {
            let inside = on_path.strip_prefix(folder).ok();
            let first = inside.and_then(|inside| inside.iter().next()?.to_str());
            all.extend(first.map(str::to_owned));
        }
        all.extend(wishes);
        choose(&names(folder), &all)
    }

    fn refuse(&mut self, refused: PathRefusal) {
        if !self.all.refused.contains(&refused) {
            self.all.refused.push(refused);
        }
    }
}

impl ToolchainBuilder {
    /// Returns the manager's canonical folder.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn add_to_path(&mut self, folder: &str) {
        let mut path = self.root.clone();
        path.extend(folder.split('/').filter(|part| *part != "."));
        let folder = path;
        if !self.found.path.contains(&folder) {
            self.found.path.push(folder);
        }
    }

    pub(super) fn set(&mut self, variable: &'static str, value: impl Into<OsString>) {
        self.found.variables.push((variable, value.into()));
    }

    pub(super) fn with_version(mut self, version: impl Into<String>) -> Self {
        self.found.version = Some(version.into());
        self
    }
}

fn is_program(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Returns the names of the folders in a folder, without symbolic links.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries
        .take(MOST_NAMES)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<_> = folders
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

/// Returns the versions that a file asks for: those of a tool in a table or list, or of the whole file if `tool` is empty.
pub(super) fn requested_versions(file: &Path, tool: &str) -> Vec<String> {
    let text = short_text(file).unwrap_or_default();
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    if tool.is_empty() {
        let first = lines.map(str::trim).find(|line| !line.is_empty());
        return first.map(str::to_owned).into_iter().collect();
    }
    let mut wishes = Vec::new();
    for line in lines {
        // The formats `tool 1.2 1.1` and `tool = "1.2"`.
        let rest = line.trim().strip_prefix(tool).unwrap_or_default();
        if rest.starts_with([' ', '\t', '=']) {
            let words = rest.split(|letter: char| " \t=\"'[],".contains(letter));
            wishes.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    wishes
}

/// Returns the text of a small file.
pub(super) fn short_text(file: &Path) -> Option<String> {
    let mut text = String::new();
    let meta = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    if meta.len() > MOST_BYTES {
        return None;
    }
    File::open(file)
        .ok()?
        .take(MOST_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}
