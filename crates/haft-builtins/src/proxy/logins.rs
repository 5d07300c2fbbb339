//! `Logins`: the host's credentials for HTTPS, which haft puts into requests on their way out, so that no command sees them.

mod authority;
mod escapes;
mod masked;
mod pattern;
mod secret;
mod serve;
mod source;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, HeaderName};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

pub(super) use self::authority::Authority;
pub(super) use self::secret::LoginSecret;
pub use self::source::SourceProgram;
use crate::proxy::login_use::LoginUse;
use crate::proxy::refusal::ConnectionRefusal;
use crate::proxy::strip_trailing_dot;
use crate::web::target::WebUrl;

/// The port of HTTPS.
const HTTPS: u16 = 443;
/// Maximum time for a program to print a credential.
const SOURCE_TIMEOUT: Duration = Duration::from_secs(20);
/// The mark in a header's text for the value that the program prints.
const PLACE: &str = "{}";

/// A credential of the settings (`network.credentials.NAME`).
#[derive(Debug, Clone)]
pub struct Credential {
    /// Its name in the settings.
    pub name: String,
    /// The host that it is for, in lower case: requests to no other host get it.
    pub host: String,
    /// The port of that host.
    pub port: u16,
    /// How the value comes into a request.
    pub form: LoginForm,
    /// The program that prints the value.
    pub program: SourceProgram,
}

/// How a credential's value comes into requests.
#[derive(Debug, Clone)]
pub enum LoginForm {
    /// A header in each request, with this text before and after the value.
    Header {
        /// The header's name.
        name: HeaderName,
        /// The text before the value: `Bearer `.
        before: String,
        /// The text after the value.
        after: String,
    },
    /// The user name and password of `git credential fill`, in `Authorization: Basic`, once the server wants to know who asks.
    Git,
}

/// Why a setting describes no credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The host cannot be one.
    #[error("`{0}` is not a host: write example.com or example.com:8443")]
    Host(String),
    /// The header cannot be one.
    #[error(
        "`{0}` is not a header with a place for the value: write \"Authorization: Bearer {{}}\""
    )]
    Header(String),
}

impl LoginForm {
    /// Parses a header as settings have it: `Authorization: Bearer {}`.
    ///
    /// # Errors
    /// [`CredentialError::Header`] if it names no header, or has not exactly one place for the value.
    pub fn header(text: &str) -> Result<Self, CredentialError> {
        let wrong = || CredentialError::Header(text.to_owned());
        let (name, value) = text.split_once(':').ok_or_else(wrong)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| wrong())?;
        let (before, after) = value.trim().split_once(PLACE).ok_or_else(wrong)?;
        let is_plain = |text: &str| {
            text.bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic())
        };
        let frames = [
            hyper::header::HOST,
            hyper::header::CONTENT_LENGTH,
            hyper::header::TRANSFER_ENCODING,
            hyper::header::CONNECTION,
        ];
        if after.contains(PLACE) || !is_plain(before) || !is_plain(after) || frames.contains(&name)
        {
            return Err(wrong());
        }
        Ok(Self::Header {
            name,
            before: before.to_owned(),
            after: after.to_owned(),
        })
    }

    /// Returns the name of the header.
    fn header_name(&self) -> &HeaderName {
        match self {
            Self::Header { name, .. } => name,
            Self::Git => &AUTHORIZATION,
        }
    }
}

impl Credential {
    /// Splits a host as settings have it into its name and port.
    ///
    /// # Errors
    /// [`CredentialError::Host`] if it is none, or a pattern.
    pub fn host(text: &str) -> Result<(String, u16), CredentialError> {
        let wrong = || CredentialError::Host(text.to_owned());
        if text.contains(['/', '@', '?', '#', '*']) {
            return Err(wrong());
        }
        let target = WebUrl::parse(&format!("https://{text}/")).map_err(|_| wrong())?;
        let host = strip_trailing_dot(target.host());
        Ok((host.to_owned(), target.port()))
    }

    fn is_for(&self, target: &WebUrl) -> bool {
        target.is_secure()
            && target.port() == self.port
            && strip_trailing_dot(target.host()) == self.host
    }

    /// Returns the repository that a request with this path is for: another one may have another login of git's.
    fn repository<'p>(&self, path: &'p str) -> Option<&'p str> {
        match self.form {
            LoginForm::Git => source::repository(path),
            LoginForm::Header { .. } => None,
        }
    }

    /// Returns the use of it, as a user is asked about it.
    fn login_use(&self) -> LoginUse {
        let port = match self.port {
            HTTPS => String::new(),
            other => format!(":{other}"),
        };
        LoginUse {
            purpose: format!("https:{}{port}", self.host),
            by: format!(
                "network.credentials.{}: the header {} with what `{}` prints",
                self.name,
                self.form.header_name(),
                self.program.shown
            ),
        }
    }
}

/// The credentials of the settings, and the authority that vouches for their hosts in jails. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Logins(Arc<LoginSettings>);

#[derive(Debug, Default)]
struct LoginSettings {
    credentials: Vec<Credential>,
    authority: OnceCell<Arc<Authority>>,
}

impl Logins {
    /// Creates the logins of these credentials; the first that is for a host is used.
    pub fn new(credentials: Vec<Credential>) -> Self {
        Self(Arc::new(LoginSettings {
            credentials,
            authority: OnceCell::new(),
        }))
    }

    /// Returns true if there is no credential.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.credentials.is_empty()
    }

    /// Returns the ports of the hosts.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> {
        self.0.credentials.iter().map(|credential| credential.port)
    }

    /// Returns the credential for a host.
    pub(super) fn of(&self, target: &WebUrl) -> Option<&Credential> {
        let mut all = self.0.credentials.iter();
        all.find(|credential| credential.is_for(target))
    }

    /// Returns the certificate by which jails know haft as these hosts, as PEM; `None` if there is no credential and it is not `needed`
    /// otherwise, or none can be made.
    pub(crate) fn certificate(&self, needed: bool) -> Option<String> {
        if self.is_empty() && !needed {
            return None;
        }
        self.authority()
            .ok()
            .map(|authority| authority.pem().to_owned())
    }

    /// Returns the authority, which is made on first use and exists in this process alone.
    pub(super) fn authority(&self) -> Result<Arc<Authority>, String> {
        if let Some(made) = self.0.authority.get() {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(Authority::new()?);
        // Another command may have been faster.
        let _ = self.0.authority.set(made);
        self.0
            .authority
            .get()
            .cloned()
            .ok_or_else(|| "it is being made".to_owned())
    }
}

/// The credentials as one command uses them. Their values are forgotten with it.
#[derive(Debug, Default)]
pub(super) struct CommandLogins {
    pub(super) logins: Logins,
    used: Mutex<HashMap<UsedName, Arc<UsedCredential>>>,
}

/// The name of a credential in the settings, and the repository that git's is for: another one may have another login.
type UsedName = (String, Option<String>);

/// A credential that a command needed.
#[derive(Debug, Default)]
struct UsedCredential {
    /// What its program gave, or why it gave nothing: it is asked once, as asking may open a window or need a touch.
    value: OnceCell<Result<Arc<LoginSecret>, String>>,
}

impl CommandLogins {
    pub(super) fn new(logins: Logins) -> Self {
        Self {
            logins,
            used: Mutex::default(),
        }
    }

    /// Notes that the host wants to know who asks: later requests have the credential at once.
    pub(super) fn need(&self, credential: &Credential, path: &str) {
        self.used(credential, path);
    }

    /// Returns true if the command has needed a credential.
    pub(super) fn is_needed(&self, credential: &Credential) -> bool {
        self.used
            .lock()
            .keys()
            .any(|(name, _)| *name == credential.name)
    }

    fn used(&self, credential: &Credential, path: &str) -> Arc<UsedCredential> {
        let repository = credential.repository(path).map(str::to_owned);
        let mut used = self.used.lock();
        Arc::clone(
            used.entry((credential.name.clone(), repository))
                .or_default(),
        )
    }

    /// Returns the value of a credential for a request with this path; its program is asked once, for each repository of git's. The program of
    /// another does not wait for it.
    pub(super) async fn secret(
        &self,
        credential: &Credential,
        path: &str,
    ) -> Result<Arc<LoginSecret>, ConnectionRefusal> {
        let used = self.used(credential, path);
        let asked = used.value.get_or_init(async || {
            let program = &credential.program;
            let printed = program.ask(credential, path, SOURCE_TIMEOUT).await?;
            LoginSecret::read(&credential.form, &printed).map(Arc::new)
        });
        // The command reads this: of the program's words, which may hold anything, only the name of the setting.
        asked.await.clone().map_err(|why| ConnectionRefusal::Login {
            host: credential.host.clone(),
            why: format!(
                "the program of network.credentials.{} {why}",
                credential.name
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Credential, LoginForm};

    #[test]
    fn a_header_has_a_name_and_one_place_for_the_value() {
        for (text, expect) in [
            (
                "Authorization: Bearer {}",
                Some(("authorization", "Bearer ", "")),
            ),
            (
                "Authorization: token {}",
                Some(("authorization", "token ", "")),
            ),
            ("X-Key:{}", Some(("x-key", "", ""))),
            ("Authorization: Bearer", None),
            ("Bearer {}", None),
            ("A: {} {}", None),
            ("A: x\ny{}", None),
            ("Host: {}", None),
            ("Content-Length: {}", None),
            (": {}", None),
        ] {
            let read = LoginForm::header(text).ok();
            let read = read.as_ref().map(|form| match form {
                LoginForm::Header {
                    name,
                    before,
                    after,
                } => (name.as_str(), &**before, &**after),
                LoginForm::Git => ("git", "", ""),
            });
            assert_eq!(read, expect, "{text}");
        }
    }

    #[test]
    fn a_credential_is_for_one_host_and_port() {
        for (text, expect) in [
            ("api.github.com", Some(("api.github.com", 443))),
            ("API.GitHub.com.", Some(("api.github.com", 443))),
            ("git.example.com:8443", Some(("git.example.com", 8443))),
            ("*.github.com", None),
            ("https://github.com", None),
            ("user@github.com", None),
            ("github.com/x", None),
            ("", None),
        ] {
            let read = Credential::host(text).ok();
            let read = read.as_ref().map(|(host, port)| (&**host, *port));
            assert_eq!(read, expect, "{text}");
        }
    }
}
