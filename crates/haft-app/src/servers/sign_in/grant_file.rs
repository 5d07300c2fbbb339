//! `GrantFile`: the grants of one server and one principal on the disk, encrypted with a key that is kept beside them.
//!
//! The key keeps a copy of the file alone, a backup of it or a slip of the finger, from being of use. Whoever can read all of the
//! state folder can read the grants.

use std::io;
use std::path::PathBuf;

use haft::call::Principal;
use haft::text::hex;
use haft_mcp::client::oauth::{Grants, Vault};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

use crate::home::Home;
use crate::plain_file;

/// The largest file that is read.
const LARGEST: u64 = 4 << 20;
/// The length of a key, in bytes.
const KEY: usize = 32;

/// Where the grants of a server and a principal are.
#[derive(Debug)]
pub(crate) struct GrantFile {
    folder: PathBuf,
    file: PathBuf,
    /// What the file is for: the grants of another one do not open.
    bound: String,
}

impl GrantFile {
    pub(crate) fn new(home: &Home, server: &str, principal: &Principal) -> Self {
        let (tenant, subject) = (&principal.tenant, &principal.subject);
        let bound = format!("haft grants 1\n{server}\n{tenant}\n{subject}");
        let folder = home.join("mcp").join("grants");
        let name = hex(&Sha256::digest(bound.as_bytes())[..16]);
        Self {
            file: folder.join(name),
            folder,
            bound,
        }
    }

    /// Forgets the grants; whether there were some.
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

    /// The key, made where there is none.
    fn key(&self) -> io::Result<LessSafeKey> {
        let place = self.folder.join("key");
        let text = match plain_file::read(&place, 1024) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                plain_file::private_folder(&self.folder)?;
                let made = plain_file::random_hex(KEY)?;
                match plain_file::create_private(&place, &made) {
                    Ok(()) => made,
                    // Another process was first.
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
                "{} is no key: remove it, and sign in again",
                place.display()
            ))
        };
        let bytes = unhex(text.trim()).filter(|bytes| bytes.len() == KEY);
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes.ok_or_else(wrong)?);
        key.map(LessSafeKey::new).map_err(|_| wrong())
    }

    fn open(&self, text: &str) -> io::Result<Grants> {
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

    fn seal(&self, grants: &Grants) -> io::Result<String> {
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
    fn load(&self) -> Result<Grants, String> {
        match plain_file::read(&self.file, LARGEST) {
            Ok(text) => self.open(&text).map_err(|e| e.to_string()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Grants::default()),
            Err(e) => Err(format!("read {}: {e}", self.file.display())),
        }
    }

    fn save(&self, grants: &Grants) -> Result<(), String> {
        let sealed = self.seal(grants);
        let saved = sealed.and_then(|text| plain_file::write_private(&self.file, &text));
        saved.map_err(|e| format!("keep the grants in {}: {e}", self.file.display()))
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

    use super::*;

    #[test]
    fn grants_open_for_their_server_and_principal_alone_and_stand_nowhere_as_text() {
        let home = Home::temporary().unwrap();
        let (ann, bob) = (Principal::local("ann"), Principal::local("bob"));
        let url = "https://tickets.example/mcp";
        let file = GrantFile::new(&home, url, &ann);
        assert_eq!(file.load().unwrap(), Grants::default());
        let text = r#"{"current":"https://login.example","by_issuer":{"https://login.example":{
            "issuer":"https://login.example","resource":"https://tickets.example/mcp",
            "client":{"id":"haft","secret":"hush","in_body":false,"redirect_uri":null},
            "token_endpoint":"https://login.example/token","access_token":"very-secret",
            "refresh_token":null,"expires":null,"scopes":[]}}}"#;
        let grants: Grants = serde_json::from_str(text).unwrap();
        file.save(&grants).unwrap();
        assert_eq!(file.load().unwrap(), grants);
        assert!(!format!("{grants:?}").contains("secret"), "{grants:?}");
        let written = std::fs::read_to_string(&file.file).unwrap();
        assert!(!written.contains("secret") && !written.contains("login.example"));
        for path in [&file.file, &file.folder.join("key")] {
            let mode = std::fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        }
        for (server, principal) in [(url, &bob), ("https://other.example/mcp", &ann)] {
            let other = GrantFile::new(&home, server, principal);
            assert_eq!(other.load().unwrap(), Grants::default());
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
}
