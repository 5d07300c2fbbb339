//! The console as a user uses it: headless Chromium against the real `haft serve`, one scenario per test.
//!
//! The scenarios are next to this file; each starts its own server in its own folders, acts in the browser, and checks
//! the disk. A console error, a page error or a violation of the pages' policy fails any of them.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests start real programs, say what they skip, and stop where they cannot go on"
)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[path = "../../../haft-store/tests/it/cluster.rs"]
#[expect(dead_code, reason = "no scenario takes its database away")]
mod cluster;

/// Returns the folder with the pages' sources.
fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-server/ui")
}

/// Returns whether a program is installed.
fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Returns the folder with the browser's driver; `None`, with a message, if the browser or its driver is missing.
fn driver() -> Option<PathBuf> {
    let node = std::env::var_os("HAFT_NEEDS").map(|needs| Path::new(&needs).join("node"));
    let node = node.filter(|node| node.join("node_modules/playwright-core").is_dir());
    if node.is_none() || !has("node") || !has("chromium") {
        eprintln!(
            "SKIPPED: node, chromium or playwright-core is missing; `make needs` installs them"
        );
        return None;
    }
    node
}

/// Returns whether the pages can be built; prints a message if not.
fn builder() -> bool {
    let built = has("node") && ui().join("node_modules/esbuild").is_dir();
    if !built {
        eprintln!("SKIPPED: node or esbuild is missing; `make needs` installs them");
    }
    built
}

/// Runs a scenario to its end, with these variables in its environment.
fn ran(node: &Path, scenario: &str, more: &[(&str, &OsStr)]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/console")
        .join(scenario);
    let mut command = Command::new("node");
    command
        .arg(script)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HAFT_BIN", env!("CARGO_BIN_EXE_haft"))
        .env("HAFT_NODE", node)
        .envs(more.iter().copied());
    command.output().unwrap()
}

fn output_text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// Checks that a scenario succeeds and reports that it reached its end.
fn check(scenario: &str) {
    check_with(scenario, &[]);
}

fn check_with(scenario: &str, more: &[(&str, &OsStr)]) {
    let Some(node) = driver() else { return };
    let output = ran(&node, scenario, more);
    let told = output_text(&output);
    assert!(
        output.status.success() && told.contains("played to the end"),
        "{scenario}:\n{told}"
    );
}

/// Builds the pages into a folder.
fn build(into: &Path, approve: bool) {
    let output = Command::new("node")
        .arg("build.mjs")
        .arg(into)
        .current_dir(ui())
        .env("WITHOUT_APPROVE", if approve { "false" } else { "true" })
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
}

#[test]
fn a_login_link_works_once_and_its_session_is_held_to_this_site() {
    check("login.mjs");
}

#[test]
fn w1_another_local_server_can_do_nothing_with_the_cookie_that_it_gets() {
    check("other_port.mjs");
}

#[test]
fn u12_over_tls_a_person_logs_in_and_decides() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.as_os_str(), key.as_os_str());
    let files = [
        ("HAFT_CERT", cert),
        ("HAFT_KEY", key),
        // The scenario's own requests trust it, too.
        ("NODE_EXTRA_CA_CERTS", cert),
    ];
    check_with("https.mjs", &files);
}

#[test]
fn a_client_on_pipes_has_a_console_and_its_user_is_told_where_nobody_looks() {
    check("background.mjs");
}

#[test]
fn w7_ten_tabs_share_one_stream_of_events() {
    check("tabs.mjs");
}

#[test]
fn every_page_is_used_and_stays_accessible_in_light_and_dark_wide_and_narrow() {
    check("pages.mjs");
}

#[test]
fn every_address_panel_and_dialog_is_accessible_in_light_and_dark_wide_and_narrow() {
    check("accessible.mjs");
}

#[test]
fn a_person_decides_and_the_disk_shows_it() {
    check("deciding.mjs");
}

#[test]
fn no_row_of_the_queue_moves_under_the_pointer() {
    check("rows_stay.mjs");
}

#[test]
fn a_new_user_follows_the_first_page_to_an_approval_and_an_undo() {
    check("first_steps.mjs");
}

#[test]
fn a_decision_is_pinned_and_the_next_request_opens() {
    check("verdicts.mjs");
}

#[test]
fn what_waits_and_what_exits_look_like_no_failure() {
    check("looks.mjs");
}

#[test]
fn a_card_shows_first_what_a_change_set_amounts_to() {
    check("meanings.mjs");
}

#[test]
fn a_person_approves_a_commit_a_rebase_and_an_update_of_packages() {
    check("real_changes.mjs");
}

#[test]
fn a_connection_and_a_proposed_rule_have_cards_of_their_own() {
    check("network_and_rules.mjs");
}

#[test]
fn all_eligible_requests_are_seen_and_approved_one_by_one() {
    check("eligible.mjs");
}

#[test]
fn rules_that_decide_nothing_are_marked() {
    check("dead_rules.mjs");
}

#[test]
fn a_person_decides_with_the_keyboard_alone() {
    check("keyboard.mjs");
}

#[test]
fn every_address_is_reached_and_used_with_the_keyboard_alone() {
    check("every_page.mjs");
}

#[test]
fn runs_of_another_process_are_seen_as_they_happen() {
    check("other_process.mjs");
}

#[test]
fn three_agents_have_one_policy_one_inbox_and_one_record() {
    check("hooks.mjs");
}

#[test]
fn what_could_deceive_is_shown_as_marks_and_nothing_of_it_runs() {
    check("marks.mjs");
}

#[test]
fn what_a_command_prints_is_seen_while_it_runs() {
    check("output.mjs");
}

#[test]
fn two_tabs_decide_about_the_same_and_one_wins() {
    check("two_tabs.mjs");
}

#[test]
fn a_server_that_was_killed_comes_back_with_what_waited() {
    check("restart.mjs");
}

#[test]
fn a_tools_own_page_is_shown_and_reaches_nothing() {
    check("tool_page.mjs");
}

#[test]
fn among_a_thousand_that_wait_one_is_found_and_decided() {
    check("many.mjs");
}

#[test]
fn what_a_person_decides_after_a_kill_comes_to_pass_once() {
    check("killed.mjs");
}

#[test]
fn a_person_approves_a_commands_diff_after_haft_was_killed() {
    check("killed_command.mjs");
}

#[test]
fn what_a_person_decides_comes_to_pass_once_in_the_haft_that_is_left() {
    let Some(cluster) = cluster::Cluster::start() else {
        return;
    };
    // One per row: the scenario fails if there are too few.
    let stores = [(); 5].map(|()| cluster.database()).join(" ");
    check_with("killed.mjs", &[("HAFT_STORES", stores.as_ref())]);
}

#[test]
fn what_a_run_changed_is_shown_and_undone() {
    check("changes.mjs");
}

/// Runs a job with five steps through a client: the program that runs it, and its file among the clients.
fn check_job(node: &Path, program: &Path, client: &str) {
    if !has("npm") {
        eprintln!("SKIPPED: npm is not installed");
        return;
    }
    let client = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../haft-mcp/tests/clients")
        .join(client);
    let line = format!("{}\n{}", program.display(), client.display());
    let output = ran(node, "job.mjs", &[("HAFT_CLIENT", line.as_ref())]);
    let text = output_text(&output);
    assert!(
        output.status.success() && text.contains("played to the end"),
        "{line}:\n{text}"
    );
}

#[test]
fn the_python_client_does_a_job_whose_user_approves_and_undoes_in_the_console() {
    let Some(node) = driver() else { return };
    let python = node.with_file_name("mcp2").join("bin/python");
    if !python.exists() {
        eprintln!("SKIPPED: the Python client is missing; `make needs` installs it");
        return;
    }
    check_job(&node, &python, "python_job.py");
}

#[test]
fn the_typescript_client_does_a_job_whose_user_approves_and_undoes_in_the_console() {
    let Some(node) = driver() else { return };
    if !node.join("node_modules/@modelcontextprotocol/sdk").is_dir() {
        eprintln!("SKIPPED: the TypeScript client is missing; `make needs` installs it");
        return;
    }
    check_job(&node, Path::new("node"), "typescript_job.mjs");
}

#[test]
fn pages_without_the_approve_button_are_noticed() {
    let Some(node) = driver() else { return };
    if !builder() {
        return;
    }
    let pages = tempfile::tempdir().unwrap();
    build(pages.path(), false);
    let pages = ("HAFT_TESTING_UI_DIR", pages.path().as_os_str());
    let output = ran(&node, "deciding.mjs", &[pages]);
    let told = output_text(&output);
    assert!(!output.status.success(), "nobody noticed:\n{told}");
    assert!(
        told.contains("Approve"),
        "it failed for another reason:\n{told}"
    );
}

#[test]
fn the_pages_are_what_their_sources_give() {
    if !builder() {
        return;
    }
    let fresh = tempfile::tempdir().unwrap();
    build(fresh.path(), true);
    let mut files = 0;
    for entry in std::fs::read_dir(fresh.path()).unwrap() {
        let name = entry.unwrap().file_name();
        let (ours, theirs) = (ui().join("dist").join(&name), fresh.path().join(&name));
        let same = std::fs::read(ours).ok() == std::fs::read(theirs).ok();
        assert!(same, "{}: build the pages: scripts/ui", name.display());
        files += 1;
    }
    assert_eq!(files, std::fs::read_dir(ui().join("dist")).unwrap().count());
}

#[test]
fn the_parts_of_the_pages_do_what_they_say() {
    if !builder() {
        return;
    }
    let output = Command::new("node")
        .arg("units.mjs")
        .current_dir(ui())
        .output()
        .unwrap();
    let told = output_text(&output);
    assert!(
        output.status.success() && told.contains("all hold"),
        "{told}"
    );
}

#[test]
fn no_page_ever_writes_html() {
    let mut seen = 0;
    let mut folders = vec![ui().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for way in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "srcdoc",
            ] {
                assert!(!text.contains(way), "{}: {way}", path.display());
            }
            if path
                .extension()
                .is_some_and(|ext| ext == "ts" || ext == "tsx")
            {
                assert!(text.starts_with("// "), "{}: no caption", path.display());
            }
            assert!(text.lines().count() <= 400, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen} files only");
}
