//! The jail driver on the host side: plans a jail, starts its supervisor and receives its reports.

pub(crate) mod bare;
mod cargo_home;
mod cause;
mod etc;
mod every_address;
mod frames;
mod guarded_names;
pub(crate) mod guards;
mod handed;
mod home;
mod inside;
mod joiner;
mod left_behind;
mod lock;
mod limits;
mod machine_files;
mod own_files;
mod own_proc;
mod own_sockets;
pub(crate) mod plan;
mod prepared;
mod probe;
mod proc_covers;
mod repository;
mod root;
mod script;
mod shared;
mod spare;
mod start_report;
mod supervisor;
pub(crate) mod system;
mod terminals;
mod toolchains;
mod users;
mod waiting;
mod watch;
mod zygote;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use self::guarded_names::GuardedNames;
use self::guards::Guards;
use self::handed::HandedFiles;
pub(crate) use self::joiner::open as enter_loopback;
use self::limits::{caps, filters, memory_bytes};
pub(crate) use self::lock::NO_CORE;
use self::plan::{BindMode, JailNetwork, LandlockGrant, RootEntry, SupervisorPlan};
pub(crate) use self::probe::{can_enter, probe};
use self::spare::{Spare, SparePlan, SpareSupervisor, Supervisor};
use self::start_report::{StartReport, receive_first};
use self::system::{SYSTEM_PATH, SystemList};
use crate::command::{CommandSpec, Mounts, Network, ProcessLimits, Stdin};
use crate::loopback::SharedLoopback;
use crate::memory::MemoryBound;
use crate::memory::cgroup::{ControlGroup, ControlGroups};
use crate::places::{PathPurpose, Places};
use crate::report::{ActiveMechanisms, JailReport};
use crate::running::StartedCommand;
use crate::strength::{Probe, Strength};
use crate::tree::ProcessTree;
use crate::{Config, StartError};

/// The supervisor's `argv[0]`, in place of a program name.
const MARKER: &str = "haft-jail-supervisor";
/// How long a jail may take to set up: a machine that swaps needs some time, but a hang is an error.
pub(crate) const SETUP: Duration = Duration::from_secs(30);

static ENTERED: AtomicBool = AtomicBool::new(false);

/// Must be the first call of `main` in a program that uses the jail. Returns at once, except in the
/// jail's supervisor and joiner (this same program, executed again), where it never returns.
pub fn enter() {
    if std::env::args_os()
        .next()
        .is_some_and(|name| name == MARKER)
    {
        supervisor::run();
    }
    if std::env::args_os()
        .next()
        .is_some_and(|name| name == joiner::MARKER)
    {
        joiner::run();
    }
    ENTERED.store(true, Ordering::Relaxed);
}

fn is_entered() -> bool {
    ENTERED.load(Ordering::Relaxed)
}

/// Starts a command in a jail of the strength that the probe found.
pub(crate) async fn start(
    config: &Config,
    probe: &Probe,
    machine: &Machine,
    spec: &CommandSpec,
    input: Option<OwnedFd>,
) -> Result<StartedCommand, StartError> {
    if spec.words().first().is_none_or(|word| word.is_empty()) {
        return Err(StartError::Spec("no program".into()));
    }
    if let Some(refused) = &machine.system.refused {
        return Err(refused.clone().into());
    }
    if probe.level <= Strength::LandlockSeccomp {
        if matches!(spec.network, Network::Outlet(_)) {
            return Err(StartError::NoOutlet(probe.strength));
        }
        let of_repository = || spec.mounts.repository.as_ref()?.view.as_ref();
        if spec.mounts.view.is_some() || of_repository().is_some() {
            return Err(StartError::NoView(probe.strength));
        }
        if spec.terminal.is_some() {
            return Err(StartError::NoTerminal(probe.strength));
        }
    }
    let level = JailLevel {
        strength: probe.level,
        landlock: probe.landlock_abi,
        memory: probe.memory,
    };
    let (mut started, _) = set_up(config, machine, level, spec, input).await?;
    if probe.level > Strength::LandlockSeccomp {
        machine.refill(config, level, spec);
    }
    started.strength = probe.strength;
    Ok(started)
}

/// What all jails of one sandbox use on this machine.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) system: Arc<SystemList>,
    groups: Option<ControlGroups>,
    spare: Arc<SpareSupervisor>,
}

impl Machine {
    /// Finds what every jail shows of the system and, if the configuration wants them, where control groups can be
    /// created.
    pub(crate) fn find(config: &Config) -> Self {
        Self {
            system: Arc::new(SystemList::find(config)),
            groups: config.cgroups.then(ControlGroups::find).flatten(),
            spare: Arc::default(),
        }
    }

    /// Returns the same without the supervisor that is kept ready: the commands of the other runtime are not counted with this one's.
    pub(crate) fn for_other_runtime(&self) -> Self {
        Self {
            system: Arc::clone(&self.system),
            groups: self.groups.clone(),
            spare: Arc::default(),
        }
    }

    /// Returns the control groups that limit memory at this level, and the limit in bytes, if there is one.
    fn groups(&self, level: JailLevel, limits: &ProcessLimits) -> Option<(&ControlGroups, u64)> {
        let by_group = matches!(level.memory, MemoryBound::CgroupV1 | MemoryBound::CgroupV2);
        let groups = self.groups.as_ref().filter(|_| by_group)?;
        Some((groups, memory_bytes(limits)?))
    }

    /// Returns what limits the memory of a jail that these mechanisms confine.
    fn memory_bound(
        &self,
        plan: &SupervisorPlan,
        held: ActiveMechanisms,
    ) -> Result<MemoryBound, StartError> {
        match &self.groups {
            Some(groups) if held.grouped => Ok(groups.bound()),
            _ if plan.watch > 0 && held.watched => Ok(MemoryBound::Watched),
            // Neither worked, contrary to the probe, and the processes have no limits of their own: the tree ends with this error.
            _ if plan.watch > 0 => Err(failed("limit its memory")(
                io::ErrorKind::Unsupported.into(),
            )),
            _ => Ok(MemoryBound::Process),
        }
    }

    /// Takes the supervisor that is ready for this command, if one is.
    fn take_spare(&self, config: &Config, level: JailLevel, spec: &CommandSpec) -> Option<Spare> {
        let groups = self.groups(level, &spec.limits);
        let spare = self.spare.take(groups.map(|(_, bytes)| bytes))?;
        if spare.is_prepared() != Some(true) {
            // Commands come faster than jails are prepared: the next one is not put off until this one has started.
            self.refill(config, level, spec);
        }
        Some(spare)
    }

    /// Limits the memory of the whole tree: by the control group that it has joined or another one, else by watching it, as far as the probe
    /// found that to work.
    fn bound_memory(
        &self,
        plan: &mut SupervisorPlan,
        level: JailLevel,
        limits: &ProcessLimits,
        joined: Option<ControlGroup>,
    ) -> Option<ControlGroup> {
        if level.memory != MemoryBound::Process {
            plan.watch = memory_bytes(limits).unwrap_or(0);
        }
        let joins = |(groups, bytes): (&ControlGroups, u64)| groups.take(bytes).ok();
        joined.or_else(|| {
            let group = self.groups(level, limits).and_then(joins)?;
            plan.group = group.entrance();
            Some(group)
        })
    }

    /// Prepares the next jail, for a command like this one.
    fn refill(&self, config: &Config, level: JailLevel, spec: &CommandSpec) {
        let limits = spec.limits;
        self.spare.refill(config, || {
            let groups = self.groups(level, &limits);
            SparePlan {
                part: prepared::part(&self.system, &limits, level.strength),
                limits,
                groups: groups.map(|(groups, bytes)| (groups.clone(), bytes)),
            }
        });
    }
}

/// The level at which a jail is set up.
#[derive(Debug, Clone, Copy)]
struct JailLevel {
    strength: Strength,
    /// The Landlock ABI; 0 = none, or not known yet.
    landlock: u32,
    memory: MemoryBound,
}

/// Returns the tree of a supervisor and the socket over which it receives its plan.
fn watched_tree(supervisor: Supervisor) -> Result<(ProcessTree, UnixStream), StartError> {
    let Supervisor { child, link } = supervisor;
    let held = link.try_clone().map_err(failed("make a socket"))?;
    let tree = ProcessTree::jail(child, held).map_err(failed("watch the supervisor"))?;
    Ok((tree, link))
}

/// The supervisor of a command, and what it has done before it had a plan.
struct TakenSupervisor {
    supervisor: Supervisor,
    joined: Option<ControlGroup>,
    /// The limits that it has prepared a root for.
    prepared: Option<ProcessLimits>,
}

impl TakenSupervisor {
    /// Starts one if none is ready.
    fn of(spare: Option<Spare>, config: &Config) -> Result<Self, StartError> {
        if let Some(spare) = spare {
            return Ok(Self {
                supervisor: spare.supervisor,
                joined: spare.group,
                prepared: Some(spare.limits),
            });
        }
        Ok(Self {
            supervisor: Supervisor::start(config, Stdio::piped(), Stdio::piped())?,
            joined: None,
            prepared: None,
        })
    }
}

/// Takes or starts a supervisor, plans meanwhile, and returns once the command has been executed.
async fn set_up(
    config: &Config,
    machine: &Machine,
    level: JailLevel,
    spec: &CommandSpec,
    input: Option<OwnedFd>,
) -> Result<(StartedCommand, ActiveMechanisms), StartError> {
    let own_network = level.strength > Strength::LandlockSeccomp && spec.network != Network::Host;
    let spare = own_network.then(|| machine.take_spare(config, level, spec));
    let TakenSupervisor {
        mut supervisor,
        joined,
        prepared,
    } = TakenSupervisor::of(spare.flatten(), config)?;
    let output = (supervisor.child.stdout.take()).zip(supervisor.child.stderr.take());
    let output = output.ok_or_else(|| failed("read it")(io::ErrorKind::BrokenPipe.into()))?;
    let (mut tree, link) = watched_tree(supervisor)?;
    let (mut plan, guards) = plan(&config.places, &machine.system, level, spec).await?;
    if level.strength > Strength::LandlockSeccomp {
        prepared::complete(&mut plan, &machine.system, spec, prepared);
    }
    plan.converses = input.is_some();
    if own_network {
        plan.shares = spec.loopback.as_ref().map(SharedLoopback::first_ports);
    }
    tree.hold(guards.held);
    tree.bound_by(machine.bound_memory(&mut plan, level, &spec.limits, joined));
    let (report, files) = receive_first(link, &plan, input).await?;
    let (held, handed) = match report {
        StartReport::Started(held) => (held, HandedFiles::take(spec, &plan, tree.pid(), files)?),
        StartReport::Ended(report) => {
            let held = ended_at_once(&mut tree, &plan, report).await?;
            (held, HandedFiles::of_ended(spec, files)?)
        }
    };
    let memory = machine.memory_bound(&plan, held)?;
    let started = StartedCommand {
        tree,
        stdout: handed.terminal.is_none().then(|| output.0.into()),
        terminal: handed.terminal,
        stderr: output.1.into(),
        strength: level.strength,
        memory,
        gate: handed.gate,
        loopback: handed.loopback,
    };
    Ok((started, held))
}

/// Handles a jail that has ended before it reported the start of its command: that may have run, so how it ended is told as of every
/// command. Returns what confined it.
async fn ended_at_once(
    tree: &mut ProcessTree,
    plan: &SupervisorPlan,
    report: Option<JailReport>,
) -> Result<ActiveMechanisms, StartError> {
    if plan.argv.is_empty() {
        return Err(start_report::ended_early());
    }
    if report.is_none() && !tree.was_killed().await {
        return Err(start_report::unheard(io::ErrorKind::UnexpectedEof.into()));
    }
    tree.reported(report);
    Ok(ActiveMechanisms {
        watched: true,
        grouped: tree.is_grouped(),
        ..ActiveMechanisms::default()
    })
}

fn failed(step: &'static str) -> impl FnOnce(io::Error) -> StartError {
    move |source| StartError::System { step, source }
}

/// Launches a jail with this plan; the two descriptors become the output of its first program.
pub(crate) async fn launch(
    config: &Config,
    plan: &SupervisorPlan,
    stdout: OwnedFd,
    stderr: OwnedFd,
) -> Result<ProcessTree, StartError> {
    let supervisor = Supervisor::start(config, stdout.into(), stderr.into())?;
    let (tree, link) = watched_tree(supervisor)?;
    match receive_first(link, plan, None).await? {
        (StartReport::Started(_), _) => Ok(tree),
        (StartReport::Ended(_), _) => Err(start_report::ended_early()),
    }
}

fn wrong(path: &Path, why: &str) -> StartError {
    StartError::Spec(format!("`{}` {why}", path.display()))
}

/// Plans the program to run, its limits and its network.
fn words_and_limits(level: JailLevel, spec: &CommandSpec) -> Result<SupervisorPlan, StartError> {
    Ok(SupervisorPlan {
        argv: spec.words(),
        cwd: spec.cwd.canonicalize().unwrap_or_else(|_| spec.cwd.clone()),
        stdin: match &spec.stdin {
            Stdin::Null => None,
            Stdin::Bytes(bytes) => Some(bytes.clone()),
        },
        caps: caps(&spec.limits, level.memory),
        filters: filters(level, &spec.network)?,
        net: match &spec.network {
            Network::None => JailNetwork::Own,
            Network::Outlet(_) => JailNetwork::Outlet,
            Network::Host => JailNetwork::Host,
        },
        ports: spec.network.outlet_ports(),
        terminal: spec.terminal.map(|terminal| terminal.size),
        ..SupervisorPlan::default()
    })
}

/// Plans the whole jail, and prepares the guards that hold places in the workspace while the command runs.
async fn plan(
    places: &Places,
    system: &SystemList,
    level: JailLevel,
    spec: &CommandSpec,
) -> Result<(SupervisorPlan, Guards), StartError> {
    let own_root = level.strength > Strength::LandlockSeccomp;
    let mut plan = words_and_limits(level, spec)?;
    plan.set_strength(level.strength);
    let mut guards = Guards::default();
    if let Some(workspace) = &spec.mounts.workspace {
        let workspace = places.admit(workspace, PathPurpose::Workspace)?;
        if !workspace.is_dir() {
            return Err(wrong(&workspace, "is not a folder"));
        }
        plan.workspace.clone_from(&workspace);
        let mut mounts = spec.mounts.clone();
        own_files::guard(&mut mounts, places, &workspace);
        // On a view, the command may create absent names: they are judged afterwards.
        let holding = own_root && !mounts.only_reads && mounts.view.is_none();
        plan.watched = watched(&mounts, own_root);
        guards = Guards::prepare(workspace, mounts, holding)
            .await
            .map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput => {
                    StartError::Spec(format!("guard the workspace: {error}"))
                }
                _ => failed("guard the workspace")(error),
            })?;
    }
    let mut scratch = PathBuf::from(prepared::SCRATCH);
    if own_root {
        plan.grants.clone_from(&system.grants);
        terminals::grant(&mut plan);
        plan.covers.clone_from(&guards.covers);
    } else {
        scratch = guards
            .held
            .make_scratch()
            .map_err(|source| StartError::System {
                step: "make a private folder",
                source,
            })?;
        plan.grants.clone_from(&system.bare);
    }
    if spec.network == Network::Host {
        system::host_names(&mut plan, own_root);
    } else if !plan.ports.is_empty() {
        system::jail_names(&mut plan);
    }
    plan.env = environment(system, spec, &scratch);
    home::plan(&mut plan, places, spec, &scratch)?;
    let own_home = scratch.clone();
    plan.grants.push((scratch, LandlockGrant::Write));
    if let Some(toolchains) = &spec.mounts.toolchains {
        toolchains::show(toolchains, &mut plan, own_root);
    }
    files(&mut plan, places, spec, &guards)?;
    repository::show(&mut plan, places, &spec.mounts)?;
    own_sockets::show(&mut plan, &spec.mounts)?;
    cargo_home::show(&mut plan, spec, &own_home);
    Ok((plan, guards))
}

/// Returns the guarded names, if programs outside work in the same folder as the command: they cannot lift the covers
/// of a view, and below that strength there are none.
fn watched(mounts: &Mounts, own_root: bool) -> Option<GuardedNames> {
    let live = own_root
        && mounts.view.is_none()
        && !(mounts.guards.is_empty() && mounts.pinned.is_empty());
    live.then(|| {
        if mounts.only_reads {
            // Such a command creates nothing.
            return GuardedNames::default();
        }
        GuardedNames::of(mounts)
    })
}

/// Plans the workspace and the other files that this command may read, as binds and as grants.
fn files(
    plan: &mut SupervisorPlan,
    places: &Places,
    spec: &CommandSpec,
    guards: &Guards,
) -> Result<(), StartError> {
    let own_root = plan.strength() > Strength::LandlockSeccomp;
    let mut shown = Vec::new();
    for path in &spec.mounts.read_only {
        let path = places.admit(path, PathPurpose::Named)?;
        if path.starts_with(&plan.workspace) && spec.mounts.workspace.is_some() {
            return Err(wrong(&path, "lies in the workspace: guard it instead"));
        }
        if places.is_shown(&path) {
            continue;
        }
        plan.grants.push((path.clone(), LandlockGrant::Execute));
        shown.push((path, BindMode::ReadOnly));
    }
    for path in &spec.mounts.read_write {
        let path = places.admit(path, PathPurpose::Changed)?;
        let (grant, bind) = if spec.mounts.only_reads {
            (LandlockGrant::Execute, BindMode::ReadOnly)
        } else {
            (LandlockGrant::Write, BindMode::ReadWrite)
        };
        plan.grants.push((path.clone(), grant));
        shown.push((path, bind));
    }
    if spec.mounts.workspace.is_some() {
        let workspace = plan.workspace.clone();
        let grants = if own_root {
            vec![(workspace.clone(), LandlockGrant::Write)]
        } else {
            bare::workspace(&workspace, &guards.covers)
        };
        let only_reads = spec.mounts.only_reads;
        let narrowed = |(path, grant)| match grant {
            LandlockGrant::Write | LandlockGrant::Execute if only_reads => {
                (path, LandlockGrant::Read)
            }
            grant => (path, grant),
        };
        plan.grants.extend(grants.into_iter().map(narrowed));
        match &spec.mounts.view {
            Some(view) if own_root && !only_reads => {
                plan.entries
                    .push(repository::overlay(view, workspace.clone(), workspace)?);
            }
            _ if only_reads => shown.push((workspace, BindMode::Data)),
            _ => shown.push((workspace, BindMode::ReadWrite)),
        }
    }
    if own_root {
        plan.entries
            .extend(shown.into_iter().map(|(path, kind)| RootEntry::Bind {
                source: path.clone(),
                target: path,
                kind,
            }));
    }
    Ok(())
}

/// Sort key that puts parents before children; the sort is stable, so the list's order is kept otherwise.
pub(crate) fn depth(entry: &RootEntry) -> usize {
    entry.target().components().count()
}

/// Builds the environment inside; nothing of this process's own is passed on.
fn environment(system: &SystemList, spec: &CommandSpec, scratch: &Path) -> Vec<OsString> {
    let toolchains = || spec.mounts.toolchains.iter();
    let folders = spec.path_first.iter().chain(&system.path).cloned();
    let folders = folders
        .chain(toolchains().flat_map(|all| all.path()))
        .chain(std::env::split_paths(SYSTEM_PATH))
        .chain(spec.path.iter().cloned());
    let mut once = Vec::new();
    for folder in folders {
        if !once.contains(&folder) {
            once.push(folder);
        }
    }
    let path = std::env::join_paths(once).unwrap_or_else(|_| SYSTEM_PATH.into());
    let mut env: BTreeMap<OsString, OsString> = BTreeMap::from([
        ("PATH".into(), path),
        ("HOME".into(), scratch.into()),
        ("TMPDIR".into(), scratch.into()),
        ("LANG".into(), "C.UTF-8".into()),
        ("TERM".into(), handed::terminal_kind(spec).into()),
    ]);
    env.extend(toolchains().flat_map(|all| all.variables()));
    env.extend(spec.env.clone());
    let pair = |(mut name, value): (OsString, OsString)| {
        name.push(OsStr::new("="));
        name.push(value);
        name
    };
    env.into_iter().map(pair).collect()
}
