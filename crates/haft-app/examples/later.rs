//! A program whose risky calls wait for a decision: one process asks, the user decides in a second, and a third resumes the call.
#![expect(clippy::print_stdout, reason = "it exists to print")]

use std::process::ExitCode;

use haft::approval::ApprovalId;
use haft::{Decision, Outcome, Policy, Principal, Profile, ToolCall};
use haft_app::{Haft, PendingCallMode, Problem, Standard};

pub(crate) fn main() -> ExitCode {
    haft_app::main(app)
}

async fn app() -> Result<(), Problem> {
    let haft = Haft::builder()
        .workspace("work")
        .state("state")
        .standard(Standard::FILES | Standard::COMMANDS)
        .policy(Policy::builder(Profile::Workspace).deny("Read(.env)"))
        .when_asked(PendingCallMode::Suspend)
        .build()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ask", calls @ ..] => {
            let calls = calls
                .chunks_exact(2)
                .map(|call| ToolCall::new(call[0], call[1]));
            let run = haft.run(Principal::local("ann")).await?;
            run.call_all(calls.collect()).await.iter().for_each(show);
            run.suspend().await
        }
        ["decide", id] => {
            let decision = Decision::approve("ann", "chat");
            haft.approvals()
                .decide(&ApprovalId::new(*id), decision)
                .await
        }
        ["resume", id] => {
            show(&haft.resume(&ApprovalId::new(*id)).await?);
            Ok(())
        }
        _ => Err(Problem::usage(
            "say ask TOOL ARGUMENTS …, decide ID or resume ID",
        )),
    }
}

fn show(outcome: &Outcome) {
    let id = outcome.approval.as_deref().unwrap_or("-");
    println!(
        "{} {id} {}",
        outcome.tool,
        outcome.to_model().replace('\n', " ")
    );
}
