//! Request bodies with their declarations.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::declarations::Declarations;
use crate::declared::{Freeform, Function, SearchRunner, ToolDeclaration};
use crate::declarer::{Declarer, VersionedTool};
use crate::dialect::Dialect;
use crate::limits::ReplyLimits;
use crate::message::{ContentPart, Message, ToolOutput};
use crate::reply::{Call, CallKind, Turn, TurnItem};
use crate::request::{Request, ToolChoice};

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn function(name: &str, strict: bool) -> ToolDeclaration {
    ToolDeclaration::Function(Function {
        name: name.to_owned(),
        description: String::new(),
        parameters: raw(r#"{"type":"object"}"#).into(),
        strict,
        deferred: false,
    })
}

fn declared(tools: &[ToolDeclaration]) -> std::sync::Arc<Declarations> {
    let versions: Vec<String> = (0..tools.len()).map(|at| at.to_string()).collect();
    let all = versions.iter().zip(tools);
    let entries: Vec<_> = all
        .map(|(version, tool)| VersionedTool { version, tool })
        .collect();
    Declarer::new(Dialect::Gemini).declare(&entries)
}

fn request<'a>(messages: &'a [Message], tools: &'a Declarations) -> Request<'a> {
    Request {
        model: "gemini-3-flash",
        system: "",
        messages,
        tools,
        choice: &ToolChoice::Auto,
        parallel: true,
        max_tokens: None,
        stream: false,
        extra: &[],
    }
}

fn body(request: &Request<'_>) -> Value {
    serde_json::from_slice(&Dialect::Gemini.write(request).unwrap()).unwrap()
}

fn turn(content: &str) -> Turn {
    let body = format!(r#"{{"candidates":[{{"content":{content},"finishReason":"STOP"}}]}}"#);
    Dialect::Gemini
        .read(body.as_bytes(), ReplyLimits::default())
        .unwrap()
        .turn
}

fn file(media_type: &str) -> ContentPart {
    ContentPart::File {
        name: "f".to_owned(),
        media_type: media_type.to_owned(),
        data: "AAAA".to_owned(),
    }
}

fn inline(media_type: &str) -> Value {
    json!({"inlineData": {"mimeType": media_type, "data": "AAAA"}})
}

#[test]
fn tools_of_every_kind_are_declared_and_others_reported() {
    let freeform = ToolDeclaration::Freeform(Freeform {
        name: "patch".to_owned(),
        description: "Patches.".to_owned(),
        grammar: None,
    });
    let provider = |dialect, spec: &str| ToolDeclaration::Provider {
        dialect,
        spec: raw(spec),
    };
    let tools = declared(&[
        provider(Dialect::Gemini, r#"{"googleSearch":{}}"#),
        function("crm.find", false),
        freeform,
        provider(
            Dialect::Anthropic,
            r#"{"type":"bash_20250124","name":"bash"}"#,
        ),
        ToolDeclaration::ToolSearch(SearchRunner::Provider),
    ]);
    let expect = concat!(
        r#"[{"functionDeclarations":[{"name":"crm.find","description":"","parametersJsonSchema":{"type":"object"}},"#,
        r#"{"name":"patch","description":"Patches.","parametersJsonSchema":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}}]},"#,
        r#"{"googleSearch":{}}]"#
    );
    assert_eq!(std::str::from_utf8(tools.json()).unwrap(), expect);
    let lost: Vec<&str> = tools.lost.iter().map(|lost| lost.tool.as_str()).collect();
    assert_eq!(lost, ["bash", "tool_search"]);
}

#[test]
fn a_body_is_compact_and_shares_its_settings_with_the_host() {
    let tools = declared(&[function("a", false)]);
    let history = [Message::user("Hi"), Message::Host("Note".to_owned())];
    let extra = [
        (
            "generationConfig".to_owned(),
            raw(r#"{"temperature":0.50}"#),
        ),
        (
            "toolConfig".to_owned(),
            raw(r#"{"includeServerSideToolInvocations":true}"#),
        ),
        ("safetySettings".to_owned(), raw("[]")),
    ];
    let request = Request {
        system: "Be brief.",
        choice: &ToolChoice::Tool("a".to_owned()),
        max_tokens: Some(9),
        extra: &extra,
        ..request(&history, &tools)
    };
    let expect = concat!(
        r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"#,
        r#""tools":[{"functionDeclarations":[{"name":"a","description":"","parametersJsonSchema":{"type":"object"}}]}],"#,
        r#""contents":[{"role":"user","parts":[{"text":"Hi"},{"text":"<system>Note</system>"}]}],"#,
        r#""generationConfig":{"temperature":0.50,"maxOutputTokens":9},"#,
        r#""toolConfig":{"includeServerSideToolInvocations":true,"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["a"]}},"#,
        r#""safetySettings":[]}"#
    );
    assert_eq!(
        String::from_utf8(Dialect::Gemini.write(&request).unwrap()).unwrap(),
        expect
    );
}

#[test]
fn choices_are_said_in_the_providers_words() {
    let allowed = |required| ToolChoice::Allowed {
        names: vec!["a".to_owned()],
        required,
    };
    let none = ToolChoice::Allowed {
        names: Vec::new(),
        required: false,
    };
    let rows = [
        (ToolChoice::Auto, false, Value::Null),
        (ToolChoice::Auto, true, json!({"mode": "VALIDATED"})),
        (ToolChoice::None, false, json!({"mode": "NONE"})),
        (none, false, json!({"mode": "NONE"})),
        (ToolChoice::Required, true, json!({"mode": "ANY"})),
        (
            allowed(true),
            false,
            json!({"mode": "ANY", "allowedFunctionNames": ["a"]}),
        ),
        (
            allowed(false),
            false,
            json!({"mode": "VALIDATED", "allowedFunctionNames": ["a"]}),
        ),
    ];
    for (choice, strict, expect) in rows {
        let tools = declared(&[function("a", strict)]);
        let request = Request {
            choice: &choice,
            ..request(&[], &tools)
        };
        assert_eq!(
            body(&request)["toolConfig"]["functionCallingConfig"],
            expect
        );
    }
    let (tools, choice) = (declared(&[]), ToolChoice::Required);
    let request = Request {
        choice: &choice,
        ..request(&[], &tools)
    };
    assert_eq!(body(&request).get("toolConfig"), None);
}

#[test]
fn answers_find_their_calls_and_carry_no_id_that_haft_made() {
    let content = r#"{"role":"model","parts":[{"functionCall":{"name":"a","args":{}},"thoughtSignature":"s"},{"functionCall":{"id":"x1","name":"b","args":{}}},{"functionCall":{"name":"a","args":{}}}]}"#;
    let turn = turn(content);
    let calls: Vec<Call> = turn.calls().cloned().collect();
    let answers = vec![
        ToolOutput {
            parts: vec![
                ContentPart::Text("one".to_owned()),
                file("image/png"),
                file("audio/wav"),
            ],
            ..ToolOutput::text(calls[0].clone(), "")
        },
        ToolOutput::error(calls[1].clone(), "two"),
        ToolOutput::text(calls[2].clone(), "three"),
    ];
    let history = [
        Message::user("Go"),
        Message::Model(turn),
        Message::Results(answers),
        Message::user("Next"),
    ];
    let tools = declared(&[]);
    let result = |name: &str, member: &str, text: &str| json!({"functionResponse": {"name": name, "response": {member: text}}});
    let mut first = result("a", "output", "one");
    first["functionResponse"]["parts"] = json!([inline("image/png")]);
    let mut second = result("b", "error", "two");
    second["functionResponse"]["id"] = json!("x1");
    let behind = json!({"text": "The files of the result of `a` follow."});
    let written = body(&request(&history, &tools));
    let sent: Value = serde_json::from_str(content).unwrap();
    assert_eq!(written["contents"][1], sent);
    assert_eq!(
        written["contents"][2]["parts"],
        json!([first, second, result("a", "output", "three")])
    );
    assert_eq!(
        written["contents"][3]["parts"],
        json!([behind, inline("audio/wav"), {"text": "Next"}])
    );
    let before = Request {
        model: "gemini-2.5-pro",
        ..request(&history, &tools)
    };
    let written = body(&before);
    assert_eq!(
        written["contents"][2]["parts"][0],
        result("a", "output", "one")
    );
    assert_eq!(
        written["contents"][3]["parts"],
        json!([behind, inline("image/png"), inline("audio/wav"), {"text": "Next"}])
    );
}

#[test]
fn a_turn_of_another_dialect_is_given_with_the_signature_for_such_turns() {
    let call = |id: &str| Call {
        id: id.to_owned(),
        item: None,
        kind: CallKind::Freeform,
        name: "patch".to_owned(),
        namespace: None,
        toolset: None,
        caller: None,
        arguments: "*** x".to_owned(),
    };
    let turn = Turn {
        dialect: Dialect::Anthropic,
        items: vec![
            TurnItem::Thinking("t".to_owned()),
            TurnItem::Text("Text".to_owned()),
            TurnItem::Call(call("toolu_1")),
        ],
        raw: raw("[]"),
    };
    let empty = Turn {
        dialect: Dialect::Anthropic,
        items: vec![TurnItem::Thinking("t".to_owned())],
        raw: raw("[]"),
    };
    let results = Message::Results(vec![ToolOutput::text(call("toolu_1"), "done")]);
    let history = [
        Message::Model(turn),
        results,
        Message::Model(empty),
        Message::user("Go"),
    ];
    let tools = declared(&[]);
    let used = json!({"functionCall": {"id": "toolu_1", "name": "patch", "args": {"input": "*** x"}}, "thoughtSignature": "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="});
    let expect = json!([
        {"role": "model", "parts": [{"text": "Text"}, used]},
        {"role": "user", "parts": [{"functionResponse": {"id": "toolu_1", "name": "patch", "response": {"output": "done"}}}]},
        {"role": "user", "parts": [{"text": "Go"}]},
    ]);
    assert_eq!(body(&request(&history, &tools))["contents"], expect);
}

#[test]
fn what_the_provider_would_refuse_is_refused_before_it_is_sent() {
    let tools = declared(&[]);
    let open = || {
        vec![Message::Model(turn(
            r#"{"role":"model","parts":[{"functionCall":{"name":"a"}}]}"#,
        ))]
    };
    let extra = |name: &str, value: &str| vec![(name.to_owned(), raw(value))];
    let rows = [
        (
            open(),
            Vec::new(),
            "the call `call-0` of `a` without its answer",
        ),
        (
            Vec::new(),
            extra("contents", "[]"),
            "the further member \"contents\"",
        ),
        (
            Vec::new(),
            extra("generationConfig", r#"{"maxOutputTokens":1}"#),
            "the further member `maxOutputTokens`",
        ),
        (
            Vec::new(),
            extra("generationConfig", "1"),
            "that is not an object",
        ),
    ];
    for (history, extra, expect) in rows {
        let request = Request {
            max_tokens: Some(1),
            extra: &extra,
            ..request(&history, &tools)
        };
        let refused = Dialect::Gemini.write(&request).unwrap_err().to_string();
        assert!(refused.contains(expect), "{refused}");
    }
}
