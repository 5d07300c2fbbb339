//! `haft token`: creates, lists and revokes access tokens for others.

use haft_app::access::{AccessTokens, NewToken, check_view};
use haft_app::view::when;
use serde_json::json;

use crate::args::{self, TokenAction};
use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::list::{TextTable, Truncation};

/// Lists, creates or revokes tokens.
pub(crate) fn run(at: &Invocation, args: &args::Token) -> ExitResult {
    match &args.action {
        None | Some(TokenAction::List) => list(at),
        Some(TokenAction::Add { name, view, days }) => add(
            at,
            &NewToken {
                name: name.clone(),
                view: view.clone(),
                days: *days,
            },
        ),
        Some(TokenAction::Remove { name }) => remove(at, name),
    }
}

fn list(at: &Invocation) -> ExitResult {
    let tokens = AccessTokens::load(&at.site.home)?;
    if at.screen.json {
        let rows = tokens.all().iter().map(|token| {
            json!({
                "name": token.name,
                "view": token.view,
                "created": token.created.to_string(),
                "expires": token.expires.to_string(),
                "expired": token.has_expired(),
            })
        });
        at.screen.document(&rows.collect::<Vec<_>>())?;
        return Ok(Exit::Done);
    }
    if tokens.all().is_empty() {
        at.screen
            .say("no access tokens: haft token add NAME creates one");
        return Ok(Exit::Done);
    }
    let mut list = TextTable::new(&[
        ("NAME", Truncation::Never),
        ("VIEW", Truncation::End),
        ("EXPIRES", Truncation::Never),
        ("", Truncation::Never),
    ]);
    for token in tokens.all() {
        list.row([
            &token.name,
            token.view.as_deref().unwrap_or("all tools"),
            &when::date(&token.expires.to_string()),
            if token.has_expired() { "expired" } else { "" },
        ]);
    }
    at.screen.out(&list.render())?;
    Ok(Exit::Done)
}

fn add(at: &Invocation, new: &NewToken) -> ExitResult {
    if let Some(view) = &new.view {
        check_view(&at.settings()?, view)?;
    }
    let (secret, token) = AccessTokens::add(&at.site.home, new)?;
    if at.screen.json {
        at.screen.document(&json!({
            "name": token.name,
            "view": token.view,
            "expires": token.expires.to_string(),
            "token": secret,
        }))?;
        return Ok(Exit::Done);
    }
    at.screen.out(&format!("{secret}\n"))?;
    let reaches = token.view.as_deref();
    let reaches = reaches.map_or_else(|| "all tools".to_owned(), |view| format!("the view {view}"));
    at.screen.say(&format!(
        "the token of {}, for {reaches}, until {}; it is shown only once",
        token.name,
        when::date(&token.expires.to_string())
    ));
    Ok(Exit::Done)
}

fn remove(at: &Invocation, name: &str) -> ExitResult {
    AccessTokens::remove(&at.site.home, name)?;
    if at.screen.json {
        at.screen
            .document(&json!({"name": name, "removed": true}))?;
    } else {
        at.screen
            .say(&format!("the token of {name} is refused from now on"));
    }
    Ok(Exit::Done)
}
