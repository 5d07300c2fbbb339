//! Checks a scenario beyond its format, so that it fails when it is read rather than in the middle of a test.

use std::collections::HashSet;

use haft_wire::Dialect;
use serde_json::Value;

use super::{
    CallPiece, ErrorResponse, InjectedFault, PatchAction, PatchPiece, ReplyPiece, Scenario,
    ScenarioError, ScenarioTurn, ShellPiece,
};

/// Maximum number of turns, and of pieces per turn.
const MOST: usize = 1000;
/// Maximum length of a pause, in milliseconds.
const LONGEST_PAUSE: u64 = 600_000;
/// Maximum length of an id: OpenAI's rule for calls in Chat Completions.
const LONGEST_ID: usize = 40;

/// The reason why something cannot be played, if any.
type CheckResult = Result<(), String>;

pub(super) fn check(scenario: &Scenario) -> Result<(), ScenarioError> {
    let all = &scenario.turns;
    if all.is_empty() || all.len() > MOST || scenario.asides.len() > MOST {
        return Err(at("turns")(format!("there must be 1 to {MOST} turns")));
    }
    pause(scenario.pause_ms).map_err(at("pause_ms"))?;
    let mut ids = HashSet::new();
    for (number, turn) in (1..).zip(all) {
        let place = format!("turn {number}");
        results(turn, &ids).map_err(at(&place))?;
        check_turn(turn, &place)?;
        ids.extend(
            turn.say
                .iter()
                .filter_map(ReplyPiece::id)
                .map(str::to_owned),
        );
    }
    for (number, turn) in (1..).zip(&scenario.asides) {
        let place = format!("aside {number}");
        if turn.expect.user.is_none() && turn.expect.system.is_empty() {
            let why = "an aside needs `expect.user` or `expect.system`, so that it is known which requests are for it";
            return Err(at(&place)(why.to_owned()));
        }
        results(turn, &ids).map_err(at(&place))?;
        check_turn(turn, &place)?;
    }
    Ok(())
}

fn at(place: &str) -> impl Fn(String) -> ScenarioError + use<> {
    let place = place.to_owned();
    move |reason| ScenarioError::Unplayable {
        place: place.clone(),
        reason,
    }
}

fn check_turn(turn: &ScenarioTurn, place: &str) -> Result<(), ScenarioError> {
    pause(turn.delay_ms).map_err(at(place))?;
    headers(turn.headers.iter()).map_err(at(place))?;
    if turn.say.len() > MOST {
        return Err(at(place)(format!("a turn has at most {MOST} pieces")));
    }
    for (number, piece) in (1..).zip(&turn.say) {
        check_piece(piece).map_err(at(&format!("{place}, piece {number}")))?;
    }
    for (number, fault) in (1..).zip(&turn.faults) {
        if let InjectedFault::Status(status) = fault {
            check_status(status).map_err(at(&format!("{place}, fault {number}")))?;
        }
    }
    Ok(())
}

fn pause(millis: u64) -> CheckResult {
    (millis <= LONGEST_PAUSE).then_some(()).ok_or(format!(
        "a pause of {millis} ms is too long; at most {LONGEST_PAUSE}"
    ))
}

fn results(turn: &ScenarioTurn, ids: &HashSet<String>) -> CheckResult {
    let mut expected = turn.expect.results.iter();
    match expected.find(|result| !ids.contains(&result.call)) {
        Some(result) => Err(format!(
            "`expect.results` names the call `{}`, which no earlier turn makes; give that call this `id`",
            result.call
        )),
        None => Ok(()),
    }
}

fn check_piece(piece: &ReplyPiece) -> CheckResult {
    if let Some(id) = piece.id() {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if id.is_empty() || id.len() > LONGEST_ID || !id.chars().all(letter) {
            return Err(format!(
                "the id `{id}` must have 1 to {LONGEST_ID} letters, digits, `_` and `-`"
            ));
        }
    }
    match piece {
        ReplyPiece::Call(call) => check_call(call),
        ReplyPiece::Patch(patch) => check_patch(patch),
        ReplyPiece::Shell(ShellPiece { commands, .. }) if commands.is_empty() => {
            Err("`commands` is empty; name at least one".to_owned())
        }
        ReplyPiece::Item(items) => {
            let unknown = items.keys().find(|word| word.parse::<Dialect>().is_err());
            match (unknown, items.values().find(|item| !item.is_object())) {
                (Some(word), _) => Err(format!(
                    "{word:?} is not a dialect; use openai-chat, openai-responses, anthropic or gemini"
                )),
                (_, Some(item)) => Err(format!("an item must be an object, not `{item}`")),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn check_call(call: &CallPiece) -> CheckResult {
    let ways = [
        call.arguments.is_some(),
        call.raw.is_some(),
        call.input.is_some(),
    ];
    if ways.into_iter().filter(|way| *way).count() > 1 {
        return Err("a call has one of `arguments`, `raw` and `input`".to_owned());
    }
    let Some(arguments) = &call.arguments else {
        return Ok(());
    };
    match arguments.values().find_map(date) {
        Some(date) => Err(format!(
            "`{date}` is a date of TOML, which JSON does not have; put it in quotes"
        )),
        None => Ok(()),
    }
}

/// Returns a date, which the TOML parser represents as an object with a special member.
fn date(value: &Value) -> Option<String> {
    match value {
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            if key == "$__toml_private_datetime" {
                return value.as_str().map(str::to_owned);
            }
            date(value)
        }),
        Value::Array(items) => items.iter().find_map(date),
        _ => None,
    }
}

fn check_patch(patch: &PatchPiece) -> CheckResult {
    match (patch.action, &patch.diff) {
        (PatchAction::Delete, Some(_)) => {
            Err("a file that is deleted has no `diff`; leave it out".to_owned())
        }
        (PatchAction::Create | PatchAction::Update, None) => Err(
            "`diff` is missing: lines that begin with `+`, for a change with `-`, a blank and `@@`, too"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

fn check_status(status: &ErrorResponse) -> CheckResult {
    if !(400..600).contains(&status.code) {
        return Err(format!(
            "the status {} is not an error; use 400 to 599",
            status.code
        ));
    }
    headers(status.headers.iter())
}

fn headers<'h>(mut headers: impl Iterator<Item = (&'h String, &'h String)>) -> CheckResult {
    let wrong = headers.find(|(name, value)| {
        http::HeaderName::from_bytes(name.as_bytes()).is_err()
            || http::HeaderValue::from_str(value).is_err()
    });
    match wrong {
        Some((name, value)) => Err(format!("`{name}: {value}` is not a header")),
        None => Ok(()),
    }
}
