//! The list from which every jail's root is built: the system's folders, what programs need of `/etc`,
//! a minimal `/dev`, interpreters. What is not on the list does not exist inside.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::plan::{BindMode, LandlockGrant, RootEntry, SupervisorPlan};
use super::{depth, etc, machine_files, users};
use crate::Config;
use crate::places::toolchain::{self, InterpreterAlias, Toolchain};
use crate::places::{PathPurpose, PathRefusal, Places, SYSTEM};

const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    // POSIX shared memory is in the private folder, under its quota.
    ("shm", "/tmp"),
];
/// Where `screen` keeps its sockets; it wants a folder there in which everybody may create.
const SCREEN: &str = "/run/screen";
/// The `nsswitch.conf` of a jail in which names are asked for.
const NAME_SERVICES: &str = "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n";
/// The folder of files that Debian's Chromium reads as shell before it starts.
const BROWSER_FLAGS: &str = "/etc/chromium.d";
/// What a browser in a jail is started with: its own sandbox needs namespaces, which no command may create, and the jail is one already.
/// Nor does it load updates of its own: the user would be asked about each host.
const BROWSER: &str = "export CHROMIUM_FLAGS=\"$CHROMIUM_FLAGS --no-sandbox --disable-dev-shm-usage --disable-background-networking \
--disable-component-update --no-first-run\"\n";
/// Folders below `/etc` in which Chromium and its kin look for an administrator's policies: none of them is shown.
const POLICY_FOLDERS: [&str; 4] = [
    "chromium",
    "opt/chrome",
    "opt/chrome_for_testing",
    "opt/edge",
];
/// Policies by which a browser asks nothing of its maker on its own: the user would be asked about each host.
const QUIET: &str = r#"{
  "BackgroundModeEnabled": false, "BrowserNetworkTimeQueriesEnabled": false, "BrowserSignin": 0, "ChromeVariations": 2, "ComponentUpdatesEnabled": false, "DefaultBrowserSettingEnabled": false,
  "DnsOverHttpsMode": "off", "DomainReliabilityAllowed": false, "MetricsReportingEnabled": false, "NetworkPredictionOptions": 2,
  "PasswordLeakDetectionEnabled": false, "SafeBrowsingProtectionLevel": 0, "SearchSuggestEnabled": false, "SpellcheckEnabled": false, "SyncDisabled": true, "TranslateEnabled": false,
  "UrlKeyedAnonymizedDataCollectionEnabled": false
}
"#;
/// The size in bytes above which a file of `/etc` is bind-mounted instead of copied into each jail.
const COPIED: u64 = 8 << 10;
/// The system's folders of programs.
pub(crate) const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What all jails of one sandbox have in common; found only once.
#[derive(Debug, Default)]
pub(crate) struct SystemList {
    /// Parents before children.
    pub(crate) entries: Vec<RootEntry>,
    pub(crate) grants: Vec<(PathBuf, LandlockGrant)>,
    /// What is shown of `/etc`, relative to it.
    etc: Vec<PathBuf>,
    /// Folders of `/etc` that are not shown, for something in them.
    pub(crate) etc_left_out: Vec<PathRefusal>,
    /// The grants for jails without a root of their own: not `/etc` or `/dev` as whole folders.
    pub(crate) bare: Vec<(PathBuf, LandlockGrant)>,
    /// Program folders that come before those of toolchains on the `PATH` inside.
    pub(crate) path: Vec<PathBuf>,
    /// A folder of the configuration that must not be shown.
    pub(crate) refused: Option<PathRefusal>,
}

impl SystemList {
    /// Builds the list for this machine.
    pub(crate) fn find(config: &Config) -> Self {
        let mut list = Self::default();
        for path in SYSTEM {
            list.folder(&config.places, path.into());
        }
        let hidden = config.places.foreign().into_iter();
        list.entries
            .extend(hidden.map(|target| RootEntry::Hidden { target }));
        list.machine_settings(config);
        list.made_up();
        list.entries.extend(machine_files::fixed());
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            list.bind(path.clone(), path.clone(), BindMode::Device);
            list.grants.push((path, LandlockGrant::Device));
        }
        for (name, to) in DEVICE_LINKS {
            let target = Path::new("/dev").join(name);
            list.entries.push(RootEntry::Link {
                target,
                to: to.into(),
            });
        }
        list.entries.push(RootEntry::Dir {
            target: "/run".into(),
        });
        list.entries.push(RootEntry::Link {
            target: SCREEN.into(),
            to: "/tmp".into(),
        });
        list.bare.extend(list.grants.iter().cloned());
        list.grants.extend([
            ("/etc".into(), LandlockGrant::Read),
            ("/proc".into(), LandlockGrant::Read),
            ("/sys".into(), LandlockGrant::Read),
        ]);
        list.grants.extend([
            ("/dev".into(), LandlockGrant::List),
            ("/".into(), LandlockGrant::List),
        ]);
        let mut path = Vec::new();
        for folder in &config.extra_read_only {
            match config.places.admit(folder, PathPurpose::Named) {
                Ok(folder) => {
                    list.read_only(&config.places, &folder);
                    path.extend(Some(folder.join("bin")).filter(|bin| bin.is_dir()));
                }
                Err(refused) => list.refused = Some(refused),
            }
        }
        if config.detect_interpreters {
            for name in ["python3", "node"] {
                if let (Some(found), _) = toolchain::on_path(&config.places, name) {
                    path.extend(list.toolchain(&config.places, &found));
                }
            }
        }
        list.path = path;
        list.entries.sort_by_key(depth);
        list
    }

    /// Returns the system's programs that lead over a path of `/etc` that is not shown.
    pub(crate) fn broken_programs(&self) -> Vec<PathRefusal> {
        let folders: Vec<_> = SYSTEM_PATH.split(':').take(4).collect();
        etc::broken_programs(&folders, &self.etc)
    }

    fn bind(&mut self, source: PathBuf, target: PathBuf, kind: BindMode) {
        self.entries.push(RootEntry::Bind {
            source,
            target,
            kind,
        });
    }

    /// Adds one of the system's folders, or the symbolic link at its path.
    fn folder(&mut self, places: &Places, path: PathBuf) {
        if let Ok(to) = fs::read_link(&path) {
            self.entries.push(RootEntry::Link { target: path, to });
        } else if path.is_dir() {
            let parts = places.parts_shown(&path).into_iter();
            self.grants
                .extend(parts.map(|part| (part, LandlockGrant::Execute)));
            self.bind(path.clone(), path, BindMode::ReadOnly);
        }
    }

    /// Adds what is shown of `/etc`.
    fn machine_settings(&mut self, config: &Config) {
        let etc = etc::find(config.findings.as_ref());
        for name in &etc.shown {
            self.etc(name);
        }
        // Without a root of its own, a jail sees none of a folder in which something is closed.
        for file in &etc.closed {
            let real = file.canonicalize();
            let is_apart =
                |folder: &Path| !real.as_ref().is_ok_and(|real| real.starts_with(folder));
            self.bare.retain(|(folder, _)| is_apart(folder));
        }
        let closed = etc.closed.into_iter();
        self.entries
            .extend(closed.map(|target| RootEntry::Hidden { target }));
        (self.etc, self.etc_left_out) = (etc.shown, etc.left_out);
    }

    /// Adds a file or folder of `/etc`, with its links resolved.
    fn etc(&mut self, name: &Path) {
        let target = Path::new("/etc").join(name);
        let Ok(source) = target.canonicalize() else {
            return;
        };
        self.bare.push((source.clone(), LandlockGrant::Read));
        let small = fs::metadata(&source).is_ok_and(|meta| meta.is_file() && meta.len() <= COPIED);
        match fs::read(&source) {
            Ok(bytes) if small => self.entries.push(RootEntry::File { target, bytes }),
            _ => self.bind(source, target, BindMode::ReadOnly),
        }
    }

    /// Adds generated files of `/etc` that reveal nothing about this machine.
    fn made_up(&mut self) {
        let (uid, gid) = (
            users::shown_to_command(rustix::process::getuid().as_raw()),
            users::shown_to_command(rustix::process::getgid().as_raw()),
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
            self.etc_file(name, text);
        }
        if Path::new(BROWSER_FLAGS).is_dir() {
            self.etc_file("chromium.d/jail", BROWSER);
        }
        for folder in POLICY_FOLDERS {
            self.etc_file(&format!("{folder}/policies/managed/jail.json"), QUIET);
        }
    }

    fn etc_file(&mut self, name: &str, text: &str) {
        let target = Path::new("/etc").join(name);
        self.entries.push(RootEntry::File {
            target,
            bytes: text.into(),
        });
    }

    /// Adds a further folder or file at its own path; two interpreters may share one.
    fn read_only(&mut self, places: &Places, path: &Path) {
        let known = |(granted, _): &(PathBuf, LandlockGrant)| granted == path;
        if places.is_shown(path) || self.grants.iter().any(known) {
            return;
        }
        self.grants.push((path.to_owned(), LandlockGrant::Execute));
        self.bare.push((path.to_owned(), LandlockGrant::Execute));
        self.bind(path.to_owned(), path.to_owned(), BindMode::ReadOnly);
    }

    /// Adds an interpreter and the names that lead to it; returns the folder for `PATH`.
    fn toolchain(&mut self, places: &Places, found: &Toolchain) -> Option<PathBuf> {
        for part in &found.parts {
            self.read_only(places, part);
        }
        for name in found.names(places) {
            match name {
                InterpreterAlias::Link { path, to } => {
                    self.entries.push(RootEntry::Link { target: path, to });
                }
                InterpreterAlias::Script(path) => self.read_only(places, &path),
            }
        }
        found.folder().map(Path::to_owned)
    }
}

/// Names the jail's own answers as the only source of addresses, besides its `/etc/hosts`.
pub(crate) fn jail_names(plan: &mut SupervisorPlan) {
    for (name, text) in [
        ("resolv.conf", "nameserver 127.0.0.1\n"),
        ("nsswitch.conf", NAME_SERVICES),
    ] {
        let target = Path::new("/etc").join(name);
        replace(plan, target, text.into());
    }
}

/// Replaces a generated file of `/etc`.
fn replace(plan: &mut SupervisorPlan, target: PathBuf, bytes: Vec<u8>) {
    let made_up = |entry: &RootEntry| matches!(entry, RootEntry::File { target: file, .. } if *file == target);
    plan.entries.retain(|entry| !made_up(entry));
    plan.entries.push(RootEntry::File { target, bytes });
}

/// Adds what a command in the host's network needs to resolve names as the host does, copied as it is now.
pub(crate) fn host_names(plan: &mut SupervisorPlan, own_root: bool) {
    for name in ["resolv.conf", "hosts", "nsswitch.conf", "gai.conf"] {
        let target = Path::new("/etc").join(name);
        if !own_root {
            plan.grants.extend(
                target
                    .canonicalize()
                    .ok()
                    .map(|file| (file, LandlockGrant::Read)),
            );
            continue;
        }
        let bytes = match name {
            // The host's other services may be those of a network directory, which has no place here.
            "nsswitch.conf" => NAME_SERVICES.into(),
            _ => fs::read(&target).unwrap_or_default(),
        };
        replace(plan, target, bytes);
    }
}
