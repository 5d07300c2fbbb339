//! What every jail shows of `/etc`: a list of what programs of every kind need, and the settings folders of installed packages.
//!
//! A folder of settings is shown if the system's packages have a folder of its name, only root can change it, everybody may read
//! all of it, and nothing in it looks like a secret. Folders that describe the machine, its users, its network or its services are
//! not shown. This is decided once for a process.

mod secrets;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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

/// Where packages have folders of their own; `/etc/NAME` belongs to one if one of these has `NAME`.
const PACKAGES: &[&str] = &["/usr/share", "/usr/lib", "/usr/share/doc"];

/// Folders that describe this machine, its users, its network and its services, or that hold credentials for them.
const PRIVATE: &str = "\
    ansible apache2 apparmor apt audit avahi bind bluetooth caddy ceph chef clamav cloud cni containerd containers corosync coturn \
    couchdb cups dbus-1 default dhcp dnsmasq.d docker dovecot elasticsearch etcd exim4 fail2ban filebeat firewalld freeradius fwupd \
    gdm gdm3 gitlab grafana grub.d haproxy hostapd httpd influxdb init init.d initramfs-tools ipsec.d iscsi iwd kernel kibana \
    kubernetes landscape ldap letsencrypt libvirt lightdm lighttpd logcheck logrotate.d logstash lvm lxc lxd mdadm minio modprobe.d \
    mosquitto multipath munge mysql named netplan network networkmanager nfs nginx nomad.d opensearch openvpn opt pacemaker pki \
    polkit-1 postfix postgresql ppp prometheus puppet rabbitmq rancher redis rspamd rsyslog.d salt samba sasl2 security selinux skel \
    slurm snmp squid ssh ssl sssd strongswan.d stunnel sudoers.d swanctl systemd telegraf tor udev ufw unbound varnish vault.d vpnc \
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

/// Where the units of services are; a folder that a service is named after is the service's.
const UNITS: &[&str] = &["/usr/lib/systemd/system", "/lib/systemd/system"];
/// How the names of services differ from those of their folders.
const SERVICE_ENDINGS: &[&str] = &[".service", "d.service", "-server.service"];

/// Maximum number of settings folders that are shown: each takes a mount in each jail.
const MOST_FOLDERS: usize = 64;

/// What is shown of `/etc`, and what is not.
#[derive(Debug, Default)]
pub(super) struct EtcFolders {
    /// Paths relative to `/etc`.
    pub(super) shown: Vec<PathBuf>,
    /// Settings folders of packages that are left out, for something in them.
    pub(super) left_out: Vec<PathRefusal>,
}

/// The folders that decide.
struct SystemFolders {
    etc: PathBuf,
    /// Each has a folder for each package.
    packages: Vec<PathBuf>,
    units: Vec<PathBuf>,
    /// Who alone may change what is shown.
    owner: u32,
}

/// Decides what is shown of this machine's `/etc`.
pub(super) fn find() -> EtcFolders {
    let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect();
    decide(&SystemFolders {
        etc: "/etc".into(),
        packages: paths(PACKAGES),
        units: paths(UNITS),
        owner: 0,
    })
}

fn decide(system: &SystemFolders) -> EtcFolders {
    let etc = &system.etc;
    let mut found = EtcFolders {
        shown: LISTED.iter().map(PathBuf::from).collect(),
        left_out: Vec::new(),
    };
    let mut settings = Vec::new();
    for entry in fs::read_dir(etc).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(text) = name
            .to_str()
            .filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        else {
            continue;
        };
        if text.starts_with(LISTED_PREFIX) {
            found.shown.push(name.into());
        } else if !LISTED.contains(&text) && system.is_of_a_package(text) {
            settings.push(PathBuf::from(name));
        }
    }
    settings.sort();
    for name in settings {
        let path = etc.join(&name);
        let why = if found.shown.len() >= LISTED.len() + MOST_FOLDERS {
            Err(format!("is one of more than {MOST_FOLDERS} folders"))
        } else {
            secrets::check(&path, system.owner)
        };
        match why {
            Ok(()) => found.shown.push(name),
            Err(why) => found.left_out.push(PathRefusal { path, why }),
        }
    }
    found
}

impl SystemFolders {
    /// Returns whether a folder holds the settings of a package that is no service.
    fn is_of_a_package(&self, name: &str) -> bool {
        let service = |folder: &PathBuf| {
            let named = |ending: &str| {
                let spellings = [
                    format!("{name}{ending}"),
                    format!("{}{ending}", name.to_lowercase()),
                ];
                spellings.iter().any(|unit| folder.join(unit).exists())
            };
            SERVICE_ENDINGS.iter().any(|ending| named(ending))
        };
        !is_private(name)
            && self
                .packages
                .iter()
                .any(|folder| folder.join(name).is_dir())
            && !self.units.iter().any(service)
            && !self.etc.join("init.d").join(name).exists()
    }
}

fn is_private(name: &str) -> bool {
    let name = name.to_lowercase();
    // Parts that other packages and administrators add to a service of the system.
    let added = Path::new(&name).extension().is_some_and(|end| end == "d");
    added
        || PRIVATE.split(' ').any(|known| known == name)
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
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::{Path, PathBuf};

    use super::{LISTED, SystemFolders, broken_programs, decide, is_private};

    fn system(root: &Path) -> SystemFolders {
        SystemFolders {
            etc: root.join("etc"),
            packages: vec![root.join("share")],
            units: vec![root.join("units")],
            owner: rustix::process::getuid().as_raw(),
        }
    }

    /// Makes `/etc/tool` with one more file, of a package `tool`; returns why it is not shown, or nothing if it is.
    fn check(file: &str, text: &str, mode: u32) -> String {
        let folder = tempfile::tempdir().unwrap();
        let (etc, packages) = (folder.path().join("etc"), folder.path().join("share"));
        fs::create_dir_all(etc.join("tool/deep")).unwrap();
        fs::create_dir_all(packages.join("tool")).unwrap();
        fs::write(etc.join("tool/tool.conf"), "level = 3\n").unwrap();
        let path = etc.join("tool").join(file);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let found = decide(&system(folder.path()));
        let shown = found.shown.get(LISTED.len()) == Some(&PathBuf::from("tool"));
        assert_ne!(shown, !found.left_out.is_empty(), "{found:?}");
        found
            .left_out
            .first()
            .map_or_else(String::new, |refused| refused.why.clone())
    }

    #[test]
    fn a_settings_folder_is_shown_unless_something_in_it_may_be_secret() {
        for (file, text, mode, expect) in [
            ("more.conf", "color = true\n", 0o644, ""),
            ("deep/more.conf", "# password = none\n", 0o644, ""),
            (
                "settings.xml",
                "<!--\n<password>x</password>\n-->\n<a/>\n",
                0o644,
                "",
            ),
            ("more.conf", "empty_token =\n", 0o644, ""),
            ("more.conf", "password = hunter2\n", 0o644, "more.conf"),
            (
                "settings.xml",
                "<server><password>x</password></server>",
                0o644,
                "settings.xml",
            ),
            ("more.json", "{\"api_key\": \"x\"}", 0o644, "more.json"),
            (
                "more.conf",
                "url = https://me:pass@example.org/\n",
                0o644,
                "more.conf",
            ),
            (
                "deep/more",
                "-----BEGIN RSA PRIVATE KEY-----\n",
                0o644,
                "deep/more",
            ),
            ("tokenizer.ini", "extension=tokenizer.so\n", 0o644, ""),
            ("api-token.txt", "x", 0o644, "api-token.txt"),
            ("server.key", "x", 0o644, "server.key"),
            ("auth.conf", "x", 0o644, "auth.conf"),
            (".netrc", "x", 0o644, ".netrc"),
            ("more.conf", "level = 3\n", 0o640, "more.conf"),
            ("more.conf", "level = 3\n", 0o666, "more.conf"),
        ] {
            let why = check(file, text, mode);
            assert_eq!(why.is_empty(), expect.is_empty(), "{file} {text}: {why}");
            assert!(why.contains(expect), "{file} {text}: {why}");
        }
    }

    #[test]
    fn links_out_and_folders_of_services_or_no_package_are_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let (etc, packages) = (folder.path().join("etc"), folder.path().join("share"));
        for name in [
            "own",
            "linked",
            "ssh",
            "cron.d",
            "java-17-openjdk",
            "web",
            "init.d",
            "old",
        ] {
            fs::create_dir_all(etc.join(name)).unwrap();
        }
        for name in ["linked", "ssh", "cron.d", "way", "web", "old"] {
            fs::create_dir_all(packages.join(name)).unwrap();
        }
        fs::create_dir_all(folder.path().join("units")).unwrap();
        fs::write(folder.path().join("units/webd.service"), "").unwrap();
        fs::write(etc.join("init.d/old"), "").unwrap();
        symlink("/root/.ssh/config", etc.join("linked/config")).unwrap();
        symlink(etc.join("ssh"), etc.join("way")).unwrap();
        let found = decide(&system(folder.path()));
        let shown = &found.shown[LISTED.len()..];
        assert_eq!(shown, [PathBuf::from("java-17-openjdk")]);
        let why: Vec<_> = found.left_out.iter().map(ToString::to_string).collect();
        assert!(
            why.len() == 1 && why[0].contains("linked` is left out: config"),
            "{why:?}"
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
            "environment.d",
        ] {
            assert!(is_private(name), "{name}");
        }
        for name in ["maven", "php", "vim", "ImageMagick-6"] {
            assert!(!is_private(name), "{name}");
        }
    }
}
