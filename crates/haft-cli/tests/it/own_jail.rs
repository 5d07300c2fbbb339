//! haft as a command of haft: in its own jail it has no `openat2` and no namespaces.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::governed::has_jail;
use crate::harness::{Lab, Ran};

#[test]
fn haft_when_it_is_a_command_of_haft_reads_its_settings_and_holds_its_paths() {
    let mut lab = Lab::new();
    if !has_jail(&lab) {
        return;
    }
    lab.set("CI", "1");
    let folder = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap();
    lab.user_settings(&format!(
        "[policy]\nprofile = \"trusted\"\n[sandbox]\npath = [{folder:?}]\n"
    ));
    lab.file("haft.toml", "[policy]\ndeny = [\"list_files\"]\n");
    lab.file("sub/given.txt", "given\n");
    symlink("/etc/hostname", lab.work().join("out.txt")).unwrap();
    symlink("sub/given.txt", lab.work().join("in.txt")).unwrap();
    let inside = |words: &str| -> Ran { lab.run(&["exec", "--", &format!("haft {words}")]) };
    for (tool, path, runs, said) in [
        ("read_file", "sub/given.txt", true, "given"),
        ("read_file", "sub/../in.txt", true, "given"),
        ("read_file", "out.txt", false, "leaves the workspace"),
        ("read_file", "../w", false, "leaves the workspace"),
        ("list_files", "sub", false, "list_files"),
    ] {
        let ran = inside(&format!("call {tool} --args '{{\"path\":\"{path}\"}}'"));
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(all.contains(said), "{path}: {all}");
        assert_eq!(ran.code == 0, runs, "{path}: {all}");
    }
    // Within a jail no namespaces can be had, which the inner haft says.
    let doctor = inside("doctor --json").json();
    assert_eq!(doctor["sandbox"]["strength"], "landlock+seccomp");
    let line = "call run_command --args '{\"command\":\"cat sub/given.txt; ls /root\"}' -c 'sandbox.require=\"landlock+seccomp\"'";
    let ran = inside(line);
    assert!(ran.stdout.contains("given"), "{ran:?}");
    assert!(ran.stderr.contains("Permission denied"), "{ran:?}");
}
