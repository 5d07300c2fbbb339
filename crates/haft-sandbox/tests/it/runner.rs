//! A test runner for binaries that need their own `main`: runs a table of functions, prints what
//! libtest would print, and if started by root repeats everything as an unprivileged user.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// A test: its name and its function.
pub(crate) type Test = (&'static str, fn());

/// The user of root's second run.
pub(crate) const NOBODY: u32 = 65534;
const AGAIN: &str = "--as-nobody";

/// Returns whether this is the second run, as an ordinary user after root.
pub(crate) fn is_second_run() -> bool {
    std::env::args().any(|word| word == AGAIN)
}

/// Runs the selected tests; returns the exit code.
pub(crate) fn run(tests: &[Test]) -> i32 {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let nobody = is_second_run();
    if words.iter().any(|word| word == "--list") {
        for (name, _) in tests {
            println!("{name}: test");
        }
        return 0;
    }
    let exact = words.iter().any(|word| word == "--exact");
    let filter = words.iter().find(|word| !word.starts_with('-'));
    let chosen: Vec<_> = tests
        .iter()
        .filter(|(name, _)| {
            filter.is_none_or(|filter| {
                if exact {
                    name == filter
                } else {
                    name.contains(filter)
                }
            })
        })
        .collect();
    let started = Instant::now();
    println!("\nrunning {} tests", chosen.len());
    let mut failed = Vec::new();
    for (name, test) in &chosen {
        let who = if nobody { " (as nobody)" } else { "" };
        print!("test {name}{who} ... ");
        let _ = std::io::stdout().flush();
        let done = catch_unwind(AssertUnwindSafe(test));
        println!("{}", if done.is_ok() { "ok" } else { "FAILED" });
        if done.is_err() {
            failed.push(*name);
        }
    }
    if !failed.is_empty() {
        println!("\nfailures:\n    {}", failed.join("\n    "));
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {} passed; {} failed; 0 ignored; 0 measured; {} filtered out; \
         finished in {:.2}s\n",
        chosen.len() - failed.len(),
        failed.len(),
        tests.len() - chosen.len(),
        started.elapsed().as_secs_f64(),
    );
    let again = !nobody && rustix::process::getuid().is_root() && as_nobody(&words);
    i32::from(!failed.is_empty() || again)
}

/// Runs this binary again as a user without any privilege (also without groups: `uid` sees to that);
/// returns whether that failed.
fn as_nobody(words: &[String]) -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one process that a test starts by itself"
    )]
    let status = std::process::Command::new("/proc/self/exe")
        .args(words)
        .arg(AGAIN)
        .env_remove("TMPDIR")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .status();
    !status.unwrap().success()
}
