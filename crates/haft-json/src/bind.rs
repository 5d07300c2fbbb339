//! Object members fixed by the host: omitted from the schema that callers see, and filled into their text.
//!
//! ```
//! use haft_json::bind::Binding;
//! use serde_json::json;
//!
//! let schema = json!({"type": "object", "properties": {"q": {"type": "string"}, "key": {"type": "string"}}});
//! let values = json!({"key": "k-1"}).as_object().cloned().unwrap_or_default();
//! let binding = Binding::new(&schema, values)?;
//! assert_eq!(binding.caller_schema(&schema)["properties"], json!({"q": {"type": "string"}}));
//! assert_eq!(binding.fill(r#"{"q":"x"}"#).unwrap(), r#"{"q":"x","key":"k-1"}"#);
//! assert!(binding.fill(r#"{"q":"x","key":"mine"}"#).is_err());
//! # Ok::<(), haft_json::bind::BindError>(())
//! ```

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::keys::Keys;
use crate::lexer::Lexer;
use crate::scan;
use crate::schema::Violation;

/// Number of hex digits of the hash shown instead of a value.
const SEAL_DIGITS: usize = 16;

/// Values fixed by the host or its settings, by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    values: Map<String, Value>,
    /// The values as shown to the user.
    written: Map<String, Value>,
    /// `"name":value,…`, as inserted into a text.
    members: String,
}

/// A name that cannot be bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema has no property {0:?} to bind")]
pub struct BindError(pub String);

impl Binding {
    /// Binds values for objects with this schema.
    ///
    /// # Errors
    ///
    /// The schema has no property with one of the names.
    pub fn new(schema: &Value, values: Map<String, Value>) -> Result<Self, BindError> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let open = !matches!(schema.get("additionalProperties"), Some(Value::Bool(false)));
        for name in values.keys() {
            let known = properties.map_or(open, |properties| properties.contains_key(name));
            if !known {
                return Err(BindError(name.clone()));
            }
        }
        let object = serde_json::to_string(&values).unwrap_or_default();
        let members = object.get(1..object.len().saturating_sub(1));
        Ok(Self {
            members: members.unwrap_or_default().to_owned(),
            written: values
                .iter()
                .map(|(name, value)| hide_value(name, value))
                .collect(),
            values,
        })
    }

    /// Sets how values are shown to the user: as the settings write them. Without this, the user sees a hash of each value, since it may
    /// be a secret.
    pub fn written_as(mut self, written: Map<String, Value>) -> Self {
        self.written = written;
        self
    }

    /// Returns the values as the user may see them.
    pub fn written(&self) -> &Map<String, Value> {
        &self.written
    }

    /// Whether nothing is bound.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the bound values by name.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// Returns the schema as callers see it: without the bound properties.
    pub fn caller_schema(&self, schema: &Value) -> Value {
        let mut shown = schema.clone();
        if let Some(Value::Object(properties)) = shown.get_mut("properties") {
            properties.retain(|name, _| !self.values.contains_key(name));
        }
        let bound = |name: &Value| name.as_str().is_some_and(|n| self.values.contains_key(n));
        if let Some(Value::Array(required)) = shown.get_mut("required") {
            required.retain(|name| !bound(name));
        }
        shown
    }

    /// Inserts the bound values into the text of an object.
    ///
    /// # Errors
    ///
    /// The text is not strict JSON, is not an object, or names a bound value.
    pub fn fill(&self, text: &str) -> Result<String, Vec<Violation>> {
        scan::scan_object(text).map_err(|error| vec![Violation::from(error)])?;
        let mut lexer = Lexer::new(text);
        let refused = |name: &str| Violation {
            path: format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            message: format!("{name:?} is bound by the host"),
        };
        let (names, end) = top_level(&mut lexer).ok_or_else(|| {
            let message = "the arguments are not a JSON object".to_owned();
            vec![Violation {
                path: String::new(),
                message,
            }]
        })?;
        let sent = |name: &&String| names.contains(name);
        let found: Vec<Violation> = self
            .values
            .keys()
            .filter(sent)
            .map(|n| refused(n))
            .collect();
        if !found.is_empty() {
            return Err(found);
        }
        let mut filled = String::with_capacity(text.len() + self.members.len() + 1);
        filled.push_str(text.get(..end).unwrap_or_default());
        if !names.is_empty() && !self.members.is_empty() {
            filled.push(',');
        }
        filled.push_str(&self.members);
        filled.push_str(text.get(end..).unwrap_or_default());
        Ok(filled)
    }

    /// Returns the text of an object without the bound values.
    pub fn without(&self, text: &str) -> String {
        let Ok(mut members) = serde_json::from_str::<Map<String, Value>>(text) else {
            return text.to_owned();
        };
        members.retain(|name, _| !self.values.contains_key(name));
        Value::Object(members).to_string()
    }
}

/// Returns the text shown instead of a value that may be a secret: different values have different hashes.
fn hide_value(name: &str, value: &Value) -> (String, Value) {
    let digest = hex(&Sha256::digest(value.to_string().as_bytes()));
    let short = digest.get(..SEAL_DIGITS).unwrap_or_default();
    (name.to_owned(), format!("set by the host ({short})").into())
}

/// Returns the names of an object's members and the position of its closing brace.
fn top_level(lexer: &mut Lexer<'_>) -> Option<(Vec<String>, usize)> {
    let mut names = Vec::new();
    let mut keys = Keys::default();
    if lexer.peek() != b'{' {
        return None;
    }
    lexer.at += 1;
    while lexer.peek() != b'}' {
        let key = lexer.key().ok()?;
        names.push(lexer.unescape(key));
        scan::value(lexer, &mut keys, 1).ok()?;
        match lexer.peek() {
            b',' => lexer.at += 1,
            b'}' => {}
            _ => return None,
        }
    }
    let end = lexer.at;
    lexer.at += 1;
    lexer.finish().ok()?;
    Some((names, end))
}
