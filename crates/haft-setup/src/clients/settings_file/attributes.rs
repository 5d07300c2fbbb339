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
    if (was.uid(), was.gid()) != (is.uid(), is.gid()) {
        fchown(draft, Some(was.uid()), Some(was.gid())).map_err(|e| {
            let owner = format!("its owner, user {} and group {}", was.uid(), was.gid());
            failed(&owner, &e)
        })?;
    }
    let kept = names(old)?;
    // A folder may have given the draft access rights that the file does not have.
    let given = names(draft)?.into_iter();
    for name in given.filter(|name| is_kept(name) && !kept.contains(name)) {
        rustix::fs::fremovexattr(draft, &*name).map_err(|e| not_kept(&name, e))?;
    }
    rustix::fs::fchmod(draft, Mode::from_raw_mode(was.mode() & 0o7777))?;
    for name in &kept {
        let copied = copy(old, draft, name);
        if is_kept(name) {
            copied.map_err(|e| not_kept(name, e))?;
        }
    }
    Ok(())
}

/// Whether the attribute is the user's, or says who has access. Of the others, the system labels a new file by itself and lets few users
/// do it, or they are views of what the file system knows; what can be copied of them is.
fn is_kept(name: &[u8]) -> bool {
    let access: [&[u8]; 2] = [b"system.posix_acl_access", b"system.nfs4_acl"];
    name.starts_with(b"user.") || access.contains(&name)
}

fn not_kept(name: &[u8], errno: Errno) -> io::Error {
    failed(
        &format!("its attribute {}", String::from_utf8_lossy(name)),
        &errno.into(),
    )
}

fn failed(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot keep {what}: {error}"))
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
