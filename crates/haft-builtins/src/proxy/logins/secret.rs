//! `LoginSecret`: the header of a credential, and the texts by which a server could give its value back.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::LoginForm;

/// Minimum length of a value: a shorter one would be found in every answer.
const MIN_VALUE: usize = 4;
/// Maximum length of a value.
const MAX_VALUE: usize = 8 << 10;

/// A credential's value, in memory for one command.
pub(crate) struct LoginSecret {
    name: HeaderName,
    value: HeaderValue,
    /// What must not come back, the longest first.
    texts: Vec<Vec<u8>>,
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
        let text = std::str::from_utf8(printed).map_err(|_| "printed something that is no text")?;
        match form {
            LoginForm::Header {
                name,
                before,
                after,
            } => {
                let value = plain(text.trim())?;
                Self::new(name.clone(), &format!("{before}{value}{after}"), &[value])
            }
            LoginForm::Git => {
                let member = |wanted: &str| {
                    let pairs = text.lines().filter_map(|line| line.split_once('='));
                    pairs
                        .filter(|(name, _)| *name == wanted)
                        .map(|(_, value)| value)
                        .last()
                };
                let user = member("username").unwrap_or_default();
                let password = member("password").unwrap_or_default();
                if password.is_empty() {
                    return Err("knows no password for this host: log in once in a terminal (git fetch, or the helper's own login)".to_owned());
                }
                let basic = STANDARD.encode(format!("{user}:{password}"));
                Self::new(
                    AUTHORIZATION,
                    &format!("Basic {basic}"),
                    &[password, &basic],
                )
            }
        }
    }

    fn new(name: HeaderName, value: &str, secrets: &[&str]) -> Result<Self, String> {
        let mut value =
            HeaderValue::from_str(value).map_err(|_| "printed something that is no header")?;
        value.set_sensitive(true);
        let encoded = secrets.iter().map(|text| STANDARD_NO_PAD.encode(text));
        let plain = secrets.iter().map(|text| (*text).to_owned());
        let mut texts: Vec<Vec<u8>> = plain.chain(encoded).map(String::into_bytes).collect();
        texts.retain(|text| text.len() >= MIN_VALUE);
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Ok(Self { name, value, texts })
    }

    /// Puts the header into a request, in place of one that the command sent.
    pub(super) fn put_into(&self, headers: &mut HeaderMap) {
        headers.insert(self.name.clone(), self.value.clone());
    }

    pub(super) fn texts(&self) -> &[Vec<u8>] {
        &self.texts
    }
}

/// Returns the value if it is one line of plain characters.
fn plain(text: &str) -> Result<&str, String> {
    if text.is_empty() {
        return Err("printed nothing: run it once in a terminal to log in".to_owned());
    }
    if text.len() < MIN_VALUE || text.len() > MAX_VALUE {
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
    fn what_a_program_prints_becomes_the_header_or_a_clear_error() {
        let token = LoginForm::header("Authorization: token {}").unwrap();
        for (form, printed, expect) in [
            (&token, "s3cret-token\n", "token s3cret-token"),
            (&token, "", "printed nothing"),
            (&token, "\n", "printed nothing"),
            (&token, "s3cret\nmore\n", "more than one line"),
            (&token, "abc", "no credential"),
            (
                &LoginForm::Git,
                "protocol=https\nusername=ann\npassword=s3cret\n",
                "Basic YW5uOnMzY3JldA==",
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
