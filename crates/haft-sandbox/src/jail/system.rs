//! The list that every jail's root is built from: the system's folders, what programs need of `/etc`,
//! a minimal `/dev`, interpreters. Whatever is not on the list does not exist inside.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::plan::{Bind, Entry, Grant, Plan};
use crate::Config;

/// Folders of programs and libraries; a link stays a link.
pub(crate) const FOLDERS: &[&str] = &[
    "usr",
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "nix/store",
    "gnu/store",
];
/// Files and folders of `/etc` that programs need and that hold no secret. Small files are copied.
const ETC: &[&str] = &[
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "os-release",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "protocols",
    "python3",
    "services",
    "shells",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
];
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    // POSIX shared memory lives in the private folder, under its quota.
    ("shm", "/tmp"),
];
/// Above this a file of `/etc` is bound instead of copied into each jail.
const COPIED: u64 = 8 << 10;
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What all jails of one sandbox have in common; found once.
#[derive(Debug, Default)]
pub(crate) struct SystemList {
    pub(crate) entries: Vec<Entry>,
    pub(crate) grants: Vec<(PathBuf, Grant)>,
    /// What is granted where there is no root of its own: no folder of `/etc` or `/dev` as such.
    pub(crate) bare: Vec<(PathBuf, Grant)>,
    /// What `PATH` is inside.
    pub(crate) path: OsString,
}

impl SystemList {
    /// Looks at this machine.
    pub(crate) fn find(config: &Config) -> Self {
        let mut list = Self::default();
        for name in FOLDERS {
            list.folder(Path::new("/").join(name));
        }
        for name in ETC {
            list.etc(name);
        }
        list.made_up();
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            list.bind(path.clone(), path.clone(), Bind::Device);
            list.grants.push((path, Grant::Device));
        }
        for (name, to) in DEVICE_LINKS {
            let target = Path::new("/dev").join(name);
            list.entries.push(Entry::Link {
                target,
                to: to.into(),
            });
        }
        list.bare.extend(list.grants.iter().cloned());
        list.grants
            .extend([("/etc".into(), Grant::Read), ("/proc".into(), Grant::Read)]);
        list.grants
            .extend([("/dev".into(), Grant::List), ("/".into(), Grant::List)]);
        let mut path = Vec::new();
        let mut extra: Vec<_> = config.extra_read_only.clone();
        if config.detect_interpreters {
            extra.extend(interpreters());
        }
        for folder in extra {
            let Ok(folder) = folder.canonicalize() else {
                continue;
            };
            if list.read_only(&folder) {
                path.extend(Some(folder.join("bin")).filter(|bin| bin.is_dir()));
            }
        }
        path.extend(std::env::split_paths(SYSTEM_PATH));
        list.path = std::env::join_paths(path).unwrap_or_else(|_| SYSTEM_PATH.into());
        list
    }

    fn bind(&mut self, source: PathBuf, target: PathBuf, kind: Bind) {
        self.entries.push(Entry::Bind {
            source,
            target,
            kind,
        });
    }

    /// One of the system's folders, or the link that stands for it.
    fn folder(&mut self, path: PathBuf) {
        if let Ok(to) = fs::read_link(&path) {
            self.entries.push(Entry::Link { target: path, to });
        } else if path.is_dir() {
            self.grants.push((path.clone(), Grant::Execute));
            self.bind(path.clone(), path, Bind::ReadOnly);
        }
    }

    /// A file or folder of `/etc`, where its links lead to.
    fn etc(&mut self, name: &str) {
        let target = Path::new("/etc").join(name);
        let Ok(source) = target.canonicalize() else {
            return;
        };
        self.bare.push((source.clone(), Grant::Read));
        let small = fs::metadata(&source).is_ok_and(|meta| meta.is_file() && meta.len() <= COPIED);
        match fs::read(&source) {
            Ok(bytes) if small => self.entries.push(Entry::File { target, bytes }),
            _ => self.bind(source, target, Bind::ReadOnly),
        }
    }

    /// Files of `/etc` that say nothing about this machine.
    fn made_up(&mut self) {
        let (uid, gid) = (
            rustix::process::getuid().as_raw(),
            rustix::process::getgid().as_raw(),
        );
        let mut users = "root:x:0:0::/tmp:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n".to_owned();
        let mut groups = "root:x:0:\nnogroup:x:65534:\n".to_owned();
        if ![0, 65534].contains(&uid) {
            let _ = writeln!(users, "user:x:{uid}:{gid}::/tmp:/bin/sh");
        }
        if ![0, 65534].contains(&gid) {
            let _ = writeln!(groups, "user:x:{gid}:");
        }
        for (name, text) in [
            ("passwd", users.as_str()),
            ("group", &groups),
            (
                "nsswitch.conf",
                "passwd: files\ngroup: files\nhosts: files\nservices: files\n",
            ),
            ("hosts", "127.0.0.1 localhost jail\n::1 localhost\n"),
            ("hostname", "jail\n"),
            ("resolv.conf", ""),
        ] {
            let target = Path::new("/etc").join(name);
            self.entries.push(Entry::File {
                target,
                bytes: text.into(),
            });
        }
    }

    /// A further folder or file, at its own path; false where the system's folders have it already.
    pub(crate) fn read_only(&mut self, path: &Path) -> bool {
        if FOLDERS
            .iter()
            .any(|name| path.starts_with(Path::new("/").join(name)))
        {
            return path.join("bin").is_dir();
        }
        self.grants.push((path.to_owned(), Grant::Execute));
        self.bare.push((path.to_owned(), Grant::Execute));
        self.bind(path.to_owned(), path.to_owned(), Bind::ReadOnly);
        true
    }
}

/// What a command in the host's network needs to look names up as the host does: copied as they are now.
pub(crate) fn host_names(plan: &mut Plan, own_root: bool) {
    for name in ["resolv.conf", "hosts", "nsswitch.conf", "gai.conf"] {
        let target = Path::new("/etc").join(name);
        if !own_root {
            plan.grants
                .extend(target.canonicalize().ok().map(|file| (file, Grant::Read)));
            continue;
        }
        let made_up =
            |entry: &Entry| matches!(entry, Entry::File { target: file, .. } if *file == target);
        plan.entries.retain(|entry| !made_up(entry));
        let bytes = match name {
            // Its other services may be those of a network directory, which has no place here.
            "nsswitch.conf" => {
                b"passwd: files\ngroup: files\nhosts: files dns\nservices: files\n".to_vec()
            }
            _ => fs::read(&target).unwrap_or_default(),
        };
        plan.entries.push(Entry::File { target, bytes });
    }
}

/// Whether a path may be shown in a jail at all: not the root, not what the jail makes itself, not a
/// folder that holds the system's or somebody's home.
pub(crate) fn may_show(path: &Path) -> bool {
    let made = ["/proc", "/sys", "/dev", "/run", "/var/run", "/etc"];
    let homes = [
        "/root", "/home", "/tmp", "/var", "/usr", "/opt", "/mnt", "/boot",
    ];
    path.is_absolute()
        && path.parent().is_some()
        && !made.iter().any(|folder| path.starts_with(folder))
        && !homes.iter().any(|folder| Path::new(folder) == path)
}

/// The folders of `python3` and `node` as this process would find them, outside the system's own and
/// never a home folder or one that holds it.
fn interpreters() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = Vec::new();
    for (name, mark) in [("python3", "lib"), ("node", "include/node")] {
        let folder = std::env::split_paths(&path).find_map(|bin| {
            if bin.ends_with("shims") {
                return chosen_version(&bin, name);
            }
            let file = bin.join(name).canonicalize().ok()?;
            Some(file.parent()?.parent()?.to_owned())
        });
        found.extend(folder.filter(|folder| {
            let in_system = folder.starts_with("/usr") || folder == Path::new("/");
            let home = home.as_ref().is_some_and(|home| home.starts_with(folder));
            !in_system && !home && may_show(folder) && folder.join(mark).is_dir()
        }));
    }
    found
}

/// Where `python3` lies for this process: on its `PATH`, behind a version manager's script.
pub(crate) fn python_on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).find_map(|bin| {
        let file = if bin.ends_with("shims") {
            chosen_version(&bin, "python3")?.join("bin/python3")
        } else {
            bin.join("python3")
        };
        (file.is_absolute() && file.is_file()).then_some(file)
    })
}

/// Version managers put scripts on `PATH`; the interpreter they would run lies beside them.
fn chosen_version(shims: &Path, name: &str) -> Option<PathBuf> {
    let root = shims.parent()?;
    let chosen = fs::read_to_string(root.join("version")).ok()?;
    let folder = root
        .join("versions")
        .join(chosen.lines().next()?.trim())
        .canonicalize()
        .ok()?;
    folder.join("bin").join(name).exists().then_some(folder)
}
