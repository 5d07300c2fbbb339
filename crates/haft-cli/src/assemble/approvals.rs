//! Who is asked: nobody, the rules' automatic yes up to a risk, the person at this terminal.

use haft::approval::{Answer, ApprovalRequest, Approver, AutoApprove, Decision};
use haft::audit::BoxFuture;
use haft::spec::Risk;

use crate::assemble::parts;
use crate::invocation::{Invocation, somebody_is_there};
use crate::settings::Settings;
use crate::terminal::Terminal;

/// Says yes up to a risk, asks the person about the rest.
#[derive(Debug)]
struct Asked {
    yes_up_to: Option<Risk>,
    person: Option<Terminal>,
}

impl Approver for Asked {
    fn automatic(&self, request: &ApprovalRequest) -> Option<Decision> {
        AutoApprove::up_to(self.yes_up_to?).automatic(request)
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        match &self.person {
            Some(person) => person.ask(request),
            None => Box::pin(async { Answer::Nobody }),
        }
    }
}

/// The approver that `approval.mode` and this process's terminal give; none where Ask ends denied.
pub(crate) fn approver(
    at: &Invocation,
    settings: &Settings,
    asks: bool,
) -> Option<impl Approver + 'static> {
    let mode = settings.text("approval.mode").unwrap_or("deny");
    let yes_up_to = match mode {
        "auto:safe" => Some(Risk::Safe),
        "auto:high" => Some(Risk::High),
        _ => None,
    };
    let person = (asks && mode != "deny" && somebody_is_there()).then(|| {
        let by = parts::principal(&at.environment);
        Terminal::new(
            at.screen,
            at.workspace.clone(),
            format!("{}@terminal", by.subject),
        )
    });
    (yes_up_to.is_some() || person.is_some()).then_some(Asked { yes_up_to, person })
}
