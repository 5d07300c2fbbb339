//! A single strict JSON reader: it accepts only text that every JSON reader understands the same way.
//!
//! If one reader judges `{"a":1,"a":2}` and another one acts on it, their disagreement is a security hole. So all of this crate is built
//! on one [`lexer`]: the strict [`scan`], [`schema`]s checked in the same pass over the bytes, coercion of obviously mistyped
//! scalars, members bound by the host ([`bind`]) and the [`canonical`] form. It knows nothing about tools.
//!
//! ```
//! use haft_json::scan::scan_object;
//! use haft_json::schema::Schema;
//! use serde_json::json;
//!
//! assert!(scan_object(r#"{"n": 1, "n": 2}"#).is_err());
//!
//! let schema = Schema::compile(&json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}))?;
//! let admitted = schema.admit(r#"{"n": "5"}"#, true).unwrap();
//! assert_eq!(admitted.text, r#"{"n": 5}"#);
//! assert_eq!(admitted.coerced, ["/n"]);
//!
//! let violations = schema.admit(r#"{"n": "five"}"#, true).unwrap_err();
//! assert_eq!(violations[0].to_string(), r#"/n: "n" must be an integer, got "five""#);
//! # Ok::<(), haft_json::schema::SchemaError>(())
//! ```

pub mod amend;
pub mod bind;
pub mod cache;
pub mod canonical;
pub mod de;
pub mod depth;
pub mod escape;
pub mod hex;
mod keys;
pub mod lexer;
pub mod members;
pub mod raw;
pub mod scan;
pub mod schema;
pub mod value;
pub mod view;

#[cfg(test)]
mod tests;
