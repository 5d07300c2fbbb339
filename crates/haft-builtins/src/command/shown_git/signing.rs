//! What git's settings say about signatures: which keys make them, and by which programs.

use std::path::Path;

use haft::workspace::git_file::Setting;
use haft::workspace::git_settings::{FoundSetting, GitSettingsReader, expand, read_bounded};

/// Maximum size of a file with a public key, in bytes.
const MAX_KEY: u64 = 16 << 10;
/// How the text of a public key of ssh begins.
const KEYS: [&str; 4] = ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"];
/// How git marks a key that is given itself.
const ITSELF: &str = "key::";

/// Returns a key that signs as commands get it: the name of a gpg key, or a public key. Commands do not see the file of a key of ssh, so they
/// get what its public half holds.
pub(super) fn passed_key(value: &str, home: Option<&Path>) -> Option<String> {
    if let Some(key) = value.strip_prefix(ITSELF) {
        return is_public_key(key).then(|| value.to_owned());
    }
    if is_public_key(value) || is_gpg_name(value) {
        return Some(value.to_owned());
    }
    let at = expand(value, home).filter(|at| at.is_absolute())?;
    let public = match at.extension() {
        Some(end) if end == "pub" => at,
        _ => {
            let mut name = at.into_os_string();
            name.push(".pub");
            name.into()
        }
    };
    let text = read_bounded(&public, MAX_KEY).ok()?;
    let key = text.trim();
    is_public_key(key).then(|| format!("{ITSELF}{key}"))
}

/// Whether a program, as a setting names it, is the one of this name.
pub(super) fn is_program(value: &str, name: &str) -> bool {
    let own = Path::new(value).file_name();
    own.is_some_and(|own| own == name || name == "gpg" && own == "gpg2")
}

/// Returns the names of the gpg keys with which git signs in a repository: the user's, and the repository's own.
pub(super) fn gpg_names(settings: &[FoundSetting], repository: Option<&Path>) -> Vec<String> {
    // Its includes may be commands' own files; a key that they name has to be named in the file itself.
    let mut own = GitSettingsReader::new(None, &|_| false);
    if let Some(repository) = repository {
        own.read(&repository.join("config"));
    }
    let last = |all: &[FoundSetting], section: &str, key: &str| {
        let is_it = |setting: &Setting| {
            (&*setting.section, setting.name.is_some(), &*setting.key) == (section, false, key)
        };
        let found = all.iter().rev().find(|found| is_it(&found.setting));
        found.map(|found| found.setting.value.clone())
    };
    let of = |section: &str, key: &str| {
        [
            last(own.settings(), section, key),
            last(settings, section, key),
        ]
    };
    let format = of("gpg", "format").into_iter().flatten().next();
    if format.is_some_and(|format| format != "openpgp") {
        return Vec::new();
    }
    let keys = of("user", "signingkey").into_iter().flatten();
    let mut names: Vec<String> = keys.filter(|key| is_gpg_name(key)).collect();
    names.dedup();
    names
}

fn is_public_key(text: &str) -> bool {
    KEYS.iter().any(|start| text.starts_with(start)) && !text.contains(['\n', '\r'])
}

/// Whether a text names a key of gpg rather than a file.
fn is_gpg_name(text: &str) -> bool {
    let is_path = text.contains('/') || text.starts_with('~');
    !text.is_empty() && !is_path && !text.contains("::") && !is_public_key(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use haft::workspace::git_settings::GitSettingsReader;

    use super::{gpg_names, is_program, passed_key};

    #[test]
    fn a_key_is_passed_by_its_name_or_itself() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(".ssh")).unwrap();
        fs::write(home.path().join(".ssh/id.pub"), "ssh-ed25519 AAAA ann\n").unwrap();
        fs::write(home.path().join(".ssh/two.pub"), "ssh-rsa A\nssh-rsa B\n").unwrap();
        fs::write(home.path().join("secret"), "-----BEGIN PRIVATE KEY-----\n").unwrap();
        let itself = "key::ssh-ed25519 AAAA ann";
        for (value, expect) in [
            ("20327E4CAFE743A3", Some("20327E4CAFE743A3")),
            ("Ann <ann@example.com>", Some("Ann <ann@example.com>")),
            (itself, Some(itself)),
            ("ssh-ed25519 AAAA", Some("ssh-ed25519 AAAA")),
            ("~/.ssh/id.pub", Some(itself)),
            ("~/.ssh/id", Some(itself)),
            ("~/.ssh/two", None),
            ("~/secret", None),
            ("~/absent", None),
            ("key::x", None),
            ("", None),
        ] {
            let passed = passed_key(value, Some(home.path()));
            assert_eq!(passed.as_deref(), expect, "{value}");
        }
        for (value, name, expect) in [
            ("gpg", "gpg", true),
            ("/usr/bin/gpg2", "gpg", true),
            ("/usr/bin/op-ssh-sign", "ssh-keygen", false),
            ("gpg --x", "gpg", false),
        ] {
            assert_eq!(is_program(value, name), expect, "{value}");
        }
    }

    #[test]
    fn keys_of_gpg_are_those_that_git_would_sign_with() {
        let folder = tempfile::tempdir().unwrap();
        let user = folder.path().join("user");
        for (text, own, expect) in [
            ("", "", &[][..]),
            ("[user]\nsigningkey = AA\n", "", &["AA"]),
            (
                "[user]\nsigningkey = AA\n",
                "[user]\nsigningkey = BB\n",
                &["BB", "AA"],
            ),
            ("[user]\nsigningkey = AA\n[gpg]\nformat = ssh\n", "", &[]),
            (
                "[user]\nsigningkey = AA\n[gpg]\nformat = ssh\n",
                "[gpg]\nformat = openpgp\n",
                &["AA"],
            ),
            ("[user]\nsigningkey = ~/.ssh/id.pub\n", "", &[]),
            ("[user]\nsigningkey = key::ssh-rsa A\n", "", &[]),
        ] {
            fs::write(&user, text).unwrap();
            fs::write(folder.path().join("config"), own).unwrap();
            let mut reader = GitSettingsReader::new(None, &|_| false);
            reader.read(&user);
            let names = gpg_names(reader.settings(), Some(folder.path()));
            assert_eq!(names, expect, "{text} {own}");
        }
    }
}
