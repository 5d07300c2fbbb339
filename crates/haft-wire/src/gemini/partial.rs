//! Arguments that arrive in pieces, each with its path (`$.a.b[0]`).

use haft_json::escape::string;

use super::part::PartialArg;

/// Maximum number of items of a list: an index must not create a long one.
const LONGEST: usize = 4096;
/// Maximum depth of a path.
const DEEPEST: usize = 64;

/// The arguments received so far.
#[derive(Debug, Default)]
pub(crate) struct PartialArgs(PartialValue);

#[derive(Debug, Default)]
enum PartialValue {
    #[default]
    Null,
    Text(String),
    /// A number or a boolean, as JSON.
    Plain(String),
    List(Vec<PartialValue>),
    Object(Vec<(String, PartialValue)>),
}

#[derive(Debug, Clone, Copy)]
enum PathSegment<'p> {
    Name(&'p str),
    Index(usize),
}

impl PartialArgs {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.0, PartialValue::Null)
    }

    /// Adds pieces.
    ///
    /// # Errors
    /// If the path of a piece is invalid.
    pub(crate) fn add(&mut self, pieces: Vec<PartialArg<'_>>) -> Result<(), String> {
        for piece in pieces {
            let path = piece.json_path.0.as_ref();
            let refused = || format!("{path:?} is not a path to an argument");
            let mut place = &mut self.0;
            for step in steps(path).ok_or_else(refused)? {
                place = place.at(step).ok_or_else(refused)?;
            }
            if let Some(text) = piece.string_value {
                match place {
                    PartialValue::Text(so_far) => so_far.push_str(&text.0),
                    other => *other = PartialValue::Text(text.0.into_owned()),
                }
            } else if let Some(number) = piece.number_value {
                *place = PartialValue::Plain(number.get().to_owned());
            } else if let Some(truth) = piece.bool_value {
                *place = PartialValue::Plain(truth.to_string());
            }
        }
        Ok(())
    }

    /// Returns the arguments as JSON.
    pub(crate) fn json(&self) -> String {
        let mut out = Vec::new();
        self.0.write(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Parses the steps of a path: names after dots or in `['…']`, and indexes.
fn steps(path: &str) -> Option<Vec<PathSegment<'_>>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(dotted) = rest.strip_prefix('.') {
            let end = dotted.find(['.', '[']).unwrap_or(dotted.len());
            steps.push(PathSegment::Name(
                dotted.get(..end).filter(|name| !name.is_empty())?,
            ));
            rest = &dotted[end..];
        } else {
            let (inner, after) = rest.strip_prefix('[')?.split_once(']')?;
            let quoted = inner
                .strip_prefix('\'')
                .and_then(|inner| inner.strip_suffix('\''));
            let quoted = quoted.or_else(|| {
                inner
                    .strip_prefix('"')
                    .and_then(|inner| inner.strip_suffix('"'))
            });
            steps.push(match quoted {
                Some(name) => PathSegment::Name(name),
                None => PathSegment::Index(inner.parse().ok()?),
            });
            rest = after;
        }
    }
    let begins = matches!(steps.first(), Some(PathSegment::Name(_)));
    (begins && steps.len() <= DEEPEST).then_some(steps)
}

impl PartialValue {
    /// Returns the value one step below, and creates it if it does not exist.
    fn at(&mut self, step: PathSegment<'_>) -> Option<&mut Self> {
        match step {
            PathSegment::Name(name) => {
                if matches!(self, Self::Null) {
                    *self = Self::Object(Vec::new());
                }
                let Self::Object(members) = self else {
                    return None;
                };
                let found = members.iter().position(|(own, _)| own == name);
                let at = found.unwrap_or(members.len());
                if found.is_none() {
                    members.push((name.to_owned(), Self::Null));
                }
                members.get_mut(at).map(|(_, value)| value)
            }
            PathSegment::Index(index) => {
                if matches!(self, Self::Null) {
                    *self = Self::List(Vec::new());
                }
                let Self::List(items) = self else { return None };
                if index >= items.len() {
                    if index >= LONGEST {
                        return None;
                    }
                    items.resize_with(index + 1, Self::default);
                }
                items.get_mut(index)
            }
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Text(text) => string(out, text),
            Self::Plain(json) => out.extend_from_slice(json.as_bytes()),
            Self::List(items) => {
                out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(members) => {
                out.push(b'{');
                for (at, (name, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    string(out, name);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_arguments_come_together_at_their_places() {
        let pieces = r#"[
            {"jsonPath": "$.where.city", "stringValue": "New ", "willContinue": true},
            {"jsonPath": "$.where.city", "stringValue": "Delhi"},
            {"jsonPath": "$.tags[1]", "stringValue": "b"},
            {"jsonPath": "$['a.b']", "numberValue": 1.50},
            {"jsonPath": "$.on", "boolValue": true},
            {"jsonPath": "$.none", "nullValue": "NULL_VALUE"}]"#;
        let mut arguments = PartialArgs::default();
        arguments
            .add(serde_json::from_str(pieces).unwrap())
            .unwrap();
        let expect =
            r#"{"where":{"city":"New Delhi"},"tags":[null,"b"],"a.b":1.50,"on":true,"none":null}"#;
        assert_eq!(arguments.json(), expect);
    }

    #[test]
    fn a_place_that_is_none_is_refused() {
        for path in [
            "",
            "a",
            "$",
            "$.",
            "$..a",
            "$[0]",
            "$.a[x]",
            "$.a[99999999]",
            "$.a[",
            "$.on.deeper",
        ] {
            let mut arguments = PartialArgs::default();
            let on = r#"[{"jsonPath":"$.on","boolValue":true}]"#;
            arguments.add(serde_json::from_str(on).unwrap()).unwrap();
            let piece = format!(r#"[{{"jsonPath":"{path}","stringValue":"x"}}]"#);
            assert!(
                arguments
                    .add(serde_json::from_str(&piece).unwrap())
                    .is_err(),
                "{path}"
            );
        }
    }
}
