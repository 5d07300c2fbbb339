//! The packages of `node_modules` that the running program was installed with, and the links and scripts that lead to them.
//!
//! npm puts packages side by side and links to their programs into `.bin`. pnpm puts each package into a folder of its own below
//! `.pnpm`, links to it from wherever it is used, and writes scripts into `.bin`.

use std::path::{Path, PathBuf};

use super::package::{NODE_MODULES, entries, read};
use super::{OwnProgramFiles, links_on_way};

/// Maximum number of packages inspected of a folder.
const MAX_PACKAGES: usize = 20_000;

/// Adds what belongs to the program, given by its real path, if it is in `node_modules`. Users may start it by the
/// paths `ways`: each project of a workspace has a `.bin` of its own.
pub(super) fn add(program: &Path, ways: &[PathBuf], own: &mut OwnProgramFiles) {
    let mut folders = node_modules(program);
    let Some(package) = folders.first().and_then(|within| holding(within, program)) else {
        return;
    };
    // The package with the program for one platform, and those that depend on it.
    let quoted = format!("\"{}\"", name(&package));
    let mut packages = vec![package];
    for beside in folders.iter().flat_map(|folder| installed(folder)) {
        if read(&beside.join("package.json")).contains(&quoted) {
            packages.extend(beside.canonicalize());
        }
    }
    folders.extend(packages.iter().flat_map(|package| node_modules(package)));
    let others = ways.iter().flat_map(|way| node_modules(way));
    folders.extend(others.filter_map(|folder| folder.canonicalize().ok()));
    folders.sort();
    folders.dedup();

    let mut names: Vec<String> = packages.iter().map(|package| name(package)).collect();
    for link in folders.iter().flat_map(|folder| installed(folder)) {
        let leads = |real: PathBuf| packages.contains(&real);
        if link.is_symlink() && link.canonicalize().is_ok_and(leads) {
            names.push(name(&link));
            links_on_way(&link, &mut own.links);
        }
    }
    for command in folders
        .iter()
        .flat_map(|folder| entries(&folder.join(".bin")))
    {
        let Ok(real) = command.canonicalize() else {
            continue;
        };
        if packages.iter().any(|package| real.starts_with(package)) {
            links_on_way(&command, &mut own.links);
        } else if !command.is_symlink() && starts_one_of(&command, &names) {
            links_on_way(&command, &mut own.links);
            own.files.push(real);
        }
    }
    own.files.extend(packages);
}

/// Returns whether a script in `.bin` names a file of one of these packages.
fn starts_one_of(script: &Path, names: &[String]) -> bool {
    let text = read(script);
    names.iter().any(|name| {
        let named = |before: &str| text.contains(&format!("{before}/{name}/"));
        named("..") || named(NODE_MODULES)
    })
}

/// Returns the package, of those in a folder `node_modules`, that holds a file.
fn holding(modules: &Path, file: &Path) -> Option<PathBuf> {
    let mut parts = file.strip_prefix(modules).ok()?.components();
    let mut package = modules.join(parts.next()?);
    if is_scope(&package) {
        package.push(parts.next()?);
    }
    (package != file).then_some(package)
}

/// Returns the name by which a package, or a link to it, is found: with its scope.
fn name(package: &Path) -> String {
    let last = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    match package.parent() {
        Some(scope) if is_scope(scope) => format!("{}/{}", last(scope), last(package)),
        _ => last(package),
    }
}

/// Returns the folders called `node_modules` above a path, the innermost first.
fn node_modules(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    let named = above.filter(|folder| folder.file_name().is_some_and(|name| name == NODE_MODULES));
    named.map(Path::to_owned).collect()
}

/// Returns the packages in a folder, also those of scopes.
fn installed(modules: &Path) -> Vec<PathBuf> {
    let (scopes, mut all): (Vec<_>, Vec<_>) = entries(modules)
        .into_iter()
        .partition(|path| is_scope(path));
    all.extend(scopes.iter().flat_map(|scope| entries(scope)));
    all.truncate(MAX_PACKAGES);
    all
}

fn is_scope(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b"@")
}
