//! What request bodies of all dialects share: members that the host adds.

use haft_json::members::Writer;
use serde_json::value::RawValue;

use crate::declarations::Declarations;
use crate::dialect::Dialect;
use crate::error::WireError;

/// Returns the error for something that a dialect cannot express.
pub(crate) fn inexpressible(dialect: Dialect, what: impl Into<String>) -> WireError {
    WireError::Inexpressible {
        dialect: dialect.as_str(),
        what: what.into(),
    }
}

/// Writes the members that a host adds, unchanged.
///
/// # Errors
/// If haft writes one of them itself, one appears twice, or a name is not printable ASCII without quotes,
/// backslashes and blanks.
pub(crate) fn extra(
    dialect: Dialect,
    body: &mut Writer<'_>,
    own: &[&str],
    extra: &[(String, Box<RawValue>)],
) -> Result<(), WireError> {
    for (at, (name, value)) in extra.iter().enumerate() {
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        if name.is_empty() || !name.bytes().all(plain) {
            let what = format!(
                "the further member {name:?}: its name must be printable ASCII without quotes, backslashes and blanks"
            );
            return Err(inexpressible(dialect, what));
        }
        let is_twice = extra[..at].iter().any(|(other, _)| other == name);
        if is_twice || own.contains(&name.as_str()) {
            let what = format!(
                "the further member {name:?}, which is already in the body; set it by the request"
            );
            return Err(inexpressible(dialect, what));
        }
        body.key(name).extend_from_slice(value.get().as_bytes());
    }
    Ok(())
}

/// Checks that the tools were declared for the dialect in which they are sent.
///
/// # Errors
/// If they were not.
pub(crate) fn same_dialect(dialect: Dialect, tools: &Declarations) -> Result<(), WireError> {
    if tools.dialect == dialect {
        return Ok(());
    }
    let what = format!(
        "tools that were declared for {}; declare them for {dialect}",
        tools.dialect
    );
    Err(inexpressible(dialect, what))
}
