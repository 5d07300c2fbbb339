//! What tools may change here by the settings, for commands that start a program of this machine without an app.

use std::path::PathBuf;

use haft_sandbox::Places;

use crate::config::Settings;
use crate::site::Site;
use crate::wiring::{network, surroundings};

/// Returns the state folder, and the folders that tools may change: the workspace, `sandbox.write`, what servers write, packages of commands. Nothing
/// in them is started outside a jail. A folder counts whether or not it may be named in the settings, or is there.
pub fn changeable(at: &Site, settings: &Settings) -> Places {
    let by_servers = surroundings::written_by_servers(at, settings);
    let folders = [at.workspace.clone()]
        .into_iter()
        .chain(network::packages(at))
        .chain(surroundings::written_as_named(at, settings))
        .chain(by_servers.map(|(_, folder)| folder));
    Places::declared(
        [at.home.path().to_owned()],
        folders.collect::<Vec<PathBuf>>(),
    )
}
