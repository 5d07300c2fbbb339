//! Which Pythons there are, and what each needs to be seen of.

use std::path::{Path, PathBuf};

use super::locks::WORKSPACE;
use crate::jail::system::{self, FOLDERS, may_show};

/// A Python that may work; only running it says whether it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// As it is executed.
    pub(super) program: PathBuf,
    /// The file itself, no link.
    pub(super) file: PathBuf,
    /// Folders outside the system's that it lives in.
    pub(super) folders: Vec<PathBuf>,
    /// Folders of packages of a virtual environment.
    pub(super) sites: Vec<PathBuf>,
}

/// The Pythons to try, in this order: the one that the configuration names and no other, or the one on
/// the path, then the system's.
pub(super) fn candidates(named: Option<&Path>) -> Vec<Interpreter> {
    let known = ["/usr/bin/python3", "/usr/local/bin/python3"].map(PathBuf::from);
    let paths: Vec<_> = match named {
        Some(path) => vec![path.to_owned()],
        None => system::python_on_path().into_iter().chain(known).collect(),
    };
    let mut found: Vec<Interpreter> = Vec::new();
    for path in paths {
        if let Some(interpreter) = look(&path)
            && !found.contains(&interpreter)
        {
            found.push(interpreter);
        }
    }
    found
}

fn look(path: &Path) -> Option<Interpreter> {
    let path = std::path::absolute(path).ok()?;
    let file = path.canonicalize().ok().filter(|file| file.is_file())?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let (mut folders, mut sites) = (Vec::new(), Vec::new());
    let in_system = |path: &Path| {
        FOLDERS
            .iter()
            .any(|name| path.starts_with(Path::new("/").join(name)))
    };
    let shown = |folder: &Path| {
        // A script's own `/tmp` would cover what lies there.
        may_show(folder)
            && !folder.starts_with("/tmp")
            && !folder.starts_with(WORKSPACE)
            && !home.as_ref().is_some_and(|home| home.starts_with(folder))
    };
    let prefix = |file: &Path| Some(file.parent()?.parent()?.to_owned());
    let own = prefix(&file)?;
    if !in_system(&file) {
        if !shown(&own) {
            return None;
        }
        folders.push(own);
    }
    // A virtual environment: its packages lie beside the link to the interpreter.
    if let Some(environment) = prefix(&path).and_then(|path| path.canonicalize().ok())
        && environment.join("pyvenv.cfg").is_file()
        && shown(&environment)
    {
        let versions = std::fs::read_dir(environment.join("lib")).ok()?;
        sites = versions
            .flatten()
            .map(|version| version.path().join("site-packages"))
            .filter(|site| site.is_dir())
            .collect();
        if !in_system(&environment) {
            folders.extend(sites.iter().cloned());
        }
    }
    Some(Interpreter {
        program: file.clone(),
        file,
        folders,
        sites,
    })
}
