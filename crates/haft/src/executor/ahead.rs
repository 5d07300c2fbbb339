//! Asking ahead: one process clears a call so that another can make it.

use crate::call::ToolCall;
use crate::error::ErrorKind;
use crate::executor::Executor;
use crate::executor::admit::{self, Admission};
use crate::executor::call_result::OutcomeContent;
use crate::executor::clear;
use crate::executor::early_end::EarlyEnd;
use crate::executor::exit::OpenCall;
use crate::executor::incoming::CallMode;
use crate::executor::judge;
use crate::executor::no_open_request;
use crate::executor::settlement::Settlement;
use crate::permission::Verdict;
use crate::result::{Outcome, Status};
use crate::session::Session;

impl Executor {
    /// Admits and judges a call and requests approval as [`execute`](Self::execute) does, records the result, and runs nothing. The
    /// outcome is `ok` if the call may run, `denied`, or `suspended` with a request that the same call finds when it is made, in any
    /// process, and claims once.
    pub async fn ask_ahead(&self, session: &Session, call: ToolCall) -> Outcome {
        let mut settlement = Settlement::default();
        let mut open = OpenCall::new(&self.parts, session, CallMode::Ahead.incoming(call));
        let end = clear_ahead(&mut open, &mut settlement).await;
        let end = end.unwrap_or_else(OutcomeContent::from);
        if settlement.needs_settling() {
            return settlement.settle(&mut open, end, true).await;
        }
        open.close(end)
    }
}

/// Runs the stages before the tool runs.
async fn clear_ahead(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
) -> Result<OutcomeContent, EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    parts.open(session)?;
    let Admission::Admitted(admitted) = admit::admit(parts, session, open)? else {
        let refused = "haft cannot ask in advance about a call that refers to results";
        return Err(EarlyEnd::failed(ErrorKind::InvalidArguments, refused));
    };
    let judged = judge::judge(open, admitted)?;
    if judged.ruling().verdict == Verdict::Allow {
        // What counts of it, the call finds when it is made.
        let why = no_open_request::by_policy(judged.ruling());
        no_open_request::withdraw(open, judged.decided(), &why).await?;
    } else {
        clear::clear(open, settlement, judged).await?;
    }
    Ok(OutcomeContent {
        summary: Some("it may run; nothing ran here".to_owned()),
        ..OutcomeContent::of(Status::Ok)
    })
}
