//! What a file keeps when its text is replaced: owner, mode and extended attributes, among which are access control lists.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt as _, fchown};

use rustix::fs::{Mode, XattrFlags};
use rustix::io::Errno;

/// Maximum size in bytes of the names of a file's attributes, and of the value of one: the limit of Linux.
const MAX_BYTES: usize = 64 * 1024;

/// Gives a draft the owner, mode and attributes of the file that it replaces.
///
/// # Errors
/// Something cannot be kept: the text says what.
pub(super) fn keep(old: &File, draft: &File) -> io::Result<()> {
    let (was, is) = (old.metadata()?, draft.metadata()?);
    let failed = |what: String, errno: io::Error| {
        io::Error::new(errno.kind(), format!("cannot keep {what}: {errno}"))
    };
    if (was.uid(), was.gid()) != (is.uid(), is.gid()) {
        fchown(draft, Some(was.uid()), Some(was.gid())).map_err(|e| {
            let owner = format!("its owner, user {} and group {}", was.uid(), was.gid());
            failed(owner, e)
        })?;
    }
    rustix::fs::fchmod(draft, Mode::from_raw_mode(was.mode() & 0o7777))?;
    for name in names(old)? {
        let copied = copy(old, draft, &name);
        // The system labels a new file by itself, and lets few users do it.
        if !name.starts_with(b"security.") && !name.starts_with(b"trusted.") {
            let shown = String::from_utf8_lossy(&name).into_owned();
            copied.map_err(|e| failed(format!("its attribute {shown}"), e.into()))?;
        }
    }
    Ok(())
}

/// Returns the names of a file's attributes.
fn names(file: &File) -> io::Result<Vec<Vec<u8>>> {
    let mut names = vec![0; MAX_BYTES];
    let length = match rustix::fs::flistxattr(file, &mut names[..]) {
        Ok(length) => length,
        // The file system has none.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => 0,
        Err(e) => return Err(e.into()),
    };
    let names = names.get(..length).unwrap_or_default();
    let names = names.split(|byte| *byte == 0);
    Ok(names
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

fn copy(old: &File, draft: &File, name: &[u8]) -> rustix::io::Result<()> {
    let mut value = vec![0; MAX_BYTES];
    let length = rustix::fs::fgetxattr(old, name, &mut value[..])?;
    let value = value.get(..length).unwrap_or_default();
    rustix::fs::fsetxattr(draft, name, value, XattrFlags::empty())
}
