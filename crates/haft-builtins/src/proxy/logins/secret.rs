//! `LoginSecret`: the header of a credential, and the texts by which a server could give its value back.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::LoginForm;

/// Minimum length of a value, in bytes: a shorter one would be found, and masked, in ordinary text.
const MIN_VALUE: usize = 8;
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
        let forms = secrets.iter().flat_map(|text| written_forms(text));
        let mut texts: Vec<Vec<u8>> = forms.map(String::into_bytes).collect();
        texts.retain(|text| text.len() >= MIN_VALUE);
        texts.sort_by(|one, other| (other.len(), one).cmp(&(one.len(), other)));
        texts.dedup();
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

/// Returns the ways in which servers write a text back: as it is, as base64 wherever it begins in what is encoded, escaped for URLs, JSON and HTML.
fn written_forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned()];
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(text.as_bytes());
        let whole = STANDARD_NO_PAD.encode(&bytes);
        // The characters at both ends hold bits of what stands beside the text.
        let from = before + usize::from(before > 0);
        let to = whole.len() - usize::from(bytes.len() % 3 != 0);
        let inner = whole.get(from..to).unwrap_or_default();
        forms.push(inner.to_owned());
        forms.push(inner.replace('+', "-").replace('/', "_"));
    }
    let escaped = |hex: fn(u8) -> String| -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let each = text.bytes();
        each.map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                hex(byte)
            }
        })
        .collect()
    };
    let (upper, lower) = (
        escaped(|byte| format!("%{byte:02X}")),
        escaped(|byte| format!("%{byte:02x}")),
    );
    forms.extend([upper.replace("%20", "+"), upper, lower]);
    let json = text.replace('\\', "\\\\").replace('"', "\\\"");
    forms.extend([json.replace('/', "\\/"), json]);
    let html = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    forms.push(html.replace('"', "&quot;").replace('\'', "&#39;"));
    forms
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
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
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
    fn a_value_is_known_however_a_server_writes_it() {
        let form = LoginForm::header("Authorization: Bearer {}").unwrap();
        let secret = LoginSecret::read(&form, b"a/b+c&d \"e'").unwrap();
        let is_known = |text: &str| {
            let found = |part: &Vec<u8>| text.as_bytes().windows(part.len()).any(|at| at == part);
            secret.texts().iter().any(found)
        };
        let mut encoded = Vec::new();
        for before in ["", "x", "xy", "Bearer "] {
            encoded.push(STANDARD.encode(format!("{before}a/b+c&d \"e' and more")));
        }
        for text in encoded.iter().map(String::as_str).chain([
            "a/b+c&d \"e'",
            "?t=a%2Fb%2Bc%26d%20%22e%27",
            "a%2fb%2bc%26d%20%22e%27",
            "a%2Fb%2Bc%26d+%22e%27",
            "{\"t\":\"a\\/b+c&d \\\"e'\"}",
            "{\"t\":\"a/b+c&d \\\"e'\"}",
            "a/b+c&amp;d &quot;e&#39;",
        ]) {
            assert!(is_known(text), "{text}");
        }
        let basic = LoginForm::header("Authorization: Basic {}").unwrap();
        for (text, part) in [
            ("ann:s3cret-pass", "s3cret-pass"),
            ("s3cret-key:", "s3cret-key"),
        ] {
            let printed = STANDARD.encode(text);
            let secret = LoginSecret::read(&basic, printed.as_bytes()).unwrap();
            assert!(secret.texts().contains(&part.as_bytes().to_vec()), "{text}");
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
