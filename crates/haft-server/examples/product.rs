//! A product with its own tools, served over MCP: on stdin and stdout for one client, or over HTTP beside other routes, for users
//! with tokens. Risky calls wait for an operator, who decides at `/approvals`.
#![expect(clippy::print_stdout, reason = "it says where it listens")]

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;

use axum::Router;
use axum::routing::get;
use haft::{Policy, Principal, Profile, ToolError, tools};
use haft_app::{Haft, PendingCallMode};
use haft_server::{Access, HostGuard, Mcp, TokenOwner, approvals, same_token};
use parking_lot::Mutex;
use tokio::net::TcpListener;

/// The accounts of a bank, in cents.
struct Accounts(Mutex<BTreeMap<String, i64>>);

#[tools]
impl Accounts {
    /// Read the balance of an account, in cents.
    #[tool]
    fn balance(&self, account: String) -> haft::Result<i64> {
        let accounts = self.0.lock();
        let unknown = || ToolError::not_found(format!("no account {account:?}"));
        accounts.get(&account).copied().ok_or_else(unknown)
    }

    /// Close an account.
    #[tool(risk = "high")]
    fn close(&self, account: String) -> String {
        self.0.lock().remove(&account);
        format!("closed {account}")
    }
}

/// Returns the owner of this token. A real product looks it up in its database.
fn by_token(token: &str) -> Option<TokenOwner> {
    let users = [
        ("ann's token", "ann", false),
        ("the operator's token", "olga", true),
    ];
    let (_, name, operator) = users.into_iter().find(|user| same_token(token, user.0))?;
    let principal = Some(Principal::local(name));
    Some(TokenOwner {
        principal,
        view: None,
        operator,
    })
}

pub(crate) fn main() -> ExitCode {
    haft_app::main(app)
}

async fn app() -> Result<(), Box<dyn Error + Send + Sync>> {
    let accounts = ["ann", "bob", "root"].map(|name| (name.to_owned(), 100));
    let haft = Haft::builder()
        .tools(Accounts(Mutex::new(accounts.into())))
        .state("state")
        .policy(Policy::builder(Profile::Workspace).deny("close(account:root)"))
        .when_asked(PendingCallMode::Suspend)
        .build()?;
    let mcp = Mcp::new(&haft).named("mine", "My product");
    if std::env::args().any(|word| word == "stdio") {
        mcp.stdio().await?;
    } else {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        println!("listening on http://{address}");
        let access = Access::bearer(HostGuard::new(address), by_token);
        let http = mcp.http(access.clone());
        let routes = Router::new()
            .route("/health", get(async || "ok"))
            .route_service("/mcp", http.clone())
            .nest("/approvals", approvals(&haft, access));
        tokio::select! {
            served = axum::serve(listener, routes) => served?,
            stopped = tokio::signal::ctrl_c() => stopped?,
        }
        http.shutdown();
    }
    haft.shut_down().await;
    Ok(())
}
