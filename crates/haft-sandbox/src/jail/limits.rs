//! What a command may use of the kernel: the limits of each process, kinds of sockets, system calls.

use seccompiler::BpfProgram;

use super::JailLevel;
use super::plan::KernelLimits;
use crate::StartError;
use crate::command::{Network, ProcessLimits};
use crate::filter::command::{FilterVariant, SocketPolicy};
use crate::filter::{self, Isolation};
use crate::memory::{MemoryBound, netlink};
use crate::strength::Strength;

const MIB: u64 = 1 << 20;

/// Returns the limit on memory in bytes.
pub(super) fn memory_bytes(limits: &ProcessLimits) -> Option<u64> {
    limits.memory_mb.map(|mib| mib.saturating_mul(MIB))
}

/// Returns the limits of each process. None counts what a process uses: the limit on address space counts what it reserves, and
/// WebAssembly engines reserve 10 GiB for each memory; the limit on data counts private memory once a process may write to it. So
/// the latter is set, and only on machines that cannot limit what the tree uses.
pub(super) fn caps(limits: &ProcessLimits, bound: MemoryBound) -> KernelLimits {
    let private = memory_bytes(limits).filter(|_| bound == MemoryBound::Process);
    KernelLimits {
        data: private.unwrap_or(u64::MAX),
        pids: limits.pids.map_or(u64::MAX, u64::from),
        file: limits
            .file_mb
            .map_or(u64::MAX, |mib| mib.saturating_mul(MIB)),
        cpu: limits.cpu_s.unwrap_or(u64::MAX),
        open_files: limits.open_files,
    }
}

/// Returns which sockets a command may create; its network namespace and its root limit what they reach.
fn sockets(network: &Network, own_root: bool, scopes: bool) -> SocketPolicy {
    match (network, own_root) {
        // In the host's network it could reach the host's abstract sockets, and without a root of its own the host's socket files.
        (Network::Host, _) if !(own_root && scopes) => SocketPolicy::Internet,
        (Network::Host, true) => SocketPolicy::All,
        // What such sockets hold must be counted: a control group does not.
        (_, true) if netlink::is_counted() => SocketPolicy::OwnNetwork,
        (_, true) => SocketPolicy::All,
        (_, false) => SocketPolicy::None,
    }
}

pub(super) fn filters(level: JailLevel, network: &Network) -> Result<Vec<BpfProgram>, StartError> {
    let namespaces = level.strength > Strength::LandlockSeccomp;
    let differs = FilterVariant {
        around: Isolation::of(namespaces, level.landlock),
        sockets: sockets(network, namespaces, level.landlock >= filter::SCOPES),
        // If memory is only watched, memory files that no process maps would go unnoticed.
        memory_files: matches!(level.memory, MemoryBound::CgroupV1 | MemoryBound::CgroupV2),
        role: filter::command::FilterTarget::Command,
    };
    filter::command::all(differs).map_err(|_| StartError::no_filter())
}
