//! The running program: its path, for code that starts it again, and the files that belong to it, which no tool may change.

mod node;
mod package;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use crate::site::Site;

/// The suffix that Linux appends to the path of a program whose file was replaced or removed (`proc_pid_exe(5)`).
const DELETED_SUFFIX: &[u8] = b" (deleted)";
/// The name by which users start the program.
const NAME: &str = "haft";
/// Maximum number of links on the way to the program, as in the kernel.
const MAX_LINKS: usize = 40;

/// How to install haft where no project's tools can change it.
pub const INSTALL_ELSEWHERE: &str = "install haft outside of projects: with `uv tool install`, `pipx install` or `npm install --global`";

/// Returns the program's file: the new one if it was replaced while running; `None` if there is no file any more.
pub(crate) fn own_program() -> Option<PathBuf> {
    replacement_path(&env::current_exe().ok()?)
}

fn replacement_path(path: &Path) -> Option<PathBuf> {
    let path = path_as_written(path);
    path.is_file().then_some(path)
}

/// Returns the path of a program whose file may be gone.
fn path_as_written(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    let written = bytes.strip_suffix(DELETED_SUFFIX).unwrap_or(bytes);
    PathBuf::from(OsStr::from_bytes(written))
}

/// The files of the running program, as absolute paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OwnProgramFiles {
    /// The program's file, the files and folders of the packages that it was installed with, and scripts that start it
    /// under its name.
    pub(crate) files: Vec<PathBuf>,
    /// Links on the way to them, and folders that these links pass through and leave again by `..`.
    pub(crate) links: Vec<PathBuf>,
}

impl OwnProgramFiles {
    /// Returns the files of this process's program.
    pub(crate) fn current() -> &'static Self {
        static FOUND: OnceLock<OwnProgramFiles> = OnceLock::new();
        FOUND.get_or_init(|| {
            let Ok(program) = env::current_exe() else {
                return Self::default();
            };
            let path = env::var_os("PATH").unwrap_or_default();
            let started = env::args_os()
                .next()
                .and_then(|name| start_path(&name, &path));
            let mut ways: Vec<PathBuf> = started.into_iter().collect();
            // haft starts itself by its real path, and its user starts it by a name.
            let by_name = env::split_paths(&path).map(|folder| folder.join(NAME));
            ways.extend(by_name.filter(|file| file.is_absolute()));
            Self::of(&path_as_written(&program), &ways)
        })
    }

    /// Returns the files of a program, which users may also start by the paths `ways`.
    fn of(program: &Path, ways: &[PathBuf]) -> Self {
        let mut found = Self::default();
        let real = program
            .canonicalize()
            .unwrap_or_else(|_| program.to_owned());
        links_on_way(program, &mut found.links);
        // Any other file of that name may be a different program.
        let same = |path: &&PathBuf| path.canonicalize().is_ok_and(|path| path == real);
        for way in ways.iter().filter(same) {
            links_on_way(way, &mut found.links);
        }
        found.files.extend(package::of_python(&real));
        node::add(&real, ways, &mut found);
        found.files.push(real);
        found.files.sort();
        found.files.dedup();
        found.links.sort();
        found.links.dedup();
        found
    }

    /// Returns the files and the links.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().chain(&self.links)
    }
}

/// Returns the path by which a program was started with this name.
fn start_path(name: &OsStr, path: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return std::path::absolute(name).ok();
    }
    let mut files = env::split_paths(path).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

/// Adds the links on the way to a file, and the folders that the links leave by `..`: with a link in place of such a
/// folder, the way would lead elsewhere.
fn links_on_way(path: &Path, links: &mut Vec<PathBuf>) {
    let mut rest: Vec<PathBuf> = parts(path).rev().collect();
    let mut at = PathBuf::from("/");
    let mut left = MAX_LINKS;
    while let Some(part) = rest.pop() {
        if part == Path::new("..") {
            // Before any link, a `..` is part of the path as the user typed it: nothing needs protection there.
            if left < MAX_LINKS && !links.iter().any(|link| link.starts_with(&at)) {
                links.push(at.clone());
            }
            at.pop();
            continue;
        }
        at.push(part);
        let Ok(text) = fs::read_link(&at) else {
            continue;
        };
        if left == 0 {
            return;
        }
        left -= 1;
        links.push(at.clone());
        if text.is_absolute() {
            at = PathBuf::from("/");
        } else {
            at.pop();
        }
        rest.extend(parts(&text).rev());
    }
}

fn parts(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> + '_ {
    let parts = path.components();
    let parts = parts.filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    parts.map(|part| PathBuf::from(part.as_os_str()))
}

/// A place of haft's program in which tools may change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnPlace {
    /// The program lies in the workspace.
    Workspace(PathBuf),
    /// It is installed in an environment of another project.
    Project(PathBuf),
}

impl OwnPlace {
    /// Returns the place if tools of agents may change the program there: the workspace, or the environment of a project, that is
    /// a folder with a virtual environment or `node_modules`.
    pub fn find(at: &Site) -> Option<Self> {
        let program = OwnProgramFiles::current();
        let of_workspace = at.check_workspace().is_ok();
        let inside = program.all().find(|path| path.starts_with(&at.workspace));
        if let Some(inside) = inside.filter(|_| of_workspace) {
            return Some(Self::Workspace(inside.clone()));
        }
        let home = at.environment.folder("HOME");
        let mut files = program.files.iter();
        files
            .any(|file| package::is_of_project(file, home.as_deref()))
            .then(|| program.files.first().cloned().map(Self::Project))
            .flatten()
    }

    /// Describes the place and the danger.
    pub fn words(&self) -> String {
        match self {
            Self::Workspace(path) => format!(
                "haft's program lies in the workspace ({}): what replaces it there runs outside of any jail",
                path.display()
            ),
            Self::Project(path) => format!(
                "haft's program lies in a project's folder ({}): agents that work there without this haft can replace it",
                path.display()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_replaced_program_is_the_file_that_took_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("haft");
        let replaced = folder.path().join("haft (deleted)");
        // A file whose real name ends like that is not haft's program.
        fs::write(&replaced, "").unwrap();
        assert_eq!(replacement_path(&replaced), None);
        fs::write(&program, "").unwrap();
        assert_eq!(replacement_path(&replaced), Some(program.clone()));
        assert_eq!(replacement_path(&program), Some(program));
    }

    /// Creates files and links, and returns what belongs to the program when started by a path, relative to the folder.
    fn files_of_own(
        tree: &[(&str, &str)],
        program: &str,
        started: &str,
    ) -> (Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (path, text) in tree {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match text.strip_prefix("-> ") {
                Some(to) => symlink(to, path).unwrap(),
                None => fs::write(path, text).unwrap(),
            }
        }
        let own = OwnProgramFiles::of(&root.join(program), &[root.join(started)]);
        let short = |paths: Vec<PathBuf>| {
            let inside = paths.into_iter();
            let inside = inside.map(|path| path.strip_prefix(&root).unwrap().to_owned());
            inside.map(|path| path.display().to_string()).collect()
        };
        (short(own.files), short(own.links))
    }

    #[test]
    fn the_files_of_an_installed_program_are_those_of_its_package() {
        let record =
            "h/__init__.py,sha256=x,1\nh-1.dist-info/RECORD,,\n../../../bin/haft,sha256=y,2\n";
        let venv = [
            ("v/bin/haft", ""),
            ("v/lib/python3.11/site-packages/h/__init__.py", ""),
            (
                "v/lib/python3.11/site-packages/h-1.dist-info/RECORD",
                record,
            ),
            (
                "v/lib/python3.11/site-packages/other-1.dist-info/RECORD",
                "other/haft,,\n",
            ),
            ("bin", "-> v/bin"),
        ];
        let (files, links) = files_of_own(&venv, "v/bin/haft", "bin/haft");
        let site = "v/lib/python3.11/site-packages";
        let expect = [
            "v/bin/haft".to_owned(),
            format!("{site}/h"),
            format!("{site}/h-1.dist-info"),
        ];
        assert_eq!((files, links), (expect.into(), vec!["bin".to_owned()]));

        let node = [
            ("node_modules/@x/h-linux/bin/haft", ""),
            (
                "node_modules/h/package.json",
                r#"{"optionalDependencies": {"@x/h-linux": "1"}}"#,
            ),
            ("node_modules/h/shim.js", ""),
            ("node_modules/z/package.json", "{}"),
            ("node_modules/.bin/haft", "-> ../h/shim.js"),
            ("node_modules/.bin/z", "-> ../z/package.json"),
        ];
        let (files, links) = files_of_own(&node, "node_modules/@x/h-linux/bin/haft", "none");
        let expect = [
            "node_modules/@x/h-linux",
            "node_modules/@x/h-linux/bin/haft",
            "node_modules/h",
        ];
        assert_eq!(files, expect);
        assert_eq!(links, ["node_modules/.bin/haft"]);
    }

    #[test]
    fn the_files_of_a_program_of_pnpm_are_its_packages_and_what_leads_to_them() {
        let store = "node_modules/.pnpm";
        let at = |path: &str| format!("{store}/{path}");
        let tree = [
            (at("@x+h-linux@1/node_modules/@x/h-linux/bin/haft"), ""),
            (
                at("h@1/node_modules/h/package.json"),
                r#"{"optionalDependencies": {"@x/h-linux": "1"}}"#,
            ),
            (
                at("h@1/node_modules/@x/h-linux"),
                "-> ../../../@x+h-linux@1/node_modules/@x/h-linux",
            ),
            (at("z@1/node_modules/z/package.json"), "{}"),
            ("node_modules/h".to_owned(), "-> .pnpm/h@1/node_modules/h"),
            ("node_modules/z".to_owned(), "-> .pnpm/z@1/node_modules/z"),
            (
                "node_modules/.bin/haft".to_owned(),
                r#"exec node "$basedir/../h/shim.js""#,
            ),
            (
                "node_modules/.bin/z".to_owned(),
                r#"NODE_PATH=/h/node_modules exec node "$basedir/../z/h/z.js""#,
            ),
            (
                "part/node_modules/h".to_owned(),
                "-> ../../node_modules/.pnpm/h@1/node_modules/h",
            ),
            (
                "part/node_modules/.bin/haft".to_owned(),
                r#"exec node "$basedir/../h/shim.js""#,
            ),
        ];
        let tree: Vec<_> = tree
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect();
        let program = at("@x+h-linux@1/node_modules/@x/h-linux/bin/haft");
        let (files, links) = files_of_own(&tree, &program, "part/node_modules/.bin/haft");
        let expect = [
            "node_modules/.bin/haft".to_owned(),
            at("@x+h-linux@1/node_modules/@x/h-linux"),
            program.clone(),
            at("h@1/node_modules/h"),
            "part/node_modules/.bin/haft".to_owned(),
        ];
        assert_eq!(files, expect);
        let expect = [
            at("h@1/node_modules/@x/h-linux"),
            "node_modules/h".to_owned(),
            "part/node_modules/h".to_owned(),
        ];
        assert_eq!(links, expect);
    }

    #[test]
    fn the_links_of_a_program_are_all_on_the_way_with_the_folders_that_it_leaves() {
        let tree = [
            ("ign/env/bin/haft", ""),
            ("a/b/x", ""),
            ("tools", "-> a/b/../../ign"),
            (".venv", "-> tools/env"),
        ];
        let (_, links) = files_of_own(&tree, "ign/env/bin/haft", ".venv/bin/haft");
        assert_eq!(links, [".venv", "a/b", "tools"]);
    }
}
