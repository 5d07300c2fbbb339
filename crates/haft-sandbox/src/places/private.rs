//! Paths in a home that no command sees, whatever the settings say: credentials, and files that other programs trust.

use std::path::Path;

use haft_shell::STARTUP_FILES;

use super::{PathPurpose, Places};

/// Credentials, relative to a home folder. A folder that contains one of these is not shown either.
const CREDENTIALS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".config/gh",
    ".config/gcloud",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".local/share/keyrings",
    ".password-store",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
];

/// Files that run or configure programs outside the jail, relative to a home folder, in addition to the files that shells read when
/// they start. [`hidden_folder`] refuses all hidden names; for the names here, the paths that they link to are refused too.
const TRUSTED: &[&str] = &[
    ".gitconfig",
    ".config",
    ".local/bin",
    ".local/share",
    ".cargo",
    ".rustup",
    ".nvm",
    ".volta",
    ".pyenv",
    ".asdf",
    ".bun",
    ".deno",
    ".sdkman",
    ".claude",
    ".cursor",
    ".vscode",
    ".codex",
    ".gemini",
    "bin",
    "go/bin",
];

impl Places {
    /// Checks a canonical path that settings name; the error says why it is not shown. Stricter for paths to be changed.
    pub(super) fn check_private(&self, real: &Path, wanted: PathPurpose<'_>) -> Result<(), String> {
        for home in &self.homes {
            let named = |name: &&&str| {
                let path = home.join(name);
                let path = path.canonicalize().unwrap_or(path);
                real.starts_with(&path) || path.starts_with(real) && path.exists()
            };
            if let Some(name) = CREDENTIALS.iter().find(named) {
                return Err(format!("holds credentials, or lies among them (~/{name})"));
            }
            if wanted != PathPurpose::Changed {
                continue;
            }
            if let Some(name) = hidden_folder(home, real) {
                return Err(outside_the_jail(&name));
            }
            let mut trusted = STARTUP_FILES.iter().chain(TRUSTED);
            if let Some(name) = trusted.find(named) {
                return Err(outside_the_jail(name));
            }
        }
        if wanted == PathPurpose::Changed && super::is_system(real) {
            return Err("is the system's own".to_owned());
        }
        Ok(())
    }
}

/// Returns the hidden folder of a home in which a path lies. Programs keep files there that they run or obey, under names of
/// their own, so no list could be complete. Paths below `.cache` are exempt: settings name caches there one by one.
fn hidden_folder(home: &Path, real: &Path) -> Option<String> {
    let mut names = real.strip_prefix(home).ok()?.components();
    let name = names.next()?.as_os_str().to_string_lossy().into_owned();
    let is_cache = name == ".cache" && names.next().is_some();
    (name.starts_with('.') && !is_cache).then_some(name)
}

fn outside_the_jail(name: &str) -> String {
    format!("is, or holds, what programs outside the jail run or are configured by (~/{name})")
}
