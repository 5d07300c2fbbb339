//! `haft mcp login` and `logout`: signs in to a server behind haft.

use haft::plural::counted;
use haft_app::app::App;

use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::visible;

/// Signs in to a server. Prints the page's address and opens nothing: the user chooses the browser in which to agree.
pub(super) async fn login(at: &Invocation, app: &App, name: &str) -> ExitResult {
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
    let tools = counted(login.tools, "tool");
    let name = visible::line(name);
    at.screen.say(&match &login.issuer {
        Some(issuer) => format!(
            "signed in to {name} with {}: it lists {tools}",
            visible::line(issuer)
        ),
        None => format!("{name} needs no sign-in: it lists {tools}"),
    });
    Ok(Exit::Done)
}

/// Removes a login.
pub(super) async fn logout(at: &Invocation, app: &App, name: &str) -> ExitResult {
    let logout = app.servers().logout(name).await?;
    if at.screen.json {
        at.screen.document(&logout)?;
        return Ok(Exit::Done);
    }
    let name = visible::line(name);
    at.screen.say(&match (logout.signed_out, logout.revoked) {
        (true, true) => format!("signed out of {name}; the authorization server revoked its tokens"),
        (true, false) => match &logout.error {
            Some(why) => format!(
                "signed out of {name} here; the authorization server did not revoke its tokens: {}",
                visible::line(why)
            ),
            None => format!("signed out of {name} here; its tokens stay valid until they expire, as the authorization server cannot revoke them"),
        },
        (false, _) => format!("haft was not signed in to {name}"),
    });
    Ok(Exit::Done)
}
