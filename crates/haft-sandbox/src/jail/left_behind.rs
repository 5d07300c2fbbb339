//! Looks at what a command leaves that ends with its jail, as the first process inside, once the command has exited.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use super::plan::{ProgramRole, SupervisorPlan};
use crate::report::JailReport;
use crate::strength::Strength;

/// How often processes are looked for that are about to exit by themselves, as those of a pipe do.
const TRIES: u32 = 20;
/// How long between.
const PAUSE: Duration = Duration::from_millis(1);
/// Maximum number of processes, and of entries of HOME, that are looked at.
const MAX_LOOKED: usize = 1_000;
/// Maximum number of names of each kind that are reported.
const MAX_NAMED: usize = 24;
/// Maximum length of these names together, in bytes.
const MAX_TEXT: usize = 2_000;
/// Maximum depth at which a file is looked for.
const MAX_DEPTH: usize = 6;
/// The only folder of tools in a home whose name has no dot.
const GO: &str = "go";
/// The folder in which each kind of thing has a folder for each program.
const LOCAL: &str = ".local";

/// Returns the reports on what the command left.
pub(super) fn reports(plan: &SupervisorPlan) -> Vec<JailReport> {
    if plan.role != ProgramRole::Command || plan.strength() <= Strength::LandlockSeccomp {
        return Vec::new();
    }
    let mut reports = Vec::new();
    if has_processes() {
        reports.push(JailReport::LeftRunning(bounded(programs())));
    }
    let home = plan
        .env
        .iter()
        .find_map(|set| set.as_bytes().strip_prefix(b"HOME="));
    let home = home.map(|home| HomeLook::new(Path::new(OsStr::from_bytes(home))));
    let written = home.flatten().map(HomeLook::written).unwrap_or_default();
    if !written.is_empty() {
        reports.push(JailReport::LeftFiles(bounded(written)));
    }
    reports
}

/// Keeps as many names as a report has room for.
fn bounded(names: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut size = 0;
    let fits = |name: &PathBuf| {
        size += name.as_os_str().len() + 1;
        size <= MAX_TEXT
    };
    names.into_iter().take(MAX_NAMED).take_while(fits).collect()
}

/// Whether processes are left that do not exit by themselves at once.
fn has_processes() -> bool {
    for _ in 0..TRIES {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => thread::sleep(PAUSE),
            Err(_) => return false,
        }
    }
    true
}

/// Returns the programs of all processes but this one.
fn programs() -> Vec<PathBuf> {
    let me = std::process::id();
    let mut programs = Vec::new();
    let Ok(processes) = fs::read_dir("/proc") else {
        return programs;
    };
    for process in processes.take(MAX_LOOKED).flatten() {
        let number = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if number.is_none_or(|number: u32| number == me) {
            continue;
        }
        let Ok(name) = fs::read(process.path().join("comm")) else {
            continue;
        };
        let name = PathBuf::from(OsStr::from_bytes(name.trim_ascii_end()));
        if !programs.contains(&name) {
            programs.push(name);
        }
    }
    programs
}

/// A look at a command's HOME.
struct HomeLook<'a> {
    home: &'a Path,
    /// Its device: what is mounted below it outlives the command.
    device: u64,
    left: usize,
}

impl<'a> HomeLook<'a> {
    fn new(home: &'a Path) -> Option<Self> {
        let device = fs::symlink_metadata(home).ok()?.dev();
        Some(Self {
            home,
            device,
            left: MAX_LOOKED,
        })
    }

    /// Returns what was written there, down to the second level, and to the third in one folder.
    fn written(mut self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in self.entries(self.home) {
            let hidden = entry.name.as_os_str().as_bytes().starts_with(b".");
            if hidden || entry.name == Path::new(GO) {
                let levels = if entry.name == Path::new(LOCAL) { 3 } else { 2 };
                self.look(entry, levels - 1, &mut found);
            }
        }
        found.sort();
        found
    }

    /// Adds what an entry holds, this many levels below it.
    fn look(&mut self, entry: HomeEntry, levels: usize, found: &mut Vec<PathBuf>) {
        let path = self.home.join(&entry.name);
        match entry.kind {
            HomeEntryKind::File => found.push(entry.name),
            HomeEntryKind::Folder if levels == 0 => {
                if self.holds_file(&path, 0) {
                    found.push(entry.name);
                }
            }
            HomeEntryKind::Folder => {
                for below in self.entries(&path) {
                    let name = entry.name.join(&below.name);
                    let kind = below.kind;
                    self.look(HomeEntry { name, kind }, levels - 1, found);
                }
            }
        }
    }

    fn holds_file(&mut self, folder: &Path, depth: usize) -> bool {
        depth < MAX_DEPTH
            && self
                .entries(folder)
                .into_iter()
                .any(|entry| match entry.kind {
                    HomeEntryKind::File => true,
                    HomeEntryKind::Folder => self.holds_file(&folder.join(entry.name), depth + 1),
                })
    }

    /// Returns the files and folders of a folder that end with the command. Sockets and pipes are no one's files.
    fn entries(&mut self, folder: &Path) -> Vec<HomeEntry> {
        let mut found = Vec::new();
        let Ok(all) = fs::read_dir(folder) else {
            return found;
        };
        for entry in all.take(self.left).flatten() {
            self.left = self.left.saturating_sub(1);
            let Ok(meta) = entry.metadata() else { continue };
            let kind = meta.file_type();
            let kind = if kind.is_dir() {
                HomeEntryKind::Folder
            } else if kind.is_file() || kind.is_symlink() {
                HomeEntryKind::File
            } else {
                continue;
            };
            if meta.dev() == self.device {
                let name = entry.file_name().into();
                found.push(HomeEntry { name, kind });
            }
        }
        found
    }
}

/// An entry of a folder in HOME.
struct HomeEntry {
    name: PathBuf,
    kind: HomeEntryKind,
}

#[derive(Clone, Copy)]
enum HomeEntryKind {
    /// A file, or a link.
    File,
    Folder,
}
