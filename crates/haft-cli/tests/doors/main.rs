//! One table of standard calls, run through every entry point: `execute`, a nested call, MCP over stdio and HTTP,
//! `haft call`, a script of `haft chain`, and a call that was suspended and is resumed by another process.
//!
//! The result of a call is checked in its outcome, in the record, and in the files themselves, which do not depend on any stage of the
//! pipeline: an entry point that skips clearing changes a file that it must not.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod binary;
mod hook;
mod inside;
mod remote;
mod resume;
mod table;

use table::{Got, Row, rows};

/// The entry points.
#[derive(Debug, Clone, Copy)]
enum Door {
    Execute,
    Nested,
    McpStdio,
    McpHttp,
    Call,
    Chain,
    Resume,
}

const DOORS: [Door; 7] = [
    Door::Execute,
    Door::Nested,
    Door::McpStdio,
    Door::McpHttp,
    Door::Call,
    Door::Chain,
    Door::Resume,
];

/// The entry points that know the servers in the settings.
const TO_SERVERS: [Door; 5] = [
    Door::McpStdio,
    Door::McpHttp,
    Door::Call,
    Door::Chain,
    Door::Resume,
];

/// Returns the result of a row through an entry point, and whether files of the workspace changed.
fn run(door: Door, row: &Row) -> (Got, bool) {
    let scene = if row.tool.starts_with("far.") {
        remote::scene()
    } else {
        table::scene()
    };
    let before = table::files(&scene);
    let got = match door {
        Door::Execute => inside::execute(&scene, row),
        Door::Nested => inside::nested(&scene, row),
        Door::McpStdio => binary::stdio(&scene, row),
        Door::McpHttp => binary::http(&scene, row),
        Door::Call => binary::call(&scene, row),
        Door::Chain => binary::chain(&scene, row),
        Door::Resume => resume::resume(&scene, row),
    };
    (got, table::files(&scene) != before)
}

/// Returns the rows with an unexpected result.
fn wrong(door: Door, rows: Vec<Row>) -> Vec<String> {
    let check = |row: Row| {
        let (got, expect) = (run(door, &row), (row.expect(), row.changes()));
        (got != expect).then(|| format!("{door:?}: {}: expected {expect:?}, got {got:?}", row.name))
    };
    rows.into_iter().filter_map(check).collect()
}

#[test]
fn every_row_comes_to_the_same_by_every_door() {
    let wrong: Vec<String> = DOORS
        .into_iter()
        .flat_map(|door| wrong(door, rows()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_of_a_servers_tool_comes_to_the_same_by_every_door() {
    let wrong: Vec<String> = TO_SERVERS
        .into_iter()
        .flat_map(|door| wrong(door, remote::rows()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_that_an_agent_has_a_tool_for_is_judged_alike_by_its_hook() {
    let rows = rows().into_iter().chain(table::denied());
    let wrong = hook::wrong(rows.collect());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn e6_no_door_runs_a_tool_past_a_rule_that_denies_it() {
    // The control comes last: if a rule allows it, the same call changes a file through every entry point.
    let wrong: Vec<String> = DOORS
        .into_iter()
        .flat_map(|door| wrong(door, table::denied()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
