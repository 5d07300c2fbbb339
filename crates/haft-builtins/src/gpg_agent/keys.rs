//! `GpgKeys`: which of the user's keys a command can have sign, by the listings of the user's own gpg.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::text::visible;
use haft_sandbox::HostProgram;
use tokio::sync::Mutex;

use super::{GpgAgent, upstream};

/// How long what gpg said is taken for true.
const HOLDS: Duration = Duration::from_secs(300);
/// Maximum time that one of the programs takes.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a listing and of the public keys, in bytes.
const MAX_LISTING: usize = 256 << 10;
const MAX_PUBLIC: usize = 1 << 20;
/// Maximum number of keys.
const MAX_KEYS: usize = 16;
/// Maximum number of names, and length of one.
const MAX_NAMES: usize = 4;
const MAX_NAME: usize = 200;
/// Maximum length of a key's user id as it is shown.
const MAX_USER: usize = 80;

/// A key that signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SigningKey {
    /// The fingerprint of the key that it is, or belongs to.
    pub(super) primary: String,
    /// Its user.
    pub(super) user: String,
    /// What the agent calls it.
    pub(super) grip: String,
    /// Whether its signatures can also make other keys the user's own.
    pub(super) certifies: bool,
}

/// The keys of some names.
#[derive(Debug)]
pub(super) struct GpgKeys {
    pub(super) keys: Vec<SigningKey>,
    /// The public keys, as gpg exports them.
    pub(super) public: Vec<u8>,
    /// The agent's restricted socket.
    pub(super) agent: PathBuf,
    /// The agent's version.
    pub(super) version: String,
}

type KnownKeys = (Instant, Arc<GpgKeys>);

/// What is known of keys, by their names.
#[derive(Debug, Default)]
pub(super) struct KeyCache(Mutex<HashMap<Vec<String>, KnownKeys>>);

impl GpgAgent {
    /// Returns the keys of these names that can sign.
    pub(super) async fn keys(&self, names: &[String]) -> Result<Arc<GpgKeys>, String> {
        let mut known = self.known.0.lock().await;
        known.retain(|_, (since, _)| since.elapsed() < HOLDS);
        if let Some((_, found)) = known.get(names) {
            return Ok(Arc::clone(found));
        }
        // What does not work may work for the next command: a key was made, an agent started.
        let found = Arc::new(self.find(names).await?);
        known.insert(names.to_owned(), (Instant::now(), Arc::clone(&found)));
        Ok(found)
    }

    async fn find(&self, names: &[String]) -> Result<GpgKeys, String> {
        let names: Vec<&str> = names.iter().map(String::as_str).take(MAX_NAMES).collect();
        if let Some(name) = names.iter().find(|name| !is_name(name)) {
            return Err(format!("{name:?} names no key"));
        }
        self.launch().await?;
        let list = ["--with-colons", "--with-keygrip", "--list-secret-keys"];
        let list = gpg_words(&list, &names);
        let listing = self.run(&self.gpg, list, MAX_LISTING).await;
        let listing = listing.map_err(|why| {
            format!("{why}; git's `user.signingkey` must name a key whose secret half gpg has")
        })?;
        let keys = read(&String::from_utf8_lossy(&listing));
        if keys.is_empty() {
            return Err(format!(
                "gpg has no key of {} that signs, and cannot also log in",
                names.join(", ")
            ));
        }
        let mut prints: Vec<&str> = keys.iter().map(|key| &*key.primary).collect();
        prints.dedup();
        let export = ["--export-options", "export-minimal", "--export"];
        let export = gpg_words(&export, &prints);
        let public = self.run(&self.gpg, export, MAX_PUBLIC).await?;
        let dirs = vec!["--list-dirs".to_owned(), "agent-extra-socket".to_owned()];
        let agent = self.run(&self.gpgconf, dirs, MAX_LISTING).await?;
        let agent = String::from_utf8(agent).unwrap_or_default();
        let agent = PathBuf::from(agent.trim_end());
        let version = upstream::version(&agent, self.patience).await;
        let version = version.map_err(|error| error.in_words(self.patience))?;
        Ok(GpgKeys {
            keys,
            public,
            agent,
            version,
        })
    }

    /// Starts the user's agent if it does not run: as the user would, since it outlives haft. What [`run`](Self::run) started would find an
    /// empty workspace for as long as it runs.
    async fn launch(&self) -> Result<(), String> {
        let own = self.variables.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        let own = self.places.own_variables(own);
        let program = HostProgram::new(&self.gpgconf, "gpgconf")
            .with_arguments(["--launch", "gpg-agent"])
            .with_variables(own.iter().map(|(name, value)| (&**name, &**value)));
        let ran = tokio::task::spawn_blocking(move || program.run(PROGRAM_TIMEOUT)).await;
        match ran {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("`gpgconf --launch gpg-agent` failed ({status})")),
            Ok(Err(error)) => Err(format!(
                "`gpgconf --launch gpg-agent` does not work: {error}"
            )),
            Err(_) => Err("`gpgconf` could not be started".to_owned()),
        }
    }

    /// Runs a program of the user's and returns what it prints.
    async fn run(
        &self,
        program: &Path,
        words: Vec<String>,
        most: usize,
    ) -> Result<Vec<u8>, String> {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let shown = format!("{name} {}", words.join(" "));
        let (program, name) = (program.to_owned(), name.into_owned());
        let (variables, places) = (self.variables.clone(), self.places.clone());
        let run = move || -> io::Result<Vec<u8>> {
            let pairs = variables.iter();
            let pairs = pairs.map(|(name, value)| (name.as_str(), value.as_str()));
            let program = HostProgram::new(&program, &name)
                .with_arguments(words)
                .with_variables(pairs)
                .with_question(Vec::new(), &places);
            program.output(PROGRAM_TIMEOUT, most)
        };
        match tokio::task::spawn_blocking(run).await {
            Ok(Ok(printed)) if printed.len() < most => Ok(printed),
            Ok(Ok(_)) => Err(format!("`{shown}` prints {most} bytes or more")),
            Ok(Err(error)) => Err(format!("`{shown}` does not work: {error}")),
            Err(_) => Err(format!("`{shown}` could not be started")),
        }
    }
}

/// Returns gpg's words for these keys.
fn gpg_words(options: &[&str], names: &[&str]) -> Vec<String> {
    let quiet = [
        "--batch",
        "--no-tty",
        "--no-auto-check-trustdb",
        "--no-autostart",
    ];
    let words = quiet.iter().chain(options).chain(&["--"]).chain(names);
    words.map(|word| (*word).to_owned()).collect()
}

/// Whether a text can be the name of a key: an id, an address or a user.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || " .,@<>_+!()'-".contains(c);
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(plain)
}

/// A key of a listing, until the next one begins.
#[derive(Debug, Default)]
struct ListedKey {
    is_primary: bool,
    signs: bool,
    certifies: bool,
    print: String,
    grip: String,
}

/// Reads a listing (`doc/DETAILS` of `GnuPG`). A key that can also log in at servers is left out: its signatures might.
fn read(listing: &str) -> Vec<SigningKey> {
    let (mut listed, mut users) = (Vec::<ListedKey>::new(), Vec::<(usize, String)>::new());
    for line in listing.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        match field(0) {
            kind @ ("sec" | "ssb") => {
                let valid = !matches!(field(1), "r" | "e" | "i" | "d") && field(14) != "#";
                let can = |what: char| field(11).contains(what);
                listed.push(ListedKey {
                    is_primary: kind == "sec",
                    signs: valid && can('s') && !can('a'),
                    certifies: can('c'),
                    ..ListedKey::default()
                });
            }
            "fpr" => set(&mut listed, |key| &mut key.print, field(9)),
            "grp" => set(&mut listed, |key| &mut key.grip, field(9)),
            "uid" => users.push((listed.len(), field(9).to_owned())),
            _ => {}
        }
    }
    let mut keys = Vec::new();
    let (mut primary, mut user) = (String::new(), String::new());
    for (at, key) in listed.into_iter().enumerate() {
        if key.is_primary {
            primary.clone_from(&key.print);
            // The users of a key follow it, before its subkeys.
            let own = users.iter().find(|(after, _)| *after == at + 1);
            user = own.map_or_else(
                || "without a user".to_owned(),
                |(_, name)| display_name(name),
            );
        }
        if key.signs && !key.grip.is_empty() && !primary.is_empty() && keys.len() < MAX_KEYS {
            keys.push(SigningKey {
                primary: primary.clone(),
                user: user.clone(),
                grip: key.grip,
                certifies: key.certifies,
            });
        }
    }
    keys
}

/// Sets a number of the last key, if it is one.
fn set(listed: &mut [ListedKey], member: impl Fn(&mut ListedKey) -> &mut String, text: &str) {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(key) = listed.last_mut().filter(|_| is_number) {
        *member(key) = text.to_ascii_uppercase();
    }
}

/// Returns a user id as it is shown; listings escape as C does.
fn display_name(name: &str) -> String {
    let name = name.replace("\\x3a", ":").replace("\\x5c", "\\");
    let short: String = name.chars().take(MAX_USER).collect();
    visible::line(&short)
}

#[cfg(test)]
mod tests {
    use super::{SigningKey, is_name, read};

    const PRIMARY: &str = "9DB163C3B5314D2D1519C27D20327E4CAFE743A3";

    #[test]
    fn only_keys_that_sign_and_cannot_log_in_are_offered() {
        let listing = |caps: &str, sub: &str, token: &str, validity: &str| {
            format!(
                "sec:{validity}:255:22:20327E4CAFE743A3:1796008629:::u:::{caps}:::{token}:::23::0:\nfpr:::::::::{PRIMARY}:\n\
                 grp:::::::::AA01:\nuid:u::::1::86AE::Ann \\x3a <ann@example.com>::::::::::0:\n\
                 ssb:u:255:18:AEC737EDF3701BAF:1796008629::::::{sub}:::+:::23:\nfpr:::::::::BB:\ngrp:::::::::AA02:\n"
            )
        };
        let key = |grip: &str, certifies| SigningKey {
            primary: PRIMARY.into(),
            user: "Ann : <ann@example.com>".into(),
            grip: grip.into(),
            certifies,
        };
        for (text, expect) in [
            (listing("scESC", "e", "+", "u"), vec![key("AA01", true)]),
            (listing("cSC", "s", "#", "u"), vec![key("AA02", false)]),
            (
                listing("scSC", "s", "+", "u"),
                vec![key("AA01", true), key("AA02", false)],
            ),
            // It could be a login at a server; the next is revoked; of the last only a stub is here.
            (listing("scaSC", "a", "+", "u"), vec![]),
            (listing("scSC", "e", "+", "r"), vec![]),
            (listing("scSC", "e", "#", "u"), vec![]),
            (String::new(), vec![]),
            ("sec\nfpr\ngrp:::\nuid".to_owned(), vec![]),
        ] {
            assert_eq!(read(&text), expect, "{text}");
        }
    }

    #[test]
    fn a_name_of_a_key_is_no_option_and_no_path() {
        for (name, expect) in [
            ("20327E4CAFE743A3", true),
            ("0x20327E4CAFE743A3!", true),
            ("Ann <ann@example.com>", true),
            ("/home/ann/.ssh/id.pub", false),
            ("key::ssh-ed25519 AAAA", false),
            ("", false),
            ("a\nb", false),
        ] {
            assert_eq!(is_name(name), expect, "{name}");
        }
    }
}
