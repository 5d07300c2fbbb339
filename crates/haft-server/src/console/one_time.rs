//! `OneTimeSecrets`: short-lived secrets for a single use: login codes, and tickets for URLs that the browser opens by itself.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::console::secret::ConsoleError;
use crate::console::secret::{self, SecretDigest};

/// Lifetime of a login code.
pub(crate) const CODE_LIFE: Duration = Duration::from_secs(5 * 60);
/// Lifetime of a ticket: a page asks for one just before the browser needs it.
pub(crate) const TICKET_LIFE: Duration = Duration::from_secs(30);
/// Maximum number of outstanding codes or tickets; one more drops the oldest.
pub(crate) const MAX_OUTSTANDING: usize = 32;

/// The outstanding secrets of one kind. Times use the monotonic clock, so a jump of the wall clock extends no secret's life.
///
/// Wrong secrets cause no lock-out: 256 bits cannot be guessed, and a lock would let any stranger keep the operator out.
#[derive(Debug)]
pub(crate) struct OneTimeSecrets {
    life: Duration,
    issued: VecDeque<IssuedSecret>,
}

#[derive(Debug)]
struct IssuedSecret {
    secret: SecretDigest,
    /// What the secret is valid for.
    purpose: String,
    at: Instant,
}

impl OneTimeSecrets {
    /// Creates an empty set whose secrets live this long.
    pub(crate) fn new(life: Duration) -> Self {
        Self {
            life,
            issued: VecDeque::new(),
        }
    }

    /// Issues a secret for a purpose.
    pub(crate) fn issue(&mut self, purpose: &str, now: Instant) -> Result<String, ConsoleError> {
        let secret = secret::fresh()?;
        while self.issued.len() >= MAX_OUTSTANDING {
            self.issued.pop_front();
        }
        self.issued.push_back(IssuedSecret {
            secret: SecretDigest::of(&secret),
            purpose: purpose.to_owned(),
            at: now,
        });
        Ok(secret)
    }

    /// Returns whether a secret is valid for this purpose, without consuming it.
    pub(crate) fn holds(&self, secret: &str, purpose: &str, now: Instant) -> bool {
        let given = SecretDigest::of(secret);
        let age = |issued: &IssuedSecret| now.saturating_duration_since(issued.at);
        self.issued.iter().any(|issued| {
            issued.secret.same(&given) && issued.purpose == purpose && age(issued) < self.life
        })
    }

    /// Consumes a secret; returns whether it was valid for this purpose.
    pub(crate) fn redeem(&mut self, secret: &str, purpose: &str, now: Instant) -> bool {
        let age = |issued: &IssuedSecret| now.saturating_duration_since(issued.at);
        self.issued.retain(|issued| age(issued) < self.life);
        let given = SecretDigest::of(secret);
        let is_it = |issued: &IssuedSecret| issued.secret.same(&given) && issued.purpose == purpose;
        let before = self.issued.len();
        self.issued.retain(|issued| !is_it(issued));
        self.issued.len() < before
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{CODE_LIFE, MAX_OUTSTANDING, OneTimeSecrets};

    #[test]
    fn a_secret_is_good_once_for_its_purpose_and_for_its_life() {
        let (mut codes, start) = (OneTimeSecrets::new(CODE_LIFE), Instant::now());
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
            let mut codes = OneTimeSecrets::new(CODE_LIFE);
            let code = codes.issue("login", start).unwrap();
            assert_eq!(codes.redeem(&code, "login", start + age), expect, "{age:?}");
        }
    }

    #[test]
    fn the_oldest_goes_when_too_many_are_outstanding() {
        let (mut codes, start) = (OneTimeSecrets::new(CODE_LIFE), Instant::now());
        let issued: Vec<String> = (0..=MAX_OUTSTANDING)
            .map(|_| codes.issue("", start).unwrap())
            .collect();
        assert!(!codes.redeem(&issued[0], "", start));
        for code in &issued[1..] {
            assert!(codes.redeem(code, "", start));
        }
    }

    #[test]
    fn w14_wrong_codes_lock_nobody_out() {
        let (mut codes, start) = (OneTimeSecrets::new(CODE_LIFE), Instant::now());
        let code = codes.issue("login", start).unwrap();
        for _ in 0..10_000 {
            assert!(!codes.redeem("guess", "login", start));
        }
        assert!(codes.redeem(&code, "login", start));
    }
}
