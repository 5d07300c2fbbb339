//! The data of a command: its two streams, and what else is known of it.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::amend::Amended;

/// Data with a member `stdout` that is a text, and maybe one `stderr`.
pub(super) struct CommandStreams<'a> {
    pub(super) stdout: Cow<'a, str>,
    pub(super) stderr: Cow<'a, str>,
    data: Amended<'a>,
}

impl<'a> CommandStreams<'a> {
    /// Reads a command's data; `None` for other data.
    pub(super) fn of(data: &'a RawValue) -> Option<Self> {
        if !data.get().contains("\"stdout\"") {
            return None;
        }
        let data = Amended::read(data.get()).ok()?;
        let count = |name: &str| data.members().iter().filter(|one| one.is(name)).count();
        if count("stdout") > 1 || count("stderr") > 1 {
            return None;
        }
        let stdout = text(data.value("stdout")?)?;
        let stderr = match data.value("stderr") {
            Some(stderr) => text(stderr)?,
            None => Cow::Borrowed(""),
        };
        Some(Self {
            stdout,
            stderr,
            data,
        })
    }

    /// Returns the members that neither the streams nor the status say, as JSON; empty if there are none.
    pub(super) fn details(mut self, is_ok: bool, status: &str) -> String {
        let bytes = self.stdout.len().to_string();
        self.data.retain(|member| {
            let value = member.value().get();
            if member.is("stdout") || member.is("stderr") {
                return false;
            }
            let is_said = (member.is("truncated") && value == "false")
                || (member.is("stdout_bytes") && value == bytes)
                || (member.is("exit_code") && is_ok && value == "0")
                || (member.is("exit_code") && says(status, "exit code", value))
                || (member.is("signal") && says(status, "signal", value));
            !is_said
        });
        if self.data.is_empty() {
            return String::new();
        }
        self.data.to_text()
    }
}

fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let text = value.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(text).ok().map(Cow::Owned)
}

/// Returns whether the status names this number.
fn says(status: &str, what: &str, number: &str) -> bool {
    let mut after = status.split(what).skip(1);
    after.any(|after| {
        let after = after.trim_start();
        let digits = after
            .find(|c: char| !(c.is_ascii_digit() || c == '-'))
            .unwrap_or(after.len());
        after.get(..digits) == Some(number)
    })
}
