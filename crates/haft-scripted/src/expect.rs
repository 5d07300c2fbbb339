//! Checks a request against the expectations of a scenario.

use http::HeaderMap;

use crate::conversation::{Conversation, HistoryResult};
use crate::names;
use crate::scenario::{Expectation, ExpectedResult, Scenario};

/// Maximum number of bytes that an error quotes of a text.
const QUOTE: usize = 400;

/// Returns an error that names the expectation that does not hold.
pub(crate) fn check(
    expect: &Expectation,
    conversation: &Conversation,
    headers: &HeaderMap,
    scenario: &Scenario,
) -> Result<(), String> {
    if let Some(words) = &expect.user {
        check_contains("the last text of the user", &conversation.user, words)?;
    }
    for words in &expect.system {
        check_contains("the instructions", &conversation.system, words)?;
    }
    if let Some(model) = &expect.model
        && *model != conversation.model
    {
        let found = &conversation.model;
        return Err(format!("the model must be `{model}`; it is `{found}`"));
    }
    check_tools(expect, conversation)?;
    for (name, words) in &expect.headers {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        match value {
            Some(value) => check_contains(&format!("the header `{name}`"), value, words)?,
            None => return Err(format!("the header `{name}` is missing")),
        }
    }
    let mut results = expect.results.iter();
    results.try_for_each(|expected| check_result(expected, conversation, scenario))
}

fn check_tools(expect: &Expectation, conversation: &Conversation) -> Result<(), String> {
    let tools = &conversation.tools;
    let names = || {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        names.join(", ")
    };
    let mut missing = expect.tools.iter();
    if let Some(name) = missing.find(|name| names::find(tools, name).is_none()) {
        return Err(format!(
            "the tool `{name}` must be declared; declared are: {}",
            quote(&names())
        ));
    }
    let mut hidden = expect.no_tools.iter();
    match hidden.find(|name| names::find(tools, name).is_some()) {
        Some(name) => Err(format!("the tool `{name}` must not be declared")),
        None => Ok(()),
    }
}

fn check_result(
    expected: &ExpectedResult,
    conversation: &Conversation,
    scenario: &Scenario,
) -> Result<(), String> {
    let id = &expected.call;
    let Some(result) = find_result(id, conversation, scenario) else {
        return Err(format!("the request holds no result of the call `{id}`"));
    };
    let what = format!("the result of the call `{id}`");
    if let Some(words) = &expected.contains {
        check_contains(&what, &result.text, words)?;
    }
    if let Some(words) = &expected.lacks
        && result.text.contains(words)
    {
        let text = quote(&result.text);
        return Err(format!("{what} must not contain {words:?}; it is {text:?}"));
    }
    match (expected.error, result.is_error) {
        (Some(expect), Some(is)) if expect != is => Err(format!(
            "{what} must {}be marked as an error; it is {:?}",
            if expect { "" } else { "not " },
            quote(&result.text)
        )),
        _ => Ok(()),
    }
}

/// Returns the result of a call by its id; by its position if the dialect or the client uses its own ids.
fn find_result<'c>(
    id: &str,
    conversation: &'c Conversation,
    scenario: &Scenario,
) -> Option<&'c HistoryResult> {
    let calls = conversation.turns.iter().rev().flatten();
    let mut named = calls.filter(|call| call.id.as_deref() == Some(id));
    if let Some(call) = named.next() {
        return call.result.as_ref();
    }
    let (turn, position) = scenario.place(id)?;
    conversation.turns.get(turn)?.get(position)?.result.as_ref()
}

fn check_contains(what: &str, text: &str, words: &str) -> Result<(), String> {
    if text.contains(words) {
        return Ok(());
    }
    let text = quote(text);
    Err(format!("{what} must contain {words:?}; it is {text:?}"))
}

fn quote(text: &str) -> String {
    if text.len() <= QUOTE {
        return text.to_owned();
    }
    let end = (0..=QUOTE).rev().find(|at| text.is_char_boundary(*at));
    format!("{}…", &text[..end.unwrap_or_default()])
}
