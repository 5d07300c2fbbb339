//! Fills in the placeholders of a skill's text. Shell commands in it stay text.

use haft::policy::plain_words;

/// The values of the placeholders.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlaceholderValues<'a> {
    /// The value of `${CLAUDE_SKILL_DIR}`.
    pub(super) folder: &'a str,
    /// The value of `${CLAUDE_PROJECT_DIR}`.
    pub(super) workspace: &'a str,
    /// The value of `${CLAUDE_SESSION_ID}`.
    pub(super) run: &'a str,
    /// The value of `$ARGUMENTS`, if the caller gave any.
    pub(super) arguments: Option<&'a str>,
    /// The names that the skill declares for its arguments.
    pub(super) names: &'a [String],
}

/// Fills in the text in one pass, so that placeholders within arguments are not expanded.
pub(super) fn fill_placeholders(text: &str, values: &PlaceholderValues<'_>) -> String {
    let given = values.arguments.unwrap_or_default();
    let words =
        plain_words(given).unwrap_or_else(|| given.split_whitespace().map(str::to_owned).collect());
    let mut out = String::with_capacity(text.len() + given.len());
    let mut rest = text;
    let mut used = false;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (length, value) = match place(rest, values, &words) {
            Some((length, value, of_arguments)) => {
                used |= of_arguments;
                (length, value)
            }
            None => (1, "$"),
        };
        out.push_str(value);
        rest = &rest[length..];
    }
    out.push_str(rest);
    if !used && !given.trim().is_empty() {
        out.push_str("\n\nARGUMENTS: ");
        out.push_str(given);
    }
    out
}

/// Returns the placeholder that a text begins with: its length, its value, and whether it refers to the arguments.
fn place<'a>(
    text: &str,
    values: &PlaceholderValues<'a>,
    words: &'a [String],
) -> Option<(usize, &'a str, bool)> {
    let fixed = [
        ("${CLAUDE_SKILL_DIR}", values.folder),
        ("${CLAUDE_PROJECT_DIR}", values.workspace),
        ("${CLAUDE_SESSION_ID}", values.run),
    ];
    if let Some((name, value)) = fixed.iter().find(|(name, _)| text.starts_with(name)) {
        return Some((name.len(), value, false));
    }
    let given = values.arguments?;
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    if let Some(after) = text.strip_prefix("$ARGUMENTS") {
        let index = after
            .strip_prefix('[')
            .and_then(|inner| inner.split_once(']'));
        if let Some((digits, _)) = index
            && let Ok(at) = digits.parse::<usize>()
        {
            return Some(("$ARGUMENTS[]".len() + digits.len(), word(at), true));
        }
        return Some(("$ARGUMENTS".len(), given, true));
    }
    // Only if the skill declares arguments, because awk uses `$1` too.
    let name: &str = text[1..]
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        .next()
        .filter(|name| !name.is_empty() && !values.names.is_empty())?;
    let at = match name.parse::<usize>() {
        Ok(at) => at,
        Err(_) => values.names.iter().position(|known| known == name)?,
    };
    Some((1 + name.len(), word(at), true))
}

/// Returns true if the text contains a command that other programs would run while loading it.
pub(super) fn holds_commands(text: &str) -> bool {
    text.contains("!`") || text.contains("```!")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, arguments: Option<&str>, names: &[&str], expect: &str) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let values = PlaceholderValues {
            folder: "/s/pdf",
            workspace: "/w",
            run: "r1",
            arguments,
            names: &names,
        };
        assert_eq!(
            fill_placeholders(text, &values),
            expect,
            "{text:?} {arguments:?}"
        );
    }

    #[test]
    fn placeholders_are_filled_in_once_and_only_where_they_are_meant() {
        for (text, arguments, names, expect) in [
            (
                "run ${CLAUDE_SKILL_DIR}/x.py",
                None,
                &[][..],
                "run /s/pdf/x.py",
            ),
            (
                "in ${CLAUDE_PROJECT_DIR} of ${CLAUDE_SESSION_ID}",
                None,
                &[],
                "in /w of r1",
            ),
            (
                "awk '{print $1}' $HOME $ARGUMENTS",
                None,
                &["a"],
                "awk '{print $1}' $HOME $ARGUMENTS",
            ),
            ("fix $ARGUMENTS now", Some("a b"), &[], "fix a b now"),
            (
                "fix $ARGUMENTS[1]$ARGUMENTS[9]!",
                Some("a 'b c'"),
                &[],
                "fix b c!",
            ),
            (
                "awk '{print $1}'",
                Some("a b"),
                &[],
                "awk '{print $1}'\n\nARGUMENTS: a b",
            ),
            ("$0 then $1, $2.", Some("a b"), &["x"], "a then b, ."),
            (
                "$issue-$branch",
                Some("7 main"),
                &["issue-", "branch"],
                "7main",
            ),
            ("$issue/$other", Some("7"), &["issue"], "7/$other"),
            (
                "$ARGUMENTS",
                Some("$ARGUMENTS ${CLAUDE_SKILL_DIR}"),
                &[],
                "$ARGUMENTS ${CLAUDE_SKILL_DIR}",
            ),
            ("no place", Some("  "), &[], "no place"),
            ("end $", Some("x"), &["a"], "end $\n\nARGUMENTS: x"),
            ("$ARGUMENTS[x]", Some("a"), &[], "a[x]"),
            ("ä$ARGUMENTSö", Some("ü"), &[], "äüö"),
        ] {
            check(text, arguments, names, expect);
        }
    }
}
