//! Hosts that two readers of a name tell apart, and logins that go where they must not.

use crate::entries::Entry;
use crate::scene::{Scene, has_jail};

/// A program that asks the proxy of the jail for a host, as it is written, and prints the status.
const ASK: &str = r#"
import os, socket, sys, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["https_proxy"])
for name in sys.stdin.read().split("\n"):
    name = name.encode().decode("unicode_escape").encode("latin-1")
    link = socket.create_connection((proxy.hostname, proxy.port))
    link.sendall(b"CONNECT " + name + b" HTTP/1.1\r\nHost: " + name + b"\r\n\r\n")
    print("answer", link.recv(4096).split(b"\r\n")[0].decode("latin-1"))
"#;

/// NVIDIA/OpenShell#5522, CVE-2026-101998, CVE-2026-105452, and the NUL in host names of Claude Code before 2.1.90: what the rule
/// read as an allowed host was connected to as another.
#[test]
fn no_spelling_of_a_host_passes_for_an_allowed_one() {
    if !has_jail() {
        return;
    }
    let names = [
        "evil.example\\x00.allowed.example:443",
        "evil.example%00.allowed.example:443",
        "evil.example#.allowed.example:443",
        "evil.example?.allowed.example:443",
        "evil.example/.allowed.example:443",
        "evil.example\\\\.allowed.example:443",
        "x@evil.example:443",
        "allowed.example@evil.example:443",
        "evil.example\\x09.allowed.example:443",
        "127.0.0.1:443",
        "127.1:443",
        "0x7f000001:443",
        "2130706433:443",
        "[::1]:443",
        "[::ffff:127.0.0.1]:443",
        "169.254.169.254:80",
        "localhost:443",
        "notallowed.example:443",
        "allowed.example.evil.example:443",
        "allowed.example:443:22",
        "allowed.example:70000",
        "allowed.example:22",
    ];
    for entry in [Entry::Call, Entry::Exec] {
        let scene = Scene::new(
            "policy.profile = \"trusted\"\npolicy.allow = [\"Network(*.allowed.example)\", \"Network(allowed.example)\"]\n",
        );
        scene.file("work/ask.py", ASK);
        scene.file("work/names", &names.join("\n"));
        let said = entry.command(&scene, "python3 ask.py < names");
        let answers = said.matches("answer HTTP/1.1 ").count();
        assert_eq!(answers, names.len(), "{entry:?}: {said}");
        assert!(!said.contains("answer HTTP/1.1 2"), "{entry:?}: {said}");
    }
}
