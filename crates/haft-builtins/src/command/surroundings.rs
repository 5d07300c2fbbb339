//! `CommandSurroundings`: what a command can see besides the workspace, its caches and the system's programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use haft::permission::Condition;
use haft_sandbox::{CommandSpec, Toolchains};

use crate::files::sha256;
use crate::gpg_agent::GpgAgent;
use crate::host_sockets::HostSockets;
use crate::ssh_agent::SshAgent;

/// Maximum length of a list of paths or names in a condition, in bytes; a longer one is stated by its digest.
const MAX_LIST: usize = 600;
/// Length of such a digest, in hexadecimal digits.
const DIGEST: usize = 16;

/// The additions of the settings and the user's toolchains to every command. The default adds nothing.
#[derive(Debug, Clone, Default)]
pub struct CommandSurroundings {
    /// The user's toolchains, read-only and on `PATH`.
    pub toolchains: Arc<Toolchains>,
    /// Additional absolute paths that commands may read.
    pub read: Vec<PathBuf>,
    /// Additional absolute folders that commands may change, immediately and without approval of each change.
    pub write: Vec<PathBuf>,
    /// Program folders, first on `PATH`. Those outside the system's folders are in `read` too.
    pub path: Vec<PathBuf>,
    /// Environment variables; those of a call take precedence.
    pub env: BTreeMap<String, String>,
    /// Variables that name this machine's certificates; those of the settings and of a call take precedence.
    pub certificates: BTreeMap<String, String>,
    /// Those of them that the environment of haft's process has: stated to the user, since another process may have others.
    pub own_certificates: BTreeMap<String, String>,
    /// The sockets of the host's services that commands with a network may ask to connect to.
    pub sockets: HostSockets,
    /// The user's ssh-agent, which commands with a network may ask to sign.
    pub agent: Option<SshAgent>,
    /// The user's gpg-agent, which they may ask to sign too.
    pub gpg: Option<GpgAgent>,
}

impl CommandSurroundings {
    /// Returns what the settings add to every command: an approval holds for exactly this. Variables may hold secrets: their values are
    /// stated by a digest.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let paths = |paths: &[PathBuf]| listed(paths.iter().map(|path| path.display().to_string()));
        let variables = listed(self.env.iter().map(|(name, value)| {
            let digest = sha256(value.as_bytes());
            format!("{name} (sha256 {})", &digest[..DIGEST])
        }));
        let certificates = self.own_certificates.iter();
        let certificates = listed(certificates.map(|(name, path)| format!("{name}={path}")));
        let all = [
            // Before the files that they name.
            (Condition::CERTIFICATES, certificates),
            (Condition::VARIABLES, variables),
            ("also changes", paths(&self.write)),
            ("also reads", paths(&self.read)),
            ("programs first from", paths(&self.path)),
            ("sockets", paths(self.sockets.paths())),
        ];
        let set = all.into_iter();
        set.filter_map(|(name, value)| Some(Condition::new(name, value?)))
            .collect()
    }

    /// Adds the surroundings to a command.
    pub fn add_to(&self, spec: &mut CommandSpec) {
        spec.mounts.toolchains = Some(Arc::clone(&self.toolchains));
        spec.mounts.read_only.extend(self.read.iter().cloned());
        spec.mounts.read_write.extend(self.write.iter().cloned());
        spec.path_first.extend(self.path.iter().cloned());
        for (name, value) in self.env.iter().chain(&self.certificates) {
            spec.env.entry(name.into()).or_insert(value.into());
        }
    }
}

/// Returns a list as text; `None` if it is empty.
fn listed(all: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = all.collect();
    let text = all.join(", ");
    match all.len() {
        0 => None,
        _ if text.len() <= MAX_LIST => Some(text),
        count => {
            let digest = sha256(all.join("\0").as_bytes());
            Some(format!("{count} (sha256 {})", &digest[..DIGEST]))
        }
    }
}
