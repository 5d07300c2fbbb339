//! Whether a text repeats structured data, so that it need not be said twice.

use serde_json::value::RawValue;

use crate::json::amend::Amended;
use crate::json::canonical::canonical;

/// Returns whether the text is the data: the same JSON, or the same as the value in `{"result": value}`.
pub(super) fn is_same(text: &str, data: &RawValue) -> bool {
    is_same_json(text, data.get()) || wrapped(data).is_some_and(|value| is_value(text, value))
}

/// Returns the value of data that was no object.
fn wrapped(data: &RawValue) -> Option<&RawValue> {
    let data = Amended::read(data.get()).ok()?;
    match data.members() {
        [only] if only.is("result") => data.value("result"),
        _ => None,
    }
}

fn is_value(text: &str, value: &RawValue) -> bool {
    let is_text = || serde_json::from_str::<String>(value.get()).is_ok_and(|value| value == text);
    is_same_json(text, value.get()) || (value.get().starts_with('"') && is_text())
}

fn is_same_json(text: &str, data: &str) -> bool {
    let text = text.trim_ascii();
    if text == data {
        return true;
    }
    // Only an object or a list can be written in several ways that are worth comparing.
    let begins = |with: char| text.starts_with(with) && data.starts_with(with);
    (begins('{') || begins('['))
        && match (canonical(text), canonical(data)) {
            (Ok(text), Ok(data)) => text == data,
            _ => false,
        }
}
