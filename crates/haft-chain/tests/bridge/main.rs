//! Rows 61 to 78 of the threat model: attacks of a hostile script over the bridge, and the required result.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test binary with a main of its own"
)]

mod budget;
mod codec;
mod frames;
mod people;
mod replay;
#[path = "../house/runner.rs"]
mod runner;
#[path = "../house/scene.rs"]
mod scene;
#[path = "../house/tools.rs"]
mod tools;

use haft::result::{Outcome, Status};

use crate::scene::{Scene, pretty, wait};

fn main() {
    haft_sandbox::enter();
    let lists = [
        budget::TESTS,
        frames::TESTS,
        people::TESTS,
        codec::TESTS,
        replay::TESTS,
    ];
    std::process::exit(runner::run(&lists.concat()));
}

/// The start of a hostile script: the bridge itself, bypassing the runtime.
const RAW: &str = r"
import haft_runtime, json, os, sys, time
wire = haft_runtime._state.wire
def frame(kind, id, body, flags=0):
    wire.send_frame(kind + bytes([flags]) + id.to_bytes(4, 'little') + body)
def call(id, name, arguments=b'{}'):
    frame(b'c', id, name + b'\n\n' + arguments)
def answer():
    size = wire.recv_into(wire.buffer)
    return json.loads(bytes(wire.buffer[6:size]))
";

/// Runs a script that uses the bridge directly.
pub(crate) fn raw(scene: &Scene, code: &str) -> Outcome {
    wait(scene.chain(&format!("{RAW}{code}")))
}

/// Asserts that the chain ended because of the script's messages.
pub(crate) fn assert_broken(outcome: &Outcome, what: &str) {
    let said = outcome.error.as_ref().map_or("", |e| e.message.as_str());
    assert_eq!(outcome.status, Status::Error, "{}", pretty(outcome));
    assert!(
        said.contains("the script was ended: ") && said.contains(what),
        "{what}: {}",
        pretty(outcome)
    );
}
