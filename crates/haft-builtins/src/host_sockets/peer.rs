//! Who serves a socket, by the kernel's word for the connection that was made.

use std::fs;
use std::path::Path;

use tokio::net::UnixStream;

use super::powers;

/// The user of the system's own services.
const ROOT: u32 = 0;

/// Says why commands must not talk to the program at the other end, as the rest of a sentence that begins with the socket. What cannot be told is
/// refused.
pub(super) fn check(stream: &UnixStream) -> Result<(), String> {
    let unknown =
        || "is served by a program that cannot be told, perhaps of another container".to_owned();
    let peer = stream.peer_cred().map_err(|_| unknown())?;
    let pid = peer.pid().filter(|pid| *pid > 0).ok_or_else(unknown)?;
    if Ok(pid) == i32::try_from(std::process::id()) {
        return Err("is one of haft: it decides what commands may do".to_owned());
    }
    let names = names_of(pid);
    if names.is_empty() {
        return Err(unknown());
    }
    if let Some(why) = names.iter().find_map(|name| powers::of_program(name)) {
        return Err(format!("{why} (its program: {})", names.join(", ")));
    }
    if peer.uid() == ROOT && !rustix::process::getuid().is_root() {
        return Err(format!(
            "is served by root ({}): what it does for whoever asks is not known",
            names.join(", ")
        ));
    }
    Ok(())
}

/// Returns the names of a process: its own, and that of its program where this user may know it.
fn names_of(pid: i32) -> Vec<String> {
    let at = Path::new("/proc").join(pid.to_string());
    let own = fs::read_to_string(at.join("comm"));
    let own = own.ok().map(|name| name.trim().to_owned());
    let program = fs::read_link(at.join("exe")).ok();
    let program = program.and_then(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some(name.trim_end_matches(" (deleted)").to_owned())
    });
    let mut names: Vec<String> = own.into_iter().chain(program).collect();
    names.retain(|name| !name.is_empty());
    names.dedup();
    names
}
