//! `LoginSecret`: the header of a credential, and the patterns by which its value is found where a server gives it back.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::LoginForm;
use super::pattern::SecretPatterns;

/// Minimum length of a value, in bytes: a shorter one would be found, and masked, in ordinary text.
const MIN_VALUE: usize = 8;
/// Maximum length of a value.
const MAX_VALUE: usize = 8 << 10;

/// A credential's value, in memory for one command.
pub(crate) struct LoginSecret {
    name: HeaderName,
    value: HeaderValue,
    /// What must not come back.
    patterns: SecretPatterns,
}

impl fmt::Debug for LoginSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginSecret")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl LoginSecret {
    /// Reads what a program printed. The error says what is wrong with it, without any of it.
    pub(super) fn read(form: &LoginForm, printed: &[u8]) -> Result<Self, String> {
        let text =
            std::str::from_utf8(printed).map_err(|_| "printed something that is not text")?;
        match form {
            LoginForm::Header {
                name,
                before,
                after,
            } => {
                let value = plain(text.trim())?;
                let mut secrets = vec![value.to_owned()];
                // A name and a password, of which the password alone is a secret, too.
                if before.trim().eq_ignore_ascii_case("basic")
                    && let Ok(decoded) = STANDARD.decode(value)
                    && let Ok(decoded) = String::from_utf8(decoded)
                {
                    // A token may also stand in place of the name.
                    if let Some((name, password)) = decoded.split_once(':') {
                        let secret = if password.is_empty() { name } else { password };
                        secrets.push(long(secret)?.to_owned());
                    }
                    secrets.push(decoded);
                }
                Self::new(name.clone(), &format!("{before}{value}{after}"), &secrets)
            }
            LoginForm::Git => {
                let member = |wanted: &str| {
                    let mut pairs = text.lines().rev().filter_map(|line| line.split_once('='));
                    pairs
                        .find(|(name, _)| *name == wanted)
                        .map(|(_, value)| value)
                };
                let user = member("username").unwrap_or_default();
                let password = member("password").unwrap_or_default();
                if password.is_empty() {
                    return Err("knows no password for this host: log in once in a terminal (git fetch, or the helper's own login)".to_owned());
                }
                long(password)?;
                let basic = STANDARD.encode(format!("{user}:{password}"));
                Self::new(
                    AUTHORIZATION,
                    &format!("Basic {basic}"),
                    &[password.to_owned(), basic.clone()],
                )
            }
        }
    }

    fn new(name: HeaderName, value: &str, secrets: &[String]) -> Result<Self, String> {
        let mut value =
            HeaderValue::from_str(value).map_err(|_| "printed something that is no header")?;
        value.set_sensitive(true);
        Ok(Self {
            name,
            value,
            patterns: SecretPatterns::new(secrets.iter().map(String::as_str)),
        })
    }

    /// Puts the header into a request, in place of one that the command sent.
    pub(super) fn put_into(&self, headers: &mut HeaderMap) {
        headers.insert(self.name.clone(), self.value.clone());
    }

    pub(super) const fn patterns(&self) -> &SecretPatterns {
        &self.patterns
    }
}

/// Returns a secret if it is long enough to be known again.
fn long(secret: &str) -> Result<&str, String> {
    if secret.len() >= MIN_VALUE {
        return Ok(secret);
    }
    Err(format!(
        "gives a secret of {} bytes, which is not used: with fewer than {MIN_VALUE}, haft would take ordinary words of answers for it and mask them; \
         use a token in place of a short password",
        secret.len()
    ))
}

/// Returns the value if it is one line of plain characters.
fn plain(text: &str) -> Result<&str, String> {
    if text.is_empty() {
        return Err("printed nothing: run it once in a terminal to log in".to_owned());
    }
    if long(text)?.len() > MAX_VALUE {
        return Err(format!(
            "printed {} bytes, which is no credential",
            text.len()
        ));
    }
    if !text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() || byte == b' ')
    {
        return Err("printed more than one line".to_owned());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use hyper::HeaderMap;

    use super::super::pattern::SearchLists;
    use super::{LoginForm, LoginSecret};

    /// Returns the header, or the error.
    fn read(form: &LoginForm, printed: &str) -> String {
        match LoginSecret::read(form, printed.as_bytes()) {
            Ok(secret) => {
                assert!(!format!("{secret:?}").contains("s3cret"));
                let mut headers = HeaderMap::new();
                headers.insert("authorization", "Bearer of-the-command".parse().unwrap());
                secret.put_into(&mut headers);
                let header = headers.get("authorization").unwrap();
                assert!(header.is_sensitive());
                header.to_str().unwrap().to_owned()
            }
            Err(why) => {
                assert!(!why.contains("s3cret"), "{why}");
                why
            }
        }
    }

    #[test]
    fn each_part_of_a_login_is_a_secret() {
        let git = "protocol=https\nusername=ann\npassword=s3cret-key\n";
        for (form, printed) in [
            (
                LoginForm::header("Authorization: Basic {}").unwrap(),
                "YW5uOnMzY3JldC1rZXk=",
            ),
            (LoginForm::Git, git),
        ] {
            let secret = LoginSecret::read(&form, printed.as_bytes()).unwrap();
            for text in ["s3cret-key", "YW5uOnMzY3JldC1rZXk=", "czNjcmV0LWtleQ"] {
                let mut lists = SearchLists::default();
                let found = secret.patterns().end_of(text.as_bytes(), 0, &mut lists);
                assert!(found.is_some(), "{form:?}: {text}");
            }
        }
    }

    #[test]
    fn what_a_program_prints_becomes_the_header_or_a_clear_error() {
        let token = LoginForm::header("Authorization: token {}").unwrap();
        let basic = LoginForm::header("Authorization: Basic {}").unwrap();
        for (form, printed, expect) in [
            (&token, "s3cret-token\n", "token s3cret-token"),
            (&token, "", "printed nothing"),
            (&token, "\n", "printed nothing"),
            (&token, "s3cret\nmore\n", "more than one line"),
            // Words of ordinary text would be masked: `main` breaks git's own protocol.
            (&token, "abc", "a secret of 3 bytes, which is not used"),
            (&token, "s3cret1", "a secret of 7 bytes, which is not used"),
            (
                &LoginForm::Git,
                "protocol=https\nusername=ann\npassword=main\n",
                "a secret of 4 bytes, which is not used",
            ),
            (
                &basic,
                "YW5uOm1haW4=",
                "a secret of 4 bytes, which is not used",
            ),
            (
                &LoginForm::Git,
                "protocol=https\nusername=ann\npassword=s3cret-pass\n",
                "Basic YW5uOnMzY3JldC1wYXNz",
            ),
            (
                &LoginForm::Git,
                "protocol=https\nusername=ann\n",
                "knows no password",
            ),
            (&LoginForm::Git, "", "knows no password"),
        ] {
            let read = read(form, printed);
            assert!(read.contains(expect), "{printed:?}: {read}");
        }
        assert!(LoginSecret::read(&token, b"\xff\xfe\xfd\xfc").is_err());
    }
}
