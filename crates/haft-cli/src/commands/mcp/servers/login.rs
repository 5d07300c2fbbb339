//! `haft mcp login` and `logout`: signs in to a server behind haft.

use haft_app::app::App;

use crate::commands::Done;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::visible;

/// Signs in to a server. Prints the page's address and opens nothing: the user chooses the browser in which to agree.
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

/// Removes a login.
pub(super) async fn logout(at: &Invocation, app: &App, name: &str) -> Done {
    let logout = app.servers().logout(name).await?;
    if at.screen.json {
        at.screen.document(&logout)?;
        return Ok(Exit::Done);
    }
    let name = visible::line(name);
    at.screen.say(&match (logout.signed_out, logout.revoked) {
        (true, true) => format!("signed out of {name}; the authorization server took its tokens back"),
        (true, false) => match &logout.error {
            Some(why) => format!(
                "signed out of {name} here; the authorization server did not take its tokens back: {}",
                visible::line(why)
            ),
            None => format!("signed out of {name} here; its tokens hold until they end, as the authorization server takes none back"),
        },
        (false, _) => format!("nobody was signed in at {name}"),
    });
    Ok(Exit::Done)
}
