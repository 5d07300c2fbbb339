//! What the first process inside does for scripts in addition to what it does for commands.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::thread::UnshareFlags;

use super::lock as own_lock;
use super::plan::SupervisorPlan;
use super::shared::environment;
use super::users::{self, UserMapping};
use crate::lockdown::lock;
use crate::spawn::ResolvedCommand;
use crate::strength::Strength;
use crate::sys;
use crate::sys::leave;

/// Releases the socket that came as standard output: only the interpreter may hold it, so that the host
/// notices when the interpreter closes it.
pub(crate) fn let_go() -> io::Result<()> {
    sys::replace(File::open("/dev/null")?.as_fd(), 1)
}

/// Starts an interpreter for one script: a child takes the script's locks, then executes it.
pub(super) fn fresh(plan: &SupervisorPlan, users: UserMapping) -> io::Result<u32> {
    let folder = CString::new(plan.folder.as_os_str().as_bytes())?;
    if plan.strength() > Strength::LandlockSeccomp {
        sys::unshare(UnshareFlags::NEWPID)?;
    }
    let Some(child) = sys::fork()? else {
        leave(locked(plan, users, &folder))
    };
    let_go()?;
    own_lock::capabilities()?;
    Ok(child.as_raw_nonzero().get().cast_unsigned())
}

/// In the child: reports errors to the host over the bridge.
fn locked(plan: &SupervisorPlan, users: UserMapping, folder: &CString) -> i32 {
    let Some(program) = plan.argv.first() else {
        return 126;
    };
    let Ok(null) = File::options().read(true).write(true).open("/dev/null") else {
        return 126;
    };
    let bridge = rustix::io::fcntl_dupfd_cloexec(io::stdout(), lock::BRIDGE + 1);
    let Ok(bridge) = bridge else { return 126 };
    for stream in 0..=2 {
        if sys::replace(null.as_fd(), stream).is_err() {
            return 126;
        }
    }
    let number = std::os::fd::IntoRawFd::into_raw_fd(bridge);
    let say = |text: String| {
        // The last message of this process.
        let _ = sys::send_on(lock::BRIDGE, text.as_bytes());
        126
    };
    if users == UserMapping::RootAndNobody
        && let Err(error) = users::become_nobody()
    {
        return say(format!("Ebecome nobody: {error}"));
    }
    if let Err(fault) = lock::settle(number, -1).and_then(|()| lock::take(&plan.locks, folder)) {
        return say(format!("E{} {}", fault.step, fault.errno));
    }
    let env = environment(plan);
    let start = ResolvedCommand {
        program: program.as_ref(),
        argv: &plan.argv,
        env: &env,
        cwd: &plan.folder,
    };
    say(format!("Eexecute the interpreter: {}", start.replace()))
}
