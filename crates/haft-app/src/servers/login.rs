//! `haft mcp login` and `logout`: signing in at a server behind haft, and forgetting that.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::client::oauth::Vault as _;
use haft_mcp::client::{Client, ClientLimits};
use serde::Serialize;

use crate::problem::Problem;
use crate::servers::Servers;
use crate::servers::endpoint::Address;
use crate::servers::sign_in::{Browser, SignIn};

/// How long a sign-in may take, with the person's part in it.
const WHOLE: Duration = Duration::from_secs(900);

/// What came of a sign-in.
#[derive(Debug, Clone, Serialize)]
pub struct Login {
    /// The server's name in settings.
    pub name: String,
    /// Who lets haft in; none where the server asks for nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// What was asked for.
    pub scopes: Vec<String>,
    /// Tools that the server lists now.
    pub tools: usize,
}

/// What came of signing out.
#[derive(Debug, Clone, Serialize)]
pub struct Logout {
    /// The server's name in settings.
    pub name: String,
    /// Whether there was something to forget.
    pub signed_out: bool,
    /// Whether an authorization server took the tokens back.
    pub revoked: bool,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What to do about a server that wants to know who asks.
pub(crate) fn advice(name: &str) -> String {
    format!(
        "`haft mcp login {name}` signs in; where the server wants a key, it goes into mcp.servers.{name}.headers"
    )
}

impl Servers {
    /// Signs in at a server; `say` tells the person which page to open, and by which authorization server that is.
    ///
    /// # Errors
    /// Settings have no such server, it is none that one signs in at, or the sign-in fails.
    pub async fn login(
        &self,
        name: &str,
        say: impl Fn(&str, &str) + Send + Sync + 'static,
    ) -> Result<Login, Problem> {
        let (address, sign_in) = self.signable(name)?;
        let failed =
            |why: &dyn std::fmt::Display| Problem::failed(format!("sign in at `{name}`: {why}"));
        let browser = Browser::new(say).await.map_err(|e| failed(&e))?;
        let oauth = sign_in.oauth(Some(Arc::new(browser)));
        let oauth = Arc::new(oauth.map_err(|e| failed(&e))?);
        let limits = ClientLimits {
            connect: WHOLE,
            list: WHOLE,
            ..ClientLimits::default()
        };
        let client = Client::connect(address.wire(Some(oauth)), None, limits).await;
        let client = client.map_err(|e| failed(&e))?;
        let tools = client.tools().await;
        client.close().await;
        let tools = tools.map_err(|e| failed(&e))?.len();
        let grants = sign_in.file.load().map_err(|e| failed(&e))?;
        let grant = grants.current();
        Ok(Login {
            name: name.to_owned(),
            issuer: grant.map(|grant| grant.issuer.clone()),
            scopes: grant.map(|grant| grant.scopes.clone()).unwrap_or_default(),
            tools,
        })
    }

    /// Gives the tokens of a server back where that can be done, and forgets them in any case.
    ///
    /// # Errors
    /// Settings have no such server, it is none that one signs in at, or the file cannot be removed.
    pub async fn logout(&self, name: &str) -> Result<Logout, Problem> {
        let (_, sign_in) = self.signable(name)?;
        let revoked = match sign_in.oauth(None) {
            Ok(oauth) => oauth.revoke().await,
            Err(why) => Err(why),
        };
        let removed = sign_in.file.remove();
        let signed_out =
            removed.map_err(|e| Problem::failed(format!("sign out of `{name}`: {e}")))?;
        let (revoked, error) = match revoked {
            Ok(revoked) => (revoked, None),
            Err(why) => (false, Some(why)),
        };
        Ok(Logout {
            name: name.to_owned(),
            signed_out,
            revoked,
            error,
        })
    }

    fn signable(&self, name: &str) -> Result<(&Address, &SignIn), Problem> {
        let server = self.find(name)?;
        let Some(address) = server.address.as_deref() else {
            let problem = Problem::usage(format!("`{name}` is a process: nobody signs in there"));
            return Err(problem.advise(format!("its keys go into mcp.servers.{name}.env")));
        };
        let Some(sign_in) = address.sign_in() else {
            let problem = Problem::usage(format!(
                "`{name}` has a key in its settings, which is what lets haft in"
            ));
            return Err(problem.advise(format!(
                "take Authorization out of mcp.servers.{name}.headers to sign in instead"
            )));
        };
        Ok((address, sign_in))
    }
}
