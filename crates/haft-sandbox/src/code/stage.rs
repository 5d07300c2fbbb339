//! The environment of an interpreter: its root, its files, its variables, the locks of its scripts.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::interpreter::Interpreter;
use super::locks::{self, DEVICES, LockConfig, NOTHING, WORKSPACE};
use super::{CodeConfig, LibrarySet};
use crate::StartError;
use crate::filter::Isolation;
use crate::filter::command::{self, FilterVariant, SocketPolicy};
use crate::held_places::scratch::ScratchFolder;
use crate::jail::depth;
use crate::jail::plan::{
    BindMode, KernelLimits, LandlockGrant, ProgramRole, RootEntry, SupervisorPlan,
};
use crate::places::{Places, SYSTEM};
use crate::strength::Strength;

const LOCKDOWN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lockdown.so"));
const ZYGOTE: &str = include_str!("zygote.py");
const FRESH: &str = include_str!("fresh.py");
/// The folder of our own files inside; no script may access it.
const OWN: &str = "/.haft";
/// Files of `/etc` that the loader and the clock read.
const ETC: [&str; 2] = ["/etc/ld.so.cache", "/etc/localtime"];
/// Paths of the loader of dynamic programs, by architecture and C library.
const LOADERS: [&str; 4] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];

/// Maximum number of processes and threads of all children of one zygote.
const TOGETHER: u64 = 4096;

/// Everything that determines how an interpreter is jailed.
#[derive(Debug, Clone, Copy)]
pub(super) struct InterpreterSetup<'a> {
    pub(super) config: &'a CodeConfig,
    pub(super) interpreter: &'a Interpreter,
    pub(super) places: &'a Places,
    pub(super) kind: LibrarySet,
    pub(super) level: Strength,
    pub(super) landlock: u32,
}

impl InterpreterSetup<'_> {
    fn namespaces(&self) -> bool {
        self.level > Strength::LandlockSeccomp
    }

    fn kind_word(&self) -> &'static str {
        match self.kind {
            LibrarySet::Plain => "plain",
            LibrarySet::Data => "data",
        }
    }

    /// Returns the plan of a zygote, and the folder of its files if it has no root of its own.
    pub(super) fn zygote(&self) -> Result<(SupervisorPlan, Option<ScratchFolder>), StartError> {
        let locks = self.locks(&[], None)?;
        let files = [
            ("zygote.py", ZYGOTE.as_bytes()),
            ("runtime.py", self.config.runtime.as_bytes()),
            ("lockdown.so", LOCKDOWN),
            ("locks", &locks),
        ];
        let namespaces = if self.namespaces() { "namespaces" } else { "-" };
        let words = ["-s", "-S", "-B"].map(OsString::from);
        let (mut plan, scratch) = self.plan(&files, &words, &[self.kind_word(), namespaces])?;
        plan.role = ProgramRole::Zygote;
        plan.locks = locks::mounts();
        plan.caps.pids = TOGETHER;
        plan.grants = self.grants(scratch.as_ref());
        let filters = command::all(FilterVariant {
            around: Isolation::of(self.namespaces(), self.landlock),
            sockets: SocketPolicy::None,
            memory_files: false,
            role: command::FilterTarget::Zygote,
        });
        plan.filters = filters.map_err(|_| StartError::no_filter())?;
        Ok((plan, scratch))
    }

    /// Returns the plan of one script's own interpreter, which sees `folder` as its own.
    pub(super) fn fresh(
        &self,
        folder: &Path,
    ) -> Result<(SupervisorPlan, Option<ScratchFolder>), StartError> {
        let programs = self.programs();
        let files = [
            ("fresh.py", FRESH.as_bytes()),
            ("runtime.py", self.config.runtime.as_bytes()),
        ];
        let words = ["-I", "-S", "-B"].map(OsString::from);
        let seen = folder.to_string_lossy();
        let (mut plan, scratch) = self.plan(&files, &words, &[self.kind_word(), &seen])?;
        let own = scratch
            .as_ref()
            .map_or_else(|| PathBuf::from(OWN), |scratch| scratch.0.clone());
        plan.role = ProgramRole::Fresh;
        folder.clone_into(&mut plan.folder);
        plan.locks = self.locks(&programs, Some(&own))?;
        Ok((plan, scratch))
    }

    /// Returns the files to execute: the interpreter, and its loader.
    fn programs(&self) -> Vec<PathBuf> {
        let loaders = LOADERS
            .iter()
            .filter_map(|path| fs::canonicalize(path).ok());
        let mut programs: Vec<_> = loaders.collect();
        programs.push(self.interpreter.program.clone());
        programs
    }

    /// Returns what Landlock grants a zygote, and its children at most. In a root of its own that is everything
    /// except programs, devices and sockets: nothing there can be changed, and the children's own folders are
    /// added later. Otherwise it is what the zygote reads, and the folder of its children.
    fn grants(&self, scratch: Option<&ScratchFolder>) -> Vec<(PathBuf, LandlockGrant)> {
        let programs = self
            .programs()
            .into_iter()
            .map(|path| (path, LandlockGrant::Execute));
        let mut grants: Vec<_> = programs.collect();
        let Some(scratch) = scratch else {
            grants.push(("/".into(), LandlockGrant::Script));
            return grants;
        };
        grants.push((folders_in(scratch), LandlockGrant::Script));
        let readable = self.readable().into_iter().chain([scratch.0.clone()]);
        let readable = readable.map(|path| (path, LandlockGrant::Read));
        let devices = DEVICES.map(|path| (path.into(), LandlockGrant::Device));
        grants.into_iter().chain(readable).chain(devices).collect()
    }

    fn readable(&self) -> Vec<PathBuf> {
        let mut readable: Vec<_> = folders()
            .filter(|path| !path.is_symlink() && path.is_dir())
            .flat_map(|path| self.readable_of(path))
            .chain(ETC.iter().filter_map(|path| fs::canonicalize(path).ok()))
            .collect();
        if self.namespaces() {
            // Inside they are separate files, not links to those outside.
            readable.retain(|path| !path.starts_with("/etc"));
            readable.extend(ETC.iter().map(PathBuf::from).filter(|path| path.exists()));
        }
        readable.extend(self.interpreter.parts.iter().cloned());
        readable
    }

    /// In a root of its own, entries hide the parts of a folder that must not be seen.
    fn readable_of(&self, folder: PathBuf) -> Vec<PathBuf> {
        if self.namespaces() {
            return vec![folder];
        }
        self.places.parts_shown(&folder)
    }

    fn locks(&self, programs: &[PathBuf], own: Option<&Path>) -> Result<Vec<u8>, StartError> {
        let readable = self.readable();
        let locks = LockConfig {
            level: self.level,
            landlock: self.landlock,
            memory_mb: match self.kind {
                LibrarySet::Plain => self.config.memory_mb,
                LibrarySet::Data => self.config.data_memory_mb,
            },
            readable: &readable,
            own,
            programs,
        };
        locks.list()
    }

    /// Builds the part of the plan that both have in common.
    fn plan(
        &self,
        files: &[(&str, &[u8])],
        options: &[OsString],
        words: &[&str],
    ) -> Result<(SupervisorPlan, Option<ScratchFolder>), StartError> {
        let mut plan = SupervisorPlan {
            cwd: "/".into(),
            caps: KernelLimits {
                data: u64::MAX,
                pids: u64::MAX,
                file: u64::MAX,
                cpu: u64::MAX,
                open_files: u64::MAX,
            },
            env: self.environment(),
            ..SupervisorPlan::default()
        };
        plan.set_strength(self.level);
        let (scratch, own) = if self.namespaces() {
            plan.entries = self.entries(files);
            (None, PathBuf::from(OWN))
        } else {
            let scratch = write(files).map_err(|source| StartError::System {
                step: "make a private folder",
                source,
            })?;
            let own = scratch.0.clone();
            (Some(scratch), own)
        };
        let first = files.first().map_or("", |(name, _)| name);
        plan.argv.push(self.interpreter.program.clone().into());
        plan.argv.extend(options.iter().cloned());
        plan.argv.push(own.join(first).into());
        plan.argv.extend(words.iter().map(OsString::from));
        let sites = self.interpreter.sites.iter().cloned();
        plan.argv.extend(sites.map(OsString::from));
        Ok((plan, scratch))
    }

    /// Returns the root's entries: what an interpreter reads, and nothing of the host that changes or identifies it.
    fn entries(&self, files: &[(&str, &[u8])]) -> Vec<RootEntry> {
        let bind = |path: &Path, kind| RootEntry::Bind {
            source: path.to_owned(),
            target: path.to_owned(),
            kind,
        };
        let mut entries = Vec::new();
        for path in folders() {
            if let Ok(to) = fs::read_link(&path) {
                entries.push(RootEntry::Link { target: path, to });
            } else if path.is_dir() {
                entries.push(bind(&path, BindMode::ReadOnly));
            }
        }
        let hidden = self.places.foreign().into_iter();
        entries.extend(hidden.map(|target| RootEntry::Hidden { target }));
        for path in &self.interpreter.parts {
            entries.push(bind(path, BindMode::ReadOnly));
        }
        for path in DEVICES {
            entries.push(bind(Path::new(path), BindMode::Device));
        }
        for path in ETC {
            if let Ok(bytes) = fs::read(path) {
                let target = path.into();
                entries.push(RootEntry::File { target, bytes });
            }
        }
        for (name, bytes) in files {
            let target = Path::new(OWN).join(name);
            let bytes = bytes.to_vec();
            entries.push(RootEntry::File { target, bytes });
        }
        for path in ["/tmp", WORKSPACE, NOTHING] {
            let target = path.into();
            entries.push(RootEntry::Dir { target });
        }
        entries.sort_by_key(depth);
        entries
    }

    /// Returns the variables; nothing of this process's own except its time zone.
    fn environment(&self) -> Vec<OsString> {
        let mut env: Vec<OsString> = vec![
            "LANG=C.UTF-8".into(),
            "PYTHONHASHSEED=0".into(),
            "PYTHONDONTWRITEBYTECODE=1".into(),
            "PYTHONUTF8=1".into(),
        ];
        let zone = std::env::var("TZ").unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-,.:".contains(&byte);
        if !zone.is_empty() && zone.len() < 64 && zone.bytes().all(plain) {
            env.push(format!("TZ={zone}").into());
        }
        if self.kind == LibrarySet::Data {
            // Otherwise their libraries start a thread per processor, and a process with threads
            // cannot be forked.
            for name in ["OPENBLAS", "OMP", "MKL", "NUMEXPR", "BLIS", "VECLIB"] {
                env.push(format!("{name}_NUM_THREADS=1").into());
            }
        }
        env
    }
}

/// Returns the system's folders of programs and libraries, including symbolic links.
fn folders() -> impl Iterator<Item = PathBuf> {
    SYSTEM.iter().map(PathBuf::from)
}

/// Returns the folder that holds the folders of a zygote's children, for a level without its own root.
pub(super) fn folders_in(scratch: &ScratchFolder) -> PathBuf {
    scratch.0.join("children")
}

/// Writes the files to a private folder, for a level without its own root.
fn write(files: &[(&str, &[u8])]) -> io::Result<ScratchFolder> {
    let scratch = ScratchFolder::make()?;
    fs::create_dir(folders_in(&scratch))?;
    for (name, bytes) in files {
        fs::write(scratch.0.join(name), bytes)?;
    }
    Ok(scratch)
}
