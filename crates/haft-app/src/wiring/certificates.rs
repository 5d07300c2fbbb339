//! The certificates that programs run by commands trust: those that this machine trusts.
//!
//! Tunnels stay encrypted end to end, so programs see the servers' own certificates, or those of a company's proxy. Many ship their own
//! list of authorities; these variables point them to the machine's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_builtins::command::AUTHORITY_VARIABLES;
use haft_sandbox::Places;

use crate::environment::Environment;

/// Where systems keep the list of all authorities.
const BUNDLE_FILES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];
/// The folders with certificates that every jail shows.
const SHOWN_FOLDERS: &[&str] = &["/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/pki", "/usr"];

/// The variables that commands get.
pub(crate) struct CertificateVariables {
    pub(crate) all: BTreeMap<String, String>,
    /// Those that the environment sets to another list than the machine's.
    pub(crate) own: BTreeMap<String, String>,
    /// The files outside the system's folders that they name.
    pub(crate) files: Vec<PathBuf>,
}

/// Returns the variables that commands get.
pub(crate) fn variables(environment: &Environment, places: &Places) -> CertificateVariables {
    let mut files = Vec::new();
    let mut shown = |path: &Path| {
        if !path.is_file() {
            return false;
        }
        if SHOWN_FOLDERS.iter().any(|folder| path.starts_with(folder)) {
            return true;
        }
        let real = places.check_shown(path, false);
        let shown = real.is_ok();
        files.extend(real);
        shown
    };
    let mut named = |name: &str| environment.folder(name).filter(|path| shown(path));
    let own: Vec<_> = AUTHORITY_VARIABLES.iter().map(|name| named(name)).collect();
    let system = BUNDLE_FILES
        .iter()
        .map(PathBuf::from)
        .find(|path| path.is_file());
    let all = own[0].clone().or_else(|| system.clone());
    let named =
        |name: &str, path: Option<PathBuf>| Some((name.to_owned(), path?.to_str()?.to_owned()));
    let each = || AUTHORITY_VARIABLES.iter().zip(&own);
    CertificateVariables {
        all: each()
            .filter_map(|(name, own)| named(name, own.clone().or_else(|| all.clone())))
            .collect(),
        own: each()
            // The machine's own list is what they get anyway.
            .filter_map(|(name, own)| {
                named(name, own.clone().filter(|own| Some(own) != system.as_ref()))
            })
            .collect(),
        files,
    }
}
