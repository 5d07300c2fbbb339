//! The only place that starts a process.
//!
//! The program is always a path, and only programs that are asked for something have a `pre_exec` hook: so the standard library uses
//! `posix_spawn`, whose cost does not grow with this process's memory, and no code of ours runs between
//! fork and exec. The supervisor does everything else that a jailed command needs, after its own exec.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::hidden_paths::HiddenPaths;
use rustix::fs::{MemfdFlags, SealFlags, SeekFrom};

/// A command whose program has been found.
#[derive(Debug)]
pub(crate) struct ResolvedCommand<'a> {
    pub(crate) program: &'a Path,
    pub(crate) argv: &'a [OsString],
    pub(crate) env: &'a BTreeMap<OsString, OsString>,
    pub(crate) cwd: &'a Path,
}

impl ResolvedCommand<'_> {
    /// Starts it in its own process group, with only `env` as its environment.
    pub(crate) fn spawn(&self, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> io::Result<Child> {
        let mut command = self.command();
        command.process_group(0);
        command.stdin(stdin).stdout(stdout).stderr(stderr).spawn()
    }

    /// Starts it as the leader of a session of its own: it has no terminal to ask at. These paths are hidden from it.
    #[expect(
        unsafe_code,
        reason = "there is no safe way to start a program in a session and namespaces of its own"
    )]
    pub(crate) fn spawn_apart(
        &self,
        stdin: Stdio,
        stdout: Stdio,
        hidden: HiddenPaths,
    ) -> io::Result<Child> {
        let mut command = self.command();
        let leave = move || {
            rustix::process::setsid()?;
            hidden.hide()
        };
        // SAFETY: between fork and exec only system calls are made; nothing is allocated, and no lock is taken.
        unsafe { command.pre_exec(leave) };
        command
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::null())
            .spawn()
    }

    /// Replaces this process with it, descriptors unchanged; returns why that failed.
    pub(crate) fn replace(&self) -> io::Error {
        self.command().exec()
    }

    fn command(&self) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that starts a process"
        )]
        let mut command = Command::new(self.program);
        if let Some((name, rest)) = self.argv.split_first() {
            command.arg0(name).args(rest);
        }
        command.env_clear().envs(self.env).current_dir(self.cwd);
        command
    }
}

/// Returns the path of a program: itself if it has a slash (from `cwd`), else the first executable on `path`.
pub(crate) fn find(program: &OsStr, path: &OsStr, cwd: &Path) -> io::Result<PathBuf> {
    let bytes = program.as_encoded_bytes();
    if bytes.contains(&b'/') {
        return Ok(cwd.join(program));
    }
    let mut denied = false;
    for folder in std::env::split_paths(path).filter(|folder| folder.is_absolute()) {
        let file = folder.join(program);
        match rustix::fs::access(&file, rustix::fs::Access::EXEC_OK) {
            Ok(()) if file.is_file() && !bytes.is_empty() => return Ok(file),
            Err(rustix::io::Errno::ACCESS) => denied = true,
            _ => {}
        }
    }
    let kind = if denied {
        io::ErrorKind::PermissionDenied
    } else {
        io::ErrorKind::NotFound
    };
    Err(kind.into())
}

/// Returns the programs of this name on a `PATH`, in order; relative folders are ignored.
pub(crate) fn on_path(name: &str, path: &OsStr) -> impl Iterator<Item = PathBuf> {
    let folders: Vec<_> = std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .collect();
    let name = name.to_owned();
    folders
        .into_iter()
        .filter_map(move |folder| find(OsStr::new(&name), folder.as_os_str(), Path::new("/")).ok())
}

/// Returns a descriptor to read `bytes` from: not a pipe, so that no task has to feed it while the command runs.
pub(crate) fn memory_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = std::fs::File::from(rustix::fs::memfd_create("stdin", flags)?);
    io::Write::write_all(&mut &file, bytes)?;
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    rustix::fs::seek(&file, SeekFrom::Start(0))?;
    Ok(file.into())
}
