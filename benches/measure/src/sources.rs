//! Source code that exists on every machine that built this: the crates in cargo's registry.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns all files below the registry's sources with this ending, sorted by path.
pub fn files(ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(&root(), &mut found);
    found.retain(|path| path.extension().is_some_and(|e| e == ending));
    found.sort();
    found
}

/// Returns all crates in the registry's sources, sorted by name.
pub fn crates() -> Vec<PathBuf> {
    let registries = entries(&root());
    let mut found: Vec<PathBuf> = registries.iter().flat_map(|r| entries(r)).collect();
    found.sort();
    found
}

fn root() -> PathBuf {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    home.unwrap_or_default().join("registry/src")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries.flatten().map(|entry| entry.path()).collect()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        let Ok(about) = path.symlink_metadata() else {
            continue;
        };
        if about.is_dir() {
            walk(&path, found);
        } else if about.is_file() {
            found.push(path);
        }
    }
}
