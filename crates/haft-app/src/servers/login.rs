//! `haft mcp login` and `logout`: signs in to an external server, and out again.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::client::oauth::Vault as _;
use haft_mcp::client::{Client, ClientLimits};
use serde::Serialize;

use crate::problem::Problem;
use crate::servers::Servers;
use crate::servers::endpoint::ServerAddress;
use crate::servers::sign_in::{Browser, SignIn};

/// How long a sign-in may take, including the user's part.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(900);

/// The result of a sign-in.
#[derive(Debug, Clone, Serialize)]
pub struct SignInResult {
    /// The server's name in the settings.
    pub name: String,
    /// The authorization server; `None` if the server requires none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The requested scopes.
    pub scopes: Vec<String>,
    /// Number of tools that the server lists now.
    pub tools: usize,
}

/// The result of signing out.
#[derive(Debug, Clone, Serialize)]
pub struct SignOutResult {
    /// The server's name in the settings.
    pub name: String,
    /// Whether there were stored tokens.
    pub signed_out: bool,
    /// Whether an authorization server revoked the tokens.
    pub revoked: bool,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Returns what to do about a server that requires authorization.
pub(crate) fn advice(name: &str) -> String {
    format!(
        "`haft mcp login {name}` signs in; where the server wants a key, it goes into mcp.servers.{name}.headers"
    )
}

impl Servers {
    /// Signs in to a server; `say` tells the user which page to open, and which authorization server it belongs to.
    ///
    /// # Errors
    /// The settings have no such server, it does not support signing in, or the sign-in fails.
    pub async fn login(
        &self,
        name: &str,
        say: impl Fn(&str, &str) + Send + Sync + 'static,
    ) -> Result<SignInResult, Problem> {
        let (address, sign_in) = self.find_signable(name)?;
        let failed = |why: &dyn std::fmt::Display| {
            Problem::failed(format!("cannot sign in at `{name}`: {why}"))
        };
        let browser = Browser::new(say).await.map_err(|e| failed(&e))?;
        let oauth = sign_in.oauth(Some(Arc::new(browser)));
        let oauth = Arc::new(oauth.map_err(|e| failed(&e))?);
        let limits = ClientLimits {
            connect: SIGN_IN_TIMEOUT,
            list: SIGN_IN_TIMEOUT,
            ..ClientLimits::default()
        };
        let client = Client::connect(address.wire(Some(oauth)), None, limits).await;
        let client = client.map_err(|e| failed(&e))?;
        let tools = client.tools().await;
        client.close().await;
        let tools = tools.map_err(|e| failed(&e))?.len();
        let grants = sign_in.file.load().map_err(|e| failed(&e))?;
        let grant = grants.current();
        Ok(SignInResult {
            name: name.to_owned(),
            issuer: grant.map(|grant| grant.issuer.clone()),
            scopes: grant.map(|grant| grant.scopes.clone()).unwrap_or_default(),
            tools,
        })
    }

    /// Revokes the tokens of a server if that is possible, and removes them in any case.
    ///
    /// # Errors
    /// The settings have no such server, it does not support signing in, or the file cannot be removed.
    pub async fn logout(&self, name: &str) -> Result<SignOutResult, Problem> {
        let (_, sign_in) = self.find_signable(name)?;
        let revoked = match sign_in.oauth(None) {
            Ok(oauth) => oauth.revoke().await,
            Err(why) => Err(why),
        };
        let removed = sign_in.file.remove();
        let signed_out =
            removed.map_err(|e| Problem::failed(format!("cannot sign out of `{name}`: {e}")))?;
        let (revoked, error) = match revoked {
            Ok(revoked) => (revoked, None),
            Err(why) => (false, Some(why)),
        };
        Ok(SignOutResult {
            name: name.to_owned(),
            signed_out,
            revoked,
            error,
        })
    }

    fn find_signable(&self, name: &str) -> Result<(&ServerAddress, &SignIn), Problem> {
        let server = self.find(name)?;
        let Some(address) = server.address.as_deref() else {
            let problem = Problem::usage(format!("`{name}` is a local process: it has no sign-in"));
            return Err(problem.advise(format!("its keys go into mcp.servers.{name}.env")));
        };
        let Some(sign_in) = address.sign_in() else {
            let problem = Problem::usage(format!("`{name}` already has a key in its settings"));
            return Err(problem.advise(format!(
                "remove Authorization from mcp.servers.{name}.headers to sign in instead"
            )));
        };
        Ok((address, sign_in))
    }
}
