//! Measures the memory of a network namespace's netlink sockets, which neither a control group nor the kernel's description of sockets counts.

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::LazyLock;

use super::proc_file;

/// The list of the netlink sockets in the reader's network namespace.
const LIST: &str = "self/net/netlink";
/// The memory of an empty socket.
const SOCKET: u64 = 2 << 10;
/// The columns with the bytes that were received and not read, and that are being sent.
const HELD: [usize; 2] = [4, 5];

/// Returns whether this kernel lists the sockets: only then may a command create some.
pub(crate) fn is_counted() -> bool {
    static COUNTED: LazyLock<bool> = LazyLock::new(|| Path::new("/proc").join(LIST).exists());
    *COUNTED
}

/// Returns the bytes that all netlink sockets of this process's network namespace hold together.
pub(super) fn held(proc: &OwnedFd) -> u64 {
    let Some(list) = proc_file(proc, LIST) else {
        return 0;
    };
    let lines = BufReader::new(list).lines().map_while(Result::ok);
    lines.skip(1).map(|line| SOCKET + of_socket(&line)).sum()
}

fn of_socket(line: &str) -> u64 {
    let columns: Vec<_> = line.split_ascii_whitespace().collect();
    let number = |column: usize| columns.get(column)?.parse::<u64>().ok();
    HELD.into_iter().filter_map(number).sum()
}

#[cfg(test)]
mod tests {
    use super::of_socket;

    #[test]
    fn a_line_of_the_list_tells_what_its_socket_holds() {
        let line = "0000000000000000 0   2861       00000000 212480   768      0     2        0        18446";
        assert_eq!(of_socket(line), 213_248);
        assert_eq!(of_socket("0 0 0"), 0);
        assert_eq!(of_socket(""), 0);
    }
}
