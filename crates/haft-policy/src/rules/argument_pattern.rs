//! `ArgumentPattern`: the calls that a rule covers by their arguments: `repo: acme/*, labels: bug*`.

use serde_json::Value;

use haft_files::glob::Glob;
use haft_types::spec::ToolSpec;

/// Maximum number of arguments in a rule.
const MAX_ARGUMENTS: usize = 32;

/// A pattern for arguments, each named by its dotted path; a call is covered if all of them fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentPattern {
    arguments: Box<[ParamPattern]>,
}

/// A pattern for one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamPattern {
    path: Box<str>,
    value: Glob,
}

/// Whether an argument of a call fits, for rules that deny or ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArgumentFit {
    No,
    /// The call does not say what it is.
    Unknown,
    Yes,
}

impl ArgumentPattern {
    /// Parses `name:value`, or several separated by a comma and a blank; `None` without a name before a colon. A comma before
    /// something else belongs to the value, and so does `\,`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parts = split(text);
        if parts.len() > MAX_ARGUMENTS {
            return None;
        }
        let arguments = parts.iter().map(|part| ParamPattern::parse(part));
        Some(Self {
            arguments: arguments.collect::<Option<_>>()?,
        })
    }

    /// Returns the patterns of the arguments; there is at least one.
    pub(crate) fn arguments(&self) -> &[ParamPattern] {
        &self.arguments
    }

    /// Returns the first name of each argument's path.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().map(ParamPattern::name)
    }

    /// Returns each argument with its value as written, without escapes.
    pub(crate) fn stated(&self) -> impl Iterator<Item = (&str, String)> {
        let each = self.arguments.iter();
        each.map(|one| (&*one.path, one.value.to_text()))
    }

    /// Whether it names one value of each argument.
    pub(crate) fn is_exact(&self) -> bool {
        self.arguments.iter().all(|one| one.value.is_exact())
    }

    /// Whether an allow rule covers the arguments: each is there, and each element of a list fits.
    pub(crate) fn allows(&self, arguments: &Value) -> bool {
        self.arguments.iter().all(|one| one.allows(arguments))
    }

    /// Whether a deny or ask rule covers the arguments: each is there, and of a list one element fits.
    pub(crate) fn forbids(&self, arguments: &Value) -> bool {
        let mut each = self.arguments.iter();
        each.all(|one| one.fit(arguments) == ArgumentFit::Yes)
    }

    /// Whether a deny or ask rule could cover a call of a tool that fills in what the call does not say.
    pub(crate) fn could_forbid(&self, arguments: &Value, spec: &ToolSpec) -> bool {
        let could = |one: &ParamPattern| match one.fit(arguments) {
            ArgumentFit::Yes => true,
            ArgumentFit::Unknown => one.may_be_filled_in(spec),
            ArgumentFit::No => false,
        };
        self.arguments.iter().all(could)
    }

    /// Whether it matches an example `name:value`, taking each value as a string.
    pub(crate) fn matches_example(&self, example: &str) -> bool {
        let given = split(example);
        let given: Vec<(&str, &str)> = given
            .iter()
            .filter_map(|one| one.split_once(':'))
            .map(|(name, value)| (name.trim(), value.trim()))
            .collect();
        let fits = |one: &ParamPattern| {
            let mut given = given.iter();
            given.any(|(name, value)| *name == &*one.path && one.value.matches(value))
        };
        self.arguments.iter().all(fits)
    }

    /// Whether a deny or ask rule with this pattern covers every call that an allow rule with the other covers.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let covered = |wide: &ParamPattern| {
            let mut others = other.arguments.iter();
            others.any(|narrow| wide.path == narrow.path && wide.value.covers(&narrow.value))
        };
        self.arguments.iter().all(covered)
    }
}

impl ParamPattern {
    fn parse(text: &str) -> Option<Self> {
        let (path, value) = text.split_once(':')?;
        let path = path.trim();
        is_name(path).then(|| Self {
            path: path.into(),
            value: Glob::parse(value.trim()),
        })
    }

    /// Returns the argument's dotted path.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn value(&self) -> &Glob {
        &self.value
    }

    fn name(&self) -> &str {
        self.path.split('.').next().unwrap_or_default()
    }

    fn allows(&self, arguments: &Value) -> bool {
        let found = FoundValues::at(arguments, &self.path);
        let fits = |value: &&Value| self.fits(value);
        !found.unknown && !found.values.is_empty() && found.values.iter().all(fits)
    }

    fn fit(&self, arguments: &Value) -> ArgumentFit {
        let found = FoundValues::at(arguments, &self.path);
        if found.values.iter().any(|value| self.fits(value)) {
            return ArgumentFit::Yes;
        }
        let is_null = found.values.iter().any(|value| value.is_null());
        if found.unknown || is_null {
            ArgumentFit::Unknown
        } else {
            ArgumentFit::No
        }
    }

    /// Whether the tool may take another value than the call says: it has the argument, and its schema states no default that does not
    /// fit.
    fn may_be_filled_in(&self, spec: &ToolSpec) -> bool {
        let schema = spec.input_schema.get("properties");
        let schema = schema.and_then(|all| all.get(self.name()));
        let Some(schema) = schema else {
            return false;
        };
        match schema.get("default") {
            Some(default) if self.name() == &*self.path => {
                let mut found = FoundValues::default();
                found.add(default);
                found.unknown || found.values.iter().any(|value| self.fits(value))
            }
            _ => true,
        }
    }

    fn fits(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.value.matches(text),
            Value::Bool(_) | Value::Null => self.value.matches(&value.to_string()),
            Value::Number(number) => {
                let whole = || {
                    // The same number may be written as 100, 1e2 and 100.0.
                    let number = number.as_f64().filter(|number| number.fract() == 0.0)?;
                    (number.abs() < EXACT).then(|| format!("{number:.0}"))
                };
                self.value.matches(&number.to_string())
                    || whole().is_some_and(|text| self.value.matches(&text))
            }
            Value::Array(_) | Value::Object(_) => false,
        }
    }
}

/// The whole numbers below are exact as floating-point numbers (IEEE 754, 2^53).
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The values at a path of the arguments.
#[derive(Debug, Default)]
struct FoundValues<'v> {
    values: Vec<&'v Value>,
    /// Whether a value is missing, or no single one.
    unknown: bool,
}

impl<'v> FoundValues<'v> {
    /// Finds them by the whole path as a name, and by its parts.
    fn at(arguments: &'v Value, path: &str) -> Self {
        let mut found = Self::default();
        let whole = path.contains('.').then(|| arguments.get(path)).flatten();
        if let Some(whole) = whole {
            found.add(whole);
        }
        if whole.is_none()
            || arguments
                .get(path.split('.').next().unwrap_or_default())
                .is_some()
        {
            found.descend(arguments, path);
        }
        found
    }

    /// Adds the values below a value. A number in the path is the position in a list; any other name is looked for in each element.
    fn descend(&mut self, value: &'v Value, path: &str) {
        let (name, rest) = match path.split_once('.') {
            Some((name, rest)) => (name, Some(rest)),
            None => (path, None),
        };
        let inner = match value {
            Value::Array(items) => match name.parse::<usize>() {
                Ok(at) => items.get(at),
                Err(_) if items.is_empty() => None,
                Err(_) => {
                    for item in items {
                        self.descend(item, path);
                    }
                    return;
                }
            },
            other => other.get(name),
        };
        match (inner, rest) {
            (None, _) => self.unknown = true,
            (Some(inner), Some(rest)) => self.descend(inner, rest),
            (Some(inner), None) => self.add(inner),
        }
    }

    /// Adds a value, or the elements of a list.
    fn add(&mut self, value: &'v Value) {
        match value {
            Value::Array(items) if items.is_empty() => self.unknown = true,
            Value::Array(items) => {
                for item in items {
                    self.add(item);
                }
            }
            Value::Object(_) => self.unknown = true,
            scalar => self.values.push(scalar),
        }
    }
}

fn is_name(text: &str) -> bool {
    let fine = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    !text.is_empty() && text.chars().all(fine)
}

/// Splits a text at each comma that a blank and the name of an argument follow.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut signs = text.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        let rest = &text[at + sign.len_utf8()..];
        if sign == ',' && begins_argument(rest) {
            parts.push(String::new());
            continue;
        }
        let Some(last) = parts.last_mut() else {
            break;
        };
        if sign == '\\' {
            match signs.peek() {
                Some((_, ',')) => {}
                // An escape that the pattern resolves: what follows it is no separator.
                _ => last.push(sign),
            }
            last.extend(signs.next().map(|(_, next)| next));
        } else {
            last.push(sign);
        }
    }
    parts
}

/// Whether a text begins with a blank, and then with a name and a colon.
fn begins_argument(text: &str) -> bool {
    let named = text.trim_start();
    let name = named.split_once(':').map(|(name, _)| name.trim_end());
    named.len() < text.len() && name.is_some_and(is_name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ArgumentPattern;
    use haft_types::spec::{ToolName, ToolSpec};

    fn spec(schema: Value) -> ToolSpec {
        ToolSpec::new(ToolName::new("github.x").unwrap(), "Does it.", schema)
    }

    #[test]
    fn each_argument_must_fit_and_nothing_in_a_value_is_split() {
        let has = json!({"properties": {"repo": {}, "labels": {}, "n": {}, "a": {}, "on": {"default": false}}});
        let spec = spec(has);
        for (rule, arguments, allows, forbids, could) in [
            ("repo: acme/*", json!({"repo": "acme/x"}), true, true, true),
            ("repo:acme/*", json!({"repo": "acme/x"}), true, true, true),
            (
                "repo: acme/*",
                json!({"repo": "evil/x, repo: acme/x"}),
                false,
                false,
                false,
            ),
            (
                "repo: acme/*",
                json!({"repo": "ACME/x"}),
                false,
                false,
                false,
            ),
            ("repo: acme/*", json!({"title": "x"}), false, false, true),
            ("repo: acme/*", json!({"repo": null}), false, false, true),
            (
                "repo: acme/*",
                json!({"repo": {"a": 1}}),
                false,
                false,
                true,
            ),
            ("repo: acme/*", json!({"repo": []}), false, false, true),
            (
                "repo: *",
                json!({"repo": "\u{202e}\u{fc}"}),
                true,
                true,
                true,
            ),
            ("repo: *", json!({}), false, false, true),
            ("other: x", json!({}), false, false, false),
            ("on: true", json!({}), false, false, false),
            ("on: false", json!({}), false, false, true),
            ("on: true", json!({"on": true}), true, true, true),
            (
                "repo: acme/*, n: 1",
                json!({"repo": "acme/x", "n": 1}),
                true,
                true,
                true,
            ),
            (
                "repo: acme/*, n: 1",
                json!({"repo": "acme/x", "n": 2}),
                false,
                false,
                false,
            ),
            (
                "repo: acme/*, n: 1",
                json!({"repo": "acme/x"}),
                false,
                false,
                true,
            ),
            (
                "repo: acme/*, n: 1",
                json!({"repo": "evil/x"}),
                false,
                false,
                false,
            ),
            (
                "labels: bug*",
                json!({"labels": ["bug", "bug-2"]}),
                true,
                true,
                true,
            ),
            (
                "labels: bug*",
                json!({"labels": ["bug", "x"]}),
                false,
                true,
                true,
            ),
            (
                "labels: bug*",
                json!({"labels": [["bug"], ["x"]]}),
                false,
                true,
                true,
            ),
            (
                "labels: bug*",
                json!({"labels": ["x"]}),
                false,
                false,
                false,
            ),
            (
                "labels: bug*",
                json!({"labels": ["bug", {}]}),
                false,
                true,
                true,
            ),
            ("a.b: x", json!({"a": {"b": "x"}}), true, true, true),
            ("a.b: x", json!({"a.b": "x"}), true, true, true),
            (
                "a.b: x",
                json!({"a.b": "x", "a": {"b": "y"}}),
                false,
                true,
                true,
            ),
            (
                "a.b: x",
                json!({"a": [{"b": "x"}, {"b": "y"}]}),
                false,
                true,
                true,
            ),
            ("a.b: x", json!({"a": [{"b": "x"}, {}]}), false, true, true),
            ("a.1: x", json!({"a": ["y", "x"]}), true, true, true),
            ("a.1: x", json!({"a": ["x"]}), false, false, true),
            ("n: 100", json!({"n": 1e2}), true, true, true),
            ("n: 100", json!({"n": "100"}), true, true, true),
            ("n: 1.5", json!({"n": 1.5}), true, true, true),
            (
                "n: 9007199254740993",
                json!({"n": 9_007_199_254_740_993_u64}),
                true,
                true,
                true,
            ),
            ("a: b, c", json!({"a": "b, c"}), true, true, true),
            (
                "a: https://x, b\\, c: d",
                json!({"a": "https://x, b, c: d"}),
                true,
                true,
                true,
            ),
        ] {
            let pattern = ArgumentPattern::parse(rule).unwrap();
            let got = (pattern.allows(&arguments), pattern.forbids(&arguments));
            assert_eq!(got, (allows, forbids), "{rule}: {arguments}");
            assert_eq!(
                pattern.could_forbid(&arguments, &spec),
                could,
                "{rule}: {arguments}"
            );
        }
        let many = vec!["a: x"; 33].join(", ");
        for text in ["", "x", ": x", "a b: x", "a: x, : y:", &many] {
            let read = ArgumentPattern::parse(text);
            assert!(read.is_none() || text == "a: x, : y:", "{text}");
        }
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        for (wide, narrow, covers) in [
            ("repo: acme/*", "repo: acme/x, n: 1", true),
            ("repo: acme/*, n: 1", "repo: acme/x", false),
            ("repo: acme/x", "repo: acme/*", false),
            ("repo: acme/x", "name: acme/x", false),
        ] {
            let read = |text| ArgumentPattern::parse(text).unwrap();
            assert_eq!(read(wide).covers(&read(narrow)), covers, "{wide} {narrow}");
        }
    }
}
