//! The first process inside: builds the root, takes the locks, starts the command, reaps until it ends.
//!
//! It is pid 1 of the pid namespace, so its end is the end of every process in the jail, and it dies
//! with the supervisor. It is confined by the same locks as the command before the command exists.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use rustix::fs::Mode;
use rustix::process::{Signal, WaitOptions, set_parent_process_death_signal, umask, wait};

use super::plan::{Net, Plan, Role};
use super::supervisor::{Fail, Held, Report, hand, leave, step, tell};
use super::{lock, root, script, sys};
use crate::outlet::OUTLET_ADDRESS;
use crate::spawn::{self, Start};
use crate::strength::Strength;

/// Runs the command and never returns.
pub(crate) fn run(plan: &Plan, link: &UnixStream, parent: &OwnedFd) -> ! {
    match prepare(plan, parent) {
        Err(Fail { step, errno }) => tell(link, &Report::Failed { step, errno }),
        Ok((held, _)) if plan.argv.is_empty() => tell(link, &Report::Ready(held)),
        Ok(_) if !plan.cwd.is_dir() => {
            let step = format!("enter {}: the command does not see it", plan.cwd.display());
            tell(
                link,
                &Report::Failed {
                    step,
                    errno: libc::ENOENT,
                },
            );
        }
        Ok((held, listener)) => match begin(plan) {
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(match error.kind() {
                    io::ErrorKind::PermissionDenied => libc::EACCES,
                    _ => libc::ENOENT,
                });
                tell(link, &Report::NoProgram { errno });
            }
            Ok(first) => {
                // From here on the host alone holds it: a connection waits until then.
                hand(link, &Report::Ready(held), listener.map(OwnedFd::from));
                tell(link, &reap(first));
            }
        },
    }
    leave(0)
}

/// Everything up to the last lock; what holds, and the listener of an outlet.
fn prepare(plan: &Plan, parent: &OwnedFd) -> Result<(Held, Option<TcpListener>), Fail> {
    die_with(parent).map_err(step("die with the supervisor"))?;
    // Away from the host's terminal and from everybody's signals to its groups.
    rustix::process::setsid()
        .map_err(io::Error::from)
        .map_err(step("start a session"))?;
    let (mut held, mut listener) = (Held::default(), None);
    let mask = umask(Mode::from_raw_mode(0o022));
    if plan.strength() > Strength::LandlockSeccomp {
        let _ = rustix::system::sethostname(b"jail");
        // A script has no socket to use it with.
        if plan.net != Net::Host && plan.role == Role::Command {
            sys::loopback_up().map_err(step("turn the loopback on"))?;
        }
        if plan.net == Net::Outlet {
            let made = TcpListener::bind(OUTLET_ADDRESS).map_err(step("make the outlet"))?;
            listener = Some(made);
        }
        held.counted = root::build(plan)?;
    }
    umask(mask);
    // Needed by Landlock and seccomp where no capability of a namespace stands in for it.
    rustix::thread::set_no_new_privs(true)
        .map_err(io::Error::from)
        .map_err(step("give up new privileges"))?;
    if !plan.grants.is_empty() {
        held.landlock = lock::landlock(plan)?;
    }
    lock::limits(&plan.caps).map_err(step("limit resources"))?;
    if plan.role == Role::Command || plan.strength() <= Strength::LandlockSeccomp {
        lock::capabilities().map_err(step("drop capabilities"))?;
    } else {
        lock::keep_two().map_err(step("drop capabilities"))?;
    }
    lock::seccomp(plan)?;
    Ok((held, listener))
}

/// Dies when the supervisor does, also when that happened just before.
fn die_with(parent: &OwnedFd) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::io::ioctl_fionbio(parent, true)?;
    match rustix::io::read(parent, &mut [0; 1]) {
        Err(rustix::io::Errno::AGAIN) => Ok(()),
        _ => leave(125),
    }
}

/// Starts what the plan is for; its number.
fn begin(plan: &Plan) -> io::Result<u32> {
    match plan.role {
        Role::Command => start(plan).map(|child| child.id()),
        Role::Zygote => {
            let child = start(plan)?;
            script::let_go()?;
            Ok(child.id())
        }
        Role::Fresh => script::fresh(plan),
    }
}

fn start(plan: &Plan) -> io::Result<Child> {
    let env = environment(plan);
    let empty = OsString::new();
    let path = env.get(OsStr::new("PATH")).unwrap_or(&empty);
    let program = spawn::find(plan.argv.first().unwrap_or(&empty), path, &plan.cwd)?;
    let stdin = match &plan.stdin {
        Some(bytes) => spawn::memory_file(bytes)?.into(),
        None => Stdio::null(),
    };
    let start = Start {
        program: &program,
        argv: &plan.argv,
        env: &env,
        cwd: &plan.cwd,
    };
    start.spawn(stdin, Stdio::inherit(), Stdio::inherit())
}

/// The environment as pairs.
pub(super) fn environment(plan: &Plan) -> BTreeMap<OsString, OsString> {
    plan.env
        .iter()
        .filter_map(|pair| {
            let bytes = pair.as_bytes();
            let at = bytes.iter().position(|byte| *byte == b'=')?;
            Some((
                OsStr::from_bytes(&bytes[..at]).into(),
                OsStr::from_bytes(&bytes[at + 1..]).into(),
            ))
        })
        .collect()
}

/// Reaps everybody until the command itself ends.
fn reap(first: u32) -> Report {
    let gone = Report::Ended {
        code: None,
        signal: Some(libc::SIGKILL),
    };
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().cast_unsigned() == first => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (None, None) => gone,
                    (code, signal) => Report::Ended { code, signal },
                };
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return gone,
        }
    }
}
