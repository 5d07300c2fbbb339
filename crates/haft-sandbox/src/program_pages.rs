//! Releases the memory of the program's own files: most of it is read at the start and never again.
#![allow(
    unsafe_code,
    reason = "no safe wrapper can know that the pages are still as they are in the file"
)]

use std::fs;
use std::io;
use std::ops::Range;

/// Releases the pages of this program's own files (its binary and libraries) to the system and returns the size of their address
/// ranges in bytes. They stay in the system's cache and return as the program uses them, so call it once, after startup.
///
/// Affects only private mappings of files that are not writable and of which no page was ever written. No library may be
/// loaded meanwhile.
///
/// # Errors
/// If the list of mappings cannot be read. A mapping that the system refuses to release is skipped.
pub fn release_program_pages() -> io::Result<usize> {
    let mappings = fs::read_to_string("/proc/self/smaps")?;
    let released = unwritten(&mappings).into_iter().filter(release);
    Ok(released.map(|addresses| addresses.len()).sum())
}

fn release(addresses: &Range<usize>) -> bool {
    let start = std::ptr::without_provenance_mut(addresses.start);
    // SAFETY: every page of the mapping equals its file (`unwritten`): the next access finds the same bytes.
    unsafe { libc::madvise(start, addresses.len(), libc::MADV_DONTNEED) == 0 }
}

/// Returns the address ranges of the mappings whose pages all equal their file. The loader has written to some that are no
/// longer writable (tables of relocated addresses); the system counts those pages as anonymous.
fn unwritten(mappings: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut current: Option<Range<usize>> = None;
    for line in mappings.lines() {
        if let Some(header) = MappingHeader::of(line) {
            found.extend(current.take());
            current = header.is_unwritable_file().then_some(header.addresses);
        } else if written(line) {
            current = None;
        }
    }
    found.extend(current);
    found
}

/// Returns whether a line says that the mapping has pages of its own, in memory or swapped out.
fn written(line: &str) -> bool {
    let amount = |name| line.strip_prefix(name).map(str::trim);
    let amount = amount("Anonymous:").or_else(|| amount("Swap:"));
    amount.is_some_and(|amount| amount != "0 kB")
}

/// The first line of a mapping: `START-END PERMISSIONS OFFSET DEVICE INODE  PATH`.
struct MappingHeader<'a> {
    addresses: Range<usize>,
    permissions: &'a str,
    path: &'a str,
}

impl<'a> MappingHeader<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let address = |digits| usize::from_str_radix(digits, 16).ok();
        Some(Self {
            addresses: address(start)?..address(end)?,
            permissions: words.next()?,
            path: words.nth(3).unwrap_or_default(),
        })
    }

    fn is_unwritable_file(&self) -> bool {
        matches!(self.permissions, "r--p" | "r-xp") && self.path.starts_with('/')
    }
}

#[cfg(test)]
mod tests {
    use super::unwritten;

    /// Returns a mapping as in `/proc/self/smaps`.
    fn mapping(header: &str, anonymous: u32, swap: u32) -> String {
        format!(
            "{header}\nSize:  8 kB\nRss:  8 kB\nAnonymous:  {anonymous} kB\nAnonHugePages:  0 kB\nSwap:  {swap} kB\nSwapPss:  0 kB\nVmFlags: rd mr\n"
        )
    }

    #[test]
    fn only_unwritten_private_mappings_of_files_are_given_back() {
        let (text, path) = ("1000-3000 r-xp 00001000 08:01 77", "/usr/bin/haft");
        let rows = [
            (format!("{text} {path}"), 0, 0, true),
            (format!("{text} /usr/my programs/haft"), 0, 0, true),
            (
                "1000-3000 r--p 0 08:01 77 /lib/libm.so.6".to_owned(),
                0,
                0,
                true,
            ),
            // Written by the loader, then made read-only; a breakpoint in program text.
            (
                "1000-3000 r--p 0 08:01 77 /lib/libm.so.6".to_owned(),
                4,
                0,
                false,
            ),
            (format!("{text} {path}"), 4, 0, false),
            (format!("{text} {path}"), 0, 4, false),
            (
                "1000-3000 rw-p 0 08:01 77 /lib/libm.so.6".to_owned(),
                0,
                0,
                false,
            ),
            (
                "1000-3000 r--s 0 08:01 77 /var/cache/index".to_owned(),
                0,
                0,
                false,
            ),
            (
                "1000-3000 ---p 0 08:01 77 /lib/libm.so.6".to_owned(),
                0,
                0,
                false,
            ),
            ("1000-3000 r--p 0 00:00 0".to_owned(), 0, 0, false),
            ("1000-3000 r-xp 0 00:00 0 [vdso]".to_owned(), 0, 0, false),
        ];
        for (header, anonymous, swap, expect) in rows {
            let one = mapping(&header, anonymous, swap);
            let expect = expect.then_some(0x1000..0x3000);
            assert_eq!(unwritten(&one).into_iter().next(), expect, "{one}");
        }
    }

    #[test]
    fn each_mapping_is_judged_by_its_own_lines() {
        let all = [
            mapping("1000-3000 r-xp 0 08:01 7 /a", 0, 0),
            mapping("3000-4000 r--p 0 08:01 7 /a", 4, 0),
            mapping("4000-6000 r--p 0 08:01 8 /b", 0, 0),
        ];
        assert_eq!(unwritten(&all.concat()), [0x1000..0x3000, 0x4000..0x6000]);
    }
}
