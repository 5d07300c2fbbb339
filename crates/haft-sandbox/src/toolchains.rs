//! `Toolchains`: what version managers and installers keep below the user's home, as commands see it.
//!
//! A manager's folder is never shown as a whole: besides programs it holds credentials, settings and caches. Only the exact
//! folders of each installation are shown, read-only, at their own paths. Symbolic links inside a manager's folder are not
//! followed: they could lead to the home folder.

mod finder;
mod languages;
mod managers;
#[cfg(test)]
mod tests;
mod version;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use self::finder::Finder;
use crate::places::{PathRefusal, Places};

/// Where to look for toolchains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolchainSearch {
    /// The user's home folder; `None` = only what variables name.
    pub home: Option<PathBuf>,
    /// The host's variables, some of which name a manager's folder (`RUSTUP_HOME`, `NVM_DIR`, …).
    pub variables: BTreeMap<String, String>,
    /// The folder whose `.nvmrc`, `.python-version`, `.tool-versions` and the like choose a version.
    pub workspace: Option<PathBuf>,
}

/// A toolchain that commands see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundToolchain {
    /// Its manager or program: `rustup`, `nvm`, `uv`, …
    pub name: &'static str,
    /// The chosen version, if there are several.
    pub version: Option<String>,
    /// The parts of it that are shown, by canonical path.
    parts: Vec<ToolchainPart>,
    /// Its program folders.
    path: Vec<PathBuf>,
    /// The variables by which its programs find it.
    variables: Vec<(&'static str, OsString)>,
}

/// A part of a toolchain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolchainPart {
    /// A folder or file, shown at its own path.
    Shown(PathBuf),
    /// A symbolic link next to the programs, and its target.
    Link { path: PathBuf, to: PathBuf },
}

/// The toolchains that commands see in addition to the system's programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toolchains {
    found: Vec<FoundToolchain>,
    refused: Vec<PathRefusal>,
}

impl Toolchains {
    /// Finds the toolchains of rustup, cargo, nvm, volta, fnm, asdf, mise, pyenv, uv, bun, deno, pnpm, go and
    /// sdkman, and leaves out what no jail shows.
    pub fn find(places: &Places, search: &ToolchainSearch) -> Self {
        let mut finder = Finder::new(places, search);
        languages::find(&mut finder);
        managers::find(&mut finder);
        finder.finish()
    }

    /// Returns the toolchains that commands see.
    pub fn all(&self) -> &[FoundToolchain] {
        &self.found
    }

    /// Returns what looked like a part of a toolchain but is not shown.
    pub fn refused(&self) -> &[PathRefusal] {
        &self.refused
    }

    /// Leaves out the toolchains that have a part for which `why_not` returns a reason.
    pub fn leave_out(&mut self, why_not: impl Fn(&Path) -> Option<String>) {
        let refused = &mut self.refused;
        self.found.retain(|one| {
            let reason = one.folders().find_map(|path| Some((path, why_not(path)?)));
            let Some((path, why)) = reason else {
                return true;
            };
            refused.push(PathRefusal {
                path: path.to_owned(),
                why,
            });
            false
        });
    }

    /// Returns their program folders.
    pub(crate) fn path(&self) -> impl Iterator<Item = PathBuf> {
        self.found.iter().flat_map(|one| one.path.iter().cloned())
    }

    /// Returns the variables by which their programs find them.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let all = self.found.iter().flat_map(|one| &one.variables);
        all.map(|(name, value)| (OsString::from(name), value.clone()))
    }

    /// Returns the parts of them that are shown.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &ToolchainPart> {
        self.found.iter().flat_map(|one| &one.parts)
    }

    /// Returns whether a path is shown as a part of one of them.
    pub(crate) fn shows(&self, target: &Path) -> bool {
        self.parts().any(|part| match part {
            ToolchainPart::Shown(path) => target.starts_with(path),
            ToolchainPart::Link { path, .. } => target == path,
        })
    }
}

impl FoundToolchain {
    /// Returns the folders and files of it that are shown.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(|part| match part {
            ToolchainPart::Shown(path) => Some(path.as_path()),
            ToolchainPart::Link { .. } => None,
        })
    }

    /// Returns its program folders, which are on the `PATH` of commands.
    pub fn path(&self) -> &[PathBuf] {
        &self.path
    }
}
