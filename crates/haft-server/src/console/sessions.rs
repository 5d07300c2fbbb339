//! `Sessions`: the logged-in browsers, each identified by the id in its cookie and the secret that its pages send.

use std::fmt;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::console::secret::ConsoleError;
use crate::console::secret::{self, SecretDigest};

/// How long a session lives without a request.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(12 * 60 * 60);
/// Maximum number of sessions; one more login ends the session that has been idle the longest.
pub(crate) const MAX_SESSIONS: usize = 64;
/// The header that every request of a console page carries in addition to the cookie.
///
/// A browser sends a host's cookies to all its ports, so every local server that the browser visits gets the cookie. The secret
/// is in the page's own storage, which browsers separate by port.
pub(crate) const SECRET_HEADER: &str = "x-haft-console";

/// A request's session.
#[derive(Debug, Clone)]
pub(crate) struct ConsoleSession(watch::Receiver<()>);

impl ConsoleSession {
    /// Waits until the session ends: by logout, idle time, or newer sessions that replace it.
    pub(crate) async fn ended(&mut self) {
        // Nothing is ever sent: the sender is dropped with the session.
        while self.0.changed().await.is_ok() {}
    }
}

struct SessionRecord {
    id: SecretDigest,
    secret: SecretDigest,
    seen: Instant,
    alive: watch::Sender<()>,
}

impl fmt::Debug for SessionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

/// The result of a login: the cookie's value and the secret.
pub(crate) struct SessionSecrets {
    pub(crate) id: String,
    pub(crate) secret: String,
}

/// All sessions. Times use the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Vec<SessionRecord>);

impl Sessions {
    /// Opens a session for a browser whose code was valid.
    pub(crate) fn open(&mut self, now: Instant) -> Result<SessionSecrets, ConsoleError> {
        let fresh = SessionSecrets {
            id: secret::fresh()?,
            secret: secret::fresh()?,
        };
        self.forget_idle(now);
        self.0.sort_by_key(|session| session.seen);
        let over = (self.0.len() + 1).saturating_sub(MAX_SESSIONS);
        self.0.drain(..over);
        self.0.push(SessionRecord {
            id: SecretDigest::of(&fresh.id),
            secret: SecretDigest::of(&fresh.secret),
            seen: now,
            alive: watch::Sender::new(()),
        });
        Ok(fresh)
    }

    /// Returns the session with one of these ids, if the secret matches. Only this resets its idle time.
    pub(crate) fn find_by_secret<'a>(
        &mut self,
        ids: impl Iterator<Item = &'a str>,
        secret: &str,
        now: Instant,
    ) -> Option<ConsoleSession> {
        let secret = SecretDigest::of(secret);
        let session = self.find(ids, now, |session| session.secret.same(&secret))?;
        session.seen = now;
        Some(ConsoleSession(session.alive.subscribe()))
    }

    /// Returns the session with one of these ids, for a request that carries a ticket instead of the secret.
    pub(crate) fn with_ticket<'a>(
        &mut self,
        ids: impl Iterator<Item = &'a str>,
        now: Instant,
    ) -> Option<ConsoleSession> {
        let session = self.find(ids, now, |_| true)?;
        Some(ConsoleSession(session.alive.subscribe()))
    }

    /// Ends the session with one of these ids, if the secret matches.
    pub(crate) fn close<'a>(&mut self, ids: impl Iterator<Item = &'a str>, secret: &str) {
        let (ids, secret): (Vec<SecretDigest>, _) = (
            ids.map(SecretDigest::of).collect(),
            SecretDigest::of(secret),
        );
        self.0.retain(|session| {
            let named = ids.iter().any(|id| session.id.same(id));
            !(named && session.secret.same(&secret))
        });
    }

    fn find<'a>(
        &mut self,
        ids: impl Iterator<Item = &'a str>,
        now: Instant,
        fits: impl Fn(&SessionRecord) -> bool,
    ) -> Option<&mut SessionRecord> {
        self.forget_idle(now);
        let ids: Vec<SecretDigest> = ids.map(SecretDigest::of).collect();
        let named = |session: &SessionRecord| ids.iter().any(|id| session.id.same(id));
        let mut sessions = self.0.iter_mut();
        sessions.find(|session| named(session) && fits(session))
    }

    fn forget_idle(&mut self, now: Instant) {
        let idle = |session: &SessionRecord| now.saturating_duration_since(session.seen);
        self.0.retain(|session| idle(session) < IDLE_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use std::iter::once;
    use std::time::{Duration, Instant};

    use super::{IDLE_TIMEOUT, MAX_SESSIONS, Sessions};

    #[test]
    fn w1_a_session_is_its_cookie_and_its_secret_together() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        let (one, two) = (sessions.open(now).unwrap(), sessions.open(now).unwrap());
        for (ids, secret, expect) in [
            (&[&*one.id][..], &*one.secret, true),
            (&["", &one.id, "x"], &one.secret, true),
            (&[&two.id, &one.id], &one.secret, true),
            (&[&one.id], "", false),
            (&[&one.id], &two.secret, false),
            (&[], &one.secret, false),
            (&[""], &one.secret, false),
            (&[&one.secret], &one.secret, false),
            (&[&one.id[1..]], &one.secret, false),
        ] {
            let seen = sessions
                .find_by_secret(ids.iter().copied(), secret, now)
                .is_some();
            assert_eq!(seen, expect, "{ids:?}");
        }
        sessions.close(once(&*one.id), &two.secret);
        assert!(
            sessions
                .find_by_secret(once(&*one.id), &one.secret, now)
                .is_some()
        );
        sessions.close(once(&*one.id), &one.secret);
        assert!(
            sessions
                .find_by_secret(once(&*one.id), &one.secret, now)
                .is_none()
        );
        assert!(
            sessions
                .find_by_secret(once(&*two.id), &two.secret, now)
                .is_some()
        );
    }

    #[test]
    fn a_session_ends_after_twelve_idle_hours() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        let fresh = sessions.open(start).unwrap();
        let late = start + IDLE_TIMEOUT / 2 + IDLE_TIMEOUT / 3;
        let mut seen = |secret: &str, at| {
            sessions
                .find_by_secret(once(&*fresh.id), secret, at)
                .is_some()
        };
        assert!(seen(&fresh.secret, late));
        // Only a request with the secret keeps the session alive; the cookie alone does not.
        assert!(!seen("", late + IDLE_TIMEOUT / 4));
        assert!(seen(&fresh.secret, late + IDLE_TIMEOUT / 2));
        assert!(!seen(&fresh.secret, late + IDLE_TIMEOUT * 2));
    }

    #[test]
    fn the_quietest_session_goes_when_there_are_too_many() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let first = sessions.open(at(0)).unwrap();
        let second = sessions.open(at(1)).unwrap();
        assert!(
            sessions
                .find_by_secret(once(&*first.id), &first.secret, at(2))
                .is_some()
        );
        for _ in 2..=MAX_SESSIONS {
            sessions.open(at(3)).unwrap();
        }
        assert!(
            sessions
                .find_by_secret(once(&*second.id), &second.secret, at(3))
                .is_none()
        );
        assert!(
            sessions
                .find_by_secret(once(&*first.id), &first.secret, at(3))
                .is_some()
        );
    }

    #[tokio::test]
    async fn what_holds_a_session_hears_of_its_end() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        let fresh = sessions.open(now).unwrap();
        let mut held = sessions
            .find_by_secret(once(&*fresh.id), &fresh.secret, now)
            .unwrap();
        sessions.close(once(&*fresh.id), &fresh.secret);
        held.ended().await;
    }
}
