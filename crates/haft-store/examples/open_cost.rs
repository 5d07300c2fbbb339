//! Measures what opening the run index costs a short command: the first time, and usually.

#![expect(clippy::print_stdout, reason = "a measurement is for the screen")]

use std::error::Error;
use std::time::Instant;

use haft::audit::RunStart;
use haft::audit::index::{ClosedEvent, RunIndex as _};
use haft::call::{Principal, RunId};
use haft_store::sqlite::SqliteStore;

fn main() -> Result<(), Box<dyn Error>> {
    let home = std::env::temp_dir().join(format!("haft-open-cost-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let start = RunStart {
        principal: Principal::local("ada"),
        entry_point: "example".into(),
        workspace: None,
        profile: "workspace".into(),
    };
    let closed = ClosedEvent {
        count: 3,
        head: "0".repeat(64),
        calls: 1,
        seal: "1".repeat(64),
    };
    let mut opened = Vec::new();
    let mut closing = Vec::new();
    for n in 0..41 {
        let before = Instant::now();
        let store = SqliteStore::new(&home);
        let run = RunId::new(format!("run-{n}"));
        runtime.block_on(store.open(&run, &start, n))?;
        opened.push(before.elapsed());
        let before = Instant::now();
        runtime.block_on(store.close(&run, &closed, n))?;
        closing.push(before.elapsed());
    }
    println!("first, with the schema made: {:?}", opened.remove(0));
    opened.sort_unstable();
    closing.sort_unstable();
    println!("open and note a run: {:?} (median of 40)", opened[20]);
    println!("note its end: {:?} (median of 41)", closing[20]);
    std::fs::remove_dir_all(home)?;
    Ok(())
}
