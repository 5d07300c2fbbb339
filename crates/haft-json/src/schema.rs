//! `Schema`: a JSON Schema compiled once, which validates texts in one pass where possible.
//!
//! Most tool schemas use a common subset of JSON Schema 2020-12; such a schema is checked on the bytes of the text
//! together with the strict scan, without building a value. For any other schema, and any text that the single pass does
//! not accept, the verdict of the `jsonschema` crate is final; it also lists every violation.
//!
//! Numbers are interpreted as in `jsonschema`: an integer beyond 64 bits is the nearest double (and still an
//! integer), `1.0` is an integer, and the scan refuses numbers out of the range of doubles (`1e400`).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use crate::scan::{self, ScanError};
use crate::value;

mod coerce;
mod compile;
mod node;
mod pass;
mod violation;

pub use violation::{MAX_VIOLATIONS, Violation};

/// Maximum size of a schema, as compact JSON: four times the largest complete tool list among published MCP servers.
pub const MAX_SCHEMA_BYTES: usize = 1 << 20;
/// Maximum size of the compiled form of one `pattern`, in bytes.
const PATTERN_BYTES: usize = 1 << 20;
/// Maximum number of steps that a `pattern` with look-around may take on one string.
const PATTERN_STEPS: usize = 100_000;

/// The reason why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It refers to another document; nothing is ever fetched.
    #[error("schema refers to {0:?}, which is outside the schema")]
    Remote(String),
    /// It is too long.
    #[error("schema of {0} bytes is over {MAX_SCHEMA_BYTES}")]
    TooLarge(usize),
    /// It is nested too deeply.
    #[error("schema is nested deeper than {} levels", scan::MAX_DEPTH)]
    TooDeep,
    /// It is not a JSON Schema.
    #[error("schema is invalid: {0}")]
    Invalid(String),
}

/// A valid text in the form that will be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted<'t> {
    /// The original text, or the text with coerced scalars replaced in place.
    pub text: Cow<'t, str>,
    /// JSON pointers of the values that were coerced.
    pub coerced: Vec<String>,
}

/// A compiled schema. Use [`SchemaCache`](crate::cache::SchemaCache) to share one between equal schemas.
pub struct Schema {
    source: Arc<Value>,
    program: Option<node::Program>,
    validator: Validator,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("source", &self.source)
            .field("single_pass", &self.program.is_some())
            .finish_non_exhaustive()
    }
}

impl Schema {
    /// Compiles a schema; 2020-12 unless its `$schema` names another known dialect.
    ///
    /// # Errors
    ///
    /// If it is not a JSON Schema, refers to another document, or exceeds [`MAX_SCHEMA_BYTES`] or
    /// [`MAX_DEPTH`](scan::MAX_DEPTH).
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Self::shared(Arc::new(schema.clone()))
    }

    /// Compiles a schema that is already shared.
    ///
    /// # Errors
    ///
    /// Those of [`Schema::compile`].
    pub fn shared(source: Arc<Value>) -> Result<Self, SchemaError> {
        check_bounds(&source)?;
        let validator = build(&source).map_err(SchemaError::Invalid)?;
        Ok(Self {
            program: compile::compile(&source),
            validator,
            source,
        })
    }

    /// Returns the schema it was compiled from.
    pub fn source(&self) -> &Arc<Value> {
        &self.source
    }

    /// Whether texts are checked in the single pass.
    pub fn is_single_pass(&self) -> bool {
        self.program.is_some()
    }

    /// Validates the text of a call's arguments: it must be strict JSON, an object, and match the schema.
    ///
    /// With `coerce`, replaces obviously mistyped scalars if the schema does not accept the text as it is
    /// (`"5"` where only an integer is allowed).
    ///
    /// # Errors
    ///
    /// Every violation, up to [`MAX_VIOLATIONS`]; only the fault of the strict scan if it refuses the text.
    pub fn admit<'t>(&self, text: &'t str, coerce: bool) -> Result<Admitted<'t>, Vec<Violation>> {
        let as_it_is = Admitted {
            text: Cow::Borrowed(text),
            coerced: Vec::new(),
        };
        if self.passes(text) && text.trim_ascii_start().starts_with('{') {
            return Ok(as_it_is);
        }
        scan::scan_object(text).map_err(|error| vec![Violation::from(error)])?;
        // Coercion guesses types from parts of the schema: never change a text that the whole schema accepts.
        let verdict = self.judge(text).map(|()| as_it_is);
        if verdict.is_ok() || !coerce {
            return verdict;
        }
        let edits = coerce::edits(&self.source, text);
        if edits.is_empty() {
            return verdict;
        }
        let (text, coerced) = coerce::apply(text, edits);
        scan::scan_object(&text).map_err(|error| vec![Violation::from(error)])?;
        self.judge(&text)?;
        Ok(Admitted {
            text: Cow::Owned(text),
            coerced,
        })
    }

    /// Checks the text of a value of any type, such as a tool's structured result.
    ///
    /// # Errors
    ///
    /// Those of [`admit`](Self::admit).
    pub fn check_value(&self, text: &str) -> Result<(), Vec<Violation>> {
        if self.passes(text) {
            return Ok(());
        }
        scan::scan(text).map_err(|error| vec![Violation::from(error)])?;
        self.judge(text)
    }

    /// Runs the single pass; `false` may also mean that it cannot tell.
    #[inline]
    fn passes(&self, text: &str) -> bool {
        let program = self.program.as_ref();
        program.is_some_and(|program| pass::run(program, text).is_ok())
    }

    /// Returns the full validator's verdict on a text that has passed the strict scan.
    fn judge(&self, text: &str) -> Result<(), Vec<Violation>> {
        let value = value::value(text);
        if self.validator.is_valid(&value) {
            return Ok(());
        }
        Err(violation::list(&self.validator, &self.source, &value))
    }

    /// Returns both verdicts: of the single pass (if it can tell) and of the full validator.
    #[cfg(test)]
    pub(crate) fn verdicts(&self, text: &str) -> (Option<bool>, bool) {
        let single = self
            .program
            .as_ref()
            .map(|program| pass::run(program, text));
        let single = match single {
            None | Some(Err(pass::Halt::Unsure)) => None,
            Some(verdict) => Some(verdict.is_ok()),
        };
        (single, scan::scan(text).is_ok() && self.judge(text).is_ok())
    }
}

impl From<ScanError> for Violation {
    fn from(error: ScanError) -> Self {
        Self {
            message: format!("malformed JSON: {} at byte {}", error.fault, error.offset),
            path: error.path,
        }
    }
}

/// Refuses a schema that is too long, too deep, or refers to another document.
fn check_bounds(schema: &Value) -> Result<(), SchemaError> {
    let mut open = vec![(schema, 0)];
    while let Some((value, depth)) = open.pop() {
        if depth > scan::MAX_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => {
                for key in ["$ref", "$dynamicRef"] {
                    if let Some(Value::String(target)) = map.get(key)
                        && !target.starts_with('#')
                    {
                        return Err(SchemaError::Remote(target.clone()));
                    }
                }
                open.extend(map.values().map(|value| (value, depth + 1)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(SchemaError::TooLarge(bytes));
    }
    Ok(())
}

/// Builds the validator. Patterns take linear time where possible; those with look-around get a limited number of steps.
fn build(schema: &Value) -> Result<Validator, String> {
    let options = || {
        let options = jsonschema::options().should_validate_formats(false);
        match schema.get("$schema") {
            None => options.with_draft(Draft::Draft202012),
            Some(_) => options,
        }
    };
    let linear = PatternOptions::regex().size_limit(PATTERN_BYTES);
    let bounded = PatternOptions::fancy_regex()
        .backtrack_limit(PATTERN_STEPS)
        .size_limit(PATTERN_BYTES);
    options()
        .with_pattern_options(linear)
        .build(schema)
        .or_else(|_| options().with_pattern_options(bounded).build(schema))
        .map_err(|error| violation::clip(&error.to_string(), 300))
}
