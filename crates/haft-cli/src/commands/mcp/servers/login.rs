//! `haft mcp login` and `logout`: signing in at a server behind haft.

use haft_app::app::App;
use serde_json::json;

use crate::commands::Done;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::visible;

/// Signs in at a server. The page's address is printed and nothing is opened: whoever is to agree decides in which browser.
pub(super) async fn login(at: &Invocation, app: &App, name: &str) -> Done {
    let screen = at.screen;
    let say = move |page: &str, issuer: &str| {
        screen.err(&format!(
            "open this page and agree there, for {}:\n{}",
            visible::line(issuer),
            visible::line(page)
        ));
    };
    let login = app.servers().login(name, say).await?;
    if at.screen.json {
        at.screen.document(&login)?;
        return Ok(Exit::Done);
    }
    let count = login.tools;
    let name = visible::line(name);
    at.screen.say(&match &login.issuer {
        Some(issuer) => format!(
            "signed in at {name} by {}: it lists {count} tools",
            visible::line(issuer)
        ),
        None => format!("{name} lets everybody in: it lists {count} tools"),
    });
    Ok(Exit::Done)
}

/// Forgets a sign-in.
pub(super) fn logout(at: &Invocation, app: &App, name: &str) -> Done {
    let was_in = app.servers().logout(name)?;
    if at.screen.json {
        at.screen
            .document(&json!({"name": name, "signed_out": was_in}))?;
        return Ok(Exit::Done);
    }
    let name = visible::line(name);
    at.screen.say(&if was_in {
        format!("signed out of {name}; what the authorization server noted is there still")
    } else {
        format!("nobody was signed in at {name}")
    });
    Ok(Exit::Done)
}
