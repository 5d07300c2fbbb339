//! Where installers put packages, where programs find them, and the registries they use.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_sandbox::CommandSpec;
use sha2::{Digest, Sha256};

use haft::text::hex;

/// Hosts of package registries, which `sandbox.network = "install"` allows in addition to `sandbox.allow_hosts`.
pub const REGISTRIES: &[&str] = &[
    // Python
    "pypi.org",
    "files.pythonhosted.org",
    // npm
    "registry.npmjs.org",
    // Rust
    "crates.io",
    "index.crates.io",
    "static.crates.io",
    // Ruby
    "rubygems.org",
    "index.rubygems.org",
    // Go
    "proxy.golang.org",
    "sum.golang.org",
    // Java
    "repo.maven.apache.org",
    "repo1.maven.org",
    // Debian and Ubuntu
    "deb.debian.org",
    "security.debian.org",
    "archive.ubuntu.com",
    "security.ubuntu.com",
    "ports.ubuntu.com",
];

/// Number of digest bytes in the name of a workspace's packages folder.
const NAME_DIGEST_BYTES: usize = 8;

/// Returns the packages folder of a workspace, below the user's cache.
pub fn packages_of(cache: &Path, workspace: &Path) -> PathBuf {
    let digest = Sha256::digest(workspace.as_os_str().as_bytes());
    cache
        .join("haft/packages")
        .join(hex(&digest[..NAME_DIGEST_BYTES]))
}

/// Variables that make installers put everything below the folder.
const INSTALLING: &[(&str, &str)] = &[
    ("HOME", ""),
    ("PIP_TARGET", "python"),
    ("PIP_CACHE_DIR", ".cache/pip"),
    ("NPM_CONFIG_PREFIX", "npm"),
    ("NPM_CONFIG_CACHE", ".cache/npm"),
    ("CARGO_HOME", "cargo"),
    ("GEM_HOME", "gems"),
    ("GOPATH", "go"),
];

/// Variables that make installers ask no questions and skip optional requests.
const QUIET_VARIABLES: &[(&str, &str)] = &[
    ("PIP_NO_INPUT", "1"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
    ("NPM_CONFIG_AUDIT", "false"),
    ("NPM_CONFIG_FUND", "false"),
    ("GOFLAGS", "-modcacherw"),
    ("GOTOOLCHAIN", "local"),
];

/// Variables that tell programs where packages are, each with the folders it lists if they exist.
const INSTALLED: &[(&str, &[&str])] = &[
    ("PYTHONPATH", &["python"]),
    ("NODE_PATH", &["node_modules", "npm/lib/node_modules"]),
    ("GEM_PATH", &["gems"]),
];

/// The same for build tools that would download into these folders: only set if they cannot.
const OFFLINE: &[(&str, &[&str])] = &[("CARGO_HOME", &["cargo"]), ("GOPATH", &["go"])];

/// Folders of installed programs. They come after the system's on `PATH`, so that they never replace a system program.
const PROGRAMS: &[&str] = &[
    "python/bin",
    "node_modules/.bin",
    "npm/bin",
    "cargo/bin",
    "gems/bin",
    "go/bin",
];

/// Sets up a command that installs packages in the packages folder.
pub(crate) fn set_up_install(spec: &mut CommandSpec) {
    let folder = spec.cwd.clone();
    for (name, place) in INSTALLING {
        let path = if place.is_empty() {
            folder.clone()
        } else {
            folder.join(place)
        };
        set(spec, name, path.into());
    }
    for (name, value) in QUIET_VARIABLES {
        set(spec, name, value.into());
    }
    spec.path
        .extend(PROGRAMS.iter().map(|place| folder.join(place)));
}

/// Sets up a command that uses the packages in this folder.
pub(crate) fn set_up_use(spec: &mut CommandSpec, folder: &Path, offline: bool) {
    let lists = INSTALLED.iter().chain(OFFLINE.iter().filter(|_| offline));
    for (name, places) in lists {
        let there = existing(folder, places);
        if let Ok(list) = std::env::join_paths(&there)
            && !there.is_empty()
        {
            set(spec, name, list);
        }
    }
    spec.path.extend(existing(folder, PROGRAMS));
}

fn existing(folder: &Path, places: &[&str]) -> Vec<PathBuf> {
    let places = places.iter().map(|place| folder.join(place));
    places.filter(|place| place.is_dir()).collect()
}

fn set(spec: &mut CommandSpec, name: &str, value: OsString) {
    spec.env.entry(name.into()).or_insert(value);
}

#[cfg(test)]
mod tests {
    use super::REGISTRIES;
    use crate::proxy::AllowList;

    #[test]
    fn every_registry_can_be_allowed() {
        assert_eq!(AllowList::read(REGISTRIES).unwrap().len(), REGISTRIES.len());
    }
}
