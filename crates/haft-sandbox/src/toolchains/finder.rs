//! `Finder`: looks at managers' folders; every path that it keeps was admitted by [`Places`].

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::version::choose;
use super::{FoundToolchain, Part, ToolchainSearch, Toolchains};
use crate::places::{Places, Refused, Wanted};

/// Most entries of a folder that are looked at.
const MOST_NAMES: usize = 1_000;
/// Most bytes of a file that names versions.
const MOST_BYTES: u64 = 16 << 10;
/// What an installation consists of. Not `etc`: global settings of npm and others may hold tokens.
const INSTALLATION: &[&str] = &[
    "bin", "lib", "lib64", "libexec", "include", "share", "go", "VERSION", "go.env", "release",
];

/// What is found, as it is found.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    pub(super) search: &'a ToolchainSearch,
    places: &'a Places,
    all: Toolchains,
}

/// A toolchain that is being put together, below one manager's folder.
#[derive(Debug)]
pub(super) struct Kit {
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

    /// The folder that a variable names, else the first of these below the home that is there.
    pub(super) fn folder(&self, variable: &str, defaults: &[&str]) -> Option<PathBuf> {
        let named = self.search.variables.get(variable).map(PathBuf::from);
        let named = named.filter(|path| path.is_absolute());
        named.filter(|path| path.is_dir()).or_else(|| {
            let home = self.search.home.as_ref()?;
            let mut below = defaults.iter().map(|folder| home.join(folder));
            below.find(|path| path.is_dir())
        })
    }

    /// A toolchain below a manager's folder, which may itself be a link, and is no home folder and none that holds one.
    pub(super) fn kit(&mut self, name: &'static str, folder: &Path) -> Option<Kit> {
        let root = match self.places.admit(folder, Wanted::Named) {
            Ok(root) => root,
            // What every jail shows needs no more than its place on `PATH`.
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
        Some(Kit { root, found })
    }

    /// Adds a folder or file of the kit, if it is there and a jail may show it.
    pub(super) fn add(&mut self, kit: &mut Kit, part: &str) -> bool {
        let path = kit.root.join(part);
        if !path.exists() {
            return false;
        }
        if self.places.is_shown(&path) {
            return true;
        }
        match self.places.admit(&path, Wanted::Below(&kit.root)) {
            Ok(path) => {
                kit.found.parts.push(Part::Shown(path));
                true
            }
            Err(refused) => {
                self.refuse(refused);
                false
            }
        }
    }

    /// Adds a single program; one that is a link, by the file of the same name that it leads to.
    pub(super) fn add_program(&mut self, kit: &mut Kit, part: &str) -> bool {
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
        match self.places.admit(&real, Wanted::Below(folder)) {
            Ok(real) => {
                let shown = Part::Shown(real);
                if !kit.found.parts.contains(&shown) {
                    kit.found.parts.push(shown);
                }
                kit.found.parts.push(Part::Link { path, to });
                true
            }
            Err(refused) => {
                self.refuse(refused);
                false
            }
        }
    }

    /// Adds what an installation in this folder consists of, and its programs to `PATH`; whether there are any.
    pub(super) fn add_installation(&mut self, kit: &mut Kit, folder: &str) -> bool {
        let before = kit.found.path.len();
        for part in INSTALLATION {
            let part = format!("{folder}/{part}");
            if !self.add(kit, &part) {
                continue;
            }
            match part.rsplit('/').next() {
                Some("bin") => kit.add_to_path(&part),
                // The one installation that has its programs a folder further down.
                Some("go") if kit.root.join(&part).join("bin").is_dir() => {
                    kit.add_to_path(&format!("{part}/bin"));
                }
                _ => {}
            }
        }
        kit.found.path.len() > before
    }

    /// Keeps a kit that has something to run.
    pub(super) fn keep(&mut self, kit: Kit) {
        if !kit.found.path.is_empty() {
            self.all.found.push(kit.found);
        }
    }

    /// The version to use of those in a folder: the workspace's wish, what is on `PATH`, then these wishes, then the
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
                all.extend(wishes_in(&workspace.join(file), tool));
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

    fn refuse(&mut self, refused: Refused) {
        if !self.all.refused.contains(&refused) {
            self.all.refused.push(refused);
        }
    }
}

impl Kit {
    /// The manager's folder, canonical.
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

/// The folders in a folder, without links.
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

/// The versions that a file wishes for: those of a tool in a table or list, or of the whole file where `tool` is empty.
pub(super) fn wishes_in(file: &Path, tool: &str) -> Vec<String> {
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
        // `tool 1.2 1.1`, or `tool = "1.2"`.
        let rest = line.trim().strip_prefix(tool).unwrap_or_default();
        if rest.starts_with([' ', '\t', '=']) {
            let words = rest.split(|letter: char| " \t=\"'[],".contains(letter));
            wishes.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    wishes
}

/// A small file's text.
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
