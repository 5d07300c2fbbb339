//! Decides about the requests of a command at hosts where rules judge each of them.

use std::sync::Arc;

use haft::permission::Verdict;
use haft::spec::ToolClass;

use super::{ConnectionVerdict, Connections, MAX_PLACES, refusal};
use crate::command::connect::{CONNECT, ConnectionTarget};
use crate::proxy::ConnectionRefusal;
use crate::proxy::LoginUse;
use crate::web::target::WebUrl;

impl Connections {
    /// Returns the rule because of which the requests at a host are judged, unless a rule allows all that a connection there carries.
    pub(super) fn rule_on_requests(&self, target: &WebUrl) -> Option<String> {
        let host = target.host().trim_end_matches('.');
        let rules = &self.rules;
        let rule = rules.rule_on_requests(ToolClass::Network, host, target.port())?;
        let place = ConnectionTarget::of(target, Vec::new());
        let judged = self.verdicts(&[place]).pop();
        let allowed = judged.is_some_and(|judged| judged.verdict == Verdict::Allow);
        (!allowed).then_some(rule)
    }

    /// Decides about a request that rules allow or deny without a question; `None` if it must be asked about, or is the first at its
    /// host, which the record of the run is to have.
    pub(super) async fn decide_request(
        self: &Arc<Self>,
        place: &ConnectionTarget,
    ) -> Option<ConnectionVerdict> {
        place.request.as_ref()?;
        let judged = self.verdicts(std::slice::from_ref(place)).pop()?;
        match judged.verdict {
            Verdict::Allow => {}
            Verdict::Deny if self.decided.lock().len() < MAX_PLACES => return None,
            Verdict::Deny => return Some(Err(refusal(place, judged.reason, None))),
            Verdict::Ask => return None,
        }
        let host = ConnectionTarget {
            request: None,
            ..place.clone()
        };
        {
            let mut allowed = self.allowed.lock();
            if allowed.len() < MAX_PLACES && allowed.insert(host) {
                return None;
            }
        }
        // It can carry data out like the first.
        self.rules.count(CONNECT, &[place.permission()]).await;
        Some(Ok(place.granted()))
    }

    /// Takes the decision about a request that may only be sent once for it. Returns false if another request took it.
    pub(super) fn take_once(&self, place: &ConnectionTarget) -> bool {
        let once = place.request.as_ref();
        let once = once.is_some_and(|request| !request.is_repeatable());
        !once || self.decided.lock().remove(place).is_some()
    }

    /// Decides whether a login may be used in a request that was allowed.
    pub(in crate::command) async fn judge_login(
        self: &Arc<Self>,
        host: &str,
        login: &LoginUse,
    ) -> Result<(), ConnectionRefusal> {
        let signed = self.sign(login).await;
        signed.map_err(|(why, operator)| ConnectionRefusal::Judged {
            place: format!("{host} with your login"),
            why,
            operator,
        })
    }
}
