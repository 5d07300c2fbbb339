//! Command lines in the jail: a line does there what it was judged to do.
//!
//! Its own `main`, because the jail executes this program again.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test whose scene cannot be set has failed; what was skipped is said aloud"
)]

mod generator;
mod git;
mod replay;
mod scene;
mod vocabulary;

use haft_sandbox::{Config, Sandbox, Strength};

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
        git::reading_commands_run_nothing_that_settings_name(&sandbox).await;
        git::a_repository_within_the_repository_has_settings_of_its_own(&sandbox).await;
        git::another_folder_is_another_repository(&sandbox).await;
        git::what_only_reads_changes_nothing(&sandbox).await;
        replay::what_a_line_executes_is_seen(&sandbox).await;
        replay::what_an_allowed_line_executes_is_allowed(&sandbox).await;
        eprintln!("lines: ok");
    });
}
