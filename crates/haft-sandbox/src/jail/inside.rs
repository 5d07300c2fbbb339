//! The first process inside: builds the root, takes the locks, starts the command, reaps until it exits.
//!
//! It is pid 1 of the pid namespace, so every process in the jail dies with it, and it dies with the
//! supervisor. The same locks as the command's confine it before the command exists. If it was started ahead, it builds what is the same
//! for all commands, then waits for a plan.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, umask, wait};

use super::plan::{JailNetwork, ProgramRole, SupervisorPlan};
use super::root::PreparedRoot;
use super::shared::{SupervisorFindings, die_with, environment, open_proc};
use super::terminals::OwnTerminal;
use super::users::UserMapping;
use super::zygote::{self, PlanProcess};
use super::{every_address, frames, left_behind, lock, root, script};
use crate::loopback::listening;
use crate::report::{ActiveMechanisms, JailReport, SetupFailure, hand_over, step, tell};
use crate::spawn::{self, ResolvedCommand};
use crate::strength::Strength;
use crate::sys;
use crate::sys::leave;

/// What the first process has, whatever its plan is.
#[derive(Debug)]
struct FirstSteps {
    /// The host's `/proc`.
    proc: OwnedFd,
    /// What it has built before it had a plan.
    root: Option<PreparedRoot>,
}

/// Runs the command and never returns; `tie` is the socket whose other end the supervisor has.
pub(super) fn run(
    plan: &SupervisorPlan,
    around: SupervisorFindings,
    link: &UnixStream,
    tie: &UnixStream,
) -> ! {
    let prepared = settle(tie).and_then(|proc| {
        let first = FirstSteps { proc, root: None };
        prepare(plan, around, link, first)
    });
    go(plan, around, link, tie, prepared)
}

/// Builds a part of the root, waits for the plan, passes it on to the supervisor, runs the command and never returns.
pub(super) fn run_ahead(
    part: &SupervisorPlan,
    around: SupervisorFindings,
    link: &UnixStream,
    tie: &UnixStream,
) -> ! {
    let waited = settle(tie).and_then(|proc| {
        let root = Some(PreparedRoot::new(part, around.users)?);
        tell(link, &JailReport::Prepared);
        let plan = receive_plan(link, tie)?;
        Ok((plan, FirstSteps { proc, root }))
    });
    let (plan, first) = waited.unwrap_or_else(|SetupFailure { step, errno }| {
        tell(link, &JailReport::Failed { step, errno });
        leave(125)
    });
    let prepared = prepare(&plan, around, link, first);
    go(&plan, around, link, tie, prepared)
}

/// Receives the plan from the host, and the command's input if it follows. The supervisor, which does not read the link before it has
/// the plan, gets a copy.
fn receive_plan(link: &UnixStream, tie: &UnixStream) -> Result<SupervisorPlan, SetupFailure> {
    let frame = frames::read(link)?;
    let plan = frames::decode(&frame)?;
    frames::take_input(&plan, link)?;
    frames::write(tie, &frame).map_err(step("pass the plan on"))?;
    Ok(plan)
}

/// Starts the command if the jail was built, and waits for its end.
fn go(
    plan: &SupervisorPlan,
    around: SupervisorFindings,
    link: &UnixStream,
    tie: &UnixStream,
    prepared: Result<BuiltJail, SetupFailure>,
) -> ! {
    if prepared.is_ok() {
        // If the supervisor is gone, the byte does not matter.
        let _ = rustix::io::write(tie, b"b");
    }
    match prepared {
        Err(SetupFailure { step, errno }) => tell(link, &JailReport::Failed { step, errno }),
        Ok(ready) if plan.argv.is_empty() => tell(link, &JailReport::Ready(ready.held)),
        Ok(_) if !plan.cwd.is_dir() => {
            let step = format!("enter {}: the command does not see it", plan.cwd.display());
            tell(
                link,
                &JailReport::Failed {
                    step,
                    errno: libc::ENOENT,
                },
            );
        }
        Ok(ready) => match begin(
            plan,
            around.users,
            tie,
            ready.terminal.as_ref(),
            ready.given,
        ) {
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(match error.kind() {
                    io::ErrorKind::PermissionDenied => libc::EACCES,
                    _ => libc::ENOENT,
                });
                tell(link, &JailReport::NoProgram { errno });
            }
            Ok(first) => {
                tell(link, &JailReport::Ready(ready.held));
                // From here on only the host holds the listeners and the outer end of the terminal.
                drop(ready.handed);
                drop(ready.terminal);
                if let Some(host) = &first.mounts {
                    host.serve(&plan.locks);
                }
                let ended = reap(first.number, plan.terminal.is_some());
                for report in left_behind::reports(plan) {
                    tell(link, &report);
                }
                tell(link, &ended);
            }
        },
    }
    leave(0)
}

/// A jail that is built but runs nothing yet.
struct BuiltJail {
    held: ActiveMechanisms,
    /// What the host has, too: the listeners of an outlet and at the ports of the loopback that is shared, the link by which what listens is
    /// listed, and the outer end of the terminal.
    handed: Vec<OwnedFd>,
    /// What the command runs on, if it is a terminal.
    terminal: Option<OwnTerminal>,
    given: ProcessHandles,
}

/// What is handed to the process that is started.
struct ProcessHandles {
    /// A command's standard input.
    stdin: Stdio,
    /// The host's `/proc`, for a zygote.
    proc: OwnedFd,
}

/// Dies with the supervisor, and leaves the host's session; returns the host's `/proc`.
fn settle(tie: &UnixStream) -> Result<OwnedFd, SetupFailure> {
    die_with(tie).map_err(step("die with the supervisor"))?;
    // Detaches from the host's terminal and from signals to its process groups.
    rustix::process::setsid()
        .map_err(io::Error::from)
        .map_err(step("start a session"))?;
    let proc = open_proc()?;
    // If the machine runs out of memory, the kernel kills a jail first.
    let _ = set_oom_score(&proc);
    Ok(proc)
}

/// Does everything up to the last lock of a command.
fn prepare(
    plan: &SupervisorPlan,
    around: SupervisorFindings,
    link: &UnixStream,
    first: FirstSteps,
) -> Result<BuiltJail, SetupFailure> {
    let (mut held, mut listeners) = (ActiveMechanisms::default(), Vec::new());
    held.watched = around.watched;
    held.grouped = around.grouped;
    let mask = umask(root::ORDINARY_MASK);
    if plan.strength() > Strength::LandlockSeccomp {
        if plan.net == JailNetwork::Outlet {
            listeners = every_address::listen(&plan.ports).map_err(step("make the outlet"))?;
        }
        if let Some(ports) = &plan.shares {
            listeners.extend(loopback(ports));
        }
        held.counted = root::build(plan, around.users, first.root)?;
    }
    umask(mask);
    let terminal = plan.terminal.map(OwnTerminal::open).transpose();
    let terminal = terminal.map_err(step("open a terminal"))?;
    let outer = terminal.as_ref().map(OwnTerminal::outer).transpose();
    let outer = outer.map_err(step("open a terminal"))?;
    let handed: Vec<OwnedFd> = listeners.into_iter().chain(outer).collect();
    hand_over(link, &handed).map_err(step("hand over its listeners and its terminal"))?;
    // Under the locks, no memory files may be created.
    let stdin = input(plan).map_err(step("hand over the input"))?;
    // Landlock and seccomp need this if the process lacks the capability that would replace it.
    rustix::thread::set_no_new_privs(true)
        .map_err(io::Error::from)
        .map_err(step("give up new privileges"))?;
    if plan.role == ProgramRole::Command {
        held.landlock = lock::landlock(plan)?;
        lock::limits(&plan.caps).map_err(step("limit resources"))?;
        lock::capabilities().map_err(step("drop capabilities"))?;
        lock::seccomp(plan)?;
    }
    Ok(BuiltJail {
        held,
        handed,
        terminal,
        given: ProcessHandles {
            stdin,
            proc: first.proc,
        },
    })
}

/// Opens what the host needs of a loopback that is shared. Where a port is taken, or the kernel lists no sockets, the host has less.
fn loopback(ports: &[u16]) -> Vec<OwnedFd> {
    let addresses = ports.iter().flat_map(|port| {
        [
            SocketAddr::from((Ipv4Addr::LOCALHOST, *port)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, *port)),
        ]
    });
    let listeners = addresses.filter_map(|at| TcpListener::bind(at).ok());
    let link = listening::open_link().ok();
    listeners.map(OwnedFd::from).chain(link).collect()
}

fn input(plan: &SupervisorPlan) -> io::Result<Stdio> {
    if plan.converses {
        return Ok(Stdio::inherit());
    }
    let bytes = plan.stdin.as_ref();
    bytes.map_or_else(
        || Ok(Stdio::null()),
        |bytes| Ok(spawn::memory_file(bytes)?.into()),
    )
}

fn set_oom_score(proc: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(proc, "self/oom_score_adj", flags, Mode::empty())?;
    rustix::io::write(&file, b"1000")?;
    Ok(())
}

fn begin(
    plan: &SupervisorPlan,
    users: UserMapping,
    tie: &UnixStream,
    terminal: Option<&OwnTerminal>,
    given: ProcessHandles,
) -> io::Result<PlanProcess> {
    let number = match plan.role {
        ProgramRole::Command => start(plan, terminal, given.stdin)?,
        ProgramRole::Zygote => return zygote::start(plan, users, tie, given.proc),
        ProgramRole::Fresh => script::fresh(plan, users)?,
    };
    Ok(PlanProcess {
        number,
        mounts: None,
    })
}

/// Starts the command, on a terminal if there is one, and returns its number.
fn start(plan: &SupervisorPlan, terminal: Option<&OwnTerminal>, stdin: Stdio) -> io::Result<u32> {
    let env = environment(plan);
    let empty = OsString::new();
    let path = env.get(OsStr::new("PATH")).unwrap_or(&empty);
    let program = spawn::find(plan.argv.first().unwrap_or(&empty), path, &plan.cwd)?;
    let start = ResolvedCommand {
        program: &program,
        argv: &plan.argv,
        env: &env,
        cwd: &plan.cwd,
    };
    if let Some(terminal) = terminal {
        return terminal.start(&start);
    }
    Ok(start.spawn(stdin, Stdio::inherit(), Stdio::inherit())?.id())
}

/// Reaps every process until the command itself exits. On a terminal, a command that stops itself continues at once, as under a shell that
/// refuses to be suspended: nothing inside could continue it, nor could its user by any key.
fn reap(first: u32, on_terminal: bool) -> JailReport {
    let gone = JailReport::Ended {
        code: None,
        signal: Some(libc::SIGKILL),
    };
    let is_first = |pid: Pid| pid.as_raw_nonzero().get().cast_unsigned() == first;
    let options = if on_terminal {
        WaitOptions::UNTRACED
    } else {
        WaitOptions::empty()
    };
    loop {
        match wait(options) {
            Ok(Some((pid, status))) if status.stopped() => {
                // It asked to be traced by its parent, which is no debugger.
                sys::trace_no_more(pid, status.stopping_signal().unwrap_or(0));
                if on_terminal && is_first(pid) {
                    let _ = kill_process(pid, Signal::CONT);
                }
            }
            Ok(Some((pid, status))) if is_first(pid) => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (None, None) => gone,
                    (code, signal) => JailReport::Ended { code, signal },
                };
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return gone,
        }
    }
}
