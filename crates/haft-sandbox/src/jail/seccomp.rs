//! The shell profile's system call filter: everything but what reaches for more of the kernel.
//!
//! A deny list, because the profile runs arbitrary tools; the walls are the namespaces, this removes
//! attack surface that no build or script needs. What is denied gives `EPERM`, except where programs
//! have a fallback that they only take on `ENOSYS`.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

pub(crate) type Error = seccompiler::BackendError;

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
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Other processes' memory.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
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
    // Files by number instead of by path.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Memory placement of others.
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

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

/// Kernel 6.15 and later, not named by libc yet on every architecture.
const SYS_OPEN_TREE_ATTR: i64 = 467;

/// Bits of `clone` that make namespaces.
pub(crate) const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    // CLONE_NEWTIME shares its bit with the exit signal's mask in `clone`, where it means nothing.
];

pub(crate) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Argument `index` equals `value` in the bits of `mask` (its low 32 bits: what the kernel looks at).
pub(crate) fn has(index: u8, mask: u32, value: u32) -> Result<SeccompCondition, Error> {
    let op = SeccompCmpOp::MaskedEq(u64::from(mask));
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, op, u64::from(value))
}

fn is_not(index: u8, value: i32) -> Result<SeccompCondition, Error> {
    let value = u64::from(value.cast_unsigned());
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

pub(crate) fn rule(rules: &mut Rules, call: i64, all: Vec<SeccompCondition>) -> Result<(), Error> {
    rules.entry(call).or_default().push(SeccompRule::new(all)?);
    Ok(())
}

/// Denies giving a file the set-user-id or set-group-id bit: the command may be root's, and a file it
/// leaves in the workspace would then be root for everybody outside.
fn set_id_bits(rules: &mut Rules) -> Result<(), Error> {
    let create = libc::O_CREAT.cast_unsigned();
    for bit in [libc::S_ISUID, libc::S_ISGID] {
        for (call, mode) in [
            (libc::SYS_fchmod, 1),
            (libc::SYS_fchmodat, 2),
            (libc::SYS_fchmodat2, 2),
            (libc::SYS_mknodat, 2),
        ] {
            rule(rules, call, vec![has(mode, bit, bit)?])?;
        }
        rule(
            rules,
            libc::SYS_openat,
            vec![has(2, create, create)?, has(3, bit, bit)?],
        )?;
        #[cfg(target_arch = "x86_64")]
        {
            rule(
                rules,
                libc::SYS_open,
                vec![has(1, create, create)?, has(2, bit, bit)?],
            )?;
            for call in [libc::SYS_chmod, libc::SYS_creat, libc::SYS_mknod] {
                rule(rules, call, vec![has(1, bit, bit)?])?;
            }
        }
    }
    Ok(())
}

/// Which sockets may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// None: without a network of its own nothing else keeps the command from the host's.
    None,
    /// Internet ones: without a root of its own a local socket reaches the host's services by their files.
    Internet,
    /// Local and internet ones.
    All,
}

fn sockets(rules: &mut Rules, allowed: Sockets) -> Result<(), Error> {
    let mut known = vec![is_not(0, libc::AF_INET)?, is_not(0, libc::AF_INET6)?];
    match allowed {
        Sockets::None => {
            rules.insert(libc::SYS_socket, Vec::new());
            return Ok(());
        }
        Sockets::Internet => {}
        Sockets::All => known.push(is_not(0, libc::AF_UNIX)?),
    }
    rule(rules, libc::SYS_socket, known)?;
    let raw = libc::SOCK_RAW.cast_unsigned();
    rule(rules, libc::SYS_socket, vec![has(1, 0xF, raw)?])
}

/// The filter that answers `EPERM`.
pub(crate) fn deny(allowed: Sockets) -> Result<BpfProgram, Error> {
    let mut rules: Rules = DENIED
        .iter()
        .chain(DENIED_HERE)
        .chain(&[SYS_OPEN_TREE_ATTR])
        .map(|call| (*call, Vec::new()))
        .collect();
    for flag in NAMESPACES {
        let flag = flag.cast_unsigned();
        rule(&mut rules, libc::SYS_clone, vec![has(0, flag, flag)?])?;
    }
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
        vec![is_not(0, 0)?, is_not(0, -1)?],
    )?;
    set_id_bits(&mut rules)?;
    sockets(&mut rules, allowed)?;
    let mut filter = prelude();
    filter.extend(compile(rules, libc::EPERM)?);
    Ok(filter)
}

/// The filter that answers `ENOSYS`: calls whose flags lie in memory, where no filter can look, and
/// which every C library does without.
pub(crate) fn absent() -> Result<BpfProgram, Error> {
    let calls = [libc::SYS_clone3, libc::SYS_openat2];
    compile(
        calls.into_iter().map(|call| (call, Vec::new())).collect(),
        libc::ENOSYS,
    )
}

fn compile(rules: Rules, errno: i32) -> Result<BpfProgram, Error> {
    let denied = SeccompAction::Errno(errno.cast_unsigned());
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, denied, arch)?.try_into()
}

/// What comes first on `x86_64`: a call by the x32 numbers, which the rules would not recognise, kills.
/// (Another architecture is killed by the filters themselves.)
pub(crate) fn prelude() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32_BIT: u32 = 0x4000_0000;
    if !cfg!(target_arch = "x86_64") {
        return Vec::new();
    }
    let line = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        line(LOAD_WORD, 0, 0, 0),
        line(JUMP_AT_LEAST, 0, 1, X32_BIT),
        line(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
    ]
}
