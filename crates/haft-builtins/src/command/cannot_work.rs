//! What no command can do, and what to do instead: said once where a command tried it and failed.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use haft::policy::CommandPart;

use crate::command::{CommandData, Commands, RunCommandInput};

/// The exit code of a shell that found no program.
const NOT_FOUND: i32 = 127;
/// Maximum number of programs that are looked for on this machine.
const MAX_PROGRAMS: usize = 4;
/// Maximum number of bytes of an output that are looked through, from its end.
const MAX_OUTPUT: usize = 64 << 10;

/// Something that no command can do.
struct CannotWork {
    /// The programs that do nothing else.
    programs: &'static [&'static str],
    /// What others that try it say.
    says: &'static [&'static str],
    note: &'static str,
}

const ALL: &[CannotWork] = &[
    CannotWork {
        programs: &[
            "docker",
            "docker-compose",
            "docker-buildx",
            "podman",
            "podman-compose",
            "nerdctl",
            "buildah",
            "kind",
            "k3d",
            "minikube",
            "devcontainer",
            "earthly",
        ],
        says: &[
            "docker.sock",
            "podman.sock",
            "Cannot connect to the Docker daemon",
            "Could not find a valid Docker environment",
            "Could not find a working container runtime",
        ],
        note: "Commands cannot use Docker or Podman: whoever reaches their socket has the whole machine. Run it outside of haft, start the service itself \
            in a command (`postgres`, `mariadbd`, `redis-server` work where they are installed), or have the user name the socket of one that runs in `sandbox.sockets`.",
    },
    CannotWork {
        programs: &[
            "apt",
            "apt-get",
            "aptitude",
            "dnf",
            "yum",
            "zypper",
            "pacman",
            "apk",
            "emerge",
            "snap",
            "flatpak",
            "xbps-install",
            "update-alternatives",
        ],
        says: &[
            "/var/lib/dpkg/lock",
            "/var/lib/apt/lists",
            "Could not open lock file",
            "/var/cache/dnf",
        ],
        note: "Commands cannot install packages of the system: a jail shows the system's folders read-only. Ask the user to install it outside, or install \
            what the project needs into the workspace (`python3 -m venv`, `npm install`, `cargo install --root`).",
    },
    CannotWork {
        programs: &[
            "sudo", "doas", "su", "runuser", "pkexec", "run0", "setpriv", "newgrp",
        ],
        says: &[
            "you must be root",
            "must be superuser",
            "are you root?",
            "requires root",
        ],
        note: "Commands have no other user's rights, and no program gains any in a jail. Do without, or ask the user to run it outside.",
    },
    CannotWork {
        programs: &[
            "ping",
            "ping6",
            "traceroute",
            "tracepath",
            "mtr",
            "nmap",
            "tcpdump",
            "arping",
            "fping",
            "hping3",
        ],
        says: &[
            "socket: Operation not permitted",
            "Lacking privilege for icmp socket",
            "raw socket",
        ],
        note: "Commands send no pings and no raw packets: their connections are TCP, each judged by haft. `curl -sS -o /dev/null -w '%{http_code}' URL` tests whether a host answers.",
    },
    CannotWork {
        programs: &[
            "systemctl",
            "service",
            "journalctl",
            "loginctl",
            "hostnamectl",
            "timedatectl",
            "rc-service",
            "initctl",
            "launchctl",
            "machinectl",
            "systemd-run",
            "crontab",
        ],
        says: &[
            "System has not been booted with systemd",
            "Failed to connect to bus",
            "/run/systemd/",
            "system_bus_socket",
        ],
        note: "Commands do not reach the services of the system. Start a server as a command in the background, or ask the user to do it outside.",
    },
    CannotWork {
        programs: &[
            "mount", "umount", "losetup", "chroot", "unshare", "iptables", "nft", "modprobe",
            "insmod", "sysctl", "swapon", "useradd", "adduser", "usermod", "reboot", "shutdown",
        ],
        says: &[
            "must be superuser to use mount",
            "unshare failed",
            "CAP_SYS_ADMIN",
            "CAP_NET_ADMIN",
        ],
        note: "Commands cannot change the machine: mounts, namespaces, the kernel, the firewall and users are not theirs. Ask the user to run it outside.",
    },
];

/// Returns what to say about a command that failed.
pub(super) fn notes(input: &RunCommandInput, data: &CommandData) -> Vec<String> {
    let Ok(line) = Commands::line(input) else {
        return Vec::new();
    };
    let started: Vec<&str> = line.parts.iter().filter_map(CommandPart::program).collect();
    let names: Vec<&str> = started.iter().map(|program| name_of(program)).collect();
    let output = [end(&data.stdout), end(&data.stderr)];
    let is_tried = |one: &&CannotWork| {
        one.programs.iter().any(|program| names.contains(program))
            || one
                .says
                .iter()
                .any(|says| output.iter().any(|text| text.contains(says)))
    };
    let mut notes: Vec<String> = ALL
        .iter()
        .filter(is_tried)
        .map(|one| one.note.to_owned())
        .collect();
    // What cannot work is not to be made available.
    if data.exit_code == Some(NOT_FOUND) && notes.is_empty() {
        let path = env::var_os("PATH").unwrap_or_default();
        notes.extend(elsewhere(&started, &output, &path));
    }
    notes
}

/// Says where programs that were not found lie on this machine.
fn elsewhere(programs: &[&str], output: &[&str], path: &OsStr) -> Option<String> {
    let is_missed = |name: &&&str| {
        let says = output
            .iter()
            .any(|text| text.contains(&format!("{name}: ")));
        !name.contains('/') && (says || programs.len() == 1)
    };
    let missed = programs.iter().filter(is_missed).take(MAX_PROGRAMS);
    let mut found = missed.filter_map(|name| Some((name, on_path(name, path)?)));
    let (name, folder) = found.next()?;
    let folder = folder.display();
    Some(format!(
        "`{name}` is in {folder} on this machine, which is not on the PATH of commands: the setting `sandbox.path = [\"{folder}\"]` adds it."
    ))
}

/// Returns the first folder of a `PATH` that has a program of this name.
fn on_path(name: &str, path: &OsStr) -> Option<PathBuf> {
    let mut folders = env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.find(|folder| {
        let about = fs::metadata(folder.join(name));
        about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    })
}

fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Returns the end of an output, where programs say why they failed.
fn end(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_OUTPUT))..]
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::{ALL, elsewhere, notes};
    use crate::command::{CommandData, RunCommandInput};

    #[test]
    fn what_cannot_work_is_said_with_what_does() {
        for (line, output, expect) in [
            ("docker ps", "", "cannot use Docker"),
            ("make && docker compose up -d", "", "cannot use Docker"),
            ("/usr/bin/podman run x", "", "cannot use Docker"),
            (
                "npm test",
                "connect ENOENT /var/run/docker.sock",
                "cannot use Docker",
            ),
            (
                "mvn test",
                "Could not find a valid Docker environment",
                "cannot use Docker",
            ),
            ("apt-get install -y jq", "", "cannot install packages"),
            ("sudo make install", "", "no other user's rights"),
            ("ping -c1 example.com", "", "no pings"),
            ("systemctl restart x", "", "services of the system"),
            ("mount -t tmpfs x y", "", "cannot change the machine"),
            ("grep docker README.md", "", ""),
            ("cargo test", "error: test failed", ""),
            ("echo apt-get", "", ""),
        ] {
            let input = RunCommandInput::from_line(line);
            let data = CommandData {
                stderr: output.to_owned(),
                exit_code: Some(1),
                ..CommandData::default()
            };
            let said = notes(&input, &data);
            assert_eq!(said.is_empty(), expect.is_empty(), "{line}: {said:?}");
            assert!(said.concat().contains(expect), "{line}: {said:?}");
        }
        // A note is one line, and says what to do.
        for one in ALL {
            assert!(
                !one.note.contains('\n') && one.note.ends_with('.'),
                "{}",
                one.note
            );
        }
    }

    #[test]
    fn a_program_that_only_this_machine_finds_is_named_with_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, mode) in [("dotnet", 0o755), ("plain", 0o644)] {
            fs::write(at(name), "").unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = folder.path().as_os_str();
        for (programs, output, found) in [
            (&["dotnet"][..], "", true),
            (
                &["make", "dotnet"],
                "bash: line 1: dotnet: command not found",
                true,
            ),
            (&["make", "dotnet"], "make: *** [all] Error 127", false),
            (&["plain"], "", false),
            (&["absent"], "", false),
            (&["./dotnet"], "", false),
        ] {
            let said = elsewhere(programs, &[output], path);
            assert_eq!(said.is_some(), found, "{programs:?}: {said:?}");
            assert!(said.is_none_or(|said| said.contains("sandbox.path")));
        }
        assert_eq!(elsewhere(&["dotnet"], &[""], OsStr::new("bin:")), None);
    }
}
