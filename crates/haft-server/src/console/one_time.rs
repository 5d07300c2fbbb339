//! `OneTime`: secrets that are used once and soon: login codes, and tickets for addresses that a browser opens by itself.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::console::secret::ConsoleError;
use crate::console::secret::{self, Digest};

/// How long a login code may be used.
pub(crate) const CODE_LIFE: Duration = Duration::from_secs(5 * 60);
/// How long a ticket may be used: the page asks for one just before the browser needs it.
pub(crate) const TICKET_LIFE: Duration = Duration::from_secs(30);
/// Codes or tickets outstanding at once; a further one drops the oldest.
pub(crate) const OUTSTANDING: usize = 32;

/// The outstanding secrets of one kind. Times are of the monotonic clock: a wall clock that jumps keeps none alive.
///
/// There is no lock-out after wrong ones: a secret has 256 bits, so nobody guesses it, and a lock would be a switch
/// by which any stranger keeps the operator out.
#[derive(Debug)]
pub(crate) struct OneTime {
    life: Duration,
    out: VecDeque<Issued>,
}

#[derive(Debug)]
struct Issued {
    secret: Digest,
    /// What it is good for.
    purpose: String,
    at: Instant,
}

impl OneTime {
    /// None yet; each will live this long.
    pub(crate) fn new(life: Duration) -> Self {
        Self {
            life,
            out: VecDeque::new(),
        }
    }

    /// Issues a secret for a purpose.
    pub(crate) fn issue(&mut self, purpose: &str, now: Instant) -> Result<String, ConsoleError> {
        let secret = secret::fresh()?;
        while self.out.len() >= OUTSTANDING {
            self.out.pop_front();
        }
        self.out.push_back(Issued {
            secret: Digest::of(&secret),
            purpose: purpose.to_owned(),
            at: now,
        });
        Ok(secret)
    }

    /// Whether a secret is good for this purpose; it stays.
    pub(crate) fn holds(&self, secret: &str, purpose: &str, now: Instant) -> bool {
        let given = Digest::of(secret);
        let age = |issued: &Issued| now.saturating_duration_since(issued.at);
        self.out.iter().any(|issued| {
            issued.secret.same(&given) && issued.purpose == purpose && age(issued) < self.life
        })
    }

    /// Uses a secret up; true if it was good for this purpose.
    pub(crate) fn redeem(&mut self, secret: &str, purpose: &str, now: Instant) -> bool {
        let age = |issued: &Issued| now.saturating_duration_since(issued.at);
        self.out.retain(|issued| age(issued) < self.life);
        let given = Digest::of(secret);
        let is_it = |issued: &Issued| issued.secret.same(&given) && issued.purpose == purpose;
        let before = self.out.len();
        self.out.retain(|issued| !is_it(issued));
        self.out.len() < before
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{CODE_LIFE, OUTSTANDING, OneTime};

    #[test]
    fn a_secret_is_good_once_for_its_purpose_and_for_its_life() {
        let (mut codes, start) = (OneTime::new(CODE_LIFE), Instant::now());
        let code = codes.issue("login", start).unwrap();
        assert!(!codes.redeem("", "login", start));
        assert!(!codes.redeem(&code[1..], "login", start));
        assert!(!codes.redeem(&code, "/other", start));
        assert!(!codes.holds(&code, "/other", start));
        assert!(!codes.holds(&code, "login", start + CODE_LIFE));
        assert!(codes.holds(&code, "login", start));
        assert!(codes.redeem(&code, "login", start));
        assert!(!codes.redeem(&code, "login", start), "used");
        for (age, expect) in [
            (Duration::from_millis(299_999), true),
            (CODE_LIFE, false),
            (CODE_LIFE * 100, false),
        ] {
            let mut codes = OneTime::new(CODE_LIFE);
            let code = codes.issue("login", start).unwrap();
            assert_eq!(codes.redeem(&code, "login", start + age), expect, "{age:?}");
        }
    }

    #[test]
    fn the_oldest_goes_when_too_many_are_outstanding() {
        let (mut codes, start) = (OneTime::new(CODE_LIFE), Instant::now());
        let issued: Vec<String> = (0..=OUTSTANDING)
            .map(|_| codes.issue("", start).unwrap())
            .collect();
        assert!(!codes.redeem(&issued[0], "", start));
        for code in &issued[1..] {
            assert!(codes.redeem(code, "", start));
        }
    }

    #[test]
    fn w14_wrong_codes_lock_nobody_out() {
        let (mut codes, start) = (OneTime::new(CODE_LIFE), Instant::now());
        let code = codes.issue("login", start).unwrap();
        for _ in 0..10_000 {
            assert!(!codes.redeem("guess", "login", start));
        }
        assert!(codes.redeem(&code, "login", start));
    }
}
