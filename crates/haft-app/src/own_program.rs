//! `own_program`: the path of the running program, for code that starts it again.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The suffix that Linux appends to the path of a program whose file was replaced or removed (`proc_pid_exe(5)`).
const DELETED_SUFFIX: &[u8] = b" (deleted)";

/// Returns the program's file: the new one if it was replaced while running; `None` if there is no file any more.
pub(crate) fn own_program() -> Option<PathBuf> {
    replacement_path(&env::current_exe().ok()?)
}

fn replacement_path(path: &Path) -> Option<PathBuf> {
    let bytes = path.as_os_str().as_bytes();
    let written = bytes.strip_suffix(DELETED_SUFFIX).unwrap_or(bytes);
    let path = PathBuf::from(OsStr::from_bytes(written));
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_replaced_program_is_the_file_that_took_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("haft");
        let replaced = folder.path().join("haft (deleted)");
        // A file whose real name ends like that is not haft's program.
        fs::write(&replaced, "").unwrap();
        assert_eq!(replacement_path(&replaced), None);
        fs::write(&program, "").unwrap();
        assert_eq!(replacement_path(&replaced), Some(program.clone()));
        assert_eq!(replacement_path(&program), Some(program));
    }
}
