//! Finds the available Pythons, and what each needs to see.

use std::fs;
use std::path::{Path, PathBuf};

use super::locks::WORKSPACE;
use crate::places::toolchain::{Toolchain, files_on_path};
use crate::places::{PathPurpose, PathRefusal, Places};

/// A Python that may work; only running it shows whether it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// The program, by canonical path.
    pub(super) program: PathBuf,
    /// The parts that it needs outside the system's folders.
    pub(super) parts: Vec<PathBuf>,
    /// Package folders of a virtual environment.
    pub(super) sites: Vec<PathBuf>,
}

/// The Pythons to try, in order, and why others were passed over.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    pub(super) found: Vec<Interpreter>,
    pub(super) passed_over: Vec<PathRefusal>,
}

/// Returns only the one that the configuration names, or those on the path, then the system's.
pub(super) fn candidates(places: &Places, named: Option<&Path>) -> Candidates {
    let known = ["/usr/bin/python3", "/usr/local/bin/python3"].map(PathBuf::from);
    let paths: Vec<_> = match named {
        Some(path) => vec![path.to_owned()],
        None => files_on_path("python3").into_iter().chain(known).collect(),
    };
    let mut all = Candidates::default();
    for path in paths {
        if named.is_none() && !path.is_file() {
            continue;
        }
        match look(places, &path) {
            Ok(interpreter) if all.found.contains(&interpreter) => {}
            Ok(interpreter) => all.found.push(interpreter),
            Err(refused) => all.passed_over.push(refused),
        }
    }
    all
}

fn look(places: &Places, path: &Path) -> Result<Interpreter, PathRefusal> {
    let Toolchain { program, mut parts } = Toolchain::at(places, path)?;
    let sites = sites(places, path)?;
    parts.extend(sites.iter().filter(|site| !places.is_shown(site)).cloned());
    // A script's own folders would cover files that lie there.
    let covered = |part: &&PathBuf| part.starts_with("/tmp") || part.starts_with(WORKSPACE);
    if let Some(part) = parts.iter().find(covered) {
        return Err(PathRefusal {
            path: part.clone(),
            why: "lies where a script has a folder of its own".into(),
        });
    }
    Ok(Interpreter {
        program,
        parts,
        sites,
    })
}

/// Returns the packages of a virtual environment, which lie next to the link to its interpreter.
fn sites(places: &Places, path: &Path) -> Result<Vec<PathBuf>, PathRefusal> {
    let environment = path.parent().and_then(Path::parent);
    let environment = environment.and_then(|folder| folder.canonicalize().ok());
    let Some(environment) = environment.filter(|folder| folder.join("pyvenv.cfg").is_file()) else {
        return Ok(Vec::new());
    };
    let versions = fs::read_dir(environment.join("lib")).into_iter().flatten();
    let sites = versions
        .flatten()
        .map(|version| version.path().join("site-packages"));
    let admit = |site: PathBuf| {
        if places.is_shown(&site) {
            Ok(site)
        } else {
            places.admit(&site, PathPurpose::Part(&environment))
        }
    };
    sites.filter(|site| site.is_dir()).map(admit).collect()
}
