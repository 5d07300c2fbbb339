//! How a plan arrives: as one frame over a socket, which the command's input may follow.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use super::plan::SupervisorPlan;
use crate::report::{SetupFailure, receive_file, step};
use crate::sys;

/// Reads a frame without its length.
pub(super) fn read(mut link: &UnixStream) -> Result<Vec<u8>, SetupFailure> {
    let mut length = [0; 4];
    let mut read = || -> io::Result<Vec<u8>> {
        link.read_exact(&mut length)?;
        let length = u64::from(u32::from_ne_bytes(length));
        let mut bytes = Vec::new();
        link.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(step("read the plan"))
}

/// Writes what [`read`] has read.
pub(super) fn write(mut link: &UnixStream, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    link.write_all(&length.to_ne_bytes())?;
    link.write_all(bytes)
}

/// Decodes the plan of a frame.
pub(super) fn decode(bytes: &[u8]) -> Result<SupervisorPlan, SetupFailure> {
    SupervisorPlan::decode(bytes).ok_or(SetupFailure {
        step: "understand the plan".into(),
        errno: libc::EBADMSG,
    })
}

/// Takes the command's standard input, if it follows the plan; the command inherits it from here.
pub(super) fn take_input(plan: &SupervisorPlan, link: &UnixStream) -> Result<(), SetupFailure> {
    if !plan.converses {
        return Ok(());
    }
    let input = receive_file(link).map_err(step("take the input"))?;
    sys::replace(input.as_fd(), 0).map_err(step("take the input"))
}
