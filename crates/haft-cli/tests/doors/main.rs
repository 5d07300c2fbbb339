//! One table of standard calls, run through every door: `execute`, a nested call, MCP over stdio and HTTP,
//! `haft call`, a script of `haft chain`, and a call that was suspended and is resumed by another process.
//!
//! An executor that skips clear (feature `testing`) must fail every door's run.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod binary;
mod inside;
mod resume;
mod table;

use table::{Got, Row, rows};

/// The ways in.
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

fn run(door: Door, row: &Row, broken: bool) -> Got {
    let scene = table::scene();
    match door {
        Door::Execute => inside::execute(&scene, row, broken),
        Door::Nested => inside::nested(&scene, row, broken),
        Door::McpStdio => binary::stdio(&scene, row, broken),
        Door::McpHttp => binary::http(&scene, row, broken),
        Door::Call => binary::call(&scene, row, broken),
        Door::Chain => binary::chain(&scene, row, broken),
        Door::Resume => resume::resume(&scene, row, broken),
    }
}

/// The rows that come to something else than they should.
fn wrong(door: Door, broken: bool) -> Vec<String> {
    let check = |row: Row| {
        let got = run(door, &row, broken);
        let expect = row.expect();
        (got != expect).then(|| format!("{door:?}: {}: expected {expect:?}, got {got:?}", row.name))
    };
    rows().into_iter().filter_map(check).collect()
}

#[test]
fn every_row_comes_to_the_same_by_every_door() {
    let wrong: Vec<String> = DOORS
        .into_iter()
        .flat_map(|door| wrong(door, false))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_executor_that_skips_clear_fails_every_door() {
    for door in DOORS {
        assert!(!wrong(door, true).is_empty(), "{door:?} did not notice");
    }
}
