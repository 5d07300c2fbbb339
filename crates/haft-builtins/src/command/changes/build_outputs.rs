//! `BuildOutputs`: which ignored files a command may change unasked: what a build makes, and nothing that the host runs by itself.

use std::path::{Component, Path, PathBuf};

use haft::change::EntryState;
use haft::change::collect::ViewChange;
use ignore::gitignore::Gitignore;

use crate::command::changes::found_by_name::{FoundByName, patterns};
use crate::lexical::target_of_link;

/// Names of files and folders that builds and checks leave, as the documentation of their programs says, for a user to open, run or ship.
/// Stores and caches are none: programs install, unpack and run what is in them in place of packages and sources that are asked about.
/// A name with a slash is about a folder within the ignored one.
pub const BUILD_OUTPUTS: &[&str] = &[
    // What a build makes, with the compiler's own state beside it.
    ".astro",
    ".docusaurus",
    ".next",
    ".nuxt",
    ".output",
    ".svelte-kit",
    "_build",
    "build",
    "cmake-build-*",
    "dist",
    "obj",
    "out",
    "target",
    "zig-out",
    // Reports and drafts.
    "*.log",
    ".coverage",
    ".ipynb_checkpoints",
    ".nyc_output",
    "coverage",
    "htmlcov",
    "playwright-report",
    "test-results",
    "tmp",
    // What checks remember: data that no program runs.
    "*.tsbuildinfo",
    ".eslintcache",
    ".gradle/*/*.lock",
    ".gradle/*/*.probe",
    ".gradle/*/*.properties",
    ".gradle/*/checksums",
    ".gradle/*/executionHistory",
    ".gradle/*/fileChanges",
    ".gradle/*/fileHashes",
    ".gradle/*/vcsMetadata",
    ".gradle/buildOutputCleanup",
    ".gradle/file-system.probe",
    ".gradle/vcs-1",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".stylelintcache",
    "node_modules/.vite-temp",
    "node_modules/.vite/vitest",
];

/// Caches within a build output from which programs run compiled code in place of its source.
const CACHES_IN_OUTPUTS: &[&str] = &["!/.next/cache", "!/tmp/cache"];

/// What may be changed unasked of that which git ignores.
#[derive(Debug, Clone)]
pub struct BuildOutputs {
    root: PathBuf,
    outputs: Gitignore,
    /// The folders above those whose names have a slash.
    above: Gitignore,
    by_name: FoundByName,
    /// Folders of the workspace from which the host runs programs by name, below its root.
    programs: Vec<PathBuf>,
    /// The same for entries of `PATH` that hold in any folder.
    anywhere: Vec<PathBuf>,
}

impl BuildOutputs {
    /// Creates the standard list with further names, or without those that begin with `!`. `path` has the folders from which the host runs
    /// programs by name.
    ///
    /// # Errors
    /// A name is not a valid `.gitignore` pattern.
    pub fn new<'a>(
        names: impl IntoIterator<Item = &'a str>,
        root: &Path,
        path: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, ignore::Error> {
        // From the ignored path itself: below it, a name says nothing, as packages have a `dist`, too.
        let anchored = |name: &str| format!("/{name}");
        let mut outputs: Vec<String> = BUILD_OUTPUTS.iter().map(|name| anchored(name)).collect();
        outputs.extend(CACHES_IN_OUTPUTS.iter().map(|&name| name.to_owned()));
        for name in names {
            match name.strip_prefix('!') {
                Some(removed) => outputs.retain(|known| *known != anchored(removed)),
                None => outputs.push(anchored(name.trim_matches('/'))),
            }
        }
        let (absolute, relative): (Vec<_>, Vec<_>) =
            path.into_iter().partition(|folder| folder.is_absolute());
        let within = |folder: PathBuf| {
            let real = folder.canonicalize().unwrap_or(folder);
            Some(real.strip_prefix(root).ok()?.to_owned())
        };
        let plain = |folder: PathBuf| {
            let parts = folder.components();
            parts.filter(|part| *part != Component::CurDir).collect()
        };
        let above: Vec<String> = outputs
            .iter()
            .filter(|name| !name.starts_with('!'))
            .flat_map(|name| Path::new(name).ancestors().skip(1))
            .filter_map(|folder| folder.file_name().and(folder.to_str()))
            .map(str::to_owned)
            .collect();
        Ok(Self {
            root: root.to_owned(),
            above: patterns(above.iter().map(String::as_str))?,
            outputs: patterns(outputs.iter().map(String::as_str))?,
            by_name: FoundByName::new()?,
            programs: absolute.into_iter().filter_map(within).collect(),
            anywhere: relative.into_iter().map(plain).collect(),
        })
    }

    /// Returns whether a change is to a build output by its name, or makes a folder for one. `top` is the highest path there that git
    /// ignores.
    pub(super) fn is_output(&self, top: &Path, change: &ViewChange<'_>) -> bool {
        let makes_folder =
            change.before.is_none() && matches!(change.after, Some(EntryState::Folder { .. }));
        let below = from_top(top, change.path);
        self.has_output_name(below) || (makes_folder && self.above.matched(below, true).is_ignore())
    }

    /// Returns whether a path, from the topmost ignored one on, is that of a build output.
    fn has_output_name(&self, from_top: &Path) -> bool {
        let found = self.outputs.matched_path_or_any_parents(from_top, false);
        found.is_ignore()
    }

    /// Returns whether a change within a build output is one that programs of the host run or follow although nobody names it: a file that
    /// they find by its name or run by it, or a link that gives something else a second name. What goes is not run.
    pub(super) fn is_found(&self, top: &Path, change: &ViewChange<'_>) -> bool {
        let runs = match &change.after {
            Some(EntryState::Folder { .. }) => return false,
            Some(EntryState::Link { target }) => {
                self.leaves(top, change.path, &target.0) || self.by_name.finds(top, change.path)
            }
            Some(_) => self.by_name.finds(top, change.path),
            None => false,
        };
        runs || self.is_program(change.path)
    }

    /// Returns whether the host runs a file by its name alone.
    fn is_program(&self, path: &Path) -> bool {
        let folder = path.parent().unwrap_or(Path::new(""));
        let within = |programs: &PathBuf| folder.starts_with(programs);
        let anywhere = |programs: &PathBuf| folder.ends_with(programs);
        self.programs.iter().any(within) || self.anywhere.iter().any(anywhere)
    }

    /// Returns whether a link in a build output leads out of it: then its name would be one of files that are asked about. What the system
    /// has, it may lead to.
    fn leaves(&self, top: &Path, path: &Path, target: &Path) -> bool {
        let target = target_of_link(&self.root, path, target);
        target.map_or(path == top, |to| {
            let to = Path::new(&to);
            let inside = to != top && to.starts_with(top);
            // Not every folder there is an output: `.next/cache` is none.
            !inside || !self.has_output_name(from_top(top, to))
        })
    }
}

/// Returns a path at or below the topmost ignored one, without the folders above that.
fn from_top<'p>(top: &Path, path: &'p Path) -> &'p Path {
    let above = top.parent().unwrap_or(Path::new(""));
    path.strip_prefix(above).unwrap_or(path)
}
