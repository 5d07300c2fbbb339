//! What a request to sign is for: a session with a server (RFC 4252 §7), or a signature of a file (`PROTOCOL.sshsig`).

use super::wire::WireReader;

/// The message by which a user proves a key (RFC 4252 §6).
const USERAUTH_REQUEST: u8 = 50;
/// The method that also states the server's key (OpenSSH, `PROTOCOL`).
const HOST_BOUND: &[u8] = b"publickey-hostbound-v00@openssh.com";
/// Ends the kind of a certificate.
const CERTIFICATE: &[u8] = b"-cert-v01@openssh.com";
/// Begins the data of a file's signature.
const FILE_MARK: &[u8] = b"SSHSIG";
/// The namespace of git's signatures.
const GIT: &[u8] = b"git";

/// What is to be signed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SignedData<'a> {
    /// A login.
    Login {
        session: &'a [u8],
        user: String,
        /// Whether the user shows a certificate of the key.
        certified: bool,
        /// The server's key, if the data states it.
        host_key: Option<&'a [u8]>,
    },
    /// A commit or a tag.
    Git,
    /// Something that no command has signed here, in words.
    Other(String),
}

impl<'a> SignedData<'a> {
    /// Reads the data that a request wants signed by this key.
    pub(super) fn read(data: &'a [u8], key: &[u8]) -> Self {
        if let Some(rest) = data.strip_prefix(FILE_MARK) {
            return match WireReader(rest).string() {
                Some(GIT) => Self::Git,
                Some(other) => Self::Other(format!(
                    "a signature for {:?}",
                    String::from_utf8_lossy(other)
                )),
                None => Self::Other("a malformed signature".to_owned()),
            };
        }
        read_login(data, key).unwrap_or_else(|| Self::Other("data that is no login".to_owned()))
    }
}

fn read_login<'a>(data: &'a [u8], key: &[u8]) -> Option<SignedData<'a>> {
    let mut reader = WireReader(data);
    let session = reader.string()?;
    if reader.byte()? != USERAUTH_REQUEST {
        return None;
    }
    let user = String::from_utf8_lossy(reader.string()?).into_owned();
    if reader.string()? != b"ssh-connection" {
        return None;
    }
    let method = reader.string()?;
    if method != b"publickey" && method != HOST_BOUND || reader.byte()? != 1 {
        return None;
    }
    let _algorithm = reader.string()?;
    let shown = reader.string()?;
    let certified = is_certificate_of(shown, key);
    if shown != key && !certified {
        return None;
    }
    let host_key = if method == HOST_BOUND {
        Some(reader.string()?)
    } else {
        None
    };
    reader.is_empty().then_some(SignedData::Login {
        session,
        user,
        certified,
        host_key,
    })
}

/// Whether this is a certificate of the key, which OpenSSH has the key itself sign for (`PROTOCOL.certkeys`): after a kind and a nonce it has
/// what the key has after its own kind.
fn is_certificate_of(shown: &[u8], key: &[u8]) -> bool {
    let (mut shown, mut key) = (WireReader(shown), WireReader(key));
    let (Some(certificate), Some(_nonce), Some(kind)) =
        (shown.string(), shown.string(), key.string())
    else {
        return false;
    };
    let kind = kind.strip_suffix(b"@openssh.com").unwrap_or(kind);
    certificate == [kind, CERTIFICATE].concat() && !key.is_empty() && shown.0.starts_with(key.0)
}

#[cfg(test)]
mod tests {
    use super::super::wire::string;
    use super::SignedData;

    fn login(method: &str, key: &str, more: &[u8]) -> Vec<u8> {
        let words = |words: &[&str]| {
            words
                .iter()
                .flat_map(|word| string(word.as_bytes()))
                .collect::<Vec<u8>>()
        };
        let mut data = string(b"session");
        data.push(50);
        data.extend(words(&["git", "ssh-connection", method]));
        data.push(1);
        data.extend(words(&["ssh-ed25519", key]));
        data.extend(more);
        data
    }

    #[test]
    fn a_certificate_is_of_the_key_that_it_names() {
        let blob = |parts: &[&str]| {
            let parts = parts.iter().map(|part| string(part.as_bytes()));
            parts.flatten().collect::<Vec<u8>>()
        };
        let (plain, sk) = ("ssh-ed25519", "sk-ssh-ed25519@openssh.com");
        let certificate = "ssh-ed25519-cert-v01@openssh.com";
        for (shown, key, expect) in [
            (
                &[certificate, "nonce", "point", "more"][..],
                &[plain, "point"][..],
                true,
            ),
            (
                &["sk-ssh-ed25519-cert-v01@openssh.com", "n", "point", "app"],
                &[sk, "point", "app"],
                true,
            ),
            (&[certificate, "nonce", "other"], &[plain, "point"], false),
            (
                &["ssh-rsa-cert-v01@openssh.com", "nonce", "point"],
                &[plain, "point"],
                false,
            ),
            (&[certificate, "nonce", "points"], &[plain, "point"], false),
            (&[certificate, "nonce", "point"], &[plain], false),
            (&[plain, "point"], &[plain, "point"], false),
        ] {
            let found = super::is_certificate_of(&blob(shown), &blob(key));
            assert_eq!(found, expect, "{shown:?} of {key:?}");
        }
    }

    #[test]
    fn logins_and_commits_are_known_and_nothing_else_is_signed() {
        let bound = "publickey-hostbound-v00@openssh.com";
        let host = string(b"host key");
        let of = |host_key| SignedData::Login {
            session: b"session",
            user: "git".into(),
            certified: false,
            host_key,
        };
        let other = |why: &str| SignedData::Other(why.to_owned());
        let git = [&b"SSHSIG"[..], &string(b"git"), b"rest"].concat();
        let file = [&b"SSHSIG"[..], &string(b"file")].concat();
        for (data, expect) in [
            (login("publickey", "key", b""), of(None)),
            (login(bound, "key", &host), of(Some(b"host key"))),
            (git, SignedData::Git),
            (file, other("a signature for \"file\"")),
            (b"SSHSIG".to_vec(), other("a malformed signature")),
            (
                login("publickey", "another key", b""),
                other("data that is no login"),
            ),
            (
                login("publickey", "key", b"more"),
                other("data that is no login"),
            ),
            (login(bound, "key", b""), other("data that is no login")),
            (
                login("hostbased", "key", b""),
                other("data that is no login"),
            ),
            (b"".to_vec(), other("data that is no login")),
            (
                b"\xff\xff\xff\xffabc".to_vec(),
                other("data that is no login"),
            ),
        ] {
            assert_eq!(SignedData::read(&data, b"key"), expect, "{data:?}");
        }
    }
}
