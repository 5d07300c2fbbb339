//! Writes the body of a request. Whether the reply is streamed depends on the path here.

use haft_json::escape::string;
use haft_json::members::{Writer, members};
use serde_json::value::RawValue;

use super::history;
use crate::body::{extra, inexpressible, same_dialect};
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::request::{Request, ToolChoice};

/// The members that haft writes itself.
const OWN: [&str; 3] = ["contents", "systemInstruction", "tools"];
/// Objects to which haft adds a member, with that member.
const SHARED: [(&str, &str); 2] = [
    ("generationConfig", "maxOutputTokens"),
    ("toolConfig", "functionCallingConfig"),
];

/// Writes the body of a request. This dialect cannot limit a turn to a single call: the host has to run them one
/// after another.
///
/// # Errors
/// If this dialect cannot express part of it.
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

/// Writes an object given by the host, with a member added by haft.
///
/// # Errors
/// If the host's value is not an object, or already has this member.
fn shared(
    given: Option<&RawValue>,
    member: &str,
    own: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let given = given.map_or("{}", RawValue::get);
    let given = members(given).map_err(|error| {
        let what = format!("a further member beside `{member}` that is not an object: {error}");
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

/// Returns the choice of tools; `None` if it is the provider's default. `VALIDATED` enforces strict schemas on a model that need not
/// call.
fn choice(request: &Request<'_>) -> Option<Vec<u8>> {
    let (mode, names) = match request.choice {
        ToolChoice::Auto if request.tools.strict => ("VALIDATED", &[][..]),
        ToolChoice::Auto => return None,
        ToolChoice::None => ("NONE", &[][..]),
        ToolChoice::Required => ("ANY", &[][..]),
        ToolChoice::Tool(name) => ("ANY", std::slice::from_ref(name)),
        ToolChoice::Allowed {
            names,
            required: false,
        } if names.is_empty() => ("NONE", &[][..]),
        ToolChoice::Allowed {
            names,
            required: true,
        } => ("ANY", names.as_slice()),
        ToolChoice::Allowed {
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
