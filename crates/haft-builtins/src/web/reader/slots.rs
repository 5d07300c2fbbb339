//! `ReaderSlots`: how many files are read at a time, and how long one waits for its turn.

use std::time::Duration;

use haft::bounds::{ConcurrencyLimit, ConcurrencyPermit, PrincipalShares, ShareKey, Shares};

use super::ReadError;

/// Maximum number of readers at work for each principal among the clients; a file that never ends occupies one of them.
const EACH: usize = 2;
/// The same for the operator's own runs.
const OPERATOR: usize = 4;
/// Maximum time that a file waits for a reader. Then the caller has the file as it came.
const PATIENCE: Duration = Duration::from_secs(10);

/// The readers at work. Files that take all the time they may keep nobody else's waiting: each principal has readers of its own.
#[derive(Debug, Clone)]
pub(super) struct ReaderSlots(ConcurrencyLimit);

impl Default for ReaderSlots {
    fn default() -> Self {
        Self(ConcurrencyLimit::new(&PrincipalShares::by_principal(
            Shares {
                strangers: 0,
                clients: EACH,
                operator: OPERATOR,
            },
        )))
    }
}

impl ReaderSlots {
    /// Waits for a reader.
    pub(super) async fn take(&self, who: &ShareKey) -> Result<ConcurrencyPermit, ReadError> {
        let slot = self.0.take_within(who, PATIENCE).await;
        slot.ok_or_else(|| ReadError("too many other files are being read: try again".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use haft::bounds::{CallerClass, ShareKey};
    use haft::call::Principal;

    use super::{EACH, ReaderSlots};

    #[tokio::test(start_paused = true)]
    async fn n3_files_that_never_end_keep_nobody_elses_waiting_and_their_own_not_for_ever() {
        let slots = ReaderSlots::default();
        let client = |name: &str| ShareKey {
            class: CallerClass::Client,
            principal: Some(Principal::local(name)),
        };
        let mut stuck = Vec::new();
        for _ in 0..EACH {
            stuck.push(slots.take(&client("eve")).await.unwrap());
        }
        assert!(slots.take(&client("eve")).await.is_err());
        assert!(slots.take(&client("ann")).await.is_ok());
        assert!(slots.take(&CallerClass::Operator.into()).await.is_ok());
        drop(stuck);
        assert!(slots.take(&client("eve")).await.is_ok());
    }
}
