//! The log's own small files: opened without following a link, read within a limit, replaced whole.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::plain_file;

/// Opens a regular file, never the target of a link in its place, nor a pipe.
pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = options
        .custom_flags(flags.bits().cast_signed())
        .mode(0o600)
        .open(path);
    let file = opened.map_err(|error| named(path, &error))?;
    if !file.metadata()?.is_file() {
        return Err(named(path, &io::Error::other("it is not a regular file")));
    }
    Ok(file)
}

/// Reads a file of at most `most` bytes; `None` if there is none.
pub(super) fn read(path: &Path, most: u64) -> io::Result<Option<String>> {
    let file = match open(path, OpenOptions::new().read(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    plain_file::bounded(file, most)
        .map(Some)
        .map_err(|error| named(path, &error))
}

/// Replaces a file; readers see the old text or the new one. It is on disk before the new name counts.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    plain_file::write_private(path, text).map_err(|error| named(path, &error))
}

/// Appends to a file, which it creates, and waits until that is on disk.
pub(super) fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut file = open(path, OpenOptions::new().append(true).create(true))?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_data());
    written.map_err(|error| named(path, &error))
}

/// Returns the last byte of a file; `None` if it is empty.
pub(super) fn last_byte(file: &mut File) -> io::Result<Option<u8>> {
    use std::io::{Seek as _, SeekFrom};
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut byte = [0];
    file.read_exact(&mut byte)?;
    Ok(Some(byte[0]))
}

/// Returns the error with the file's name.
pub(super) fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
