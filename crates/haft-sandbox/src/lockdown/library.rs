//! The library that a Python loads to create locked children: exported functions around [`lock`].
//!
//! `build.rs` compiles it separately, without the standard library; the jail compiles [`lock`] into itself as
//! well, for interpreters that cannot load this.
#![no_std]

mod lock;

use core::ffi::{c_char, c_int, c_long};

#[cfg(target_arch = "x86_64")]
const EXIT_GROUP: usize = 231;
#[cfg(target_arch = "aarch64")]
const EXIT_GROUP: usize = 94;
const PIDFD_OPEN: usize = 434;
/// `CLONE_NEWPID`.
const NEW_PIDS: usize = 0x2000_0000;

fn result(done: Result<usize, u16>) -> c_long {
    match done {
        Ok(value) => value as c_long,
        Err(errno) => -c_long::from(errno),
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // No code in here panics; if it did, the process exits.
    loop {
        let _ = lock::call(EXIT_GROUP, [125, 0, 0, 0, 0]);
    }
}

/// Makes the next child of this process the first one of a new pid namespace.
#[unsafe(no_mangle)]
pub extern "C" fn haft_new_pids() -> c_long {
    result(lock::call(lock::calls::UNSHARE, [NEW_PIDS, 0, 0, 0, 0]))
}

/// Returns 0 if this process has a single thread, else a negative error.
#[unsafe(no_mangle)]
pub extern "C" fn haft_is_alone() -> c_long {
    /// `CLONE_THREAD`: with several threads, the kernel refuses to unshare what they share.
    const THREAD: usize = 0x1_0000;
    result(lock::call(lock::calls::UNSHARE, [THREAD, 0, 0, 0, 0]))
}

/// Makes the next child live in the namespace of the process behind `own` again.
#[unsafe(no_mangle)]
pub extern "C" fn haft_old_pids(own: c_int) -> c_long {
    result(lock::call(lock::calls::SETNS, [own as usize, NEW_PIDS, 0, 0, 0]))
}

/// Returns a pidfd of a process, or a negative error.
#[unsafe(no_mangle)]
pub extern "C" fn haft_watch(pid: c_int) -> c_long {
    result(lock::call(PIDFD_OPEN, [pid as usize, 0, 0, 0, 0]))
}

/// Closes every descriptor except the first three, the bridge and the mounts (negative = none), then takes
/// the locks of `list`.
/// Returns 0, or the number of the step that failed times 65536 plus the error.
///
/// # Safety
/// `list` must point to `length` bytes, `folder` to a NUL-terminated string; both must outlive the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haft_lock(
    list: *const u8,
    length: usize,
    bridge: c_int,
    mounts: c_int,
    folder: *const c_char,
) -> c_long {
    // SAFETY: promised by the caller.
    let (list, folder) = unsafe {
        (
            core::slice::from_raw_parts(list, length),
            core::ffi::CStr::from_ptr(folder),
        )
    };
    match lock::settle(bridge, mounts).and_then(|()| lock::take(list, folder)) {
        Ok(()) => 0,
        Err(fault) => (c_long::from(fault.step) << 16) | c_long::from(fault.errno),
    }
}
