//! The Python distribution that the running program was installed with, and whether it lies in a project.

use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use haft_builtins::lexical::normalize;

pub(super) const NODE_MODULES: &str = "node_modules";
/// Maximum size of a package's list of files or description, in bytes.
const MAX_LIST: u64 = 8 << 20;
/// Maximum number of entries inspected of a folder of packages.
const MAX_PACKAGES: usize = 20_000;
/// How many folders above the program are searched for a Python environment's packages.
const MAX_LEVELS: usize = 8;

/// Returns whether a file is in a virtual environment or `node_modules` of a project. The environments that `uv tool`,
/// `pipx` and `npm --global` create belong to no project.
pub(super) fn is_of_project(file: &Path, home: Option<&Path>) -> bool {
    const MARKS: [&str; 5] = [
        ".git",
        "package.json",
        "pyproject.toml",
        "setup.py",
        "requirements.txt",
    ];
    let environment = file.ancestors().skip(1).find(|folder| {
        folder.join("pyvenv.cfg").is_file()
            || folder.file_name().is_some_and(|name| name == NODE_MODULES)
    });
    let above = environment
        .into_iter()
        .flat_map(|folder| folder.ancestors().skip(1));
    let mut projects = above.take_while(|folder| {
        folder.parent().is_some() && home.is_none_or(|home| !home.starts_with(folder))
    });
    projects.any(|folder| MARKS.iter().any(|mark| folder.join(mark).exists()))
}

/// Returns what the Python distribution with this program has installed: its folders and its list of files.
pub(super) fn of_python(program: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for above in program.ancestors().skip(1).take(MAX_LEVELS) {
        let libraries = ["lib", "lib64"].map(|name| above.join(name));
        let versions = libraries.iter().flat_map(|folder| entries(folder));
        let versions = versions.map(|folder| folder.join("site-packages"));
        for site in versions.chain([above.to_owned()]) {
            let Ok(site) = site.canonicalize() else {
                continue;
            };
            for info in entries(&site) {
                if info.extension().is_some_and(|end| end == "dist-info") {
                    found.extend(of_record(program, &site, &info));
                }
            }
        }
    }
    found
}

/// Returns what a distribution has installed if its list of files has the program.
fn of_record(program: &Path, site: &Path, info: &Path) -> Vec<PathBuf> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let text = read(&info.join("RECORD"));
    if !text.contains(&*name) {
        return Vec::new();
    }
    // A path that holds a comma is in quotes.
    let paths = text
        .lines()
        .filter_map(|line| match line.strip_prefix('"') {
            Some(rest) => rest.split('"').next(),
            None => line.split(',').next(),
        });
    let listed: Vec<PathBuf> = paths.map(|path| normalize(&site.join(path))).collect();
    if !listed.iter().any(|path| path == program) {
        return Vec::new();
    }
    let top = |path: &PathBuf| match path.strip_prefix(site) {
        Ok(inside) => site.join(inside.components().next().unwrap_or(Component::CurDir)),
        Err(_) => path.clone(),
    };
    let mut found: Vec<PathBuf> = listed.iter().map(top).filter(|path| path != site).collect();
    found.push(info.to_owned());
    found.sort();
    found.dedup();
    found.retain(|path| path.exists());
    found
}

/// Returns what lies in a folder.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .take(MAX_PACKAGES)
        .map(|entry| entry.path())
        .collect()
}

/// Returns the text of a file, empty if it cannot be read.
pub(super) fn read(file: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = fs::File::open(file) {
        let _ = file.take(MAX_LIST).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
