//! Datagrams between this process and its interpreters, with a descriptor where one is expected.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use tokio::io::Interest;

use crate::sys;

/// Creates a pair of sockets: this process's end, which never blocks, and the other's.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((ours, theirs))
}

/// Waits until the socket is readable.
///
/// Registers it for this wait only: the socket may outlive the runtime of this call.
pub(super) async fn readable(socket: BorrowedFd<'_>) -> io::Result<()> {
    let watch = sys::watch_for(socket, Interest::READABLE)?;
    watch.readable().await?.retain_ready();
    Ok(())
}

/// Sends a datagram with a descriptor.
pub(super) fn send(socket: &OwnedFd, bytes: &[u8], file: BorrowedFd<'_>) -> io::Result<()> {
    let files = [file];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let part = [IoSlice::new(bytes)];
    sendmsg(socket, &part, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives the next datagram that our own code at the other end sent, with the descriptor that came with it. An
/// empty one means that the socket was closed.
pub(super) async fn receive(
    socket: &OwnedFd,
    bytes: &mut [u8],
) -> io::Result<(usize, Option<OwnedFd>)> {
    loop {
        match try_receive(socket, bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            done => return done,
        }
        readable(socket.as_fd()).await?;
    }
}

fn try_receive(socket: &OwnedFd, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut part = [IoSliceMut::new(bytes)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let got = recvmsg(socket, &mut part, &mut control, flags)?;
    let mut file = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            file = files.last();
        }
    }
    Ok((got.bytes, file))
}
