//! What scripts see and return: results, values, files, and their isolation.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test binary with a main of its own"
)]

#[path = "../house/runner.rs"]
mod runner;
#[path = "../house/scene.rs"]
mod scene;
#[path = "../house/tools.rs"]
mod tools;
mod apart;
mod files;
mod levels;
mod scripts;

fn main() {
    haft_sandbox::enter();
    let lists = [scripts::TESTS, files::TESTS, apart::TESTS, levels::TESTS];
    std::process::exit(runner::run(&lists.concat()));
}
