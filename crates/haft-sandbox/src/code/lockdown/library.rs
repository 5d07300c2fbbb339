//! The library that a Python loads to make locked children: exported functions around [`lock`].
//!
//! Compiled by `build.rs` by itself, without the standard library; the jail compiles [`lock`] a second
//! time into itself, for interpreters that cannot load this.
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
    // Nothing in here panics; where that were wrong, the process ends.
    loop {
        let _ = lock::call(EXIT_GROUP, [125, 0, 0, 0, 0]);
    }
}

/// The next child of this process is the first of a pid namespace of its own.
#[unsafe(no_mangle)]
pub extern "C" fn haft_new_pids() -> c_long {
    result(lock::call(lock::calls::UNSHARE, [NEW_PIDS, 0, 0, 0, 0]))
}

/// Whether this process has one thread; else a negative error.
#[unsafe(no_mangle)]
pub extern "C" fn haft_is_alone() -> c_long {
    /// `CLONE_THREAD`: the kernel refuses to end the sharing of what threads share.
    const THREAD: usize = 0x1_0000;
    result(lock::call(lock::calls::UNSHARE, [THREAD, 0, 0, 0, 0]))
}

/// The next child lives in the namespace of the process behind `own` again.
#[unsafe(no_mangle)]
pub extern "C" fn haft_old_pids(own: c_int) -> c_long {
    result(lock::call(lock::calls::SETNS, [own as usize, NEW_PIDS, 0, 0, 0]))
}

/// A descriptor of a process, or a negative error.
#[unsafe(no_mangle)]
pub extern "C" fn haft_watch(pid: c_int) -> c_long {
    result(lock::call(PIDFD_OPEN, [pid as usize, 0, 0, 0, 0]))
}

/// Leaves no descriptor open but the first three, the bridge and the mounts (negative = none), then takes
/// the locks of `list`.
/// 0, or the number of the step that failed times 65536 plus the error.
///
/// # Safety
/// `list` points to `length` bytes, `folder` to a string that ends with a zero; both outlive the call.
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
