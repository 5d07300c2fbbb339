//! The body of a request. Whether the reply comes as a stream is a matter of the path here.

use haft_json::escape::string;
use haft_json::members::{Writer, members};
use serde_json::value::RawValue;

use super::history;
use crate::body::{extra, inexpressible, same_dialect};
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::request::{Choice, Request};

/// What haft writes itself.
const OWN: [&str; 3] = ["contents", "systemInstruction", "tools"];
/// Objects that haft adds a member to, and that member.
const SHARED: [(&str, &str); 2] = [
    ("generationConfig", "maxOutputTokens"),
    ("toolConfig", "functionCallingConfig"),
];

/// Writes the body of a request. That one turn may hold one call alone cannot be said in this dialect: it is the host's to run them one
/// after the other.
///
/// # Errors
/// Something of it cannot be said in this dialect.
pub(crate) fn write(request: &Request<'_>) -> Result<Vec<u8>, WireError> {
    same_dialect(Dialect::Gemini, request.tools)?;
    let contents = history::write(request.model, request.messages, &request.tools.names)?;
    let tools = request.tools.json();
    let mut out = Vec::with_capacity(contents.len() + tools.len() + request.system.len() + 256);
    let mut body = Writer::begin(&mut out);
    if !request.system.trim().is_empty() {
        let system = body.key("systemInstruction");
        system.extend_from_slice(b"{\"parts\":[{\"text\":");
        string(system, request.system);
        system.extend_from_slice(b"}]}");
    }
    let mut calling = None;
    if !tools.is_empty() {
        body.key("tools").extend_from_slice(tools);
        calling = choice(request);
    }
    body.key("contents").extend_from_slice(&contents);
    let most = request.max_tokens.map(|most| most.to_string().into_bytes());
    let mut others = request.extra.to_vec();
    for ((name, member), own) in SHARED.into_iter().zip([most, calling]) {
        let at = others.iter().position(|(extra, _)| extra == name);
        let given = at.map(|at| others.remove(at).1);
        if let Some(own) = own {
            shared(given.as_deref(), member, &own, body.key(name))?;
        } else if let Some(given) = given {
            body.key(name).extend_from_slice(given.get().as_bytes());
        }
    }
    let own: Vec<&str> = OWN
        .into_iter()
        .chain(SHARED.map(|(name, _)| name))
        .collect();
    extra(Dialect::Gemini, &mut body, &own, &others)?;
    body.end();
    Ok(out)
}

/// Writes an object that the host gives with a member that haft adds.
///
/// # Errors
/// The host gives no object, or one with this member.
fn shared(
    given: Option<&RawValue>,
    member: &str,
    own: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let given = given.map_or("{}", RawValue::get);
    let given = members(given).map_err(|error| {
        let what = format!("a further member beside `{member}` that is no object: {error}");
        inexpressible(Dialect::Gemini, what)
    })?;
    if given.iter().any(|given| given.is(member)) {
        let what = format!(
            "the further member `{member}`, which haft writes itself; set it by the request"
        );
        return Err(inexpressible(Dialect::Gemini, what));
    }
    let mut object = Writer::begin(out);
    for one in given {
        object.copy(one);
    }
    object.key(member).extend_from_slice(own);
    object.end();
    Ok(())
}

/// The choice of tools; `None` where it is what the provider does without one. A model that need not call is held to strict schemas
/// by `VALIDATED`.
fn choice(request: &Request<'_>) -> Option<Vec<u8>> {
    let (mode, names) = match request.choice {
        Choice::Auto if request.tools.strict => ("VALIDATED", &[][..]),
        Choice::Auto => return None,
        Choice::None => ("NONE", &[][..]),
        Choice::Required => ("ANY", &[][..]),
        Choice::Tool(name) => ("ANY", std::slice::from_ref(name)),
        Choice::Allowed {
            names,
            required: false,
        } if names.is_empty() => ("NONE", &[][..]),
        Choice::Allowed {
            names,
            required: true,
        } => ("ANY", names.as_slice()),
        Choice::Allowed {
            names,
            required: false,
        } => ("VALIDATED", names.as_slice()),
    };
    let mut out = Vec::new();
    let mut object = Writer::begin(&mut out);
    string(object.key("mode"), mode);
    if !names.is_empty() {
        let list = object.key("allowedFunctionNames");
        for (at, name) in names.iter().enumerate() {
            list.push(if at == 0 { b'[' } else { b',' });
            string(list, name);
        }
        list.push(b']');
    }
    object.end();
    Some(out)
}
