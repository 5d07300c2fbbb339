//! An interpreter outside the system's folders, and the exact parts of its installation that it needs.
//!
//! A prefix is never shown as a whole: `~/.local` holds an interpreter next to state, keys and tokens.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{PathPurpose, PathRefusal, Places};

/// Maximum number of entries examined in a folder of programs.
const MOST_NAMES: usize = 1_000;
/// Maximum number of scripts shown per interpreter.
const MOST_SCRIPTS: usize = 64;
/// Maximum number of bytes read of a script's first line.
const FIRST_LINE: u64 = 256;

/// An interpreter that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Toolchain {
    /// The program itself, by canonical path.
    pub(crate) program: PathBuf,
    /// The parts of its prefix to show; empty if it is the system's.
    pub(crate) parts: Vec<PathBuf>,
}

impl Toolchain {
    /// Returns the interpreter at this path, if it may be started.
    pub(crate) fn at(places: &Places, path: &Path) -> Result<Self, PathRefusal> {
        let program = places.startable(path)?;
        let mut parts = Vec::new();
        if let (false, Some(prefix)) = (places.is_shown(&program), prefix_of(&program)) {
            parts.push(places.admit(&program, PathPurpose::Part(prefix))?);
            let admit = |path: &PathBuf| places.admit(path, PathPurpose::Part(prefix)).ok();
            parts.extend(candidates(prefix, &program).iter().filter_map(admit));
        }
        Ok(Self { program, parts })
    }

    /// Returns the folder of its program, unless that is the system's.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.program.parent().filter(|_| !self.parts.is_empty())
    }

    /// Returns the other names in its folder: links to it or into its parts, and scripts that it runs.
    pub(crate) fn names(&self, places: &Places) -> Vec<InterpreterAlias> {
        let (Some(folder), Some(prefix)) = (self.folder(), prefix_of(&self.program)) else {
            return Vec::new();
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.take(MOST_NAMES).map(|entry| entry.path()).collect();
        paths.sort();
        let mut names = Vec::new();
        let mut scripts = 0;
        let mut runners = Runners::default();
        for path in paths {
            if let Ok(to) = fs::read_link(&path) {
                let end = path.canonicalize().unwrap_or_default();
                if self.parts.iter().any(|part| end.starts_with(part)) {
                    names.push(InterpreterAlias::Link { path, to });
                }
            } else if scripts < MOST_SCRIPTS
                && runners.of(&path).as_deref() == Some(&*self.program)
                && let Ok(path) = places.admit(&path, PathPurpose::Part(prefix))
            {
                scripts += 1;
                names.push(InterpreterAlias::Script(path));
            }
        }
        names
    }
}

/// The programs that the first lines of scripts name. Most scripts of a folder name the same one, which is looked up once.
#[derive(Debug, Default)]
struct Runners {
    named: PathBuf,
    real: Option<PathBuf>,
}

impl Runners {
    /// Returns the program that runs a script, by its canonical path.
    fn of(&mut self, script: &Path) -> Option<PathBuf> {
        if !fs::symlink_metadata(script).is_ok_and(|meta| meta.is_file()) {
            return None;
        }
        let mut line = Vec::new();
        let read = fs::File::open(script).map(|file| file.take(FIRST_LINE).read_to_end(&mut line));
        let rest = line.strip_prefix(b"#!").filter(|_| read.is_ok())?;
        let mut words = rest.split(u8::is_ascii_whitespace);
        let program = words.find(|word| !word.is_empty()).unwrap_or_default();
        let program = Path::new(OsStr::from_bytes(program));
        if !program.is_absolute() {
            return None;
        }
        if self.named != program {
            program.clone_into(&mut self.named);
            self.real = program.canonicalize().ok();
        }
        self.real.clone()
    }
}

/// Another name next to an interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InterpreterAlias {
    /// A symbolic link and its target.
    Link { path: PathBuf, to: PathBuf },
    /// A file to show.
    Script(PathBuf),
}

/// Returns the folder above `bin`.
fn prefix_of(program: &Path) -> Option<&Path> {
    program.parent()?.parent()
}

/// Returns the parts of a prefix that an interpreter needs, if they exist.
fn candidates(prefix: &Path, program: &Path) -> Vec<PathBuf> {
    let mut found = vec![prefix.join("lib")];
    let name = program.file_name().and_then(OsStr::to_str);
    if name.is_some_and(|name| name.starts_with("python")) {
        for folder in ["lib", "lib64"] {
            let entries = fs::read_dir(prefix.join(folder)).into_iter().flatten();
            let paths = entries.flatten().map(|entry| entry.path());
            found.extend(paths.filter(|path| !path.ends_with("node_modules")));
        }
    } else {
        found.extend(["lib/node_modules", "include/node"].map(|part| prefix.join(part)));
    }
    found.retain(|path| is_part(prefix, path));
    found
}

/// Returns whether a path is one of the exact parts of an installation: `bin/NAME`, `lib/pythonX.Y` and its
/// `site-packages`, `lib64/pythonX.Y`, `lib/libpythonX.Y….so…`, `lib/node_modules`, `include/node`; or `lib` itself in
/// a prefix created by conda, which contains nothing else.
pub(super) fn is_part(prefix: &Path, path: &Path) -> bool {
    let Ok(rest) = path.strip_prefix(prefix) else {
        return false;
    };
    let words: Option<Vec<&str>> = rest.iter().map(|part| part.to_str()).collect();
    match words.as_deref() {
        Some(["bin", _]) => path.is_file(),
        Some(["lib" | "lib64", name] | ["lib", name, "site-packages"]) if is_versioned(name) => {
            path.is_dir()
        }
        Some(["lib", name]) if name.starts_with("libpython") => path.is_file(),
        Some(["lib", "node_modules"] | ["include", "node"]) => path.is_dir(),
        Some(["lib"]) => prefix.join("conda-meta/history").is_file(),
        _ => false,
    }
}

/// Matches `python3.12`, `python3.13t`.
fn is_versioned(name: &str) -> bool {
    let version = name.strip_prefix("python3.");
    version.is_some_and(|version| {
        version.starts_with(|digit: char| digit.is_ascii_digit())
            && version.chars().all(|letter| letter.is_ascii_alphanumeric())
    })
}

/// Returns the first program of this name on this process's `PATH` that may be started, and those passed over before it.
pub(crate) fn on_path(places: &Places, name: &str) -> (Option<Toolchain>, Vec<PathRefusal>) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut passed_over = Vec::new();
    for file in std::env::split_paths(&path).filter_map(|bin| in_folder(&bin, name)) {
        match Toolchain::at(places, &file) {
            Ok(found) => return (Some(found), passed_over),
            Err(refused) => passed_over.push(refused),
        }
    }
    (None, passed_over)
}

/// Returns the files that a name refers to on this process's `PATH`, in order.
pub(crate) fn files_on_path(name: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter_map(|bin| in_folder(&bin, name))
        .collect()
}

fn in_folder(bin: &Path, name: &str) -> Option<PathBuf> {
    let file = if bin.ends_with("shims") {
        chosen_version(bin, name)?
    } else {
        bin.join(name)
    };
    (file.is_absolute() && file.is_file()).then_some(file)
}

/// Version managers put scripts on `PATH`; the interpreter that such a script would run lies next to them.
fn chosen_version(shims: &Path, name: &str) -> Option<PathBuf> {
    let root = shims.parent()?;
    let chosen = fs::read_to_string(root.join("version")).ok()?;
    let version = chosen.lines().next()?.trim();
    let plain = !version.is_empty() && !version.contains('/') && version != "..";
    plain.then(|| root.join("versions").join(version).join("bin").join(name))
}
