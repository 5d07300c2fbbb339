//! `BuildOutputs`: which ignored files a command may change unasked: what a build makes, and nothing that the host runs by itself.

use std::path::{Component, Path, PathBuf};

use haft::change::EntryState;
use haft::change::collect::ViewChange;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Names of files and folders that builds, tests and caches make, as the documentation of their programs says. A name with a slash is
/// about a folder within the ignored one.
pub const BUILD_OUTPUTS: &[&str] = &[
    "*.log",
    ".angular/cache",
    ".astro",
    ".coverage",
    ".dart_tool",
    ".docusaurus",
    ".eslintcache",
    ".gradle",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".next",
    ".nuxt",
    ".nyc_output",
    ".output",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".ruff_cache",
    ".stylelintcache",
    ".svelte-kit",
    ".turbo",
    ".zig-cache",
    "*.tsbuildinfo",
    "_build",
    "build",
    "cmake-build-*",
    "coverage",
    "dist",
    "htmlcov",
    "node_modules/.cache",
    "node_modules/.vite*",
    "obj",
    "out",
    "playwright-report",
    "target",
    "test-results",
    "tmp",
    "zig-out",
];

/// Names of files that programs of the host run although nobody names them: byte code in place of its source, startup files, and what
/// collectors of tests load.
const RUN_BY_THEMSELVES: &[&str] = &[
    "*.pyc",
    "*.pyo",
    "*.pth",
    "activate*",
    "sitecustomize.py",
    "usercustomize.py",
    "conftest.py",
    "test_*.py",
    "*_test.py",
    "*_test.go",
    ".envrc*",
    ".npmrc",
    ".yarnrc*",
    "pyvenv.cfg",
];

/// What may be changed unasked of that which git ignores.
#[derive(Debug, Clone)]
pub struct BuildOutputs {
    outputs: Gitignore,
    run: Gitignore,
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
        let mut outputs: Vec<&str> = BUILD_OUTPUTS.to_vec();
        for name in names {
            match name.strip_prefix('!') {
                Some(removed) => outputs.retain(|known| *known != removed),
                None => outputs.push(name.trim_matches('/')),
            }
        }
        // From the ignored path itself: below it, a name says nothing, as packages have a `dist`, too.
        let anchored: Vec<String> = outputs.iter().map(|name| format!("/{name}")).collect();
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
        Ok(Self {
            outputs: patterns(anchored.iter().map(String::as_str))?,
            run: patterns(RUN_BY_THEMSELVES.iter().copied())?,
            programs: absolute.into_iter().filter_map(within).collect(),
            anywhere: relative.into_iter().map(plain).collect(),
        })
    }

    /// Returns whether a path is a build output by its name. `top` is the highest path there that git ignores.
    pub(super) fn is_output(&self, top: &Path, path: &Path) -> bool {
        let above = top.parent().unwrap_or(Path::new(""));
        let Ok(below) = path.strip_prefix(above) else {
            return false;
        };
        let found = self.outputs.matched_path_or_any_parents(below, false);
        found.is_ignore()
    }

    /// Returns whether programs of the host run what is at this path although nobody names it.
    pub(super) fn is_run(&self, change: &ViewChange<'_>) -> bool {
        let folder = change.path.parent().unwrap_or(Path::new(""));
        let by_name = self
            .programs
            .iter()
            .any(|programs| folder.starts_with(programs))
            || self
                .anywhere
                .iter()
                .any(|programs| folder.ends_with(programs));
        let is_folder = matches!(change.after, Some(EntryState::Folder { .. }));
        let name = change.path.file_name().map(Path::new);
        let runs = |name: &Path| self.run.matched(name, is_folder).is_ignore();
        (by_name && !is_folder) || name.is_none_or(runs)
    }
}

fn patterns<'a>(names: impl Iterator<Item = &'a str>) -> Result<Gitignore, ignore::Error> {
    let mut builder = GitignoreBuilder::new("");
    builder.case_insensitive(true)?;
    for name in names {
        builder.add_line(None, name)?;
    }
    builder.build()
}
