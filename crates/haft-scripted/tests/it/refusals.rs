//! Requests that a provider refuses, in its shape and words, and those that a scenario does not expect.

use haft_scripted::{Dialect, Scenario, Server, serve};
use serde_json::{Value, json};

use crate::client::{ask, go_on, headers, path, post, send};
use crate::replies::read;

const TWO: &str = r#"
title = "Two calls"
[[turns]]
say = [
  { thinking = "hm" },
  { call = { id = "a", tool = "one", arguments = {} } },
  { call = { id = "b", tool = "two", arguments = {} } },
]
[[turns]]
say = [{ text = "done" }]
"#;

async fn server(scenario: &str) -> Server {
    serve(Scenario::from_toml(scenario).unwrap()).await.unwrap()
}

/// A request after the first turn with both results, right as it is.
async fn right(server: &Server, dialect: Dialect) -> Value {
    let mut body = ask(dialect, false, "go", &["one", "two"]);
    let first = read(
        dialect,
        false,
        &post(server.address(), dialect, false, &body).await,
    );
    go_on(dialect, &mut body, &first, &["1", "2"]);
    body
}

type Change = fn(&mut Value);

/// What a change of a right request is called.
fn rows() -> Vec<(Dialect, Change, &'static str)> {
    use Dialect::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
    vec![
        (
            OpenAiChat,
            |b| drop(list(b, "messages").pop()),
            "did not have response messages: b",
        ),
        (
            OpenAiChat,
            |b| list(b, "messages").swap(1, 2),
            "must be a response to a preceeding message with 'tool_calls'",
        ),
        (
            OpenAiChat,
            |b| b["messages"][2]["tool_call_id"] = "x".into(),
            "'tool_call_id' of 'x' not found",
        ),
        (
            OpenAiChat,
            |b| again(list(b, "messages"), 3),
            "'tool_call_id' of 'b' not found",
        ),
        (
            OpenAiChat,
            |b| b["messages"][2]["content"] = json!([{"type": "image_url"}]),
            "Content blocks are expected to be of type text",
        ),
        (
            OpenAiChat,
            |b| b["messages"][1]["tool_calls"][0]["function"]["arguments"] = json!({}),
            "arguments as a string",
        ),
        (
            OpenAiChat,
            |b| b["tools"][0]["function"]["name"] = "a.b".into(),
            "does not match pattern",
        ),
        (
            OpenAiChat,
            |b| b["tools"][0]["function"]["parameters"] = json!({"type": "array"}),
            "schema must be a JSON Schema of 'type: \\\"object\\\"'",
        ),
        (
            OpenAiChat,
            |b| b["tools"][0]["function"]["strict"] = true.into(),
            "'additionalProperties' is required",
        ),
        (OpenAiChat, |b| b["tools"] = json!([]), "empty array"),
        (
            OpenAiChat,
            |b| b["tool_choice"] = json!({"type": "function", "function": {"name": "x"}}),
            "not found in 'tools'",
        ),
        (
            OpenAiChat,
            |b| b["stream_options"] = json!({}),
            "only allowed when 'stream' is enabled",
        ),
        (
            OpenAiChat,
            |b| b["max_token"] = 5.into(),
            "Unrecognized request argument supplied: max_token",
        ),
        (
            OpenAiResponses,
            |b| drop(list(b, "input").pop()),
            "No tool output found for function call b.",
        ),
        (
            OpenAiResponses,
            |b| b["input"][4]["call_id"] = "x".into(),
            "No tool call found for function call output with call_id x.",
        ),
        (
            OpenAiResponses,
            |b| again(list(b, "input"), 5),
            "No tool call found for function call output with call_id b.",
        ),
        (
            OpenAiResponses,
            |b| b["input"][4]["output"] = json!({}),
            "output must be a string or a list",
        ),
        (
            OpenAiResponses,
            |b| drop(list(b, "input").remove(1)),
            "was provided without its required 'reasoning' item",
        ),
        (
            OpenAiResponses,
            |b| b["input"][1]["encrypted_content"] = "forged".into(),
            "could not be verified",
        ),
        (
            OpenAiResponses,
            |b| b["previous_response_id"] = "resp_9".into(),
            "Previous response with id 'resp_9' not found.",
        ),
        (
            OpenAiResponses,
            |b| b["input"][0] = json!({"type": "item_reference", "id": "msg_9"}),
            "Item with id 'msg_9' not found",
        ),
        (
            OpenAiResponses,
            |b| b["input"][0]["type"] = "massage".into(),
            "Invalid value: 'massage'",
        ),
        (
            OpenAiResponses,
            |b| b["tools"][0]["type"] = "functions".into(),
            "Invalid value: 'functions'",
        ),
        (
            OpenAiResponses,
            |b| b["messages"] = json!([]),
            "Unknown parameter: 'messages'.",
        ),
        (
            Anthropic,
            |b| drop(list(&mut b["messages"][2], "content").pop()),
            "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: b",
        ),
        (
            Anthropic,
            |b| drop(list(b, "messages").pop()),
            "messages.2: `tool_use` ids were found",
        ),
        (
            Anthropic,
            |b| {
                list(&mut b["messages"][2], "content")
                    .insert(0, json!({"type": "text", "text": "hi"}))
            },
            "messages.2: `tool_use` ids were found",
        ),
        (
            Anthropic,
            |b| b["messages"][2]["content"][0]["tool_use_id"] = "x".into(),
            "unexpected `tool_use_id` found in `tool_result` blocks: x",
        ),
        (
            Anthropic,
            |b| again(list(&mut b["messages"][2], "content"), 1),
            "Found multiple `tool_result` blocks with id: b",
        ),
        (
            Anthropic,
            |b| b["messages"][1]["content"][2]["id"] = "a".into(),
            "`tool_use` ids must be unique",
        ),
        (
            Anthropic,
            |b| b["messages"][1]["content"][1]["input"] = "{}".into(),
            "Input should be a valid dictionary",
        ),
        (
            Anthropic,
            |b| b["messages"][1]["content"][0]["thinking"] = "ha".into(),
            "Invalid `signature` in `thinking` block",
        ),
        (
            Anthropic,
            |b| b["messages"][2]["content"][0] = json!({"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": [{"type": "image"}]}),
            "all content must be type \\\"text\\\"",
        ),
        (
            Anthropic,
            |b| b["messages"][1]["content"][1]["toolset_name"] = "computer".into(),
            "`toolset_name` must match",
        ),
        (
            Anthropic,
            |b| b["tools"][1]["name"] = "one".into(),
            "Tool names must be unique",
        ),
        (
            Anthropic,
            |b| b["tools"][1]["name"] = "a.b".into(),
            "tools.1.custom.name: String should match pattern",
        ),
        (
            Anthropic,
            |b| {
                drop(
                    b["tools"][0]
                        .as_object_mut()
                        .unwrap()
                        .remove("input_schema"),
                )
            },
            "tools.0.custom.input_schema: Field required",
        ),
        (
            Anthropic,
            |b| drop(b.as_object_mut().unwrap().remove("max_tokens")),
            "max_tokens: Field required",
        ),
        (
            Anthropic,
            |b| b["tool_choice"] = json!({"type": "tool", "name": "x"}),
            "Tool 'x' not found",
        ),
        (
            Anthropic,
            |b| b["stop"] = "x".into(),
            "stop: Extra inputs are not permitted",
        ),
        (
            Anthropic,
            |b| {
                for t in list(b, "tools") {
                    t["defer_loading"] = true.into()
                }
            },
            "At least one tool must have defer_loading=false",
        ),
        (
            Gemini,
            |b| drop(list(&mut b["contents"][2], "parts").pop()),
            "number of function response parts is equal",
        ),
        (
            Gemini,
            |b| drop(list(b, "contents").remove(1)),
            "function response turn comes immediately after a function call turn",
        ),
        (
            Gemini,
            |b| drop(list(b, "contents").remove(0)),
            "function call turn comes immediately after a user turn",
        ),
        (
            Gemini,
            |b| b["contents"][2]["parts"][0]["functionResponse"]["id"] = "x".into(),
            "has the name 'one' and this id",
        ),
        (
            Gemini,
            |b| b["contents"][2]["parts"][0]["functionResponse"]["name"] = "".into(),
            "Name cannot be empty",
        ),
        (
            Gemini,
            |b| b["contents"][2]["parts"][0]["functionResponse"]["response"] = "1".into(),
            "google.protobuf.Struct",
        ),
        (
            Gemini,
            |b| {
                drop(
                    b["contents"][1]["parts"][1]
                        .as_object_mut()
                        .unwrap()
                        .remove("thoughtSignature"),
                )
            },
            "missing a thought_signature",
        ),
        (
            Gemini,
            |b| b["contents"][1]["parts"][1]["thoughtSignature"] = "scripted0".into(),
            "Thought signature is not valid",
        ),
        (
            Gemini,
            |b| b["tools"][0]["functionDeclarations"][0]["name"] = "7zip".into(),
            "Invalid function name",
        ),
        (
            Gemini,
            |b| b["tools"][0]["functionDeclarations"][1]["name"] = "one".into(),
            "Duplicate function declaration found: one",
        ),
        (
            Gemini,
            |b| b["tools"][0]["functionDeclarations"][0]["parameters"] = json!({}),
            "only one of parameters",
        ),
        (
            Gemini,
            |b| {
                b["toolConfig"] =
                    json!({"functionCallingConfig": {"allowedFunctionNames": ["one"]}})
            },
            "only when function calling mode is ANY",
        ),
        (Gemini, |b| b["model"] = 1.into(), ""),
        (
            Gemini,
            |b| b["messages"] = json!([]),
            "Unknown name \\\"messages\\\"",
        ),
    ]
}

fn list<'v>(value: &'v mut Value, key: &str) -> &'v mut Vec<Value> {
    value[key].as_array_mut().unwrap()
}

fn again(list: &mut Vec<Value>, at: usize) {
    list.push(list[at].clone());
}

#[tokio::test]
async fn a_wrong_request_gets_the_providers_error_and_a_right_one_does_not() {
    for (dialect, change, expect) in rows() {
        let server = server(TWO).await;
        let mut body = right(&server, dialect).await;
        let whole = post(server.address(), dialect, false, &body).await;
        assert_eq!(whole.status, 200, "{dialect}: {}", whole.text());
        change(&mut body);
        let answer = post(server.address(), dialect, false, &body).await;
        if expect.is_empty() {
            assert_eq!(answer.status, 200, "{dialect}: {}", answer.text());
            continue;
        }
        assert!(
            (400..405).contains(&answer.status),
            "{dialect}, {expect}: {}",
            answer.text()
        );
        assert!(
            answer.text().contains(expect),
            "{dialect}, {expect}: {}",
            answer.text()
        );
        let error = &answer.json()["error"];
        let kind = match dialect {
            Dialect::Gemini => &error["status"],
            _ => &error["type"],
        };
        assert!(kind.is_string() && error["message"].is_string(), "{error}");
        assert_eq!(server.problems().len(), 1);
    }
}

#[tokio::test]
async fn keys_and_headers_are_demanded_as_the_provider_does() {
    let rows = [
        (Dialect::OpenAiChat, "", 401, "Incorrect API key"),
        (
            Dialect::OpenAiResponses,
            "authorization: Bearer \r\n",
            401,
            "Incorrect API key",
        ),
        (
            Dialect::OpenAiResponses,
            "authorization: Bearer other\r\n",
            401,
            "invalid API key",
        ),
        (
            Dialect::Anthropic,
            "anthropic-version: 2023-06-01\r\n",
            401,
            "invalid x-api-key",
        ),
        (
            Dialect::Anthropic,
            "x-api-key: secret\r\n",
            400,
            "anthropic-version: header is required",
        ),
        (Dialect::Gemini, "", 400, "API key not valid"),
        (
            Dialect::OpenAiChat,
            "authorization: Bearer secret\r\n",
            200,
            "hello",
        ),
        (Dialect::Gemini, "x-goog-api-key: secret\r\n", 200, "hello"),
    ];
    for (dialect, headers, status, expect) in rows {
        let server =
            server("title = \"t\"\nkey = \"secret\"\n[[turns]]\nsay = [{ text = \"hello\" }]")
                .await;
        let body = ask(dialect, false, "go", &[]).to_string();
        let answer = send(server.address(), &path(dialect, false), headers, &body).await;
        assert_eq!(
            answer.status,
            status,
            "{dialect} {headers}: {}",
            answer.text()
        );
        assert!(
            answer.text().contains(expect),
            "{dialect} {headers}: {}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn other_paths_and_bodies_that_are_no_json_are_refused() {
    let server = server(TWO).await;
    let key = headers(Dialect::OpenAiChat);
    let rows = [
        ("/v1/completions", "{}", 404, "nothing is here"),
        (
            "/v1beta/models/m:embedContent",
            "{}",
            404,
            "nothing is here",
        ),
        (
            "/v1beta/models/m:streamGenerateContent",
            "{}",
            400,
            "alt=sse",
        ),
        (
            "/v1/chat/completions",
            "{",
            400,
            "could not parse the JSON body",
        ),
        ("/v1/chat/completions", "[]", 400, "it is no object"),
    ];
    for (path, body, status, expect) in rows {
        let answer = send(server.address(), path, key, body).await;
        assert_eq!(answer.status, status, "{path} {body}");
        assert!(
            answer.text().contains(expect),
            "{path} {body}: {}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn what_a_scenario_expects_is_demanded_and_named() {
    let rows = [
        (
            "expect.user = \"please\"",
            "the last text of the user must contain \"please\"; it is \"go\"",
        ),
        (
            "expect.tools = [\"three\"]",
            "the tool `three` must be declared; declared are: one, two",
        ),
        (
            "expect.no_tools = [\"one\"]",
            "the tool `one` must not be declared",
        ),
        (
            "expect.model = \"other\"",
            "the model must be `other`; it is `m`",
        ),
        (
            "expect.system = [\"careful\"]",
            "the instructions must contain \"careful\"; it is \"\"",
        ),
        (
            "expect.headers = { x-run = \"7\" }",
            "the header `x-run` is missing",
        ),
        (
            "expect.headers = { host = \"elsewhere\" }",
            "the header `host` must contain \"elsewhere\"",
        ),
    ];
    for (expect, words) in rows {
        let server = server(&format!(
            "title = \"t\"\n[[turns]]\n{expect}\nsay = [{{ text = \"hello\" }}]"
        ))
        .await;
        let body = ask(Dialect::OpenAiChat, false, "go", &["one", "two"]);
        let answer = post(server.address(), Dialect::OpenAiChat, false, &body).await;
        assert_eq!(answer.status, 400, "{expect}");
        let problems = server.problems();
        assert!(
            problems[0].contains(&format!("scenario: turn 1: {words}")),
            "{expect}: {problems:?}"
        );
        assert!(!server.is_over());
    }
}

#[tokio::test]
async fn results_are_expected_by_the_call_that_they_answer() {
    let rows = [
        (
            "{ call = \"a\", contains = \"1\", error = false }, { call = \"b\", lacks = \"1\" }",
            None,
        ),
        (
            "{ call = \"a\", contains = \"2\" }",
            Some("the result of the call `a` must contain \"2\"; it is \"1\""),
        ),
        (
            "{ call = \"b\", lacks = \"2\" }",
            Some("the result of the call `b` must not contain \"2\""),
        ),
        (
            "{ call = \"b\", error = true }",
            Some("the result of the call `b` must be marked as an error"),
        ),
    ];
    for dialect in Dialect::ALL {
        for ids in [true, false] {
            for (expect, words) in rows {
                let source = format!(
                    "gemini_ids = {ids}\n{}",
                    TWO.replace(
                        "say = [{ text",
                        &format!("expect.results = [{expect}]\nsay = [{{ text")
                    )
                );
                let server = server(&source).await;
                let body = right(&server, dialect).await;
                let answer = post(server.address(), dialect, false, &body).await;
                let marked = matches!(dialect, Dialect::Anthropic | Dialect::Gemini);
                match words.filter(|words| marked || !words.contains("marked")) {
                    Some(words) => assert!(
                        answer.text().contains(&words.replace('"', "\\\"")),
                        "{dialect}: {}",
                        answer.text()
                    ),
                    None => assert_eq!(answer.status, 200, "{dialect} {expect}: {}", answer.text()),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_turn_that_the_request_rules_out_is_a_problem() {
    let rows: [(Value, &str); 5] = [
        (json!({"tool_choice": "none"}), "the request allows none"),
        (
            json!({"parallel_tool_calls": false}),
            "the request allows one",
        ),
        (
            json!({"tool_choice": {"type": "function", "function": {"name": "one"}}}),
            "the turn calls `two`, and the request allows one alone",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "one"}}]}),
            "the turn calls `two`, which the request does not declare (declared: one)",
        ),
        (json!({"tool_choice": "required"}), ""),
    ];
    for (change, words) in rows {
        let server = server(TWO).await;
        let mut body = ask(Dialect::OpenAiChat, false, "go", &["one", "two"]);
        for (key, value) in change.as_object().unwrap() {
            body[key] = value.clone();
        }
        let answer = post(server.address(), Dialect::OpenAiChat, false, &body).await;
        assert_eq!(
            answer.status == 200,
            words.is_empty(),
            "{change}: {}",
            answer.text()
        );
        assert!(answer.text().contains(words), "{change}: {}", answer.text());
    }
}
