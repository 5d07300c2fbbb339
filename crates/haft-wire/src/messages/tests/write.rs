//! Request bodies.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::declarations::Declarations;
use crate::declared::{Function, ToolDeclaration};
use crate::declarer::{Declarer, VersionedTool};
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::limits::ReplyLimits;
use crate::message::{ContentPart, Message, ToolOutput};
use crate::reply::{Call, CallKind, Turn, TurnItem};
use crate::request::{Request, ToolChoice};

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn tools(names: &[&str]) -> std::sync::Arc<Declarations> {
    let tools: Vec<ToolDeclaration> = names
        .iter()
        .map(|name| {
            ToolDeclaration::Function(Function {
                name: (*name).to_owned(),
                description: String::new(),
                parameters: raw(r#"{"type":"object"}"#).into(),
                strict: false,
                deferred: false,
            })
        })
        .collect();
    let entries: Vec<_> = names
        .iter()
        .zip(&tools)
        .map(|(version, tool)| VersionedTool { version, tool })
        .collect();
    Declarer::new(Dialect::Anthropic).declare(&entries)
}

fn request<'a>(messages: &'a [Message], tools: &'a Declarations) -> Request<'a> {
    Request {
        model: "claude-sonnet-5",
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

fn body(request: &Request<'_>) -> String {
    String::from_utf8(Dialect::Anthropic.write(request).unwrap()).unwrap()
}

fn messages(messages: &[Message], tools: &Declarations) -> Value {
    let body: Value = serde_json::from_str(&body(&request(messages, tools))).unwrap();
    body["messages"].clone()
}

fn turn(content: &str) -> Turn {
    let body = format!(r#"{{"content":{content},"stop_reason":"tool_use"}}"#);
    Dialect::Anthropic
        .read(body.as_bytes(), ReplyLimits::default())
        .unwrap()
        .turn
}

fn call(id: &str, name: &str, kind: CallKind, arguments: &str) -> Call {
    Call {
        id: id.to_owned(),
        item: None,
        kind,
        name: name.to_owned(),
        namespace: None,
        toolset: None,
        caller: None,
        arguments: arguments.to_owned(),
    }
}

#[test]
fn a_body_is_compact_and_in_one_order() {
    let tools = tools(&["crm.find"]);
    let history = [Message::user("Hi"), Message::Host("Note".to_owned())];
    let extra = [
        ("temperature".to_owned(), raw("0.50")),
        ("metadata".to_owned(), raw(r#"{"user_id":"u"}"#)),
    ];
    let request = Request {
        system: "Be \"brief\".",
        choice: &ToolChoice::Tool("crm__find".to_owned()),
        parallel: false,
        max_tokens: Some(100),
        stream: true,
        extra: &extra,
        ..request(&history, &tools)
    };
    let expect = concat!(
        r#"{"model":"claude-sonnet-5","max_tokens":100,"system":"Be \"brief\".","#,
        r#""tools":[{"name":"crm__find","input_schema":{"type":"object"}}],"#,
        r#""tool_choice":{"type":"tool","name":"crm__find","disable_parallel_tool_use":true},"#,
        r#""messages":[{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":"<system>Note</system>"}]}],"#,
        r#""stream":true,"temperature":0.50,"metadata":{"user_id":"u"}}"#
    );
    assert_eq!(body(&request), expect);
    let plain = self::request(&history, &tools);
    assert!(body(&plain).contains(r#""max_tokens":8192"#) && !body(&plain).contains("tool_choice"));
}

#[test]
fn results_stand_before_all_else_in_one_message() {
    let declared = tools(&["a", "late"]);
    let content = r#"[{"type":"thinking","thinking":"t","signature":"s"},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},{"type":"later_kind","x":1},{"type":"tool_use","id":"1","name":"a","input":{"n":12345678901234567890123}},{"type":"tool_use","id":"2","name":"left_click","toolset_name":"computer","input":{}},{"type":"tool_use","id":"3","name":"a","input":{}}]"#;
    let turn = turn(content);
    let calls: Vec<Call> = turn.calls().cloned().collect();
    let picture = ContentPart::Image {
        media_type: "image/png".to_owned(),
        data: "AAAA".to_owned(),
    };
    let pdf = ContentPart::File {
        name: "a.pdf".to_owned(),
        media_type: "application/pdf".to_owned(),
        data: "AAAA".to_owned(),
    };
    let answers = vec![
        ToolOutput {
            parts: vec![
                ContentPart::Text("one".to_owned()),
                picture.clone(),
                pdf.clone(),
                ContentPart::Text(" ".to_owned()),
            ],
            ..ToolOutput::text(calls[0].clone(), "")
        },
        ToolOutput {
            parts: vec![picture, pdf],
            ..ToolOutput::error(calls[1].clone(), "")
        },
        ToolOutput {
            loads: vec!["late".to_owned(), "unknown".to_owned()],
            ..ToolOutput::text(calls[2].clone(), "found late")
        },
    ];
    let history = [
        Message::user("Go"),
        Message::Model(turn),
        Message::Results(answers),
        Message::user("Next"),
    ];
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let document = json!({"type": "document", "title": "a.pdf", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}});
    let note =
        "[a.pdf, application/pdf, 3 bytes: left out, a toolset's result holds text and pictures]";
    let expect = json!([
        {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "one"}, image, document]},
        {"type": "tool_result", "tool_use_id": "2", "toolset_name": "computer", "content": [image, {"type": "text", "text": note}], "is_error": true},
        {"type": "tool_result", "tool_use_id": "3", "content": [{"type": "tool_reference", "tool_name": "late"}]},
        {"type": "text", "text": "Next"},
    ]);
    let written = messages(&history, &declared);
    assert_eq!(written[2]["content"], expect);
    assert_eq!(written.as_array().unwrap().len(), 3);
    let text = body(&request(&history, &declared));
    assert!(text.contains(content), "a turn goes back as it came");
}

#[test]
fn a_turn_of_another_dialect_is_given_by_what_it_says_and_calls() {
    let declared = tools(&["crm.find", "patch"]);
    let foreign = |items| Turn {
        dialect: Dialect::Gemini,
        items,
        raw: raw("{}"),
    };
    let items = |name: &str| {
        vec![
            TurnItem::Thinking("hidden".to_owned()),
            TurnItem::Text("Text".to_owned()),
            TurnItem::Call(call("call-0", name, CallKind::Function, r#"{"q":1}"#)),
            TurnItem::Call(call("call-1", "patch", CallKind::Freeform, "*** x")),
            TurnItem::Call(call("fc.9", "gone!", CallKind::Function, "{cut")),
        ]
    };
    let answers = || {
        let calls = [("call-0", "x"), ("call-1", "y"), ("fc.9", "z")];
        let all = calls
            .iter()
            .map(|(id, text)| ToolOutput::text(call(id, "", CallKind::Function, ""), *text));
        Message::Results(all.collect())
    };
    let history = [
        Message::user("Go"),
        Message::Model(foreign(items("crm.find"))),
        answers(),
        Message::Model(foreign(items("crm__find"))),
        answers(),
    ];
    let written = messages(&history, &declared);
    let used = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let expect = json!([
        {"type": "text", "text": "Text"},
        used("call-0", "crm__find", json!({"q": 1})),
        used("call-1", "patch", json!({"input": "*** x"})),
        used("fc_9", "gone_", json!({"INVALID_JSON": "{cut"})),
    ]);
    assert_eq!(written[1]["content"], expect);
    let ids = |at: usize, member: &str| -> Vec<String> {
        let blocks = written[at]["content"].as_array().unwrap().iter();
        blocks
            .filter_map(|block| block[member].as_str().map(str::to_owned))
            .collect()
    };
    assert_eq!(ids(3, "id"), ["call-0-2", "call-1-2", "fc_9-2"]);
    assert_eq!(ids(4, "tool_use_id"), ids(3, "id"));
    assert_eq!(written[3]["content"][1]["name"], "crm__find");
}

#[test]
fn files_are_given_as_the_provider_reads_them() {
    let file = |media_type: &str, data: &str| ContentPart::File {
        name: "f".to_owned(),
        media_type: media_type.to_owned(),
        data: data.to_owned(),
    };
    let audio = ContentPart::Audio {
        media_type: "audio/wav".to_owned(),
        data: "AAA=".to_owned(),
    };
    let rows = [
        (
            file("text/csv", "YSxi"),
            json!({"type": "document", "title": "f", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}}),
        ),
        (
            file("application/zip", "AAAA"),
            json!({"type": "text", "text": "[f, application/zip, 3 bytes: left out, Claude takes PDF files and texts in UTF-8]"}),
        ),
        (
            file("text/plain", "////"),
            json!({"type": "text", "text": "[f, text/plain, 3 bytes: left out, Claude takes PDF files and texts in UTF-8]"}),
        ),
        (
            audio,
            json!({"type": "text", "text": "[sound, audio/wav, 2 bytes: left out, Claude does not accept audio]"}),
        ),
    ];
    for (part, expect) in rows {
        let written = messages(&[Message::User(vec![part])], &tools(&[]));
        assert_eq!(written[0]["content"][0], expect);
    }
}

#[test]
fn choices_are_said_in_the_providers_words_or_refused() {
    let declared = tools(&["a", "b"]);
    let allowed = |names: &[&str], required| ToolChoice::Allowed {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        required,
    };
    let rows = [
        (
            ToolChoice::Auto,
            json!({"type": "auto", "disable_parallel_tool_use": true}),
        ),
        (ToolChoice::None, json!({"type": "none"})),
        (
            ToolChoice::Required,
            json!({"type": "any", "disable_parallel_tool_use": true}),
        ),
        (
            allowed(&["a"], true),
            json!({"type": "tool", "name": "a", "disable_parallel_tool_use": true}),
        ),
        (allowed(&[], false), json!({"type": "none"})),
    ];
    for (choice, expect) in rows {
        let request = Request {
            choice: &choice,
            parallel: false,
            ..request(&[], &declared)
        };
        let body: Value = serde_json::from_str(&body(&request)).unwrap();
        assert_eq!(body["tool_choice"], expect);
    }
    for choice in [
        allowed(&["a", "b"], true),
        allowed(&["a"], false),
        allowed(&[], true),
    ] {
        let request = Request {
            choice: &choice,
            ..request(&[], &declared)
        };
        let refused = Dialect::Anthropic.write(&request).unwrap_err().to_string();
        assert!(
            refused.contains("anthropic cannot express a choice among some"),
            "{refused}"
        );
    }
}

#[test]
fn what_the_provider_would_refuse_is_refused_before_it_is_sent() {
    let declared = tools(&["a"]);
    let open = || {
        Message::Model(turn(
            r#"[{"type":"tool_use","id":"1","name":"a","input":{}}]"#,
        ))
    };
    let answer = |id: &str| {
        Message::Results(vec![ToolOutput::text(
            call(id, "a", CallKind::Function, "{}"),
            "x",
        )])
    };
    let extra = |name: &str| vec![(name.to_owned(), raw("1"))];
    let twice = [extra("top_k"), extra("top_k")].concat();
    let rows = [
        (
            vec![open()],
            Vec::new(),
            "the call `1` of `a` without its answer",
        ),
        (
            vec![open(), Message::user("x")],
            Vec::new(),
            "the call `1` of `a` without its answer",
        ),
        (
            vec![open(), answer("2")],
            Vec::new(),
            "the answer to the call `2`",
        ),
        (vec![answer("1")], Vec::new(), "the answer to the call `1`"),
        (Vec::new(), extra("tools"), "the further member \"tools\""),
        (Vec::new(), twice, "the further member \"top_k\""),
    ];
    for (history, extra, expect) in rows {
        let request = Request {
            extra: &extra,
            ..request(&history, &declared)
        };
        let refused = Dialect::Anthropic.write(&request).unwrap_err();
        assert!(matches!(refused, WireError::Inexpressible { .. }));
        assert!(refused.to_string().contains(expect), "{refused}");
    }
}

#[test]
fn tools_of_another_dialect_are_refused() {
    let other = Declarations::none(Dialect::Gemini);
    let refused = Dialect::Anthropic.write(&request(&[], &other)).unwrap_err();
    assert!(
        refused.to_string().contains("declared for gemini"),
        "{refused}"
    );
}

#[test]
fn turns_that_follow_each_other_are_answered_together() {
    let used = |id: &str| {
        turn(&format!(
            r#"[{{"type":"tool_use","id":"{id}","name":"a","input":{{}}}}]"#
        ))
    };
    let answer = |id: &str| ToolOutput::text(call(id, "a", CallKind::Function, "{}"), "x");
    let history = [
        Message::Model(used("1")),
        Message::Model(used("2")),
        Message::Results(vec![answer("1"), answer("2")]),
    ];
    let written = messages(&history, &tools(&["a"]));
    let blocks = |at: usize| written[at]["content"].as_array().unwrap().len();
    assert_eq!((blocks(0), blocks(1)), (2, 2));
}

#[test]
fn a_paused_turn_goes_on_in_the_same_message() {
    let history = [
        Message::user("Go"),
        Message::Model(turn(r#"[{"type":"text","text":"a"}]"#)),
        Message::Model(turn(r#"[{"type":"text","text":"b"}]"#)),
        Message::Model(turn("[]")),
    ];
    let written = messages(&history, &tools(&[]));
    assert_eq!(
        written[1],
        json!({"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})
    );
    assert_eq!(written.as_array().unwrap().len(), 2);
}

#[test]
fn an_answer_in_the_providers_own_shape_is_sent_as_it_is_and_one_in_anothers_as_text() {
    let item = r#"{"type":"tool_result","tool_use_id":"1","toolset_name":"browser","content":[{"type":"browser_state","tabs":[]}]}"#;
    let answer = |id: &str| ToolOutput {
        item: Some(raw(item)),
        parts: Vec::new(),
        ..ToolOutput::not_executed(call(id, "a", CallKind::Function, "{}"))
    };
    let own = turn(r#"[{"type":"tool_use","id":"1","name":"a","input":{}}]"#);
    let foreign = Turn {
        dialect: Dialect::OpenAiResponses,
        items: vec![TurnItem::Call(call("2", "a", CallKind::Function, "{}"))],
        raw: raw("[]"),
    };
    let history = [
        Message::Model(own),
        Message::Results(vec![answer("1")]),
        Message::Model(foreign),
        Message::Results(vec![answer("2")]),
    ];
    let written = messages(&history, &tools(&["a"]));
    assert_eq!(
        written[1]["content"][0],
        serde_json::from_str::<Value>(item).unwrap()
    );
    let expect = json!({"type": "tool_result", "tool_use_id": "2", "content": [{"type": "text", "text": item}], "is_error": true});
    assert_eq!(written[3]["content"][0], expect);
}

#[test]
fn a_call_of_a_batch_that_was_not_run_is_answered_in_the_providers_words() {
    let answer = ToolOutput::not_executed(call("1", "left_click", CallKind::Function, "{}"));
    assert!(answer.is_error);
    assert_eq!(
        answer.texts(),
        "Not executed: an earlier computer action in this turn failed."
    );
}
