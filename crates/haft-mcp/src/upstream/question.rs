//! A server's questions to a user: checked before they are passed on, and marked as the server's.

use haft::caller::RequestKind;
use haft::json::amend::Amended;
use haft::text::clip;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use url::Url;

use crate::wire::params::text;

/// Names of fields that ask for a secret, in lower case and without word separators.
const SECRET_WORDS: [&str; 12] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "creditcard",
    "cvv",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
];

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
    Ok(())
}

fn form(params: &RawValue) -> Result<(), String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ElicitationForm {
        #[serde(default)]
        requested_schema: FormSchema,
    }
    #[derive(Default, Deserialize)]
    struct FormSchema {
        #[serde(default)]
        properties: Map<String, Value>,
    }
    let form: ElicitationForm = serde_json::from_str(params.get()).map_err(|e| e.to_string())?;
    for (name, field) in &form.requested_schema.properties {
        let title = field.get("title").and_then(Value::as_str);
        let asks = [Some(name.as_str()), title];
        if asks.into_iter().flatten().any(asks_for_secret) {
            return Err(format!(
                "a form must not ask for a secret, as its field {:?} does: ask by an address (mode url)",
                clip(name, 100)
            ));
        }
    }
    Ok(())
}

fn asks_for_secret(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let plain: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    SECRET_WORDS.iter().any(|word| plain.ends_with(word))
}

/// Returns a question that says which server asks it.
pub(super) fn marked(params: &RawValue, server: &str) -> Result<Box<RawValue>, String> {
    let mut amended = Amended::read(params.get()).map_err(|e| e.to_string())?;
    let messages = amended
        .members()
        .iter()
        .filter(|member| member.is("message"));
    if messages.count() > 1 {
        return Err("it has two messages".to_owned());
    }
    let nth = amended.position("message").ok_or("it has no message")?;
    let message = text(amended.members()[nth].value()).ok_or("its message is not a text")?;
    amended.say(nth, &format!("[{server}] {message}"));
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
        ] {
            assert!(marked(&raw(odd), "docs").is_err(), "{odd}");
        }
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
        assert!(check(RequestKind::Form, &raw(r#"{"message":"m"}"#)).is_ok());
        assert!(check(RequestKind::Roots, &raw("{}")).is_ok());
    }
}
