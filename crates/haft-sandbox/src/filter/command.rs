//! The shell profile's system call filter: allows everything except what reaches for more of the kernel.
//!
//! It is a deny list, because the profile runs arbitrary tools. The namespaces do the isolation; this removes
//! attack surface that no build or script needs. A denied call fails with `EPERM`, or with `ENOSYS` if programs
//! have a fallback that they only use on `ENOSYS`.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use seccompiler::{BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, TargetArch};

use super::tree::SyscallVerdict;
use super::{Error, Isolation, MAKING, MODES, NAMESPACES, SET_ID, SyscallRules};
use super::{assemble, differs, has, is, is_not, outside, rule};

/// Calls that are denied whatever their arguments.
const DENIED: &[i64] = &[
    // Other mounts, roots, namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Other processes' descriptors and hints about their memory.
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Kernel programs, keys, performance counters, asynchronous calls that no filter sees.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The machine: modules, another kernel, clocks, swap, accounting, logs.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_fanotify_init,
    libc::SYS_nfsservctl,
    // Files by handle instead of by path.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Memory placement of other processes.
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// Calls of debuggers. In a pid namespace of its own, a command finds its own processes, which have the same locks and hold nothing that
/// it lacks, and the first process, which cannot be traced: it is not dumpable, and no capability is left that would replace that.
/// A tracer changes which call its process makes before the kernel asks the filters (Linux 4.8; a root of one's own needs 5.12).
const TRACING: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
];

/// The personality without address space randomisation, which debuggers and sanitizers choose for their own programs.
const ADDR_NO_RANDOMIZE: i32 = 0x0004_0000;

/// Linux's own request of `fcntl`.
const F_SETLEASE: u32 = 1024;

/// Calls that programs do without. The number of contexts for asynchronous calls is limited for the whole machine (`fs.aio-max-nr`). Landlock
/// refuses named message queues, as no path leads to them: so programs hear that the system has none.
const ABSENT: &[i64] = &[libc::SYS_io_setup, libc::SYS_mq_open, libc::SYS_mq_unlink];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[i64] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[i64] = &[];

/// Kernel 6.15 and later; libc does not define it on every architecture yet.
const SYS_OPEN_TREE_ATTR: i64 = 467;

/// The ways in which one deny list differs from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FilterVariant {
    pub(crate) around: Isolation,
    pub(crate) sockets: SocketPolicy,
    /// Whether files that exist only in memory may be created.
    pub(crate) memory_files: bool,
    pub(crate) role: FilterTarget,
}

/// The process that the list is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FilterTarget {
    Command,
    /// A zygote: allows the calls that put a child into its namespaces, with exactly the flags it uses.
    Zygote,
}

/// Namespaces that a script's process creates for itself.
pub(crate) const SCRIPT_NAMESPACES: i32 =
    libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP;

/// The protocols that programs use, and the default. Others are rarely used parts of the kernel, and the memory
/// of their sockets is not counted.
const PROTOCOLS: &[i32] = &[
    0,
    libc::IPPROTO_TCP,
    libc::IPPROTO_UDP,
    libc::IPPROTO_ICMP,
    libc::IPPROTO_ICMPV6,
];

/// Options that put another protocol on a socket, with their levels: `TCP_ULP` and `UDP_ENCAP`.
const UPPER: &[(u32, u32)] = &[(6, 31), (17, 100)];

/// The sockets that may be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SocketPolicy {
    /// None: without a network namespace, nothing else would keep the command from the host's network.
    None,
    /// Internet sockets only: without its own root, a local socket could reach the host's services by their files.
    Internet,
    /// Local and internet sockets.
    All,
    /// These, and the kernel's list of interfaces, addresses and routes, in a network namespace of the command's own. What could
    /// change it needs a capability there, which no command has.
    OwnNetwork,
}

/// Denies setting the set-user-id or set-group-id bit on a file: the command may run as root, and a file it
/// leaves in the workspace would then give root to everyone outside. Applies whatever the flags: a file
/// without a name may get one later.
fn set_id_bits(rules: &mut SyscallRules) -> Result<(), Error> {
    for (call, mode) in MAKING.iter().chain(MODES) {
        for bit in SET_ID {
            rule(rules, *call, vec![has(*mode, bit, bit)?])?;
        }
    }
    Ok(())
}

/// Denies pairs of other sockets than local ones: the kernel makes sockets of any family for them before it finds that the family has no
/// pairs, and loads modules for that.
fn pairs(rules: &mut SyscallRules) -> Result<(), Error> {
    rule(rules, libc::SYS_socketpair, vec![is_not(0, libc::AF_UNIX)?])
}

fn sockets(rules: &mut SyscallRules, allowed: SocketPolicy) -> Result<(), Error> {
    pairs(rules)?;
    let mut known = vec![is_not(0, libc::AF_INET)?, is_not(0, libc::AF_INET6)?];
    let raw = libc::SOCK_RAW.cast_unsigned();
    let mut raw = vec![has(1, 0xF, raw)?];
    match allowed {
        SocketPolicy::None | SocketPolicy::Internet => connected_pairs(rules)?,
        SocketPolicy::All => known.push(is_not(0, libc::AF_UNIX)?),
        SocketPolicy::OwnNetwork => {
            known.extend([is_not(0, libc::AF_UNIX)?, is_not(0, libc::AF_NETLINK)?]);
            raw.push(is_not(0, libc::AF_NETLINK)?);
            rule(rules, libc::SYS_socket, other_netlink()?)?;
        }
    }
    if allowed == SocketPolicy::None {
        rules.insert(libc::SYS_socket, Vec::new());
        return Ok(());
    }
    rule(rules, libc::SYS_socket, known)?;
    rule(rules, libc::SYS_socket, raw)?;
    let other = PROTOCOLS.iter().map(|known| is_not(2, *known));
    rule(rules, libc::SYS_socket, other.collect::<Result<_, _>>()?)?;
    for (level, option) in UPPER {
        let both = vec![has(1, u32::MAX, *level)?, has(2, u32::MAX, *option)?];
        rule(rules, libc::SYS_setsockopt, both)?;
    }
    Ok(())
}

/// Netlink in another protocol than that of interfaces and routes.
fn other_netlink() -> Result<Vec<SeccompCondition>, Error> {
    let netlink = u64::from(libc::AF_NETLINK.cast_unsigned());
    Ok(vec![is(0, netlink)?, is_not(2, libc::NETLINK_ROUTE)?])
}

/// Denies socket pairs other than streams and sequenced packets: a datagram socket can send to any address,
/// including the host's services. Both allowed types have bit 0 set, and neither bit 1 nor bit 3.
fn connected_pairs(rules: &mut SyscallRules) -> Result<(), Error> {
    for (bit, value) in [(1, 0), (2, 2), (8, 8)] {
        rule(rules, libc::SYS_socketpair, vec![has(1, bit, value)?])?;
    }
    Ok(())
}

fn namespaces(rules: &mut SyscallRules, role: FilterTarget) -> Result<(), Error> {
    for flag in NAMESPACES {
        let flag = flag.cast_unsigned();
        rule(rules, libc::SYS_clone, vec![has(0, flag, flag)?])?;
    }
    let (unshare, setns) = (libc::SYS_unshare, libc::SYS_setns);
    match role {
        FilterTarget::Command => {
            rules.insert(unshare, Vec::new());
            rules.insert(setns, Vec::new());
            Ok(())
        }
        FilterTarget::Zygote => {
            let made = vec![
                differs(0, libc::CLONE_NEWPID)?,
                differs(0, SCRIPT_NAMESPACES)?,
                // Only checks whether there is a single thread.
                differs(0, libc::CLONE_THREAD)?,
            ];
            rule(rules, unshare, made)?;
            let joined = vec![
                is_not(1, libc::CLONE_NEWPID)?,
                is_not(1, libc::CLONE_NEWNS)?,
            ];
            rule(rules, setns, joined)
        }
    }
}

/// A second filter that keeps the core file limit as it is: a call to lower it appears to succeed, as there are
/// no core files anyway. A lower limit would start the machine's handler again.
fn core_limit() -> Result<BpfProgram, Error> {
    let mut rules = SyscallRules::new();
    let core = libc::RLIMIT_CORE;
    rule(
        &mut rules,
        libc::SYS_prlimit64,
        vec![has(1, u32::MAX, core)?, differs(2, 0)?],
    )?;
    rule(
        &mut rules,
        libc::SYS_setrlimit,
        vec![has(0, u32::MAX, core)?],
    )?;
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let done = SeccompAction::Errno(0);
    SeccompFilter::new(rules, SeccompAction::Allow, done, arch)?.try_into()
}

/// Returns all filters of a command or a zygote.
pub(crate) fn all(differs: FilterVariant) -> Result<Vec<BpfProgram>, Error> {
    Ok(vec![deny(differs)?, core_limit()?])
}

/// Returns the filter; compiled once per process.
fn deny(differs: FilterVariant) -> Result<BpfProgram, Error> {
    static COMPILED: Mutex<Option<HashMap<FilterVariant, BpfProgram>>> = Mutex::new(None);
    let mut compiled = COMPILED.lock();
    let compiled = compiled.get_or_insert_default();
    if let Some(filter) = compiled.get(&differs) {
        return Ok(filter.clone());
    }
    let filter = compile(differs)?;
    compiled.insert(differs, filter.clone());
    Ok(filter)
}

fn compile(differs: FilterVariant) -> Result<BpfProgram, Error> {
    let mut rules = SyscallRules::new();
    namespaces(&mut rules, differs.role)?;
    for request in [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD] {
        let request = u32::try_from(request & 0xFFFF_FFFF).unwrap_or_default();
        rule(
            &mut rules,
            libc::SYS_ioctl,
            vec![has(1, u32::MAX, request)?],
        )?;
    }
    // The 32-bit personality and the one that makes every page executable.
    rule(
        &mut rules,
        libc::SYS_personality,
        vec![is_not(0, 0)?, is_not(0, -1)?, is_not(0, ADDR_NO_RANDOMIZE)?],
    )?;
    // A lease on a file that the command may only read makes the host's programs wait that open it for writing.
    rule(
        &mut rules,
        libc::SYS_fcntl,
        vec![has(1, u32::MAX, F_SETLEASE)?],
    )?;
    set_id_bits(&mut rules)?;
    sockets(&mut rules, differs.sockets)?;
    outside::deny(&mut rules, differs.around)?;
    let traces = differs.around == Isolation::Own && differs.role == FilterTarget::Command;
    let denied = DENIED
        .iter()
        .chain(DENIED_HERE)
        .chain(if traces { &[] } else { TRACING })
        .chain(&[SYS_OPEN_TREE_ATTR]);
    let denied = denied.map(|call| (*call, SyscallVerdict::Denied));
    let mut answers: BTreeMap<i64, SyscallVerdict> = denied.collect();
    for call in ABSENT {
        answers.insert(*call, SyscallVerdict::Absent);
    }
    if !differs.memory_files {
        for call in [libc::SYS_memfd_create, libc::SYS_memfd_secret] {
            answers.insert(call, SyscallVerdict::Absent);
        }
    }
    assemble(
        answers,
        SyscallVerdict::Allowed,
        rules,
        SyscallVerdict::Denied,
    )
}

#[cfg(test)]
mod tests {
    use super::{FilterTarget, FilterVariant, Isolation, SocketPolicy, deny};

    #[test]
    fn every_list_compiles_and_fits() {
        for around in [Isolation::Own, Isolation::Host, Isolation::HostOfOld] {
            for sockets in [
                SocketPolicy::None,
                SocketPolicy::Internet,
                SocketPolicy::All,
                SocketPolicy::OwnNetwork,
            ] {
                for role in [FilterTarget::Command, FilterTarget::Zygote] {
                    let memory_files = role == FilterTarget::Command;
                    let filter = deny(FilterVariant {
                        around,
                        sockets,
                        memory_files,
                        role,
                    });
                    // The kernel accepts at most 4,096 instructions.
                    let length = filter.unwrap().len();
                    assert!(length < 1500, "{length}");
                }
            }
        }
    }
}
