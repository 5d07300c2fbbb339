//! Decides whether a command may use a login of the host: each login once, however often it is used.

use std::sync::Arc;

use haft::permission::Verdict;
use haft::result::Status;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::command::connect::LoginInput;
use crate::command::connections::{Connections, refusal_of};
use crate::command::login_decisions::{LoginReceiver, LoginRefusal, key};
use crate::command::sign::{SIGN, SignData, SignInput};
use crate::proxy::LoginUse;

/// Maximum number of logins that haft decides about per command.
const MAX_LOGINS: usize = 16;

impl Connections {
    /// Decides about a login, unless that was done for this command.
    pub(super) async fn sign(self: &Arc<Self>, login: &LoginUse) -> Result<(), LoginRefusal> {
        if self.logins.is_agreed(login) {
            return Ok(());
        }
        let over = || Err(("the command ended before it was decided".to_owned(), None));
        let Some(mut hear) = self.hear_of(login)? else {
            return over();
        };
        let heard = hear.wait_for(Option::is_some).await;
        let heard = heard.ok().and_then(|heard| heard.clone());
        heard.unwrap_or_else(over)
    }

    /// Returns where the decision about a login arrives, and has it made if nothing has asked before; `None` if the command has ended.
    fn hear_of(self: &Arc<Self>, login: &LoginUse) -> Result<Option<LoginReceiver>, LoginRefusal> {
        let mut asked = self.logins.asked.lock();
        if let Some(hear) = asked.get(&key(login)) {
            return Ok(Some(hear.clone()));
        }
        if asked.len() >= MAX_LOGINS {
            let why = format!("the command has already asked for {MAX_LOGINS} logins");
            return Err((why, None));
        }
        let (tell, hear) = watch::channel(None);
        let (this, login_input) = (Arc::clone(self), LoginInput::from(login));
        // A task of its own: the program may give up this connection and open another.
        let is_open = self.spawn_question(async move {
            let decided = this.ask_about_login(login_input).await;
            tell.send_replace(Some(decided));
        });
        if !is_open {
            return Ok(None);
        }
        asked.insert(key(login), hear.clone());
        Ok(Some(hear))
    }

    async fn ask_about_login(&self, login: LoginInput) -> Result<(), LoginRefusal> {
        let verdict = self.login_verdict(&login);
        let _thinking = (verdict == Verdict::Ask).then(|| self.clock.begin());
        let request = self.request();
        let input = SignInput {
            program: request.program.clone(),
            login: login.clone(),
            command: request.command.clone(),
            task: request.task.clone(),
        };
        // Plain data: serialization does not fail.
        let arguments = serde_json::to_string(&input).unwrap_or_default();
        let outcome = self.call_now(SIGN, arguments).await;
        if outcome.status != Status::Ok {
            return Err(refusal_of(outcome));
        }
        let data = outcome.data.as_deref().map(RawValue::get);
        let agreed: Option<SignData> = data.and_then(|data| serde_json::from_str(data).ok());
        if agreed.is_some_and(|agreed| agreed.login == login) {
            return Ok(());
        }
        Err((
            "the approval was edited to another login than this command asked for".to_owned(),
            None,
        ))
    }
}
