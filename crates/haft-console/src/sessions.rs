//! `Sessions`: who has logged in, by the id in their cookie; each with the secret that its changes must carry.

use std::fmt;
use std::time::{Duration, Instant};

use crate::console::ConsoleError;
use crate::secret::{self, Digest};

/// How long a session lives without a request.
pub const IDLE: Duration = Duration::from_secs(12 * 60 * 60);
/// Sessions at once; a further login ends the one that was quiet for longest.
pub const SESSIONS: usize = 64;
/// The header that every request which changes something carries beside the cookie: a page elsewhere, which a browser
/// would lend the cookie, cannot know it.
pub const SECRET_HEADER: &str = "x-haft-console";

/// Somebody who has logged in, as far as a request shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsoleSession {
    may_change: bool,
}

impl ConsoleSession {
    /// Whether the request carried the session's secret; without it, it may read and change nothing.
    pub fn may_change(self) -> bool {
        self.may_change
    }
}

struct Session {
    id: Digest,
    secret: String,
    seen: Instant,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

/// What a login gives: the cookie's value and the secret.
pub(crate) struct Fresh {
    pub(crate) id: String,
    pub(crate) secret: String,
}

/// All sessions. Times are of the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Vec<Session>);

impl Sessions {
    /// A session of its own for somebody whose code was good.
    pub(crate) fn open(&mut self, now: Instant) -> Result<Fresh, ConsoleError> {
        let fresh = Fresh {
            id: secret::fresh()?,
            secret: secret::fresh()?,
        };
        self.forget_idle(now);
        self.0.sort_by_key(|session| session.seen);
        let over = (self.0.len() + 1).saturating_sub(SESSIONS);
        self.0.drain(..over);
        self.0.push(Session {
            id: Digest::of(&fresh.id),
            secret: fresh.secret.clone(),
            seen: now,
        });
        Ok(fresh)
    }

    /// The session of this id, seen now, and whether the secret is its own.
    pub(crate) fn seen(
        &mut self,
        id: &str,
        secret: Option<&str>,
        now: Instant,
    ) -> Option<ConsoleSession> {
        let session = self.find(id, now)?;
        session.seen = now;
        let own = Digest::of(&session.secret);
        let may_change = secret.is_some_and(|given| Digest::of(given).same(&own));
        Some(ConsoleSession { may_change })
    }

    /// The secret of the session of this id.
    pub(crate) fn secret(&mut self, id: &str, now: Instant) -> Option<String> {
        Some(self.find(id, now)?.secret.clone())
    }

    /// Ends a session.
    pub(crate) fn close(&mut self, id: &str) {
        let given = Digest::of(id);
        self.0.retain(|session| !session.id.same(&given));
    }

    fn find(&mut self, id: &str, now: Instant) -> Option<&mut Session> {
        self.forget_idle(now);
        let given = Digest::of(id);
        self.0.iter_mut().find(|session| session.id.same(&given))
    }

    fn forget_idle(&mut self, now: Instant) {
        let idle = |session: &Session| now.saturating_duration_since(session.seen);
        self.0.retain(|session| idle(session) < IDLE);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{ConsoleSession, IDLE, SESSIONS, Sessions};

    #[test]
    fn a_session_reads_by_its_id_and_changes_by_its_secret() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        let (one, two) = (sessions.open(now).unwrap(), sessions.open(now).unwrap());
        let found = |may_change| Some(ConsoleSession { may_change });
        for (id, secret, expect) in [
            (&*one.id, Some(&*one.secret), found(true)),
            (&one.id, None, found(false)),
            (&one.id, Some(""), found(false)),
            (&one.id, Some(&two.secret), found(false)),
            ("", Some(&one.secret), None),
            (&one.secret, Some(&one.secret), None),
            (&one.id[1..], Some(&one.secret), None),
        ] {
            assert_eq!(sessions.seen(id, secret, now), expect);
        }
        sessions.close(&one.id);
        assert_eq!(sessions.seen(&one.id, Some(&one.secret), now), None);
        assert_eq!(sessions.secret(&two.id, now).unwrap(), two.secret);
    }

    #[test]
    fn a_session_ends_after_twelve_idle_hours() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        let fresh = sessions.open(start).unwrap();
        let late = start + IDLE / 2 + IDLE / 3;
        assert!(sessions.seen(&fresh.id, None, late).is_some());
        // Being seen is what keeps it.
        assert!(sessions.seen(&fresh.id, None, late + IDLE / 2).is_some());
        assert!(sessions.seen(&fresh.id, None, late + IDLE * 2).is_none());
    }

    #[test]
    fn the_quietest_session_goes_when_there_are_too_many() {
        let (mut sessions, start) = (Sessions::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let first = sessions.open(at(0)).unwrap();
        let second = sessions.open(at(1)).unwrap();
        assert!(sessions.seen(&first.id, None, at(2)).is_some());
        for _ in 2..=SESSIONS {
            sessions.open(at(3)).unwrap();
        }
        assert!(sessions.seen(&second.id, None, at(3)).is_none());
        assert!(sessions.seen(&first.id, None, at(3)).is_some());
    }
}
