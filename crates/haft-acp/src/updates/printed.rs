//! What a command printed, as a terminal shows it.

use haft::result::Outcome;
use serde::Deserialize;

#[derive(Deserialize)]
struct Printed {
    stdout: String,
    #[serde(default)]
    stderr: String,
}

/// Returns what a command printed and why it failed; `None` for other calls.
pub(super) fn of(outcome: &Outcome) -> Option<String> {
    let printed: Printed = serde_json::from_str(outcome.data.as_ref()?.get()).ok()?;
    let failure = outcome.error.as_ref();
    let failure = failure.map_or("", |failure| &failure.message);
    let mut shown = printed.stdout;
    for more in [printed.stderr.as_str(), failure] {
        if !shown.is_empty() && !shown.ends_with('\n') && !more.is_empty() {
            shown.push('\n');
        }
        shown.push_str(more);
    }
    Some(shown)
}

#[cfg(test)]
mod tests {
    use haft::call::{CallId, RunId};
    use haft::result::Status;
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn a_command_shows_what_it_printed_on_both_streams_and_other_calls_show_nothing_here() {
        for (data, expect) in [
            (r#"{"stdout":"a\n","stderr":"b"}"#, Some("a\nb")),
            (r#"{"stdout":"a","stderr":"b"}"#, Some("a\nb")),
            (r#"{"stdout":"a"}"#, Some("a")),
            (r#"{"path":"a"}"#, None),
            ("[]", None),
        ] {
            let mut outcome = Outcome::new(RunId::new("r"), CallId::new("c"), "x", Status::Ok);
            assert_eq!(of(&outcome), None);
            outcome.data = Some(RawValue::from_string(data.to_owned()).unwrap());
            assert_eq!(of(&outcome).as_deref(), expect, "{data}");
        }
    }
}
