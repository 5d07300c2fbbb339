//! Commands on a copy of the workspace: their changes are judged, approved and applied after they have ended.
//!
//! Its own `main`, because the jail executes this program again.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test whose scene cannot be set has failed; what was skipped is said aloud"
)]

mod caches;
mod disk;
mod git;
mod ignored_requests;
mod input;
mod links;
mod meaning;
mod outside;
mod programs;
mod prompts;
mod rows;
mod scene;
mod stored;
mod times;
mod undo;
mod unsaved;

use haft_sandbox::{Config, Sandbox, Strength};

use crate::scene::Scene;

fn main() {
    haft_sandbox::enter();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let sandbox = Sandbox::new(Config::default());
        let strength = sandbox.probe().await.strength;
        if strength < Strength::NoProc {
            eprintln!("SKIPPED: the jail's strength here is {strength}");
            return;
        }
        if let Err(why) = Scene::new(&sandbox).changes.usable() {
            eprintln!("SKIPPED: commands cannot work on a copy here: {why}");
            return;
        }
        if disk::inside(&sandbox).await {
            return;
        }
        rows::all(&sandbox).await;
        ignored_requests::all(&sandbox).await;
        links::all(&sandbox).await;
        undo::all(&sandbox).await;
        times::all(&sandbox).await;
        unsaved::all(&sandbox).await;
        caches::all(&sandbox).await;
        input::all(&sandbox).await;
        stored::all(&sandbox).await;
        git::all(&sandbox).await;
        outside::all(&sandbox).await;
        meaning::all(&sandbox).await;
        programs::all(&sandbox).await;
        prompts::all().await;
        disk::all();
    });
}
