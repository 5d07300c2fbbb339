//! `AgentFolder`: a folder in which agents work: its application, and the agents' sessions there.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_builtins::outside::Outside;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;

use crate::app::App;
use crate::config::Settings;
use crate::config::hook::HookSettings;
use crate::hook::foreign::ForeignToolContext;
use crate::hook::key::SessionKey;
use crate::hook::session::AgentSession;
use crate::hook::session_marks::SessionMarks;
use crate::host::Host;
use crate::notices::Notices;
use crate::problem::Problem;
use crate::reload::{LoadSettings, Reloader};
use crate::site::{Overrides, Site};

/// Maximum number of open sessions per folder.
const MOST: usize = 256;
/// How long a session may be idle before its run ends.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// The place of a session, empty while it is being started.
type SessionSlot = Arc<OnceCell<Arc<AgentSession>>>;

/// A folder in which agents work.
#[derive(Debug)]
pub(super) struct AgentFolder {
    pub(super) app: App,
    outside: Arc<Outside>,
    sessions: Mutex<HashMap<SessionKey, SessionSlot>>,
    watching: AbortHandle,
    used: Mutex<Instant>,
}

impl AgentFolder {
    /// Builds the folder's application from its settings and those of the user.
    pub(super) fn open(site: &Site, folder: &Path) -> Result<Self, Problem> {
        let site = Site::new(folder, site.home.clone(), site.environment.clone())?;
        let load = {
            let site = site.clone();
            move || settings(&site)
        };
        let settings = load()?;
        let host = Host {
            notices: Notices::new(|text| tracing::warn!("{text}")),
            desktop: true,
            ..Host::default()
        };
        let app = App::build(&site, &settings, host)?;
        let reload: LoadSettings = Box::new(load);
        let watching = tokio::spawn(Reloader::new(&app, &settings, None, reload).watch());
        Ok(Self {
            outside: Arc::new(Outside::new(app.files().clone())),
            app,
            sessions: Mutex::default(),
            watching: watching.abort_handle(),
            used: Mutex::new(Instant::now()),
        })
    }

    /// The settings `hook.*`, as they are now.
    pub(super) fn settings(&self) -> HookSettings {
        self.app.0.surroundings.hook.now()
    }

    /// Returns a path as rules see it.
    pub(super) fn within(&self, folder: &Path) -> Result<String, Problem> {
        let folder = self.outside.folder(Some(&folder.to_string_lossy()));
        folder.map_err(|e| Problem::usage(e.to_string()))
    }

    /// Returns the session with this key, started if there is none. `follows` is whether later events of it come to this process, too.
    pub(super) async fn session(
        &self,
        key: &SessionKey,
        follows: bool,
    ) -> Result<Arc<AgentSession>, Problem> {
        *self.used.lock() = Instant::now();
        self.end_idle();
        let slot = self.slot(key)?;
        let at = ForeignToolContext {
            agent: key.agent,
            outside: Arc::clone(&self.outside),
            calls: Arc::default(),
            marks: Arc::new(SessionMarks::of(self.app.home(), key)),
            follows,
        };
        let started = slot.get_or_try_init(|| async {
            let session = AgentSession::start(&self.app, key, at).await?;
            Ok::<_, Problem>(Arc::new(session))
        });
        match started.await {
            Ok(session) => Ok(Arc::clone(session)),
            Err(problem) => {
                // A session that could not be started takes no place.
                let mut sessions = self.sessions.lock();
                if sessions.get(key).is_some_and(|slot| slot.get().is_none()) {
                    sessions.remove(key);
                }
                Err(problem)
            }
        }
    }

    /// The session with this key, if it is open.
    pub(super) fn known(&self, key: &SessionKey) -> Option<Arc<AgentSession>> {
        self.sessions.lock().get(key)?.get().cloned()
    }

    /// Ends the session with this key.
    pub(super) async fn end(&self, key: &SessionKey) {
        let slot = self.sessions.lock().remove(key);
        if let Some(slot) = slot {
            end(slot).await;
        }
    }

    /// Ends all sessions and the application.
    pub(super) async fn shut_down(&self) {
        self.watching.abort();
        self.app.runs().stop_waiting();
        let all = std::mem::take(&mut *self.sessions.lock());
        for slot in all.into_values() {
            end(slot).await;
        }
        self.app.shut_down().await;
    }

    /// How long no call has come; `None` while a session is open.
    pub(super) fn idle(&self) -> Option<Duration> {
        self.end_idle();
        let quiet = self.sessions.lock().is_empty();
        quiet.then(|| self.used.lock().elapsed())
    }

    /// How long no call has come; `None` while one waits for a decision.
    pub(super) fn quiet(&self) -> Option<Duration> {
        let sessions = self.sessions.lock();
        let waits = |slot: &SessionSlot| slot.get().is_none_or(|session| session.idle().is_none());
        (!sessions.values().any(waits)).then(|| self.used.lock().elapsed())
    }

    /// Returns the place of a session. One that takes no more calls loses its place to a new one.
    fn slot(&self, key: &SessionKey) -> Result<SessionSlot, Problem> {
        let mut sessions = self.sessions.lock();
        let over = sessions
            .get(key)
            .and_then(|slot| slot.get())
            .is_some_and(|session| session.is_spent());
        if over && let Some(slot) = sessions.remove(key) {
            tokio::spawn(end(slot));
        }
        if !sessions.contains_key(key) && sessions.len() >= MOST {
            // Agents do not report the end of every session, so the one that has been idle for longest makes room.
            let idle = |slot: &SessionSlot| slot.get().and_then(|session| session.idle());
            let quiet = sessions
                .iter()
                .filter_map(|(key, slot)| Some((idle(slot)?, key.clone())));
            let Some((_, oldest)) = quiet.max_by_key(|(idle, _)| *idle) else {
                let what = format!("{MOST} sessions of agents wait for decisions in this folder");
                return Err(Problem::failed(what).advise("decide some of them: `haft approvals`"));
            };
            if let Some(slot) = sessions.remove(&oldest) {
                tokio::spawn(end(slot));
            }
        }
        Ok(Arc::clone(sessions.entry(key.clone()).or_default()))
    }

    /// Ends the sessions that have been idle for [`IDLE`]: agents do not report the end of every session.
    fn end_idle(&self) {
        let mut sessions = self.sessions.lock();
        let is_old = |slot: &SessionSlot| {
            let idle = slot.get().and_then(|session| session.idle());
            idle.is_some_and(|idle| idle > IDLE)
        };
        for (_, slot) in sessions.extract_if(|_, slot| is_old(slot)) {
            tokio::spawn(end(slot));
        }
    }
}

impl Drop for AgentFolder {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

/// Ends the session in a slot. Its run ends with the last call that is still being answered.
async fn end(slot: SessionSlot) {
    if let Some(session) = slot.get() {
        session.end().await;
    }
}

fn settings(site: &Site) -> Result<Settings, Problem> {
    let trusted = site.trust()?.trusts(&site.workspace);
    site.settings(&Overrides::default(), trusted)
}
