//! The plan that the host sends to its supervisor: the whole jail as plain data, in one frame over a socket.
//!
//! Fields are written one after another, prefixed with lengths; both ends are the same binary, so there is no
//! version and no self-description. A plan that cannot be read back completely is refused.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use seccompiler::{BpfProgram, sock_filter};

use super::guarded_names::{GuardedName, GuardedNames};
use crate::command::AbsentGuard;
use crate::strength::Strength;
use crate::terminal::TerminalSize;

/// The permissions of a bind mount beyond being visible read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BindMode {
    ReadOnly,
    ReadWrite,
    /// A device node: read-only as a mount, usable as a device.
    Device,
    /// Read-only, and none of its files can be executed.
    Data,
}

/// One step of building the root, in order; targets are absolute paths inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RootEntry {
    Bind {
        source: PathBuf,
        target: PathBuf,
        kind: BindMode,
    },
    Link {
        target: PathBuf,
        to: PathBuf,
    },
    File {
        target: PathBuf,
        bytes: Vec<u8>,
    },
    Dir {
        target: PathBuf,
    },
    /// A folder that only the command's user can look into.
    PrivateDir {
        target: PathBuf,
    },
    /// Hides what another entry shows here, except what is placed below it.
    Hidden {
        target: PathBuf,
    },
    /// Terminals that only this jail has.
    Terminals {
        target: PathBuf,
    },
    Tmpfs {
        target: PathBuf,
        megabytes: u64,
    },
    /// An overlay of `upper` over `lower`; `lower` does not change. Without `upper` it cannot be changed.
    Overlay {
        target: PathBuf,
        lower: PathBuf,
        /// Lies between both.
        layer: Option<PathBuf>,
        /// And the kernel's working folder.
        upper: Option<(PathBuf, PathBuf)>,
    },
}

impl RootEntry {
    /// Returns its path inside the jail.
    pub(crate) fn target(&self) -> &Path {
        match self {
            Self::Bind { target, .. }
            | Self::Link { target, .. }
            | Self::File { target, .. }
            | Self::Dir { target }
            | Self::PrivateDir { target }
            | Self::Hidden { target }
            | Self::Terminals { target }
            | Self::Tmpfs { target, .. }
            | Self::Overlay { target, .. } => target,
        }
    }
}

/// What is done to one path of the workspace (relative to it), in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathCover {
    /// A mount on itself that cannot be changed.
    ReadOnly,
    /// An empty folder or file mounted over it.
    Empty,
    /// A mount on itself, only to prevent renaming.
    Pin,
    /// Writable again, below a read-only parent.
    Writable,
    /// A link that guarded links lead over: pinned, and it is reported if a program outside replaces it.
    PinnedLink,
}

/// The rights that Landlock grants below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LandlockGrant {
    List,
    Read,
    Execute,
    Write,
    Device,
    /// Everything that a script may do with its own files: no programs, devices or sockets.
    Script,
}

/// The network that the command is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum JailNetwork {
    /// An empty network namespace, or no sockets if there are no namespaces.
    #[default]
    Own,
    /// Like `Own`, with listeners in it that are handed to the host.
    Outlet,
    /// The host's network, with every address that this machine reaches.
    Host,
}

/// The program to start, and the process that takes the last locks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ProgramRole {
    /// A command, which starts under every lock.
    #[default]
    Command,
    /// An interpreter that creates locked children: under a command's locks, except for the few system calls and
    /// capabilities that this takes.
    Zygote,
    /// An interpreter for one script, executed under the script's own locks.
    Fresh,
}

/// Resource limits in the kernel's units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KernelLimits {
    pub(crate) data: u64,
    pub(crate) pids: u64,
    pub(crate) file: u64,
    pub(crate) cpu: u64,
    pub(crate) open_files: u64,
}

/// Everything that a supervisor needs to build one jail and to start its first program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SupervisorPlan {
    pub(crate) level: u8,
    pub(crate) net: JailNetwork,
    /// The ports at which an outlet takes connections to every address.
    pub(crate) ports: Vec<u16>,
    /// The ports of its loopback at which the host listens, if the command shares it with others.
    pub(crate) shares: Option<Vec<u16>>,
    pub(crate) role: ProgramRole,
    /// The list of a script's locks, for [`Role::Fresh`]; the list of its mounts, for [`Role::Zygote`].
    pub(crate) locks: Vec<u8>,
    /// The script's folder, for [`Role::Fresh`].
    pub(crate) folder: PathBuf,
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<OsString>,
    pub(crate) cwd: PathBuf,
    pub(crate) stdin: Option<Vec<u8>>,
    /// Whether a descriptor for the command's standard input follows the plan.
    pub(crate) converses: bool,
    pub(crate) entries: Vec<RootEntry>,
    /// Whether the entries go into the root that was prepared, which holds the others.
    pub(crate) prepared: bool,
    pub(crate) workspace: PathBuf,
    pub(crate) covers: Vec<(PathBuf, PathCover)>,
    pub(crate) grants: Vec<(PathBuf, LandlockGrant)>,
    pub(crate) caps: KernelLimits,
    pub(crate) filters: Vec<BpfProgram>,
    /// The file through which a process moves itself into the tree's control group; empty = there is none.
    pub(crate) group: PathBuf,
    /// The bytes of memory at which the supervisor kills the tree, if the tree is in no group; 0 = it does not watch.
    pub(crate) watch: u64,
    /// The names that are watched while the command runs; `None` if nothing can lift its covers.
    pub(crate) watched: Option<GuardedNames>,
    /// The size of the terminal that the command runs on, if it runs on one.
    pub(crate) terminal: Option<TerminalSize>,
}

impl SupervisorPlan {
    pub(crate) fn strength(&self) -> Strength {
        match self.level {
            3 => Strength::Full,
            2 => Strength::NoProc,
            _ => Strength::LandlockSeccomp,
        }
    }

    pub(crate) fn set_strength(&mut self, strength: Strength) {
        self.level = strength as u8;
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = PlanEncoder(vec![0; 4]);
        out.number(u64::from(self.level));
        out.number(self.net as u64);
        out.list(&self.ports, |out, port| out.number(u64::from(*port)));
        out.list(self.shares.as_slice(), |out, ports| {
            out.list(ports, |out, port| out.number(u64::from(*port)));
        });
        out.number(self.role as u64);
        out.bytes(&self.locks);
        out.text(self.folder.as_os_str());
        out.list(&self.argv, |out, word| out.text(word));
        out.list(&self.env, |out, word| out.text(word));
        out.text(self.cwd.as_os_str());
        out.list(self.stdin.as_slice(), |out, bytes| out.bytes(bytes));
        out.number(u64::from(self.converses));
        out.list(&self.entries, PlanEncoder::entry);
        out.number(u64::from(self.prepared));
        out.text(self.workspace.as_os_str());
        out.list(&self.covers, |out, (path, cover)| {
            out.text(path.as_os_str());
            out.number(*cover as u64);
        });
        out.list(&self.grants, |out, (path, grant)| {
            out.text(path.as_os_str());
            out.number(*grant as u64);
        });
        let KernelLimits {
            data,
            pids,
            file,
            cpu,
            open_files,
        } = self.caps;
        for cap in [data, pids, file, cpu, open_files] {
            out.number(cap);
        }
        out.list(&self.filters, |out, filter| {
            out.list(filter, |out, line| {
                out.0.extend(line.code.to_ne_bytes());
                out.0.extend([line.jt, line.jf]);
                out.0.extend(line.k.to_ne_bytes());
            });
        });
        out.text(self.group.as_os_str());
        out.number(self.watch);
        out.list(self.watched.as_slice(), PlanEncoder::names);
        out.list(self.terminal.as_slice(), |out, size| {
            out.number(u64::from(size.rows));
            out.number(u64::from(size.cols));
        });
        let length = u32::try_from(out.0.len() - 4).unwrap_or(u32::MAX);
        out.0[..4].copy_from_slice(&length.to_ne_bytes());
        out.0
    }

    /// Decodes what [`encode`](Self::encode) wrote, without the length prefix.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = PlanDecoder(bytes);
        let plan = Self {
            level: u8::try_from(from.number()?).ok()?,
            net: from.net()?,
            ports: from.list(PlanDecoder::port)?,
            shares: from.list(|from| from.list(PlanDecoder::port))?.pop(),
            role: from.role()?,
            locks: from.bytes()?.to_vec(),
            folder: from.text()?.into(),
            argv: from.list(PlanDecoder::text)?,
            env: from.list(PlanDecoder::text)?,
            cwd: from.text()?.into(),
            stdin: from.list(|from| Some(from.bytes()?.to_vec()))?.pop(),
            converses: from.number()? != 0,
            entries: from.list(PlanDecoder::entry)?,
            prepared: from.number()? != 0,
            workspace: from.text()?.into(),
            covers: from.list(|from| Some((from.text()?.into(), from.cover()?)))?,
            grants: from.list(|from| Some((from.text()?.into(), from.grant()?)))?,
            caps: KernelLimits {
                data: from.number()?,
                pids: from.number()?,
                file: from.number()?,
                cpu: from.number()?,
                open_files: from.number()?,
            },
            filters: from.list(|from| from.list(PlanDecoder::instruction))?,
            group: from.text()?.into(),
            watch: from.number()?,
            watched: from.list(PlanDecoder::names)?.pop(),
            terminal: from.list(PlanDecoder::size)?.pop(),
        };
        from.0.is_empty().then_some(plan)
    }
}

struct PlanEncoder(Vec<u8>);

impl PlanEncoder {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_ne_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn text(&mut self, text: &OsStr) {
        self.bytes(text.as_bytes());
    }

    fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.number(list.len() as u64);
        for item in list {
            each(self, item);
        }
    }

    fn names(&mut self, names: &GuardedNames) {
        self.list(&names.guarded, |out, name| {
            out.text(name.path.as_os_str());
            let absent = match name.absent {
                AbsentGuard::Placeholder => 0,
                AbsentGuard::Renamed => 1,
                AbsentGuard::NewEntries => 2,
            };
            out.number(u64::from(name.folder) | u64::from(name.any_depth) << 1 | absent << 2);
        });
        self.list(&names.approved, |out, path| out.text(path.as_os_str()));
    }

    fn entry(&mut self, entry: &RootEntry) {
        let mut put = |kind: u64, target: &Path, rest: &[u8], number: u64| {
            self.number(kind);
            self.text(target.as_os_str());
            self.bytes(rest);
            self.number(number);
        };
        match entry {
            RootEntry::Bind {
                source,
                target,
                kind,
            } => {
                put(0, target, source.as_os_str().as_bytes(), *kind as u64);
            }
            RootEntry::Link { target, to } => put(1, target, to.as_os_str().as_bytes(), 0),
            RootEntry::File { target, bytes } => put(2, target, bytes, 0),
            RootEntry::Dir { target } => put(3, target, &[], 0),
            RootEntry::Tmpfs { target, megabytes } => put(4, target, &[], *megabytes),
            RootEntry::Hidden { target } => put(5, target, &[], 0),
            RootEntry::Terminals { target } => put(7, target, &[], 0),
            RootEntry::PrivateDir { target } => put(8, target, &[], 0),
            RootEntry::Overlay {
                target,
                lower,
                layer,
                upper,
            } => {
                put(6, target, lower.as_os_str().as_bytes(), 0);
                let (upper, work) = match upper {
                    Some((upper, work)) => (Some(upper), Some(work)),
                    None => (None, None),
                };
                for folder in [layer.as_ref(), upper, work] {
                    // No folder has an empty path.
                    self.text(folder.map_or(OsStr::new(""), |folder| folder.as_os_str()));
                }
            }
        }
    }
}

struct PlanDecoder<'a>(&'a [u8]);

impl PlanDecoder<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    fn port(&mut self) -> Option<u16> {
        u16::try_from(self.number()?).ok()
    }

    fn bytes(&mut self) -> Option<&[u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.take(count)
    }

    fn text(&mut self) -> Option<OsString> {
        Some(OsString::from_vec(self.bytes()?.to_vec()))
    }

    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.number()?).map(|_| each(self)).collect()
    }

    fn entry(&mut self) -> Option<RootEntry> {
        let kind = self.number()?;
        let target = PathBuf::from(self.text()?);
        let rest = self.bytes()?.to_vec();
        let number = self.number()?;
        let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
        Some(match kind {
            0 => {
                let kinds = [
                    BindMode::ReadOnly,
                    BindMode::ReadWrite,
                    BindMode::Device,
                    BindMode::Data,
                ];
                let kind = *kinds.get(usize::try_from(number).ok()?)?;
                RootEntry::Bind {
                    source: path(rest),
                    target,
                    kind,
                }
            }
            1 => RootEntry::Link {
                target,
                to: path(rest),
            },
            2 => RootEntry::File {
                target,
                bytes: rest,
            },
            3 => RootEntry::Dir { target },
            4 => RootEntry::Tmpfs {
                target,
                megabytes: number,
            },
            5 => RootEntry::Hidden { target },
            6 => RootEntry::Overlay {
                target,
                lower: path(rest),
                layer: self.folder()?,
                upper: self.folder()?.zip(self.folder()?),
            },
            7 => RootEntry::Terminals { target },
            8 => RootEntry::PrivateDir { target },
            _ => return None,
        })
    }

    /// Takes a folder that may be absent.
    #[expect(
        clippy::option_option,
        reason = "the outer one is for a plan that is damaged"
    )]
    fn folder(&mut self) -> Option<Option<PathBuf>> {
        let text = self.text()?;
        Some((!text.is_empty()).then(|| text.into()))
    }

    fn names(&mut self) -> Option<GuardedNames> {
        let name = |from: &mut Self| {
            let path = from.text()?.into();
            let flags = from.number()?;
            Some(GuardedName {
                path,
                folder: flags & 1 != 0,
                any_depth: flags & 2 != 0,
                absent: match flags >> 2 {
                    0 => AbsentGuard::Placeholder,
                    1 => AbsentGuard::Renamed,
                    2 => AbsentGuard::NewEntries,
                    _ => return None,
                },
            })
        };
        Some(GuardedNames {
            guarded: self.list(name)?,
            approved: self.list(|from| Some(from.text()?.into()))?,
        })
    }

    fn size(&mut self) -> Option<TerminalSize> {
        Some(TerminalSize {
            rows: u16::try_from(self.number()?).ok()?,
            cols: u16::try_from(self.number()?).ok()?,
        })
    }

    fn cover(&mut self) -> Option<PathCover> {
        let covers = [
            PathCover::ReadOnly,
            PathCover::Empty,
            PathCover::Pin,
            PathCover::Writable,
            PathCover::PinnedLink,
        ];
        covers.get(usize::try_from(self.number()?).ok()?).copied()
    }

    fn grant(&mut self) -> Option<LandlockGrant> {
        let grants = [
            LandlockGrant::List,
            LandlockGrant::Read,
            LandlockGrant::Execute,
            LandlockGrant::Write,
            LandlockGrant::Device,
            LandlockGrant::Script,
        ];
        grants.get(usize::try_from(self.number()?).ok()?).copied()
    }

    fn net(&mut self) -> Option<JailNetwork> {
        let nets = [JailNetwork::Own, JailNetwork::Outlet, JailNetwork::Host];
        nets.get(usize::try_from(self.number()?).ok()?).copied()
    }

    fn role(&mut self) -> Option<ProgramRole> {
        let roles = [
            ProgramRole::Command,
            ProgramRole::Zygote,
            ProgramRole::Fresh,
        ];
        roles.get(usize::try_from(self.number()?).ok()?).copied()
    }

    fn instruction(&mut self) -> Option<sock_filter> {
        let code = u16::from_ne_bytes(self.take(2)?.try_into().ok()?);
        let [jt, jf] = self.take(2)?.try_into().ok()?;
        let k = u32::from_ne_bytes(self.take(4)?.try_into().ok()?);
        Some(sock_filter { code, jt, jf, k })
    }
}

#[cfg(test)]
mod tests;
