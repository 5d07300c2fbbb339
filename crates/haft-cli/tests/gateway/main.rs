//! Real clients through haft to real servers: five clients, over stdio and Streamable HTTP; seven servers of both eras in the jail, and
//! four at addresses, over Streamable HTTP and HTTP+SSE.
//!
//! `make needs` installs both; what is not below `HAFT_NEEDS` is skipped with a message. `--nocapture` prints the matrix, which
//! docs/guide/servers.md repeats; `HAFT_DOCS=write` updates it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests start real programs, say what they skip, and stop where they cannot go on"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;

mod addressed;
mod clients;
mod scene;

use clients::{CLIENTS, Client};
use scene::{Scene, Server};

/// Why the other cells of the cube of clients, servers and transports are empty.
const EMPTY: &str = "\
- The programs of filesystem, memory, sequential-thinking, git, time and fetch speak over stdio alone: there is nothing to reach over HTTP or SSE.
- No client speaks HTTP+SSE to haft, which serves Streamable HTTP: the older transport is deprecated since 2025-03-26. To servers haft speaks it.
";

/// The marks around the matrix on its page.
const MARKS: (&str, &str) = ("<!-- matrix -->\n", "<!-- /matrix -->\n");

#[test]
fn every_client_uses_every_server_over_every_transport() {
    let (there, missing): (Vec<_>, Vec<_>) =
        CLIENTS.iter().partition(|client| client.is_installed());
    if there.is_empty() {
        return;
    }
    let scene = Scene::new();
    let server = Server::start(&scene);
    // In parallel: one haft for all over HTTP, one for each over stdio.
    for server in [Some(&server), None] {
        thread::scope(|scope| {
            for client in &there {
                scope.spawn(|| client.uses_every_server(&scene, server));
            }
        });
    }
    let matrix = matrix(&scene, &there);
    eprintln!("{matrix}");
    if missing.is_empty() && scene.targets.len() == 11 {
        is_on_the_page(&matrix);
    }
}

/// Returns what the available clients did; a cell says over what transport they reached haft.
fn matrix(scene: &Scene, there: &[&Client]) -> String {
    let (mut head, mut line) = (
        "| server | haft reaches it by |".to_owned(),
        "|---|---|".to_owned(),
    );
    for client in &CLIENTS {
        let _ = write!(head, " {} |", client.name);
        line.push_str("---|");
    }
    let mut text = format!("{head}\n{line}\n");
    for target in &scene.targets {
        let _ = write!(text, "| {} | {} |", target.server, target.by);
        for client in &CLIENTS {
            let came = there.iter().any(|one| one.name == client.name);
            let cell = if came { "stdio, HTTP" } else { "not installed" };
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    format!("{text}\n{EMPTY}")
}

fn is_on_the_page(matrix: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/servers.md");
    let page = fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once(MARKS.0).unwrap();
    let (written, after) = rest.split_once(MARKS.1).unwrap();
    if std::env::var_os("HAFT_DOCS").is_some_and(|value| value == "write") {
        let page = format!("{before}{}{matrix}{}{after}", MARKS.0, MARKS.1);
        fs::write(&file, page).unwrap();
        return;
    }
    assert!(
        written == matrix,
        "docs/guide/servers.md has another matrix than\n{matrix}\nHAFT_DOCS=write writes it"
    );
}
