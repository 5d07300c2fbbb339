//! Types of settings: whether a value fits its key, and which of two values is stricter.

use haft::text::clip;
use toml::Value;

use crate::config::keys::{SettingKey, SettingType, Untrusted};

/// Maximum number of characters of a value that a message shows.
const MAX_SHOWN: usize = 60;

/// How a value violates its key's type.
#[derive(Debug)]
pub struct TypeMismatch {
    /// What the key takes.
    pub expected: String,
    /// The value that was given.
    pub got: String,
    /// The type of the given value, without the value.
    pub got_kind: String,
    /// The index of the list item that is wrong.
    pub item: Option<usize>,
}

/// Checks a value against its key's type.
///
/// # Errors
/// [`TypeMismatch`], with what the key takes.
pub fn check(key: &SettingKey, value: &Value) -> Result<(), TypeMismatch> {
    let fits = match (key.kind, value) {
        (SettingType::Flag, Value::Boolean(_))
        | (SettingType::Text, Value::String(_))
        | (SettingType::Anything, _) => true,
        (SettingType::Whole(least), Value::Integer(number)) => *number >= least,
        (SettingType::Seconds, value) => seconds(value).is_some(),
        (SettingType::Amount, value) => amount(value).is_some(),
        (SettingType::Choice(words), Value::String(word)) => words.contains(&word.as_str()),
        (SettingType::Map, Value::Table(table)) => table.values().all(Value::is_str),
        (SettingType::Items, Value::Array(items)) => return each(key, items, Value::is_str),
        (SettingType::Rules, Value::Array(items)) => return each(key, items, is_rule),
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(wrong(key, value, None))
    }
}

fn each(key: &SettingKey, items: &[Value], fits: fn(&Value) -> bool) -> Result<(), TypeMismatch> {
    match items.iter().position(|item| !fits(item)) {
        Some(at) => Err(wrong(key, &items[at], Some(at))),
        None => Ok(()),
    }
}

fn wrong(key: &SettingKey, value: &Value, item: Option<usize>) -> TypeMismatch {
    TypeMismatch {
        expected: expected(key.kind),
        got: match value {
            Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {
                clip(&value.to_string(), MAX_SHOWN).into_owned()
            }
            _ => article(value.type_str()),
        },
        got_kind: article(value.type_str()),
        item,
    }
}

/// Returns whether a value is a rule: a text, or a table with `rule` and nothing besides its examples, its reason, and
/// the tool and arguments of a saved rule.
fn is_rule(value: &Value) -> bool {
    let texts = |value: &Value| {
        value
            .as_array()
            .is_some_and(|items| items.iter().all(Value::is_str))
    };
    match value {
        Value::String(_) => true,
        Value::Table(table) => {
            table.get("rule").is_some_and(Value::is_str)
                && table.iter().all(|(name, value)| match name.as_str() {
                    "rule" | "reason" | "tool" | "arguments" => value.is_str(),
                    "match" | "no_match" => texts(value),
                    _ => false,
                })
        }
        _ => false,
    }
}

/// Returns a time above zero in seconds, at most ten years: more is a mistake.
pub fn seconds(value: &Value) -> Option<f64> {
    const TEN_YEARS: f64 = 10.0 * 365.0 * 86_400.0;
    number(value).filter(|seconds| *seconds > 0.0 && *seconds <= TEN_YEARS)
}

/// Returns a number that is at least zero and at most 10^12: more is a mistake.
pub fn amount(value: &Value) -> Option<f64> {
    number(value).filter(|amount| (0.0..=1e12).contains(amount))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers beyond 2^53 are over every bound anyway"
)]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

/// Describes what a kind takes.
pub fn expected(kind: SettingType) -> String {
    match kind {
        SettingType::Flag => "true or false".to_owned(),
        SettingType::Whole(least) => format!("a whole number of at least {least}"),
        SettingType::Seconds => "a number of seconds above 0".to_owned(),
        SettingType::Amount => "a number of at least 0".to_owned(),
        SettingType::Text => "a text".to_owned(),
        SettingType::Choice(words) => format!("one of {}", quote_words(words)),
        SettingType::Items => "a list of texts".to_owned(),
        SettingType::Rules => {
            "a list of rules (texts, or tables with rule, match, no_match, reason, tool, arguments)"
                .to_owned()
        }
        SettingType::Map => "a table of texts".to_owned(),
        SettingType::Anything => "any value".to_owned(),
    }
}

fn quote_words(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    quoted.join(", ")
}

/// Adds the article: `an integer`, `a string`.
pub fn article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {kind}")
}

/// Returns whether an untrusted folder may replace `old` with `new`.
pub fn may_tighten(key: &SettingKey, old: Option<&Value>, new: &Value) -> bool {
    match key.untrusted {
        Untrusted::Ignored => false,
        Untrusted::Adds => true,
        Untrusted::Only(word) => new.to_string() == word,
        Untrusted::Stricter => old.is_some_and(|old| match key.kind {
            SettingType::Choice(words) => {
                let rank =
                    |value: &Value| words.iter().position(|word| value.as_str() == Some(word));
                rank(new) > rank(old)
            }
            SettingType::Whole(_) => new.as_integer() < old.as_integer(),
            SettingType::Seconds => match (seconds(new), seconds(old)) {
                (Some(new), Some(old)) => new < old,
                _ => false,
            },
            _ => false,
        }),
    }
}
