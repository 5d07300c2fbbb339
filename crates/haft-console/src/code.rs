//! `Codes`: one-time login codes: few, short-lived, taken once, and not to be guessed at leisure.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::console::ConsoleError;
use crate::secret::{self, Digest};

/// How long a login code may be used.
pub const CODE_LIFE: Duration = Duration::from_secs(5 * 60);
/// Codes outstanding at once; a further one drops the oldest.
pub const CODES: usize = 32;
/// Wrong codes within a minute, from everybody together; then no code is taken for the rest of it.
pub const WRONG_PER_MINUTE: usize = 10;

const MINUTE: Duration = Duration::from_secs(60);

/// What became of a code that somebody gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redeemed {
    /// It was good, and is used up now.
    Good,
    /// Never minted, used before, or too old.
    Wrong,
    /// Too many wrong ones came within a minute: this one was not looked at.
    TooMany,
}

/// The codes that are out. Times are of the monotonic clock: a wall clock that jumps keeps no code alive.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    out: VecDeque<(Digest, Instant)>,
    wrong: VecDeque<Instant>,
}

impl Codes {
    /// A fresh code.
    pub(crate) fn mint(&mut self, now: Instant) -> Result<String, ConsoleError> {
        let code = secret::fresh()?;
        while self.out.len() >= CODES {
            self.out.pop_front();
        }
        self.out.push_back((Digest::of(&code), now));
        Ok(code)
    }

    /// Takes a code.
    pub(crate) fn redeem(&mut self, code: &str, now: Instant) -> Redeemed {
        let since = |then: Instant| now.saturating_duration_since(then);
        self.out.retain(|(_, minted)| since(*minted) < CODE_LIFE);
        self.wrong.retain(|at| since(*at) < MINUTE);
        if self.wrong.len() >= WRONG_PER_MINUTE {
            return Redeemed::TooMany;
        }
        let given = Digest::of(code);
        let before = self.out.len();
        self.out.retain(|(kept, _)| !kept.same(&given));
        if self.out.len() < before {
            return Redeemed::Good;
        }
        self.wrong.push_back(now);
        Redeemed::Wrong
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{CODE_LIFE, CODES, Codes, Redeemed, WRONG_PER_MINUTE};

    #[test]
    fn a_code_is_good_once_and_for_five_minutes() {
        let (mut codes, start) = (Codes::default(), Instant::now());
        let code = codes.mint(start).unwrap();
        assert_eq!(codes.redeem("", start), Redeemed::Wrong);
        assert_eq!(codes.redeem(&code[1..], start), Redeemed::Wrong);
        assert_eq!(codes.redeem(&code, start), Redeemed::Good);
        assert_eq!(codes.redeem(&code, start), Redeemed::Wrong);
        for (age, expect) in [
            (Duration::from_millis(299_999), Redeemed::Good),
            (CODE_LIFE, Redeemed::Wrong),
            (CODE_LIFE * 100, Redeemed::Wrong),
        ] {
            let mut codes = Codes::default();
            let code = codes.mint(start).unwrap();
            assert_eq!(codes.redeem(&code, start + age), expect, "{age:?}");
        }
    }

    #[test]
    fn the_oldest_code_goes_when_too_many_are_out() {
        let (mut codes, start) = (Codes::default(), Instant::now());
        let minted: Vec<String> = (0..=CODES).map(|_| codes.mint(start).unwrap()).collect();
        assert_eq!(codes.redeem(&minted[0], start), Redeemed::Wrong);
        for code in &minted[1..] {
            assert_eq!(codes.redeem(code, start), Redeemed::Good);
        }
    }

    #[test]
    fn after_ten_wrong_codes_none_is_looked_at_for_the_rest_of_the_minute() {
        let (mut codes, start) = (Codes::default(), Instant::now());
        let code = codes.mint(start).unwrap();
        for _ in 0..WRONG_PER_MINUTE {
            assert_eq!(codes.redeem("guess", start), Redeemed::Wrong);
        }
        let later = start + Duration::from_secs(59);
        assert_eq!(codes.redeem("guess", later), Redeemed::TooMany);
        assert_eq!(codes.redeem(&code, later), Redeemed::TooMany);
        // The good one was not used up by that.
        let next = start + Duration::from_secs(60);
        assert_eq!(codes.redeem(&code, next), Redeemed::Good);
    }
}
