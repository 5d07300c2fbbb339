//! `LoginDecisions`: what was decided about the logins of one command.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::command::connect::LoginInput;
use crate::proxy::LoginUse;

/// Why a login may not be used, for the command, and the setting that would allow it, for the operator.
pub(super) type LoginRefusal = (String, Option<String>);

/// A decision that may not have been made yet.
pub(super) type LoginReceiver = watch::Receiver<Option<Result<(), LoginRefusal>>>;

/// The decisions about one command's logins.
#[derive(Debug, Default)]
pub(super) struct LoginDecisions {
    /// Agreed to together with the connection that uses it.
    agreed: Mutex<HashSet<(String, String)>>,
    pub(super) asked: Mutex<HashMap<(String, String), LoginReceiver>>,
}

impl LoginDecisions {
    /// Notes that a request for a connection agreed to a login, too.
    pub(super) fn note_agreed(&self, login: &LoginInput) {
        self.agreed
            .lock()
            .insert((login.purpose.clone(), login.by.clone()));
    }

    /// Returns true if such a request agreed to the login.
    pub(super) fn is_agreed(&self, login: &LoginUse) -> bool {
        self.agreed.lock().contains(&key(login))
    }
}

/// Returns what tells logins apart.
pub(super) fn key(login: &LoginUse) -> (String, String) {
    (login.purpose.clone(), login.by.clone())
}
