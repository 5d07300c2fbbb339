//! `Console`: what the gate and the routes share: the login codes and the sessions.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use axum::Router;
use http::HeaderMap;
use serde::Serialize;

use crate::code::{Codes, Redeemed};
use crate::cookie::Cookie;
use crate::pages::Pages;
use crate::routes;
use crate::sessions::{ConsoleSession, Fresh, SECRET_HEADER, Sessions};

/// Why the console cannot do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The operating system gave no random bytes.
    #[error("make a login code: {0}")]
    Random(String),
}

/// What a person sees of the server in the top bar.
#[derive(Debug, Clone, Default, Serialize)]
pub struct About {
    /// The workspace's path.
    pub workspace: String,
    /// The profile in force.
    pub profile: String,
    /// haft's version.
    pub version: String,
    /// In whose name decisions are stamped.
    pub user: String,
}

/// How the console is served.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The port listened on: part of the cookie's name.
    pub port: u16,
    /// Whether browsers reach it over HTTPS (a proxy in front); the cookie is `__Host-` and `Secure` then.
    pub https: bool,
    /// What the top bar says.
    pub about: About,
    /// A folder with other pages than the built-in ones.
    #[cfg(feature = "testing")]
    pub pages: Option<std::path::PathBuf>,
}

/// The console of one server.
#[derive(Debug)]
pub struct Console {
    pub(crate) about: About,
    pub(crate) cookie: Cookie,
    pub(crate) pages: Pages,
    pub(crate) strength: OnceLock<String>,
    https: bool,
    codes: Mutex<Codes>,
    sessions: Mutex<Sessions>,
}

impl Console {
    /// A console without sessions.
    pub fn new(options: Options) -> Arc<Self> {
        #[cfg(feature = "testing")]
        let pages = Pages::new(options.pages.as_deref());
        #[cfg(not(feature = "testing"))]
        let pages = Pages::new(None);
        Arc::new(Self {
            about: options.about,
            cookie: Cookie::new(options.port, options.https),
            pages,
            strength: OnceLock::new(),
            https: options.https,
            codes: Mutex::default(),
            sessions: Mutex::default(),
        })
    }

    /// Says how strong the sandbox is, once that is found out; it takes a while.
    pub fn found_strength(&self, strength: &str) {
        // The first word stands.
        let _ = self.strength.set(strength.to_owned());
    }

    /// A link that logs in once, within [`CODE_LIFE`](crate::CODE_LIFE). `base_url` is the server's, with or without a slash
    /// at its end. The code stands in the fragment, which no browser sends and no log keeps.
    pub fn login_link(&self, base_url: &str) -> Result<String, ConsoleError> {
        let code = lock(&self.codes).mint(Instant::now())?;
        Ok(format!("{}/#login={code}", base_url.trim_end_matches('/')))
    }

    /// The session that a request's cookie names.
    pub fn session(&self, headers: &HeaderMap) -> Option<ConsoleSession> {
        let id = self.cookie.read(headers)?;
        let mut secrets = headers.get_all(SECRET_HEADER).iter();
        let secret = secrets.next().and_then(|value| value.to_str().ok());
        // Two secrets are none.
        let secret = secret.filter(|_| secrets.next().is_none());
        lock(&self.sessions).seen(id, secret, Instant::now())
    }

    /// Whether this path is one of the console's pages or files, which anybody may GET: they hold no data.
    pub fn is_page(&self, path: &str) -> bool {
        Pages::is_page(path)
    }

    /// The pages, `POST /api/v1/login`, `POST /api/v1/login-link`, `GET /api/v1/session` and `POST /api/v1/logout`. Who may
    /// come here is checked before: everybody to the pages and to `login`, the operator to `login-link`.
    pub fn router(self: &Arc<Self>) -> Router {
        routes::router(Arc::clone(self))
    }

    pub(crate) fn redeem(&self, code: &str) -> Redeemed {
        lock(&self.codes).redeem(code, Instant::now())
    }

    pub(crate) fn open(&self) -> Result<Fresh, ConsoleError> {
        lock(&self.sessions).open(Instant::now())
    }

    pub(crate) fn secret(&self, headers: &HeaderMap) -> Option<String> {
        let id = self.cookie.read(headers)?;
        lock(&self.sessions).secret(id, Instant::now())
    }

    pub(crate) fn close(&self, headers: &HeaderMap) {
        if let Some(id) = self.cookie.read(headers) {
            lock(&self.sessions).close(id);
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.https { "https" } else { "http" }
    }
}

/// Nothing below can panic while it is held; a poisoned one is as good as another.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
