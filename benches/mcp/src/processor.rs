//! Who runs on which processor: the client and the servers have one each, so that neither waits for the other.

use std::path::Path;
use std::process::Command;

use measure::fact;

/// The servers' processor, and the client's.
const SERVERS: &str = "0";
const CLIENT: &str = "1";

/// Keeps this process, the client, on its processor, as util-linux's `taskset` does it.
pub(crate) fn keep_client() {
    let own = std::process::id().to_string();
    let kept = Command::new("taskset")
        .args(["-cp", CLIENT, &own])
        .output()
        .expect("MISSING: taskset, of the package util-linux");
    assert!(kept.status.success(), "two processors are needed: {kept:?}");
    fact("client and servers", "on a processor each");
}

/// A command that starts a server on its processor.
pub(crate) fn server(program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", SERVERS]).arg(program);
    command
}
