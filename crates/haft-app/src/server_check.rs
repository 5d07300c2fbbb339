//! Checks the servers that settings name, before these settings are written.

use crate::config::Settings;
use crate::problem::Problem;
use crate::site::Site;
use crate::wiring::parts::CommandConfinement;
use crate::wiring::policy;
use crate::wiring::servers::ServerInputs;

/// Checks the servers in the settings; starts none of them.
///
/// # Errors
/// A command, an address, a header or a folder is invalid.
pub fn check(at: &Site, settings: &Settings) -> Result<(), Problem> {
    let ground = policy::build(at, settings, &[])?;
    let confined = CommandConfinement::of(at, settings, &ground)?;
    let basis = ServerInputs {
        at,
        settings,
        ground: &ground,
        confined: &confined,
        redactor: &settings.redactor,
    };
    basis.servers(None).map(drop)
}
