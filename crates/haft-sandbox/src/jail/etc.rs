//! What every jail shows of `/etc`: a list of what programs of every kind need, and the settings folders of installed packages.
//!
//! A folder of settings is shown if only root can change it, everybody may read all of it, and each file in it is exactly as a package
//! ships it. So it tells nothing about the machine but which packages it has, and holds no secret of anybody. Of the listed folders, what is not
//! for everybody is closed. This is decided once for a process, and for the next ones until something there changes.

mod kept;
mod shipped;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use self::shipped::{ShippedFiles, is_for_everybody};
use crate::findings::KeptFindings;
use crate::places::PathRefusal;

/// Files and folders of `/etc` that programs need and that hold no secret.
const LISTED: &[&str] = &[
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
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
/// Folders of Java's settings; their templates for passwords and policies hold none.
const LISTED_PREFIX: &str = "java-";

/// Where `dpkg` and `ucf` keep what packages ship.
const DPKG: &str = "/var/lib/dpkg/status";
const UCF: &str = "/var/lib/ucf/hashfile";

/// Folders of this machine's users, network and services, which programs that people start do not read; and those of browsers'
/// flags and policies, of which jails have their own. They are never shown.
const PRIVATE: &str = "\
    ansible apache2 apparmor apparmor.d apt audit avahi bind binfmt.d bluetooth caddy ceph chef chromium chromium.d clamav cloud cni containerd containers corosync coturn \
    couchdb cups dbus-1 default dhcp dnsmasq.d docker dovecot dpkg elasticsearch etcd exim4 fail2ban filebeat firewalld freeradius fwupd \
    gdm gdm3 gitlab grafana grub.d haproxy hostapd httpd influxdb init init.d initramfs-tools ipsec.d iscsi iwd kernel kibana \
    kubernetes landscape ldap letsencrypt libvirt lightdm lighttpd logcheck logrotate.d logstash lvm lxc lxd mdadm minio modprobe.d modules-load.d \
    mosquitto multipath munge mysql named netplan network networkmanager nfs nginx nomad.d opensearch openvpn opt pacemaker pki \
    polkit-1 postfix postgresql ppp prometheus puppet rabbitmq rancher redis rspamd rsyslog.d salt samba sasl2 security selinux skel \
    slurm snmp squid ssh ssl sssd strongswan.d stunnel sudoers.d swanctl systemd telegraf tor udev ufw unbound update-motd.d varnish vault.d vpnc \
    waagent wireguard wpa_supplicant xinetd.d zabbix";
/// How the names of such folders begin.
const PRIVATE_PREFIXES: &[&str] = &[
    "cron",
    "consul",
    "krb5",
    "pam",
    "rc",
    "sysconfig",
    "sysctl",
    "tmpfiles",
];

/// Maximum number of settings folders that are shown: each takes a mount in each jail.
const MOST_FOLDERS: usize = 64;

/// Maximum number of files of the listed folders that are closed.
const MOST_CLOSED: usize = 32;
/// Maximum number of entries of a listed folder that are looked at, and its maximum depth.
const MOST_LOOKED_AT: usize = 4096;
const DEEPEST: usize = 4;

/// What is shown of `/etc`, and what is not.
#[derive(Debug, Default)]
pub(super) struct EtcFolders {
    /// Paths relative to `/etc`.
    pub(super) shown: Vec<PathBuf>,
    /// Files and folders within them that are not for everybody, as absolute paths.
    pub(super) closed: Vec<PathBuf>,
    /// Folders that are left out, for something in them.
    pub(super) left_out: Vec<PathRefusal>,
}

/// The files and folders that decide.
struct SystemFiles {
    etc: PathBuf,
    dpkg: PathBuf,
    ucf: PathBuf,
    /// Who alone may change what is shown.
    owner: u32,
}

/// Decides what is shown of this machine's `/etc`, or has it from an earlier process if nothing there has changed.
pub(super) fn find(findings: Option<&KeptFindings>) -> EtcFolders {
    let system = SystemFiles {
        etc: "/etc".into(),
        dpkg: DPKG.into(),
        ucf: UCF.into(),
        owner: 0,
    };
    match findings {
        Some(findings) => kept::find(&system, findings),
        None => decide(&system),
    }
}

fn decide(system: &SystemFiles) -> EtcFolders {
    let mut found = EtcFolders::default();
    let EtcCandidates { listed, settings } = EtcCandidates::of(system);
    for name in listed {
        found.add_listed(&system.etc, name);
    }
    found.add_settings(system, settings);
    found
}

/// What may be shown of `/etc`, relative to it.
struct EtcCandidates {
    /// What is shown whatever is in it.
    listed: Vec<PathBuf>,
    /// Folders of settings, in order.
    settings: Vec<PathBuf>,
}

impl EtcCandidates {
    fn of(system: &SystemFiles) -> Self {
        let (mut listed, mut settings) = (Vec::new(), Vec::new());
        listed.extend(LISTED.iter().map(PathBuf::from));
        for entry in fs::read_dir(&system.etc).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let Some(text) = name.to_str().filter(|_| is_folder) else {
                continue;
            };
            if text.starts_with(LISTED_PREFIX) {
                listed.push(name.into());
            } else if !LISTED.contains(&text) && !is_private(text) && !is_empty(&entry.path()) {
                settings.push(PathBuf::from(name));
            }
        }
        settings.sort();
        Self { listed, settings }
    }
}

impl EtcFolders {
    /// Adds what is shown whatever is in it, but for what is not for everybody.
    fn add_listed(&mut self, etc: &Path, name: PathBuf) {
        let path = etc.join(&name);
        let mut look = MOST_LOOKED_AT;
        let known = self.closed.len();
        // It may itself be a link, to a folder that is shown under this name.
        let is_bounded = match fs::metadata(&path) {
            Ok(meta) => close(&path, &meta, DEEPEST, &mut look, &mut self.closed).is_some(),
            Err(_) => true,
        };
        if is_bounded {
            self.shown.push(name);
            return;
        }
        self.closed.truncate(known);
        let why = format!(
            "is left out: it has more than {MOST_CLOSED} files that are not for everybody, or is too large to look at"
        );
        self.left_out.push(PathRefusal { path, why });
    }

    /// Adds the folders that are as packages ship them.
    fn add_settings(&mut self, system: &SystemFiles, names: Vec<PathBuf>) {
        let shipped = ShippedFiles::read(&system.dpkg, &system.ucf, system.owner);
        let most = self.shown.len() + MOST_FOLDERS;
        for name in names {
            let path = system.etc.join(&name);
            let why = if self.shown.len() >= most {
                Err(format!("is one of more than {MOST_FOLDERS} folders"))
            } else {
                shipped.check(&path, system.owner)
            };
            match why {
                Ok(()) => self.shown.push(name),
                Err(why) => self.left_out.push(PathRefusal { path, why }),
            }
        }
    }
}

/// Notes what in a folder is not for everybody; `None` if that is too much. Links in it are not followed.
fn close(
    at: &Path,
    meta: &fs::Metadata,
    depth: usize,
    look: &mut usize,
    closed: &mut Vec<PathBuf>,
) -> Option<()> {
    *look = look.checked_sub(1)?;
    if !meta.is_symlink() && !is_for_everybody(meta) {
        closed.push(at.to_owned());
        return (closed.len() <= MOST_CLOSED).then_some(());
    }
    if !meta.is_dir() {
        return Some(());
    }
    let depth = depth.checked_sub(1)?;
    for entry in fs::read_dir(at).ok()? {
        let entry = entry.ok()?;
        close(&entry.path(), &entry.metadata().ok()?, depth, look, closed)?;
    }
    Some(())
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut list| list.next().is_none())
}

fn is_private(name: &str) -> bool {
    let name = name.to_lowercase();
    PRIVATE.split(' ').any(|known| known == name)
        || PRIVATE_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Returns the programs of these folders whose links lead to a file that exists, over a path below `/etc` that no jail shows.
pub(super) fn broken_programs(folders: &[&str], shown: &[PathBuf]) -> Vec<PathRefusal> {
    let mut broken = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.exists()
                && let Some(over) = hidden_way(&path, shown)
            {
                let why = format!("leads over {}, which no jail shows", over.display());
                broken.push(PathRefusal { path, why });
            }
        }
    }
    broken.sort_by(|one, other| one.path.cmp(&other.path));
    broken
}

/// Returns the first path below `/etc` to which the link leads, directly or over others, and that no jail shows.
fn hidden_way(path: &Path, shown: &[PathBuf]) -> Option<PathBuf> {
    const MOST_LINKS: usize = 40;
    let mut at = path.to_owned();
    for _ in 0..MOST_LINKS {
        let to = fs::read_link(&at).ok()?;
        let folder = at.parent()?.canonicalize().ok()?;
        at = folder.join(to);
        let real = at.parent()?.canonicalize().ok()?.join(at.file_name()?);
        if let Ok(inside) = real.strip_prefix("/etc")
            && !shown.iter().any(|folder| inside.starts_with(folder))
        {
            return Some(real);
        }
    }
    None
}

/// Returns whether the file belongs to `owner` and nobody else can change it.
fn only_changed_by(meta: &fs::Metadata, owner: u32) -> bool {
    meta.uid() == owner && meta.mode() & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::{Path, PathBuf};

    use super::shipped::md5_text;
    use super::{EtcFolders, LISTED, SystemFiles, broken_programs, decide, is_private};

    /// A system whose packages ship these files of `/etc`, with these texts.
    fn system(root: &Path, shipped: &[(&str, &str)]) -> SystemFiles {
        let etc = root.join("etc");
        fs::create_dir_all(&etc).unwrap();
        let mut conffiles = String::from("Package: tool\nConffiles:\n");
        for (file, text) in shipped {
            let digest = md5_text(text.as_bytes());
            let path = etc.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let _ = writeln!(conffiles, " {} {digest}", path.display());
        }
        fs::write(root.join("status"), conffiles).unwrap();
        SystemFiles {
            etc,
            dpkg: root.join("status"),
            ucf: root.join("hashfile"),
            owner: rustix::process::getuid().as_raw(),
        }
    }

    fn settings(found: &EtcFolders) -> Vec<String> {
        let shown = found
            .shown
            .iter()
            .filter(|name| !LISTED.iter().any(|one| name.ends_with(one)));
        shown.map(|name| name.display().to_string()).collect()
    }

    /// `/etc/tool` with a file that its package ships and one that has this text now; why it is not shown, or nothing if it is.
    fn check(file: &str, text: &str, mode: u32) -> String {
        let folder = tempfile::tempdir().unwrap();
        let system = system(
            folder.path(),
            &[
                ("tool/tool.conf", "level = 3\n"),
                ("tool/deep/api-token.json", "{}"),
            ],
        );
        let path = system.etc.join("tool").join(file);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let found = decide(&system);
        assert_ne!(
            settings(&found) == ["tool"],
            !found.left_out.is_empty(),
            "{found:?}"
        );
        let refused = found.left_out.first();
        refused.map_or_else(String::new, |refused| refused.why.clone())
    }

    #[test]
    fn a_settings_folder_is_shown_if_all_of_it_is_as_packages_ship_it() {
        for (file, text, mode, expect) in [
            ("tool.conf", "level = 3\n", 0o644, ""),
            ("deep/api-token.json", "{}", 0o444, ""),
            (
                "tool.conf",
                "level = 4\n",
                0o644,
                "tool.conf is not as its package ships it",
            ),
            (
                "deep/api-token.json",
                "{ }",
                0o644,
                "deep/api-token.json is not as",
            ),
            ("tool.conf", "", 0o644, "tool.conf is not as"),
            (
                "more.conf",
                "level = 3\n",
                0o644,
                "more.conf is not known as a package's",
            ),
            ("deep/.netrc", "", 0o644, "deep/.netrc is not known"),
            (
                "tool.conf",
                "level = 3\n",
                0o640,
                "tool.conf is not for everybody",
            ),
            (
                "tool.conf",
                "level = 3\n",
                0o666,
                "tool.conf belongs to another",
            ),
        ] {
            let why = check(file, text, mode);
            assert_eq!(why.is_empty(), expect.is_empty(), "{file} {text}: {why}");
            assert!(why.contains(expect), "{file} {text}: {why}");
        }
    }

    #[test]
    fn files_that_a_package_makes_when_it_is_installed_count_as_shipped() {
        let folder = tempfile::tempdir().unwrap();
        let system = system(folder.path(), &[("made/a.ini", "a = 1\n")]);
        fs::rename(&system.dpkg, folder.path().join("old")).unwrap();
        let digest = "e4b4a1a8a7fc3a2e8a5a5a0d8a9f0c11";
        let line =
            |digest: &str| format!("{digest}  {}\n", system.etc.join("made/a.ini").display());
        fs::write(&system.ucf, line(digest)).unwrap();
        assert!(settings(&decide(&system)).is_empty());
        let real = md5_text(b"a = 1\n");
        fs::write(&system.ucf, line(&real)).unwrap();
        assert_eq!(settings(&decide(&system)), ["made"]);
        // A list that others may change counts for nothing.
        fs::set_permissions(&system.ucf, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(settings(&decide(&system)).is_empty());
    }

    #[test]
    fn links_out_and_folders_of_the_machine_are_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["linked", "ssh", "cron.d", "around", "java-17-openjdk"]
            .map(|name| format!("{name}/a.conf"));
        let files: Vec<(&str, &str)> = files.iter().map(|file| (&**file, "a\n")).collect();
        let system = system(folder.path(), &files);
        symlink("/root/.ssh/config", system.etc.join("linked/config")).unwrap();
        symlink("a.conf", system.etc.join("around/b.conf")).unwrap();
        symlink(system.etc.join("ssh"), system.etc.join("way")).unwrap();
        fs::write(system.etc.join("java-17-openjdk/a.conf"), "changed\n").unwrap();
        let found = decide(&system);
        assert_eq!(settings(&found), ["java-17-openjdk", "around"]);
        let why: Vec<_> = found.left_out.iter().map(ToString::to_string).collect();
        assert!(
            why.len() == 1 && why[0].contains("linked` is left out: config"),
            "{why:?}"
        );
    }

    #[test]
    fn what_is_not_for_everybody_in_a_listed_folder_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let system = system(folder.path(), &[]);
        let key = system.etc.join("ssl/certs/server.key");
        let word = system
            .etc
            .join("java-17-openjdk/management/jmxremote.password");
        for path in [&key, &word] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "secret").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        fs::write(system.etc.join("ssl/certs/ca.pem"), "").unwrap();
        let mut found = decide(&system);
        found.closed.sort();
        assert_eq!(found.closed, [word, key.clone()]);
        for n in 0..=super::MOST_CLOSED {
            let path = key.with_file_name(format!("{n}.key"));
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let found = decide(&system);
        assert!(
            !found.shown.contains(&PathBuf::from("ssl/certs")),
            "{found:?}"
        );
        assert!(
            found.left_out[0].why.contains("more than 32 files"),
            "{found:?}"
        );
    }

    #[test]
    fn programs_that_lead_over_what_is_not_shown_are_named() {
        let folder = tempfile::tempdir().unwrap();
        for (name, to) in [
            ("hidden", "/etc/passwd"),
            ("over", "hidden"),
            ("shown", "/etc/os-release"),
            ("gone", "/etc/x/y"),
        ] {
            symlink(to, folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("plain"), "").unwrap();
        let shown = LISTED.iter().map(PathBuf::from).collect::<Vec<_>>();
        let broken = broken_programs(&[&folder.path().display().to_string()], &shown);
        let names: Vec<_> = broken
            .iter()
            .filter_map(|one| one.path.file_name())
            .collect();
        assert_eq!(names, ["hidden", "over"]);
    }

    #[test]
    fn folders_of_services_and_of_the_machine_are_private() {
        for name in [
            "NetworkManager",
            "ssh",
            "cron.daily",
            "rc3.d",
            "pam.d",
            "wireguard",
            "krb5.conf.d",
        ] {
            assert!(is_private(name), "{name}");
        }
        for name in ["maven", "php", "vim", "ImageMagick-6", "profile.d"] {
            assert!(!is_private(name), "{name}");
        }
    }
}
