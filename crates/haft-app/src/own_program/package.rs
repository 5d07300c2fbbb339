//! The package that the running program was installed with: a Python distribution, or packages of `node_modules`.

use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

/// Maximum size of a package's list of files or description, in bytes.
const MAX_LIST: u64 = 8 << 20;
/// Maximum number of entries inspected of a folder of packages.
const MAX_PACKAGES: usize = 20_000;
/// How many folders above the program are searched for a Python environment's packages.
const MAX_LEVELS: usize = 8;
const NODE_MODULES: &str = "node_modules";

/// Returns the files and folders of the packages that the program, a real path, belongs to.
pub(super) fn files(program: &Path) -> Vec<PathBuf> {
    let mut found = of_python(program);
    found.extend(of_node(program));
    found
}

/// Returns the links in folders of commands of `node_modules` that lead to these files.
pub(super) fn links(files: &[PathBuf]) -> Vec<PathBuf> {
    let modules = files.iter().flat_map(|file| node_modules(file));
    let bins = modules.map(|folder| folder.join(".bin"));
    let mut found = Vec::new();
    for link in bins.flat_map(|bin| entries(&bin)) {
        let real = link.canonicalize();
        if real.is_ok_and(|real| files.iter().any(|file| real.starts_with(file))) {
            found.push(link);
        }
    }
    found
}

/// Returns whether a file lies in a virtual environment or `node_modules` of a project. Environments of their own, as `uv tool`, `pipx`
/// and `npm --global` create them, belong to none.
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
fn of_python(program: &Path) -> Vec<PathBuf> {
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

/// Returns the packages of `node_modules` that hold the program, and those beside them that name one of these.
fn of_node(program: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for modules in node_modules(program) {
        let Ok(inside) = program.strip_prefix(&modules) else {
            continue;
        };
        let mut parts = inside.components();
        let mut name = PathBuf::from(parts.next().unwrap_or(Component::CurDir).as_os_str());
        if name.as_os_str().as_encoded_bytes().starts_with(b"@") {
            name.extend(parts.next());
        }
        found.push(modules.join(&name));
        let quoted = format!("\"{}\"", name.display());
        for package in packages(&modules) {
            if read(&package.join("package.json")).contains(&quoted) {
                found.extend(package.canonicalize());
            }
        }
    }
    found
}

/// Returns the folders called `node_modules` above a path.
fn node_modules(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    let named = above.filter(|folder| folder.file_name().is_some_and(|name| name == NODE_MODULES));
    named.map(Path::to_owned).collect()
}

/// Returns the packages in a folder, also those of scopes.
fn packages(modules: &Path) -> Vec<PathBuf> {
    let is_scope = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b"@")
    };
    let (scopes, mut all): (Vec<_>, Vec<_>) = entries(modules).into_iter().partition(is_scope);
    all.extend(scopes.iter().flat_map(|scope| entries(scope)));
    all.truncate(MAX_PACKAGES);
    all
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .take(MAX_PACKAGES)
        .map(|entry| entry.path())
        .collect()
}

fn read(file: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = fs::File::open(file) {
        let _ = file.take(MAX_LIST).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn normalize(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = clean.pop(),
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}
