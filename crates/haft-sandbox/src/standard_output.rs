//! Whether standard output was open when the process began: before `main`, Rust's runtime opens `/dev/null` in place of one that was not,
//! and everything written there would be lost without a word.
#![expect(
    unsafe_code,
    reason = "only code that the loader calls runs before Rust's runtime, and it asks about a number that may be no descriptor"
)]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Called by the loader before `main`.
// SAFETY: the loader calls each entry of `.init_array` once, with the C calling convention, before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD reads a flag of the descriptor and fails if there is none; it touches no memory.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Returns whether standard output was closed when the process began.
pub fn stdout_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
