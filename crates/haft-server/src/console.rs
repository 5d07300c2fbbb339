//! `Console`: login codes, tickets and sessions of the web console, shared by the gate and the routes.
//!
//! ```text
//! haft serve ── login_link() ──► #login=CODE ── POST /api/v1/login ──► cookie + secret
//!     │                                                                    │
//!     └── gate: session(headers) ◄── both, on every request ───────────────┘
//! ```
//!
//! The console knows nothing about calls, runs or approvals: its pages read those from the API.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use serde::Serialize;

use crate::console::cookie::Cookie;
use crate::console::one_time::{CODE_LIFE, OneTimeSecrets, TICKET_LIFE};
use crate::console::pages::Pages;
use crate::console::secret::ConsoleError;
use crate::console::sessions::{ConsoleSession, SECRET_HEADER, SessionSecrets, Sessions};
use crate::tabs::Tabs;

pub(crate) mod cookie;
pub(crate) mod one_time;
pub(crate) mod pages;
pub(crate) mod routes;
pub(crate) mod secret;
pub(crate) mod sessions;

/// The purpose of a login code.
const LOGIN: &str = "login";
/// The purpose of a login code that only programs of the server's own user may use.
const OWN_LOGIN: &str = "login of the same user";

/// What the top bar shows about the server.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct About {
    /// The workspace's path; `None` if the server serves no folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<String>,
    /// The profile in force.
    pub(crate) profile: String,
    /// haft's version.
    pub(crate) version: String,
    /// The user in whose name decisions are stamped.
    pub user: String,
}

/// Options of the console.
#[derive(Debug, Clone)]
pub(crate) struct ConsoleOptions {
    /// The port of the listener: part of the cookie's name.
    pub(crate) port: u16,
    /// Whether browsers reach it over HTTPS (through a proxy, for example); if so, the cookie is `__Host-` and `Secure`.
    pub(crate) https: bool,
    /// What the top bar shows.
    pub(crate) about: About,
    /// The open pages.
    pub(crate) tabs: Arc<Tabs>,
    /// A folder with pages that replace the built-in ones.
    #[cfg(feature = "testing")]
    pub(crate) pages: Option<std::path::PathBuf>,
}

/// The console of one server.
#[derive(Debug)]
pub(crate) struct Console {
    pub(crate) about: About,
    pub(crate) cookie: Cookie,
    pub(crate) pages: Pages,
    pub(crate) strength: OnceLock<String>,
    pub(crate) tabs: Arc<Tabs>,
    https: bool,
    codes: Mutex<OneTimeSecrets>,
    tickets: Mutex<OneTimeSecrets>,
    sessions: Mutex<Sessions>,
}

impl Console {
    /// Creates a console without sessions.
    pub(crate) fn new(options: ConsoleOptions) -> Arc<Self> {
        #[cfg(feature = "testing")]
        let pages = Pages::new(options.pages.as_deref());
        #[cfg(not(feature = "testing"))]
        let pages = Pages::new(None);
        Arc::new(Self {
            about: options.about,
            cookie: Cookie::new(options.port, options.https),
            pages,
            strength: OnceLock::new(),
            tabs: options.tabs,
            https: options.https,
            codes: Mutex::new(OneTimeSecrets::new(CODE_LIFE)),
            tickets: Mutex::new(OneTimeSecrets::new(TICKET_LIFE)),
            sessions: Mutex::default(),
        })
    }

    /// Sets the sandbox's strength, which takes a while to determine.
    pub(crate) fn set_strength(&self, strength: &str) {
        // The first value wins.
        let _ = self.strength.set(strength.to_owned());
    }

    /// Returns a link that logs in once, within [`CODE_LIFE`]. `base_url` is the server's, with or without a trailing slash. The
    /// code is in the fragment, which browsers never send and logs never record.
    pub(crate) fn login_link(&self, base_url: &str) -> Result<String, ConsoleError> {
        self.link(base_url, LOGIN)
    }

    /// Like [`Console::login_link`], but only for browsers of this server's own user: others may have read the link.
    pub(crate) fn own_login_link(&self, base_url: &str) -> Result<String, ConsoleError> {
        self.link(base_url, OWN_LOGIN)
    }

    fn link(&self, base_url: &str, purpose: &str) -> Result<String, ConsoleError> {
        let code = self.codes.lock().issue(purpose, Instant::now())?;
        Ok(format!("{}/#login={code}", base_url.trim_end_matches('/')))
    }

    /// Returns the session of a request: its cookie names one, and its header carries that session's secret.
    pub(crate) fn session(&self, headers: &HeaderMap) -> Option<ConsoleSession> {
        let ids = self.cookie.read(headers);
        self.sessions
            .lock()
            .find_by_secret(ids, secret_of(headers)?, Instant::now())
    }

    /// Returns the session of a request that the browser makes by itself, for a frame or a download, where no page can add the
    /// secret: its cookie names one, and its URL carries a ticket for this path. The ticket is consumed.
    pub(crate) fn session_by_ticket(
        &self,
        headers: &HeaderMap,
        path: &str,
        ticket: &str,
    ) -> Option<ConsoleSession> {
        let now = Instant::now();
        let ids = self.cookie.read(headers);
        let session = self.sessions.lock().with_ticket(ids, now)?;
        let good = self.tickets.lock().redeem(ticket, path, now);
        good.then_some(session)
    }

    /// Consumes a code that anyone who has it may use.
    pub(crate) fn redeem(&self, code: &str) -> bool {
        self.codes.lock().redeem(code, LOGIN, Instant::now())
    }

    /// Returns whether a code is reserved for programs of the server's own user. Does not consume it.
    pub(crate) fn is_own(&self, code: &str) -> bool {
        self.codes.lock().holds(code, OWN_LOGIN, Instant::now())
    }

    /// Consumes such a code.
    pub(crate) fn redeem_own(&self, code: &str) -> bool {
        self.codes.lock().redeem(code, OWN_LOGIN, Instant::now())
    }

    pub(crate) fn ticket(&self, path: &str) -> Result<String, ConsoleError> {
        self.tickets.lock().issue(path, Instant::now())
    }

    pub(crate) fn open(&self) -> Result<SessionSecrets, ConsoleError> {
        self.sessions.lock().open(Instant::now())
    }

    pub(crate) fn close(&self, headers: &HeaderMap) {
        if let Some(secret) = secret_of(headers) {
            self.sessions
                .lock()
                .close(self.cookie.read(headers), secret);
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.https { "https" } else { "http" }
    }
}

/// Returns the secret that a request carries; `None` if it carries more than one.
fn secret_of(headers: &HeaderMap) -> Option<&str> {
    let mut secrets = headers
        .get_all(HeaderName::from_static(SECRET_HEADER))
        .iter();
    let secret = secrets.next()?.to_str().ok()?;
    secrets.next().is_none().then_some(secret)
}
