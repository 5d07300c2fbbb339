//! Requests in the Chat and Responses formats.

use haft_wire::declared::{Freeform, SearchRunner};
use haft_wire::{
    Call, CallKind, ContentPart, Declarations, Dialect, Message, Request, ToolChoice,
    ToolDeclaration, ToolOutput, Turn, TurnItem, WireError,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::declared::{declare, function, raw};

pub(crate) const AUTO: ToolChoice = ToolChoice::Auto;

/// Returns a request with only this history.
pub(crate) fn request<'a>(messages: &'a [Message], tools: &'a Declarations) -> Request<'a> {
    Request {
        model: "m",
        system: "",
        messages,
        tools,
        choice: &AUTO,
        parallel: true,
        max_tokens: None,
        stream: false,
        extra: &[],
    }
}

fn written(dialect: Dialect, messages: &[Message]) -> Value {
    let tools = Declarations::none(dialect);
    let body = dialect.write(&request(messages, &tools)).unwrap();
    let read: Value = serde_json::from_slice(&body).unwrap();
    let list = if dialect == Dialect::OpenAiChat {
        "messages"
    } else {
        "input"
    };
    read[list].clone()
}

pub(crate) fn call(kind: CallKind, id: &str, name: &str) -> Call {
    Call {
        id: id.to_owned(),
        item: None,
        kind,
        name: name.to_owned(),
        namespace: None,
        toolset: None,
        caller: None,
        arguments: "{}".to_owned(),
    }
}

fn image() -> ContentPart {
    ContentPart::Image {
        media_type: "image/png".to_owned(),
        data: "AAAA".to_owned(),
    }
}

fn audio(media_type: &str) -> ContentPart {
    ContentPart::Audio {
        media_type: media_type.to_owned(),
        data: "BBBB".to_owned(),
    }
}

fn file() -> ContentPart {
    ContentPart::File {
        name: "a.pdf".to_owned(),
        media_type: "application/pdf".to_owned(),
        data: "CCCC".to_owned(),
    }
}

fn turn(dialect: Dialect, items: Vec<TurnItem>, raw: &Value) -> Message {
    Message::Model(Turn {
        dialect,
        items,
        raw: self::raw(raw),
    })
}

#[test]
fn a_request_has_its_members_in_one_order_and_no_blanks() {
    let chat = declare(
        Dialect::OpenAiChat,
        &[ToolDeclaration::Function(function("f", false))],
    );
    let messages = [
        Message::user("hi \"you\"\n"),
        Message::Host("note".to_owned()),
    ];
    let extra = [("temperature".to_owned(), raw(&json!(0.5)))];
    let full = |tools| Request {
        system: "sys",
        parallel: false,
        max_tokens: Some(9),
        stream: true,
        choice: &ToolChoice::Required,
        extra: &extra,
        ..request(&messages, tools)
    };
    let tool = r#"{"type":"function","function":{"name":"f","description":"does it","parameters":{"properties":{"p":{"type":"string"}},"type":"object"}}}"#;
    let expect = [
        r#"{"model":"m","messages":[{"role":"system","content":"sys"},{"role":"user","content":"hi \"you\"\n"},{"role":"system","content":"note"}],"tools":["#,
        tool,
        r#"],"tool_choice":"required","parallel_tool_calls":false,"max_completion_tokens":9,"stream":true,"stream_options":{"include_usage":true},"temperature":0.5}"#,
    ];
    let body = String::from_utf8(Dialect::OpenAiChat.write(&full(&chat)).unwrap()).unwrap();
    assert_eq!(body, expect.concat());
    let responses = declare(
        Dialect::OpenAiResponses,
        &[ToolDeclaration::Function(function("f", false))],
    );
    let tool = r#"{"type":"function","name":"f","description":"does it","parameters":{"properties":{"p":{"type":"string"}},"type":"object"},"strict":false}"#;
    let expect = [
        r#"{"model":"m","instructions":"sys","input":[{"role":"user","content":"hi \"you\"\n"},{"role":"developer","content":"note"}],"tools":["#,
        tool,
        r#"],"tool_choice":"required","parallel_tool_calls":false,"max_output_tokens":9,"stream":true,"temperature":0.5}"#,
    ];
    let body =
        String::from_utf8(Dialect::OpenAiResponses.write(&full(&responses)).unwrap()).unwrap();
    assert_eq!(body, expect.concat());
    let bare = Dialect::OpenAiChat
        .write(&request(
            &messages[..1],
            &Declarations::none(Dialect::OpenAiChat),
        ))
        .unwrap();
    assert_eq!(
        bare,
        br#"{"model":"m","messages":[{"role":"user","content":"hi \"you\"\n"}]}"#
    );
}

#[test]
fn parts_of_a_user_are_written_and_sound_where_it_can_be() {
    let parts = vec![
        ContentPart::Text("t".to_owned()),
        image(),
        audio("audio/mpeg"),
        file(),
    ];
    let expect = json!([{"role": "user", "content": [
        {"type": "text", "text": "t"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,CCCC"}}]}]);
    assert_eq!(
        written(Dialect::OpenAiChat, &[Message::User(parts)]),
        expect
    );
    let parts = vec![ContentPart::Text("t".to_owned()), image(), file()];
    let expect = json!([{"role": "user", "content": [
        {"type": "input_text", "text": "t"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,CCCC"}]}]);
    assert_eq!(
        written(Dialect::OpenAiResponses, &[Message::User(parts)]),
        expect
    );
    for (dialect, part) in [
        (Dialect::OpenAiChat, audio("audio/ogg")),
        (Dialect::OpenAiResponses, audio("audio/wav")),
    ] {
        let messages = [Message::User(vec![part])];
        let error = dialect
            .write(&request(&messages, &Declarations::none(dialect)))
            .unwrap_err();
        assert!(matches!(error, WireError::Inexpressible { .. }), "{error}");
    }
}

#[test]
fn what_a_tools_message_cannot_hold_follows_it_in_chat() {
    let mut first = ToolOutput::text(call(CallKind::Function, "a", "f"), "two pictures");
    first.parts.extend([image(), audio("audio/ogg"), file()]);
    let second = ToolOutput::error(call(CallKind::Freeform, "b", "g"), "failed");
    let expect = json!([
        {"role": "tool", "tool_call_id": "a", "content": "two pictures\n[a picture of the type image/png is part of this result: see result part 1 in the next user message]\n[a sound of the type audio/ogg was left out: it cannot be sent here]\n[a file of the type application/pdf is part of this result: see result part 2 in the next user message]"},
        {"role": "tool", "tool_call_id": "b", "content": "failed"},
        {"role": "user", "content": [
            {"type": "text", "text": "Result part 1, from the call a of f:"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "text", "text": "Result part 2, from the call a of f:"},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,CCCC"}}]},
    ]);
    assert_eq!(
        written(
            Dialect::OpenAiChat,
            &[Message::Results(vec![first, second])]
        ),
        expect
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_sort_of_call_is_answered_in_the_words_of_responses() {
    let provider = |kind: &str| CallKind::Provider(kind.to_owned());
    let text = |kind: CallKind| ToolOutput::text(call(kind, "c", "f"), "out");
    let error = |kind: CallKind| ToolOutput::error(call(kind, "c", "f"), "out");
    let mut pictured = text(CallKind::Function);
    pictured.parts.push(image());
    let mut heard = text(CallKind::Function);
    heard.parts = vec![audio("audio/wav")];
    let mut programmed = text(CallKind::Function);
    programmed.call.caller = Some(raw(&json!({"type": "program", "caller_id": "p"})));
    let mut local = text(provider("local_shell_call"));
    local.call.item = Some("i".to_owned());
    let mut shown = text(provider("computer_call"));
    shown.parts.push(image());
    let mut exact = text(provider("shell_call"));
    exact.item = Some(raw(
        &json!({"type": "shell_call_output", "call_id": "c", "max_output_length": 5, "output": []}),
    ));
    let shell = |stdout: &str, stderr: &str, code: i32| json!({"type": "shell_call_output", "call_id": "c", "output": [{"stdout": stdout, "stderr": stderr, "outcome": {"type": "exit", "exit_code": code}}]});
    let rows = [
        (
            text(CallKind::Function),
            json!({"type": "function_call_output", "call_id": "c", "output": "out"}),
        ),
        (
            error(CallKind::Function),
            json!({"type": "function_call_output", "call_id": "c", "output": "out"}),
        ),
        (
            pictured,
            json!({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "out"}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]}),
        ),
        (
            heard,
            json!({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "[a sound of the type audio/wav was left out: it cannot be sent here]"}]}),
        ),
        (
            programmed,
            json!({"type": "function_call_output", "call_id": "c", "output": "out", "caller": {"type": "program", "caller_id": "p"}}),
        ),
        (
            text(CallKind::Freeform),
            json!({"type": "custom_tool_call_output", "call_id": "c", "output": "out"}),
        ),
        (
            text(provider("apply_patch_call")),
            json!({"type": "apply_patch_call_output", "call_id": "c", "status": "completed", "output": "out"}),
        ),
        (
            error(provider("apply_patch_call")),
            json!({"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "out"}),
        ),
        (text(provider("shell_call")), shell("out", "", 0)),
        (error(provider("shell_call")), shell("", "out", 1)),
        (
            exact,
            json!({"type": "shell_call_output", "call_id": "c", "max_output_length": 5, "output": []}),
        ),
        (
            local,
            json!({"type": "local_shell_call_output", "id": "i", "output": "out"}),
        ),
        (
            shown,
            json!({"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}}),
        ),
        (
            ToolOutput::approval("q", true, None),
            json!({"type": "mcp_approval_response", "approval_request_id": "q", "approve": true}),
        ),
        (
            ToolOutput::approval("q", false, Some("no \"x\"")),
            json!({"type": "mcp_approval_response", "approval_request_id": "q", "approve": false, "reason": "no \"x\""}),
        ),
    ];
    for (answer, expect) in rows {
        assert_eq!(
            written(Dialect::OpenAiResponses, &[Message::Results(vec![answer])]),
            json!([expect])
        );
    }
    for kind in ["computer_call", "odd_call"] {
        let messages = [Message::Results(vec![text(provider(kind))])];
        let tools = Declarations::none(Dialect::OpenAiResponses);
        let error = Dialect::OpenAiResponses
            .write(&request(&messages, &tools))
            .unwrap_err()
            .to_string();
        assert!(error.contains(kind), "{error}");
    }
    let approval = [
        Message::user("x"),
        Message::Results(vec![ToolOutput::approval("q", true, None)]),
    ];
    assert_eq!(
        written(Dialect::OpenAiChat, &approval),
        json!([{"role": "user", "content": "x"}])
    );
}

#[test]
fn a_search_of_the_host_loads_the_declarations_of_what_it_found() {
    let tools = [
        ToolDeclaration::ToolSearch(SearchRunner::Host),
        ToolDeclaration::Function(function("docs.read", false)),
        ToolDeclaration::Namespace {
            name: "crm".to_owned(),
            description: String::new(),
            tools: vec![function("find", false), function("add", false)],
        },
    ];
    let declared = declare(Dialect::OpenAiResponses, &tools);
    let mut answer = ToolOutput::text(call(CallKind::ToolSearch, "c", "tool_search"), "");
    answer.loads = ["docs__read", "crm__find", "crm__add", "gone"]
        .map(str::to_owned)
        .to_vec();
    let messages = [Message::Results(vec![answer])];
    let body = Dialect::OpenAiResponses
        .write(&request(&messages, &declared))
        .unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let expect = json!({"type": "tool_search_output", "call_id": "c", "execution": "client", "status": "completed", "tools": [body["tools"][1], body["tools"][2]]});
    assert_eq!(body["input"][0], expect);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn choices_are_said_in_each_dialect_and_only_of_what_is_declared() {
    let spec = |dialect, spec: Value| ToolDeclaration::Provider {
        dialect,
        spec: raw(&spec),
    };
    let tools = |dialect| {
        [
            ToolDeclaration::Function(function("docs.read", false)),
            ToolDeclaration::Freeform(Freeform {
                name: "sql".to_owned(),
                description: String::new(),
                grammar: None,
            }),
            spec(dialect, json!({"type": "apply_patch"})),
            spec(dialect, json!({"type": "mcp", "server_label": "wiki"})),
            ToolDeclaration::Namespace {
                name: "crm".to_owned(),
                description: String::new(),
                tools: vec![function("find", false)],
            },
        ]
    };
    let choose = |dialect: Dialect, choice: &ToolChoice| {
        let declared = declare(dialect, &tools(dialect));
        let body = dialect.write(&Request {
            choice,
            ..request(&[], &declared)
        })?;
        Ok::<Value, WireError>(
            serde_json::from_slice::<Value>(&body).unwrap()["tool_choice"].clone(),
        )
    };
    let tool = |name: &str| ToolChoice::Tool(name.to_owned());
    let both = ToolChoice::Allowed {
        names: vec!["docs__read".to_owned(), "sql".to_owned()],
        required: true,
    };
    let (chat, responses) = (Dialect::OpenAiChat, Dialect::OpenAiResponses);
    let rows = [
        (chat, ToolChoice::Auto, Value::Null),
        (chat, ToolChoice::None, json!("none")),
        (chat, ToolChoice::Required, json!("required")),
        (
            chat,
            tool("docs__read"),
            json!({"type": "function", "function": {"name": "docs__read"}}),
        ),
        (
            chat,
            tool("sql"),
            json!({"type": "custom", "custom": {"name": "sql"}}),
        ),
        (
            chat,
            tool("crm__find"),
            json!({"type": "function", "function": {"name": "crm__find"}}),
        ),
        (
            chat,
            both.clone(),
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "docs__read"}}, {"type": "custom", "custom": {"name": "sql"}}]}}),
        ),
        (responses, ToolChoice::None, json!("none")),
        (
            responses,
            tool("docs__read"),
            json!({"type": "function", "name": "docs__read"}),
        ),
        (
            responses,
            tool("sql"),
            json!({"type": "custom", "name": "sql"}),
        ),
        (
            responses,
            tool("apply_patch"),
            json!({"type": "apply_patch"}),
        ),
        (
            responses,
            tool("wiki"),
            json!({"type": "mcp", "server_label": "wiki"}),
        ),
        (
            responses,
            both,
            json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "docs__read"}, {"type": "custom", "name": "sql"}]}),
        ),
    ];
    for (dialect, choice, expect) in rows {
        assert_eq!(
            choose(dialect, &choice).unwrap(),
            expect,
            "{dialect} {choice:?}"
        );
    }
    for (dialect, name) in [
        (chat, "nosuch"),
        (responses, "nosuch"),
        (responses, "crm__find"),
    ] {
        let error = choose(dialect, &tool(name)).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn further_members_are_spliced_in_and_what_haft_writes_is_refused() {
    let tools = Declarations::none(Dialect::OpenAiChat);
    let write = |dialect: Dialect, names: &[&str], max_tokens| {
        let extra: Vec<(String, Box<RawValue>)> = names
            .iter()
            .map(|name| ((*name).to_owned(), raw(&json!(1))))
            .collect();
        let tools = if dialect == Dialect::OpenAiChat {
            tools.clone()
        } else {
            Declarations::none(dialect)
        };
        let body = dialect.write(&Request {
            extra: &extra,
            max_tokens,
            ..request(&[], &tools)
        })?;
        Ok::<String, WireError>(String::from_utf8(body).unwrap())
    };
    assert!(
        write(Dialect::OpenAiChat, &["top_p", "max_tokens"], None)
            .unwrap()
            .ends_with(r#""top_p":1,"max_tokens":1}"#)
    );
    let rows: [(Dialect, &[&str], Option<u32>); 7] = [
        (Dialect::OpenAiChat, &["messages"], None),
        (Dialect::OpenAiChat, &["stream_options"], None),
        (Dialect::OpenAiChat, &["max_tokens"], Some(1)),
        (Dialect::OpenAiChat, &["top_p", "top_p"], None),
        (Dialect::OpenAiChat, &["a\"b"], None),
        (Dialect::OpenAiResponses, &["input"], None),
        (Dialect::OpenAiResponses, &["tool_choice"], None),
    ];
    for (dialect, names, max_tokens) in rows {
        let error = write(dialect, names, max_tokens).unwrap_err();
        assert!(
            matches!(error, WireError::Inexpressible { .. }),
            "{names:?}: {error}"
        );
    }
    let wrong = Dialect::OpenAiResponses
        .write(&request(&[], &tools))
        .unwrap_err()
        .to_string();
    assert!(
        wrong.contains("declare them for openai-responses"),
        "{wrong}"
    );
}

#[test]
fn a_turn_goes_back_to_its_own_dialect_as_it_came() {
    let sent = json!({"role": "assistant", "content": null, "refusal": null, "annotations": [], "executed_tools": [1], "reasoning_details": [{"x": 1}],
        "reasoning_content": "", "audio": {"id": "au", "data": "x"}, "function_call": {"arguments": "", "name": ""},
        "tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}, "custom": {"input": "", "name": ""}, "extra_content": {"s": 1}}]});
    let expect = json!([{"role": "assistant", "content": null, "reasoning_details": [{"x": 1}], "reasoning_content": "", "audio": {"id": "au"},
        "tool_calls": [{"type": "function", "id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"s": 1}}]}]);
    assert_eq!(
        written(
            Dialect::OpenAiChat,
            &[turn(Dialect::OpenAiChat, Vec::new(), &sent)]
        ),
        expect
    );
    let items = json!([{"type": "reasoning", "id": "r", "encrypted_content": "x", "summary": []}, {"type": "odd", "n": 1}, {"type": "web_search_call", "id": "w"}]);
    assert_eq!(
        written(
            Dialect::OpenAiResponses,
            &[turn(Dialect::OpenAiResponses, Vec::new(), &items)]
        ),
        items
    );
    let none = [
        Message::user("a"),
        turn(Dialect::OpenAiResponses, Vec::new(), &json!([])),
        Message::user("b"),
    ];
    assert_eq!(
        written(Dialect::OpenAiResponses, &none)
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn a_turn_of_another_dialect_is_said_by_its_texts_and_calls() {
    let mut found = call(CallKind::Function, "a", "docs.read");
    found.arguments = "{\"p\":1}".to_owned();
    let mut spaced = call(CallKind::Freeform, "b", "sql");
    spaced.namespace = Some("db".to_owned());
    spaced.arguments = "select".to_owned();
    let items = vec![
        TurnItem::Thinking("hm".to_owned()),
        TurnItem::Call(found),
        TurnItem::Text("so ".to_owned()),
        TurnItem::Text("it is".to_owned()),
        TurnItem::Hosted {
            kind: "server_tool_use".to_owned(),
            name: None,
            raw: raw(&json!({})),
        },
        TurnItem::Call(spaced),
    ];
    let history = [
        turn(Dialect::Gemini, items, &json!({})),
        turn(
            Dialect::Anthropic,
            vec![TurnItem::Thinking("x".to_owned())],
            &json!([]),
        ),
        Message::user("u"),
    ];
    let expect = json!([{"role": "assistant", "content": "so it is", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "docs__read", "arguments": "{\"p\":1}"}},
            {"id": "b", "type": "custom", "custom": {"name": "db__sql", "input": "select"}}]},
        {"role": "user", "content": "u"}]);
    assert_eq!(written(Dialect::OpenAiChat, &history), expect);
    let expect = json!([
        {"role": "assistant", "content": "so "},
        {"role": "assistant", "content": "it is"},
        {"type": "function_call", "call_id": "a", "name": "docs__read", "arguments": "{\"p\":1}"},
        {"type": "custom_tool_call", "call_id": "b", "name": "db__sql", "input": "select"},
        {"role": "user", "content": "u"}]);
    assert_eq!(written(Dialect::OpenAiResponses, &history), expect);
}
