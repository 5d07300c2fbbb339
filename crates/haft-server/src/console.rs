//! The console, pages for the people who decide: login codes, tickets and sessions, which the gate and the routes share.
//!
//! ```text
//! haft serve ── login_link() ──► #login=CODE ── POST /api/v1/login ──► cookie + secret
//!     │                                                                    │
//!     └── gate: session(headers) ◄── both, on every request ───────────────┘
//! ```
//!
//! It knows nothing of calls, runs or approvals: its pages read those from the API.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use serde::Serialize;

use crate::console::cookie::Cookie;
use crate::console::one_time::{CODE_LIFE, OneTime, TICKET_LIFE};
use crate::console::pages::Pages;
use crate::console::secret::ConsoleError;
use crate::console::sessions::{ConsoleSession, Fresh, SECRET_HEADER, Sessions};
use crate::tabs::Tabs;

pub(crate) mod cookie;
pub(crate) mod one_time;
pub(crate) mod pages;
pub(crate) mod routes;
pub(crate) mod secret;
pub(crate) mod sessions;

/// What a login code is good for.
const LOGIN: &str = "login";
/// The same, for a program of the server's own user alone.
const OWN_LOGIN: &str = "login of the same user";

/// What a person sees of the server in the top bar.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct About {
    /// The workspace's path; none where the server stands in no folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<String>,
    /// The profile in force.
    pub(crate) profile: String,
    /// haft's version.
    pub(crate) version: String,
    /// In whose name decisions are stamped.
    pub user: String,
}

/// How the console is served.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The port listened on: part of the cookie's name.
    pub(crate) port: u16,
    /// Whether browsers reach it over HTTPS (a proxy in front); the cookie is `__Host-` and `Secure` then.
    pub(crate) https: bool,
    /// What the top bar says.
    pub(crate) about: About,
    /// The pages that are open.
    pub(crate) tabs: Arc<Tabs>,
    /// A folder with other pages than the built-in ones.
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
    codes: Mutex<OneTime>,
    tickets: Mutex<OneTime>,
    sessions: Mutex<Sessions>,
}

impl Console {
    /// A console without sessions.
    pub(crate) fn new(options: Options) -> Arc<Self> {
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
            codes: Mutex::new(OneTime::new(CODE_LIFE)),
            tickets: Mutex::new(OneTime::new(TICKET_LIFE)),
            sessions: Mutex::default(),
        })
    }

    /// Says how strong the sandbox is, once that is found out; it takes a while.
    pub(crate) fn found_strength(&self, strength: &str) {
        // The first word stands.
        let _ = self.strength.set(strength.to_owned());
    }

    /// A link that logs in once, within [`CODE_LIFE`]. `base_url` is the server's, with or without a slash
    /// at its end. The code stands in the fragment, which no browser sends and no log keeps.
    pub(crate) fn login_link(&self, base_url: &str) -> Result<String, ConsoleError> {
        self.link(base_url, LOGIN)
    }

    /// The same for a browser of the user for whom this server runs: others may have read the link.
    pub(crate) fn own_login_link(&self, base_url: &str) -> Result<String, ConsoleError> {
        self.link(base_url, OWN_LOGIN)
    }

    fn link(&self, base_url: &str, purpose: &str) -> Result<String, ConsoleError> {
        let code = self.codes.lock().issue(purpose, Instant::now())?;
        Ok(format!("{}/#login={code}", base_url.trim_end_matches('/')))
    }

    /// The session that a request belongs to: its cookie names one, and its header carries that one's secret.
    pub(crate) fn session(&self, headers: &HeaderMap) -> Option<ConsoleSession> {
        let ids = self.cookie.read(headers);
        self.sessions
            .lock()
            .seen(ids, secret_of(headers)?, Instant::now())
    }

    /// The session of a request that a browser makes by itself, for a frame or a download, where no page can add the
    /// secret: its cookie names one, and its address carries a ticket for this path. The ticket is used up.
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

    /// Uses a code up that anyone may use who has it.
    pub(crate) fn redeem(&self, code: &str) -> bool {
        self.codes.lock().redeem(code, LOGIN, Instant::now())
    }

    /// Whether a code is for programs of the server's own user. It stays as it is.
    pub(crate) fn is_own(&self, code: &str) -> bool {
        self.codes.lock().holds(code, OWN_LOGIN, Instant::now())
    }

    /// Uses such a code up.
    pub(crate) fn redeem_own(&self, code: &str) -> bool {
        self.codes.lock().redeem(code, OWN_LOGIN, Instant::now())
    }

    pub(crate) fn ticket(&self, path: &str) -> Result<String, ConsoleError> {
        self.tickets.lock().issue(path, Instant::now())
    }

    pub(crate) fn open(&self) -> Result<Fresh, ConsoleError> {
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

/// The secret that a request carries; two are none.
fn secret_of(headers: &HeaderMap) -> Option<&str> {
    let mut secrets = headers
        .get_all(HeaderName::from_static(SECRET_HEADER))
        .iter();
    let secret = secrets.next()?.to_str().ok()?;
    secrets.next().is_none().then_some(secret)
}
