//! Large blocks of memory: each is mapped by itself, so that the system has it back as soon as it is freed.
#![allow(
    unsafe_code,
    reason = "the C library's allocator has no safe interface for its settings"
)]

/// Size from which on a block of memory is large, in bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 1 << 20;

/// Maps each large block of memory by itself. Without this, the GNU allocator stops doing so for blocks of the size of any that was freed:
/// then a list that grows is copied, and what it leaves stays with the process. Other allocators are left as they are.
pub fn map_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: this only sets numbers of the allocator, under its own lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        // Twice as much, as the allocator itself would have it.
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * LARGE);
    }
}
