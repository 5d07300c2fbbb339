//! Adds haft to the settings of a client, and removes it: the rest of the file stays the same, byte for byte.

use crate::clients::settings_file::EditableFile;
use crate::clients::{ClientProgram, InstallScope, Launch};
use crate::problem::Problem;
use crate::site::SetupSite;

use entry::ClientEntry;
use record::SettingsBackup;
pub use target::InstallEdit;
use target::InstallTarget;

mod digest;
mod entry;
pub mod exclude;
pub(crate) mod execute;
mod plan;
pub(crate) mod record;
mod reverse;
pub(crate) mod step;
pub(crate) mod target;

/// Adds haft to the settings of a client; `dry_run` only returns what the file would become.
///
/// # Errors
/// A [`Problem`] if the client has no such file, or the file cannot be read, parsed or written.
pub fn install(
    client: &'static ClientProgram,
    level: InstallScope,
    site: SetupSite<'_>,
    launch: &Launch,
    dry_run: bool,
) -> Result<InstallEdit, Problem> {
    let put = |text: &str| entry::put(client, text, launch);
    target(client, level, site)?.put_in(site.home, &put, dry_run)
}

/// Removes haft from the settings of a client. A file that haft wrote and nobody changed is restored to what it was; from any other file,
/// only haft's entry is removed.
///
/// # Errors
/// As for [`install`].
pub fn uninstall(
    client: &'static ClientProgram,
    level: InstallScope,
    site: SetupSite<'_>,
    dry_run: bool,
) -> Result<InstallEdit, Problem> {
    target(client, level, site)?.take_out(site.home, dry_run)
}

fn target(
    client: &'static ClientProgram,
    level: InstallScope,
    site: SetupSite<'_>,
) -> Result<InstallTarget, Problem> {
    let named = client.file(level, site)?;
    let advice = format!(
        "paste the settings yourself: haft mcp snippet {}",
        client.name
    );
    let within = (level == InstallScope::Project).then_some(site.workspace);
    let file = EditableFile::locate(&named, client.name, advice, within)?;
    let original = SettingsBackup::of(site.home, &file.path);
    Ok(InstallTarget {
        content: Box::new(ClientEntry(client)),
        file,
        original,
    })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod trial;
