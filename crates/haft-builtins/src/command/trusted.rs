//! Makes a command's programs trust haft's certificate, besides all that this machine trusts: in the command's jail alone.
//!
//! Where the machine's list of authorities lies in `/etc`, the command sees a longer one in its place; another list gets a made file, and
//! the variables that name it name that. A list that the call or the settings choose stays as it is.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use haft_sandbox::CommandSpec;

/// Where systems keep the list of all authorities.
const SYSTEM_LISTS: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];
/// Variables that name a file of authorities: for OpenSSL and uv, Python's requests, pip, Node, cargo, git, curl, Deno.
pub const AUTHORITY_VARIABLES: [&str; 8] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
    "GIT_SSL_CAINFO",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
];
const ETC: &str = "/etc";
/// Where made lists lie.
const MADE: &str = "/etc/haft";
/// Maximum size of a list that is read; those of systems have some 220 KB.
const MAX_LIST: u64 = 4 << 20;

/// A list of authorities of this machine, and where the command sees the longer one.
struct MadeList {
    source: PathBuf,
    shown: PathBuf,
}

/// Adds the certificate to the lists that the command's programs read. `own` are the variables that haft sets by itself.
pub(super) fn trust(spec: &mut CommandSpec, own: &BTreeMap<String, String>, certificate: &str) {
    let mut lists = Vec::new();
    for name in SYSTEM_LISTS {
        if let Some(source) = file(name).filter(|source| source.starts_with(ETC)) {
            path_in_jail(&mut lists, source);
        }
    }
    for name in AUTHORITY_VARIABLES {
        let chosen = spec
            .env
            .get(OsStr::new(name))
            .and_then(|value| value.to_str());
        let source = match chosen {
            Some(path) if own.get(name).is_some_and(|own| own == path) => file(path),
            // The call or the settings chose it.
            Some(_) => continue,
            None => lists.first().map(|list: &MadeList| list.source.clone()),
        };
        if let Some(source) = source {
            spec.env
                .insert(name.into(), path_in_jail(&mut lists, source).into());
        }
    }
    for list in lists {
        if let Some(mut text) = read(&list.source) {
            text.push(b'\n');
            text.extend(certificate.as_bytes());
            spec.mounts.etc.push((list.shown, text));
        }
    }
}

/// Returns the file that a path leads to.
fn file(path: &str) -> Option<PathBuf> {
    Path::new(path).canonicalize().ok()
}

/// Returns where the longer list is shown: in place of the shorter if that lies in `/etc`.
fn path_in_jail(lists: &mut Vec<MadeList>, source: PathBuf) -> PathBuf {
    if let Some(known) = lists.iter().find(|list| list.source == source) {
        return known.shown.clone();
    }
    let shown = if source.starts_with(ETC) {
        source.clone()
    } else {
        Path::new(MADE).join(format!("authorities-{}.pem", lists.len()))
    };
    lists.push(MadeList {
        source,
        shown: shown.clone(),
    });
    shown
}

/// Reads a list; `None` if it is not a file, or too long.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut list = Vec::new();
    File::open(path)
        .ok()?
        .take(MAX_LIST + 1)
        .read_to_end(&mut list)
        .ok()?;
    (list.len() as u64 <= MAX_LIST).then_some(list)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsStr;
    use std::fs;

    use haft_sandbox::CommandSpec;

    use super::trust;

    #[test]
    fn each_list_that_haft_chose_gets_the_certificate_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = folder.path().canonicalize().unwrap().join(name);
            fs::write(&path, name).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (company, chosen) = (at("company"), at("chosen"));
        let own = BTreeMap::from([
            ("SSL_CERT_FILE".to_owned(), company.clone()),
            ("CURL_CA_BUNDLE".to_owned(), company.clone()),
        ]);
        let mut spec = CommandSpec::line("true", "/");
        for (name, value) in [("SSL_CERT_FILE", &company), ("CURL_CA_BUNDLE", &chosen)] {
            spec.env.insert(name.into(), value.into());
        }
        trust(&mut spec, &own, "THE CERTIFICATE");
        let variable = |name: &str| {
            spec.env
                .get(OsStr::new(name))
                .map(|value| value.to_str().unwrap())
        };
        assert_eq!(variable("CURL_CA_BUNDLE"), Some(&*chosen));
        let made = variable("SSL_CERT_FILE").unwrap();
        assert!(made.starts_with("/etc/haft/authorities-"), "{made}");
        let (_, list) = spec
            .mounts
            .etc
            .iter()
            .find(|(path, _)| path.as_os_str() == made)
            .unwrap();
        assert_eq!(list, b"company\nTHE CERTIFICATE");
        for (_, list) in &spec.mounts.etc {
            assert!(list.ends_with(b"\nTHE CERTIFICATE"));
        }
    }
}
