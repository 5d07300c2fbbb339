//! A program with two kinds of tools, a policy of three rules, and a queue of approval requests that it answers itself.
#![expect(clippy::print_stdout, reason = "it exists to print")]

use std::collections::BTreeMap;
use std::sync::Arc;

use haft::{
    CancellationToken, Context, Decision, Executor, JsonSchema, Policy, Principal, Profile,
    Session, ToolCall, ToolError, ToolRegistry, approval, tool, tools,
};
use parking_lot::Mutex;
use serde::Serialize;

/// Add two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[derive(Serialize, JsonSchema)]
#[schemars(crate = "haft::schemars")]
struct Balance {
    cents: i64,
}

struct Db(Mutex<BTreeMap<String, String>>);

#[tools]
impl Db {
    /// Close an account.
    #[tool(risk = "high")]
    async fn close(&self, account: String) -> haft::Result<Balance> {
        let mut accounts = self.0.lock();
        let unknown = || ToolError::not_found(format!("no account {account:?}"));
        let cents = accounts.remove(&account).ok_or_else(unknown)?;
        let cents = cents.parse().context("the account is damaged")?;
        Ok(Balance { cents })
    }
}

/// Executes the calls of a model's reply and returns what the model reads.
async fn chat(calls: Vec<ToolCall>) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let (approver, mut requests) = approval::channel(8);
    tokio::spawn(async move {
        while let Some(pending) = requests.next().await {
            // A real program shows a window with `pending.request()` here.
            pending.decide(Decision::approve("ann", "chat"));
        }
    });
    let accounts = [("ann", "500"), ("bob", "5oo"), ("root", "0")];
    let accounts = accounts.map(|(name, cents)| (name.to_owned(), cents.to_owned()));
    let db = Db(Mutex::new(accounts.into()));
    let policy = Policy::builder(Profile::Workspace)
        .deny("close(account:root)")
        .ask("close")
        .allow("add");
    let executor = Executor::new(policy.build()?).with_approver(approver);
    let tools = ToolRegistry::new().with(add)?.with_tools(db)?;
    let session = Session::builder(Arc::new(tools))
        .with_principal(Principal::local("ann"))
        .with_cancellation(&CancellationToken::new())
        .build()?;
    let outcomes = executor.execute_all(&session, calls).await;
    Ok(outcomes.iter().map(haft::Outcome::to_model).collect())
}

/// Returns the replies to four calls: two run, one fails, and a rule denies one.
pub(crate) async fn replies() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let close = |account: &str| ToolCall::new("close", format!(r#"{{"account":"{account}"}}"#));
    let add = ToolCall::new("add", r#"{"a":2,"b":3}"#);
    chat(vec![add, close("ann"), close("bob"), close("root")]).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for reply in replies().await? {
        println!("{reply}\n");
    }
    Ok(())
}
