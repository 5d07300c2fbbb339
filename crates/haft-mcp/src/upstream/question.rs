//! A server's questions to a user: checked before they are passed on, and marked as the server's.

use haft::caller::RequestKind;
use haft::json::amend::Amended;
use haft::text::clip;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use url::Url;

use crate::asked_address::is_here;
use crate::upstream::secret_words::{mentions_secret, names_secret};
use crate::wire::params::text;

/// What the fragment of a login link of haft's console begins with.
const LOGIN_PART: &str = "login=";

/// Refuses what no server may ask a user: a URL that is not a web page, and a form for secrets, which would pass through the
/// client and haft (2025-11-25, elicitation).
pub(super) fn check(kind: RequestKind, params: &RawValue) -> Result<(), String> {
    match kind {
        RequestKind::Url => page(params),
        RequestKind::Form => form(params),
        RequestKind::Sampling | RequestKind::Roots => Ok(()),
    }
}

fn page(params: &RawValue) -> Result<(), String> {
    #[derive(Deserialize)]
    struct ElicitationUrl {
        url: String,
    }
    let address: ElicitationUrl = serde_json::from_str(params.get()).map_err(|e| e.to_string())?;
    let shown = clip(&address.url, 200);
    let url = Url::parse(&address.url).map_err(|e| format!("{shown:?} is not an address: {e}"))?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(format!("{shown:?} is neither https:// nor http://"));
    }
    // The part before an `@` can imitate another host's name.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{shown:?} holds a login"));
    }
    // A link of a haft on this machine: whoever opens it is logged in as the operator.
    if is_here(&url) && url.fragment().is_some_and(|part| part.contains(LOGIN_PART)) {
        return Err(format!("{shown:?} is a login link"));
    }
    Ok(())
}

fn form(params: &RawValue) -> Result<(), String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ElicitationForm {
        #[serde(default)]
        requested_schema: FormSchema,
        #[serde(default)]
        message: String,
    }
    #[derive(Default, Deserialize)]
    struct FormSchema {
        #[serde(default)]
        properties: Map<String, Value>,
    }
    let form: ElicitationForm = serde_json::from_str(params.get()).map_err(|e| e.to_string())?;
    let refusal = |field: &str| {
        format!(
            "a form must not ask for a secret, as its field {:?} does: ask by an address (mode url)",
            clip(field, 100)
        )
    };
    let fields = &form.requested_schema.properties;
    for (name, field) in fields {
        let said = |member: &str| field.get(member).and_then(Value::as_str);
        let named = [Some(name.as_str()), said("title")].into_iter().flatten();
        let described = [said("title"), said("description")].into_iter().flatten();
        let is_mentioned = || takes_text(field) && described.clone().any(mentions_secret);
        if named.clone().any(names_secret) || is_mentioned() {
            return Err(refusal(name));
        }
    }
    if mentions_secret(&form.message)
        && let Some((name, _)) = fields.iter().find(|(_, field)| takes_text(field))
    {
        return Err(refusal(name));
    }
    Ok(())
}

/// Returns whether a field takes any text: a choice or a number holds no secret.
fn takes_text(field: &Value) -> bool {
    let is_text = field.get("type").and_then(Value::as_str) == Some("string");
    is_text
        && !["enum", "oneOf", "const"]
            .iter()
            .any(|limit| field.get(limit).is_some())
}

/// Returns a question that says which server asks it; an address is written as browsers read it.
pub(super) fn marked(params: &RawValue, server: &str) -> Result<Box<RawValue>, String> {
    let mut amended = Amended::read(params.get()).map_err(|e| e.to_string())?;
    for name in ["message", "url"] {
        let members = amended.members().iter();
        if members.filter(|member| member.is(name)).count() > 1 {
            return Err(format!("it has `{name}` twice"));
        }
    }
    let nth = amended.position("message").ok_or("it has no message")?;
    let message = text(amended.members()[nth].value()).ok_or("its message is not a text")?;
    amended.say(nth, &format!("[{server}] {message}"));
    if let Some(nth) = amended.position("url")
        && let Some(url) = text(amended.members()[nth].value())
        && let Ok(url) = Url::parse(&url)
    {
        amended.say(nth, url.as_str());
    }
    amended.to_raw().ok_or_else(|| "it is not JSON".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_question_says_which_server_asks_and_is_else_as_it_was() {
        let asked = r#"{ "requestedSchema":{"z":1.0,"a":{}}, "message" : "who?","x":12345678901234567890123}"#;
        assert_eq!(
            marked(&raw(asked), "docs").unwrap().get(),
            asked.replace("who?", "[docs] who?")
        );
        let written_otherwise = marked(&raw(r#"{"mess\u0061ge":"who?"}"#), "docs").unwrap();
        assert_eq!(written_otherwise.get(), r#"{"mess\u0061ge":"[docs] who?"}"#);
        for odd in [
            "[]",
            "{}",
            r#"{"message":null}"#,
            r#"{"message":["who?"]}"#,
            r#"{"message":"a","message":"b"}"#,
            r#"{"message":"a","url":"https://a.example","url":"https://b.example"}"#,
        ] {
            assert!(marked(&raw(odd), "docs").is_err(), "{odd}");
        }
    }

    #[test]
    fn n7_an_address_is_sent_as_browsers_read_it() {
        let asked = r#"{"message":"m","url":"HTTPS://Bаnk.example/a/../b"}"#;
        let sent = marked(&raw(asked), "docs").unwrap();
        let sent = sent.get();
        assert!(
            sent.contains(r#""https://xn--bnk-6cd.example/b""#),
            "{sent}"
        );
    }

    #[test]
    fn a_person_is_sent_to_pages_and_asked_for_no_secret() {
        let url = |url: &str| {
            let params = serde_json::json!({"mode": "url", "message": "m", "url": url});
            check(RequestKind::Url, &raw(&params.to_string()))
        };
        for (address, expect) in [
            ("https://docs.example/page?a=b", true),
            ("http://127.0.0.1:8080/", true),
            ("javascript:alert(1)", false),
            ("file:///etc/passwd", false),
            ("data:text/html,x", false),
            ("https://bank.example@evil.example/", false),
            ("docs.example", false),
            ("http://127.0.0.1:7421/#login=0123", false),
            ("http://localhost:7421/#login=0123", false),
            ("http://[::1]:7421/runs#own-login=0123", false),
            ("https://docs.example/#login=0123", true),
        ] {
            assert_eq!(url(address).is_ok(), expect, "{address}");
        }
        let field = |name: &str, title: &str| {
            let params = serde_json::json!({"message": "m", "requestedSchema": {
                "type": "object", "properties": {name: {"type": "string", "title": title}}}});
            check(RequestKind::Form, &raw(&params.to_string()))
        };
        for (name, title, expect) in [
            ("name", "Your name", true),
            ("max_tokens", "Tokens", true),
            ("secretary", "Secretary", true),
            ("password", "x", false),
            ("x", "Your Password", false),
            ("githubApiKey", "x", false),
            ("client-secret", "x", false),
            ("ACCESS_TOKEN", "x", false),
        ] {
            assert_eq!(field(name, title).is_ok(), expect, "{name} {title}");
        }
        for (message, kind, description, expect) in [
            ("Enter your password", "string", "x", false),
            ("m", "string", "The API key of your account", false),
            // Nothing can be typed here.
            ("Reset the password?", "boolean", "x", true),
            ("Where to?", "string", "A city", true),
        ] {
            let params = serde_json::json!({"message": message, "requestedSchema": {
                "type": "object", "properties": {"x": {"type": kind, "description": description}}}});
            let checked = check(RequestKind::Form, &raw(&params.to_string()));
            assert_eq!(checked.is_ok(), expect, "{message} {kind} {description}");
        }
        assert!(check(RequestKind::Form, &raw(r#"{"message":"m"}"#)).is_ok());
        assert!(check(RequestKind::Roots, &raw("{}")).is_ok());
    }
}
