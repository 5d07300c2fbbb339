//! An agent that refunds orders: the program's own tool, a policy, approvals that the program answers, and the record of the run.
#![expect(clippy::print_stdout, reason = "it exists to print")]

use haft::{Decision, Policy, Principal, Profile, tool};
use haft_app::{Haft, Problem, agent::AgentTask};

/// Pay money back for an order.
#[tool(risk = "high")]
fn refund(order: u32, euros: u32) -> String {
    format!("paid {euros} euros back for order {order}")
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Problem> {
    let haft = Haft::builder()
        .tool(refund)
        .state("state")
        .policy(Policy::builder(Profile::Workspace).deny("refund(order:13)"))
        .decide(|request| {
            println!("asked: {} {}", request.tool, request.arguments);
            Decision::approve("olga", "the shop")
        })
        .build()?;

    let task = AgentTask::of_model("scripted:refunds.toml").for_principal(Principal::local("ann"));
    let mut agent = haft.agent(task).await?;
    let finished = agent.run("Refund the orders 7 and 13.").await?;
    println!("{}: {}", finished.end.as_str(), finished.text);

    for call in haft.calls(agent.id()).await? {
        println!(
            "{} under {}: {}",
            call["status"], call["rule"], call["summary"]
        );
    }
    agent.release().await;
    haft.shut_down().await;
    Ok(())
}
