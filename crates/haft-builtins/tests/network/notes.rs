//! What no command can do: a result says why, and what to do instead, once for a run.

use haft_builtins::command::CommandNetwork;
use haft_sandbox::Sandbox;

use crate::Scene;

pub(crate) async fn all(sandbox: &Sandbox) {
    what_no_command_can_do_is_said_once(sandbox).await;
}

async fn what_no_command_can_do_is_said_once(sandbox: &Sandbox) {
    for (line, says) in [
        ("docker ps", "Commands cannot use Docker"),
        (
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"/var/run/docker.sock\")' || echo /var/run/docker.sock >&2; exit 1",
            "Commands cannot use Docker",
        ),
        (
            "apt-get install -y jq",
            "cannot install packages of the system",
        ),
        ("sudo true", "have no other user's rights"),
        ("ping -c 1 127.0.0.1", "send no pings"),
        (
            "systemctl status ssh",
            "do not reach the services of the system",
        ),
        ("mount -t tmpfs none /mnt", "cannot change the machine"),
    ] {
        let scene = Scene::new(sandbox, CommandNetwork::default());
        let seen = scene.line(line).await;
        assert!(!seen.ok, "{line}: {}", seen.shown);
        assert!(seen.shown.contains(says), "{line}: {}", seen.shown);
        let again = scene.line(line).await;
        assert!(!again.shown.contains(says), "{line}: {}", again.shown);
    }
    let scene = Scene::new(sandbox, CommandNetwork::default());
    let seen = scene.line("no-such-program-here").await;
    assert!(
        seen.shown
            .contains("no program of this name is on the PATH of commands"),
        "{}",
        seen.shown
    );
}
