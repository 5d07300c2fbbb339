//! The home folders of the user that this process runs as.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::way::resolved;

/// Maximum number of bytes read of the user database.
const USERS: u64 = 4 << 20;

/// Returns the folder that `HOME` names and the one in the user database, as canonical paths. A process
/// without `HOME` still has a home.
pub(super) fn folders() -> Vec<PathBuf> {
    let named = std::env::var_os("HOME").map(PathBuf::from);
    let mut users = Vec::new();
    if let Ok(file) = File::open("/etc/passwd") {
        let _ = file.take(USERS).read_to_end(&mut users);
    }
    let listed = of_user(&users, rustix::process::getuid().as_raw());
    resolved(
        named
            .into_iter()
            .chain(listed)
            .filter(|home| home.is_absolute()),
    )
}

/// Returns the home of a user from the text of a user database.
fn of_user(users: &[u8], user: u32) -> Option<PathBuf> {
    let user = user.to_string();
    users.split(|byte| *byte == b'\n').find_map(|line| {
        let fields: Vec<_> = line.split(|byte| *byte == b':').collect();
        let (number, home) = (fields.get(2)?, fields.get(5)?);
        (*number == user.as_bytes()).then(|| Path::new(OsStr::from_bytes(home)).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::of_user;

    #[test]
    fn a_users_home_is_found_in_the_database() {
        let users = b"root:x:0:0:root:/root:/bin/sh\nbroken\nu:x:1000:1000::/srv/u:/bin/sh\n";
        assert_eq!(of_user(users, 1000).as_deref(), Some(Path::new("/srv/u")));
        assert_eq!(of_user(users, 0).as_deref(), Some(Path::new("/root")));
        assert_eq!(of_user(users, 7), None);
    }
}
