//! Services whose sockets commands never reach: whoever talks to them has the machine, the user's session, or keys.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How many names at the end of a path tell what a socket is.
const PARTS: usize = 2;

/// Services with such a power, and how they are known.
struct Power {
    /// Whose socket it is, as the rest of `is`.
    what: &'static str,
    why: &'static str,
    /// Names of sockets and of folders on the way to them, in lower case; `*` at an end stands for anything.
    names: &'static [&'static str],
    /// Names of the programs that serve them, in the same form.
    programs: &'static [&'static str],
}

const POWERS: &[Power] = &[
    Power {
        what: "one of Docker, Podman, containerd or another runtime of containers",
        why: "whoever reaches it has the whole machine",
        names: &[
            "docker*",
            "podman*",
            "containerd*",
            "crio*",
            "cri-dockerd*",
            "buildkit*",
            "buildkitd*",
            "nerdctl*",
            "lxd",
            "lxc",
            "incus",
            "colima",
            "lima",
            "rancher*",
            "kubelet*",
            "k3s",
            "libpod",
            "garden.sock",
            "balena*",
            "firecracker*",
        ],
        programs: &[
            "docker*",
            "com.docker*",
            "podman*",
            "conmon",
            "containerd*",
            "crio",
            "cri-dockerd",
            "buildkitd",
            "nerdctl",
            "lxd",
            "lxc*",
            "incus*",
            "rootlesskit",
            "colima",
            "limactl",
            "kubelet",
            "k3s*",
            "balenad",
            "firecracker",
        ],
    },
    Power {
        what: "one of the system's own services",
        why: "they start and change programs outside of the jail",
        names: &[
            "systemd",
            "dbus*",
            "bus",
            "system_bus_socket",
            "at-spi",
            "snapd*",
            "libvirt",
            "polkit*",
            "packagekit*",
            "udev",
            "uuidd",
            "nix",
            "guix*",
            "acpid*",
            "rpcbind*",
            "cups*",
            "avahi*",
            "networkmanager*",
            "netns",
            "dmeventd*",
            "lvm*",
            "multipathd*",
            "elogind*",
            "runit*",
            "supervisor*",
            "supervise",
            "s6*",
            "initctl",
            "monit*",
            "salt*",
            "chef*",
            "puppet*",
            "qga*",
            "qemu*",
            "vmware*",
            "spice*",
        ],
        programs: &[
            "systemd*",
            "(systemd*",
            "init",
            "dbus-*",
            "at-spi*",
            "snapd*",
            "libvirt*",
            "virt*",
            "polkitd",
            "packagekitd",
            "udevd",
            "nix-daemon",
            "guix-daemon",
            "cupsd",
            "avahi*",
            "networkmanager",
            "supervisord",
            "s6-*",
            "monit",
            "salt-*",
            "qemu*",
            "vmtoolsd",
            "spice*",
        ],
    },
    Power {
        what: "one of an agent or a keyring",
        why: "it signs, decrypts or gives out secrets as the user; commands reach ssh-agent and gpg-agent by haft",
        names: &[
            "agent.*",
            "ssh-*",
            "s.gpg-agent*",
            "s.scdaemon*",
            "s.dirmngr*",
            "s.keyboxd*",
            "gnupg",
            "keyring*",
            "gcr",
            "kwallet*",
            "1password*",
            "op-*",
            "bitwarden*",
            "*keepassxc*",
            "vault*",
            "pcscd*",
            "p11-kit",
            "sssd",
            "tpm*",
            "spire*",
            "yubikey*",
        ],
        programs: &[
            "ssh*",
            "gpg-agent",
            "scdaemon",
            "dirmngr",
            "keyboxd",
            "gnome-keyring*",
            "gcr-*",
            "kwallet*",
            "ksecretd",
            "1password*",
            "op",
            "bitwarden*",
            "keepassxc*",
            "vault*",
            "pcscd",
            "p11-kit*",
            "sssd*",
            "spire*",
            "yubikey*",
        ],
    },
    Power {
        what: "one of the screen, of sound or of the keyboard",
        why: "it reads what the user sees, says and types",
        names: &[
            ".x11-unix",
            ".ice-unix",
            "wayland-*",
            "pipewire*",
            "pulse*",
            "sway-ipc*",
            "hypr",
            "i3",
            "gamescope*",
            "ibus*",
            "fcitx*",
            "ydotool*",
        ],
        programs: &[
            "xorg*",
            "x",
            "xwayland*",
            "xvfb*",
            "xvnc*",
            "gnome-*",
            "kwin*",
            "plasmashell*",
            "mutter*",
            "weston*",
            "sway*",
            "hyprland*",
            "labwc*",
            "river*",
            "wayfire*",
            "niri*",
            "cosmic-*",
            "pipewire*",
            "wireplumber*",
            "pulseaudio*",
            "ibus*",
            "fcitx*",
            "ydotoold",
            "i3",
        ],
    },
    Power {
        what: "one of a terminal, a shell or an editor",
        why: "it runs what it is told, outside of the jail",
        names: &[
            "tmux-*",
            "screen",
            "s-*",
            "zellij*",
            "kitty*",
            "mykitty*",
            "wezterm*",
            "emacs*",
            "nvim*",
            "vscode-*",
            "code-*",
            "jetbrains*",
            "abduco*",
            "dtach*",
            "ghostty*",
            "watchman*",
            "bazel*",
        ],
        programs: &[
            "tmux*",
            "screen*",
            "zellij*",
            "kitty*",
            "wezterm*",
            "emacs*",
            "nvim*",
            "vim*",
            "code*",
            "abduco",
            "dtach",
            "ghostty*",
            "bash",
            "sh",
            "dash",
            "zsh",
            "fish",
            "watchman*",
            "bazel*",
            "socat",
        ],
    },
    Power {
        what: "one of haft",
        why: "it decides what commands may do",
        names: &["haft*"],
        programs: &["haft*"],
    },
];

/// Sockets of which there may be a second name: a hard link, or a mount of one elsewhere.
const KNOWN: [&str; 9] = [
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/buildkit/buildkitd.sock",
    "/run/snapd.socket",
    "/run/systemd/private",
    "/run/dbus/system_bus_socket",
    "/run/libvirt/libvirt-sock",
];

/// Says why commands must not reach the socket at a path, or in the folder there, as the rest of a sentence that begins with it. Its links are
/// resolved: the path as given and the one to which it leads both count.
pub(super) fn of_path(path: &Path) -> Option<String> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut paths = vec![path.to_owned(), real.clone()];
    paths.extend(known_as(&real));
    // The socket's own name, and that of its folder: a home or a project may be called anything.
    let parts = paths
        .iter()
        .flat_map(|path| path.components().rev().take(PARTS));
    let mut names = parts.map(|part| part.as_os_str().to_string_lossy().to_lowercase());
    names.find_map(|name| Some(in_words(of(|power| power.names, &name)?)))
}

/// Says the same of a socket that this program serves.
pub(super) fn of_program(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    Some(in_words(of(|power| power.programs, &name)?))
}

fn in_words(power: &Power) -> String {
    format!("is {}: {}", power.what, power.why)
}

fn of(list: impl Fn(&Power) -> &'static [&'static str], name: &str) -> Option<&'static Power> {
    let fits = |pattern: &&str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(_), Some(_)) => name.contains(pattern.trim_matches('*')),
        (_, Some(start)) => name.starts_with(start),
        (Some(end), _) => name.ends_with(end),
        _ => *name == **pattern,
    };
    POWERS.iter().find(|power| list(power).iter().any(fits))
}

/// Returns the known socket that is the same file, or the same mount, as this one.
fn known_as(real: &Path) -> Option<PathBuf> {
    let about = fs::metadata(real).ok()?;
    let is_same = |known: &&&str| {
        fs::metadata(known)
            .is_ok_and(|other| (other.dev(), other.ino()) == (about.dev(), about.ino()))
    };
    KNOWN.iter().find(is_same).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{of_path, of_program};

    #[test]
    fn powerful_services_are_known_by_their_sockets_and_their_programs() {
        for (path, refused) in [
            ("/run/docker.sock", true),
            ("/var/run/Docker.sock", true),
            ("/home/ann/.docker/run/docker.sock", true),
            ("/run/user/1000/podman/podman.sock", true),
            ("/run/containerd/containerd.sock.ttrpc", true),
            ("/run/systemd/private", true),
            ("/run/user/1000/bus", true),
            ("/run/user/1000/gnupg/S.gpg-agent.extra", true),
            ("/tmp/ssh-XXXX/agent.123", true),
            ("/run/user/1000/keyring/ssh", true),
            ("/tmp/.X11-unix/X0", true),
            ("/run/user/1000/wayland-0", true),
            ("/tmp/tmux-1000/default", true),
            ("/run/postgresql/.s.PGSQL.5432", false),
            ("/run/mysqld/mysqld.sock", false),
            ("/run/redis/redis-server.sock", false),
            ("/home/ann/app/dev.sock", false),
            ("/home/docker/app/dev.sock", false),
            ("/tmp/mongodb-27017.sock", false),
        ] {
            assert_eq!(of_path(Path::new(path)).is_some(), refused, "{path}");
        }
        for (program, refused) in [
            ("dockerd", true),
            ("systemd", true),
            ("ssh-agent", true),
            ("Xorg.bin", true),
            ("bash", true),
            ("haft", true),
            ("postgres", false),
            ("redis-server", false),
            ("mariadbd", false),
            ("node", false),
            ("python3.11", false),
        ] {
            assert_eq!(of_program(program).is_some(), refused, "{program}");
        }
    }
}
