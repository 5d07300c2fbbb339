//! Walls while they are built, and what haft keeps for its user.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use crate::scene::{Scene, has_jail, output_text, run};

/// multikernel/sandlock#80, NVIDIA/OpenShell#803: a step of the sandbox's setup failed, and the command ran without that wall. Each
/// number of descriptors has the setup fail at another step.
#[test]
fn a_command_whose_jail_cannot_be_built_does_not_run_outside_of_it() {
    if !has_jail() {
        return;
    }
    let scene = Scene::new("policy.profile = \"trusted\"\n");
    let [kept, private] =
        ["outside/kept", "outside/private"].map(|path| scene.file(path, "private"));
    let line = format!(
        "cat {}; echo x > {}; echo ran",
        private.display(),
        kept.display()
    );
    let args = serde_json::json!({ "command": line }).to_string();
    let (mut failed, mut ran) = (0, 0);
    for files in (8..136).step_by(8) {
        let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        let haft = env!("CARGO_BIN_EXE_haft");
        let program = std::path::Path::new("sh");
        let call = ["-c", &script, haft, "call", "run_command", "--args", &args];
        let output = run(scene.program(program, &call), "");
        let said = output_text(&output);
        assert!(
            !String::from_utf8_lossy(&output.stdout).contains("private\n"),
            "{files}: {said}"
        );
        assert_eq!(
            scene.text("outside/kept").unwrap(),
            "private",
            "{files}: {said}"
        );
        let has_run = String::from_utf8_lossy(&output.stdout)
            .lines()
            .any(|line| line == "ran");
        *if has_run { &mut ran } else { &mut failed } += 1;
    }
    assert!(failed > 0, "no step failed");
    assert!(ran > 0, "no command ran at all");
}

/// CVE-2026-126329, CVE-2026-46406 (Claude Code's `/copy`): a folder or file that another user may change was used as one's own.
#[test]
fn a_state_folder_that_others_can_change_is_not_used() {
    for change in [0o777, 0o770] {
        let scene = Scene::new("policy.profile = \"trusted\"\n");
        scene.file("work/a.txt", "contents\n");
        let state = scene.at("home/state");
        std::fs::create_dir_all(&state).unwrap();
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(change)).unwrap();
        let args = ["call", "read_file", "--args", r#"{"path": "a.txt"}"#];
        let output = run(scene.haft(&args), "");
        let said = output_text(&output);
        // A group of the user's own that no one else is in may write there.
        if change == 0o777 {
            assert!(!output.status.success() && said.contains("chmod"), "{said}");
            assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0, "{said}");
        }
        // What haft makes is for its user alone.
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700)).unwrap();
        run(scene.haft(&args), "");
        for entry in std::fs::read_dir(&state).unwrap().flatten() {
            let mode = entry.metadata().unwrap().mode() & 0o077;
            assert_eq!(mode, 0, "{:?}", entry.path());
        }
    }
}
