//! `GrantFile`: the grants of one server and one principal on disk, encrypted with a key that is stored next to them.
//!
//! The key makes a copy of the file alone useless, for example in a backup or one made by mistake. Anyone who can read the whole state
//! folder can read the grants.

use std::any::Any;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::PathBuf;

use haft::audit::redact::Redactor;
use haft::call::Principal;
use haft::future::BoxFuture;
use haft::text::hex;
use haft_mcp::client::oauth::{OAuthGrants, Vault};
use parking_lot::Mutex;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

use crate::home::Home;
use crate::plain_file;

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The length of a key, in bytes.
const KEY_BYTES: usize = 32;
/// Minimum length of a token that is hidden in records, in bytes: an authorization server that issues a common word as a token could
/// otherwise remove that word from them everywhere.
const MIN_REDACTED: usize = 16;

/// The stored grants of a server and a principal. All tokens that it loads or saves are hidden in records.
#[derive(Debug)]
pub(crate) struct GrantFile {
    folder: PathBuf,
    file: PathBuf,
    /// What the file is bound to: it does not open as the file of another server or principal.
    bound: String,
    redactor: Redactor,
    /// The secrets of the latest grants, and of those before: records that contain the latter are still being written.
    seen: Mutex<[Vec<String>; 2]>,
}

impl GrantFile {
    pub(crate) fn new(
        home: &Home,
        server: &str,
        principal: &Principal,
        redactor: &Redactor,
    ) -> Self {
        let (tenant, subject) = (&principal.tenant, &principal.subject);
        let bound = format!("haft grants 1\n{server}\n{tenant}\n{subject}");
        let folder = home.join("mcp").join("grants");
        let name = hex(&Sha256::digest(bound.as_bytes())[..16]);
        Self {
            file: folder.join(name),
            folder,
            bound,
            redactor: redactor.clone(),
            seen: Mutex::default(),
        }
    }

    /// Hides the tokens of these grants in everything written from now on.
    fn redact_tokens(&self, grants: &OAuthGrants) {
        let now = grants
            .secrets()
            .filter(|secret| secret.len() >= MIN_REDACTED);
        let now: Vec<String> = now.map(str::to_owned).collect();
        let mut seen = self.seen.lock();
        if now == seen[0] {
            return;
        }
        let before = std::mem::replace(&mut seen[0], now);
        seen[1] = before;
        self.redactor
            .learn_for(&self.file.to_string_lossy(), seen.iter().flatten());
    }

    /// Removes the grants; returns whether there were any.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub(crate) fn remove(&self) -> io::Result<bool> {
        match std::fs::remove_file(&self.file) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Returns the key, creating it if there is none.
    fn key(&self) -> io::Result<LessSafeKey> {
        let place = self.folder.join("key");
        let text = match plain_file::read(&place, 1024) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                plain_file::private_folder(&self.folder)?;
                let made = plain_file::random_hex(KEY_BYTES)?;
                match plain_file::create_private(&place, &made) {
                    Ok(()) => made,
                    // Another process was faster.
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                        plain_file::read(&place, 1024)?
                    }
                    Err(e) => return Err(e),
                }
            }
            text => text?,
        };
        let wrong = || {
            io::Error::other(format!(
                "{} does not hold a key: remove it, and sign in again",
                place.display()
            ))
        };
        let bytes = unhex(text.trim()).filter(|bytes| bytes.len() == KEY_BYTES);
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes.ok_or_else(wrong)?);
        key.map(LessSafeKey::new).map_err(|_| wrong())
    }

    fn open(&self, text: &str) -> io::Result<OAuthGrants> {
        let wrong = || {
            let file = self.file.display();
            io::Error::other(format!(
                "{file} does not open with the key beside it: `haft mcp logout NAME` forgets it"
            ))
        };
        let mut bytes = unhex(text.trim()).ok_or_else(wrong)?;
        if bytes.len() < NONCE_LEN {
            return Err(wrong());
        }
        let mut sealed = bytes.split_off(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(&bytes).map_err(|_| wrong())?;
        let aad = Aad::from(self.bound.as_bytes());
        let opened = self.key()?.open_in_place(nonce, aad, &mut sealed);
        serde_json::from_slice(opened.map_err(|_| wrong())?).map_err(|_| wrong())
    }

    fn seal(&self, grants: &OAuthGrants) -> io::Result<String> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let mut sealed = serde_json::to_vec(grants).map_err(io::Error::other)?;
        let aad = Aad::from(self.bound.as_bytes());
        let nonce_used = Nonce::assume_unique_for_key(nonce);
        self.key()?
            .seal_in_place_append_tag(nonce_used, aad, &mut sealed)
            .map_err(|_| io::Error::other("encrypt the grants"))?;
        Ok(format!("{}{}\n", hex(&nonce), hex(&sealed)))
    }
}

impl Vault for GrantFile {
    fn load(&self) -> Result<OAuthGrants, String> {
        match plain_file::read(&self.file, MAX_FILE_BYTES) {
            Ok(text) => {
                let grants = self.open(&text).map_err(|e| e.to_string())?;
                self.redact_tokens(&grants);
                Ok(grants)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(OAuthGrants::default()),
            Err(e) => Err(format!("read {}: {e}", self.file.display())),
        }
    }

    fn save(&self, grants: &OAuthGrants) -> Result<(), String> {
        self.redact_tokens(grants);
        let sealed = self.seal(grants);
        let saved = sealed.and_then(|text| plain_file::write_private(&self.file, &text));
        saved.map_err(|e| format!("keep the grants in {}: {e}", self.file.display()))
    }

    fn version(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        plain_file::stamp(&self.file).hash(&mut hasher);
        hasher.finish()
    }

    fn hold(&self) -> BoxFuture<'_, Result<Box<dyn Any + Send>, String>> {
        Box::pin(async move {
            let file = self.file.clone();
            let held = tokio::task::spawn_blocking(move || plain_file::lock_folder(&file)).await;
            let held = held.map_err(io::Error::other).flatten();
            held.map(|held| Box::new(held) as Box<dyn Any + Send>)
                .map_err(|e| format!("hold {}: {e}", self.file.display()))
        })
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn grants_open_for_their_server_and_principal_alone_and_stand_nowhere_as_text() {
        let home = Home::temporary().unwrap();
        let (ann, bob) = (Principal::local("ann"), Principal::local("bob"));
        let url = "https://tickets.example/mcp";
        let redactor = Redactor::default();
        let file = GrantFile::new(&home, url, &ann, &redactor);
        assert_eq!(file.load().unwrap(), OAuthGrants::default());
        let before = file.version();
        let text = r#"{"current":"https://login.example","by_issuer":{"https://login.example":{
            "issuer":"https://login.example","resource":"https://tickets.example/mcp",
            "client":{"id":"haft","secret":"hush","in_body":false,"redirect_uri":null},
            "token_endpoint":"https://login.example/token","access_token":"very-secret",
            "refresh_token":null,"expires":null,"scopes":[]}}}"#;
        let grants: OAuthGrants = serde_json::from_str(text).unwrap();
        file.save(&grants).unwrap();
        assert_ne!(file.version(), before);
        assert_eq!(file.load().unwrap(), grants);
        assert!(!format!("{grants:?}").contains("secret"), "{grants:?}");
        let written = std::fs::read_to_string(&file.file).unwrap();
        assert!(!written.contains("secret") && !written.contains("login.example"));
        for path in [&file.file, &file.folder.join("key")] {
            let mode = std::fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        }
        for (server, principal) in [(url, &bob), ("https://other.example/mcp", &ann)] {
            let other = GrantFile::new(&home, server, principal, &redactor);
            assert_eq!(other.load().unwrap(), OAuthGrants::default());
            std::fs::copy(&file.file, &other.file).unwrap();
            assert!(
                other.load().unwrap_err().contains("does not open"),
                "{server}"
            );
        }
        for bad in [
            "",
            "zz",
            "00",
            &written[2..],
            &format!("{}00", written.trim()),
        ] {
            std::fs::write(&file.file, bad).unwrap();
            assert!(file.load().is_err(), "{bad}");
        }
        assert!(file.remove().unwrap() && !file.remove().unwrap());
    }

    /// Returns grants with these tokens.
    fn grants(access: &str, renewal: &str) -> OAuthGrants {
        let text = format!(
            r#"{{"current":"a","by_issuer":{{"a":{{"issuer":"a","resource":"r",
            "client":{{"id":"haft","secret":"client-hush-0123456789","in_body":false,"redirect_uri":null}},
            "token_endpoint":"t","access_token":"{access}","refresh_token":"{renewal}",
            "expires":null,"scopes":[]}}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn tokens_are_hidden_in_records_whoever_got_them_and_old_ones_are_forgotten() {
        let home = Home::temporary().unwrap();
        let ann = Principal::local("ann");
        let said = "token-1-0123456789 renewal-1-0123456789 token-2-0123456789 renewal-2-0123456789 token-3-0123456789 client-hush-0123456789";
        let (first, other) = (Redactor::default(), Redactor::default());
        let file = GrantFile::new(&home, "https://a.example", &ann, &first);
        file.save(&grants("token-1-0123456789", "renewal-1-0123456789"))
            .unwrap();
        // Another process reads what this one stored.
        let reader = GrantFile::new(&home, "https://a.example", &ann, &other);
        reader.load().unwrap();
        let hidden = "[redacted] [redacted] token-2-0123456789 renewal-2-0123456789 token-3-0123456789 [redacted]";
        assert_eq!(first.redact(said), hidden);
        assert_eq!(other.redact(said), hidden);
        file.save(&grants("token-2-0123456789", "renewal-2-0123456789"))
            .unwrap();
        assert_eq!(
            first.redact(said),
            "[redacted] [redacted] [redacted] [redacted] token-3-0123456789 [redacted]"
        );
        file.save(&grants("token-3-0123456789", "renewal-2-0123456789"))
            .unwrap();
        assert_eq!(
            first.redact(said),
            "token-1-0123456789 renewal-1-0123456789 [redacted] [redacted] [redacted] [redacted]"
        );
        file.save(&grants("read_file", "secrets")).unwrap();
        assert_eq!(first.redact("read_file secrets"), "read_file secrets");
    }

    #[tokio::test]
    async fn who_renews_a_token_keeps_other_processes_from_it_meanwhile() {
        let home = Home::temporary().unwrap();
        let ann = Principal::local("ann");
        let [one, two] = [(); 2].map(|()| {
            Arc::new(GrantFile::new(
                &home,
                "https://a.example",
                &ann,
                &Redactor::default(),
            ))
        });
        assert!(one.hold().await.is_err(), "there is nothing to hold");
        one.save(&grants("token-1-0123456789", "renewal-1-0123456789"))
            .unwrap();
        let held = one.hold().await.unwrap();
        let late = Arc::clone(&two);
        let waiting = tokio::spawn(async move {
            let _held = late.hold().await.unwrap();
            late.load().unwrap()
        });
        one.save(&grants("token-2-0123456789", "renewal-2-0123456789"))
            .unwrap();
        drop(held);
        assert_eq!(
            waiting.await.unwrap(),
            grants("token-2-0123456789", "renewal-2-0123456789")
        );
    }
}
