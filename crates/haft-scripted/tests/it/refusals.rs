//! Requests that a provider refuses, with its error format and messages, and those that a scenario does not expect.

use haft_scripted::{Dialect, Scenario, ScenarioServer, serve};
use serde_json::{Value, json};

use crate::client::{ask, go_on, headers, path, post, send};
use crate::readers::read;

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

async fn server(scenario: &str) -> ScenarioServer {
    serve(Scenario::from_toml(scenario).unwrap()).await.unwrap()
}

/// Returns a valid request after the first turn, with both results.
async fn right(server: &ScenarioServer, dialect: Dialect) -> Value {
    let mut body = ask(dialect, false, "go", &["one", "two"]);
    let first = read(
        dialect,
        false,
        &post(server.address(), dialect, false, &body).await,
    );
    go_on(dialect, &mut body, &first, &["1", "2"]);
    body
}

/// Changes of a valid request, each with the expected message. `PATH = JSON` sets a member, `- PATH` removes one, `+ PATH` duplicates an
/// element of a list, and `^ PATH = JSON` inserts one at the front of a list.
type Rows = &'static [(&'static str, &'static str)];

const CHAT: Rows = &[
    ("- /messages/3", "did not have response messages: b"),
    (
        "- /messages/1",
        "must be a response to a preceeding message with 'tool_calls'",
    ),
    (
        "/messages/2/tool_call_id = \"x\"",
        "'tool_call_id' of 'x' not found",
    ),
    ("+ /messages/3", "'tool_call_id' of 'b' not found"),
    (
        "/messages/2/content = [{\"type\": \"image_url\"}]",
        "Content blocks are expected to be of type text",
    ),
    (
        "/messages/1/tool_calls/0/function/arguments = {}",
        "arguments as a string",
    ),
    (
        "/messages/1/tool_calls/0/id = \"12345678901234567890123456789012345678901\"",
        "1 to 40 characters, but got 41",
    ),
    (
        "/messages/1 = {\"role\": \"assistant\"}",
        "expected a string, got null",
    ),
    ("/messages/0/role = \"human\"", "Invalid value: 'human'"),
    ("/tools/0/function/name = \"a.b\"", "does not match pattern"),
    (
        "/tools/0/function/parameters = {\"type\": \"array\"}",
        "schema must be a JSON Schema of 'type: \\\"object\\\"'",
    ),
    (
        "/tools/0/function/strict = true",
        "'additionalProperties' is required",
    ),
    ("/tools = []", "empty array"),
    (
        "/tool_choice = {\"type\": \"function\", \"function\": {\"name\": \"x\"}}",
        "not found in 'tools'",
    ),
    (
        "/stream_options = {}",
        "only allowed when 'stream' is enabled",
    ),
    (
        "/max_token = 5",
        "Unrecognized request argument supplied: max_token",
    ),
];

const RESPONSES: Rows = &[
    ("- /input/5", "No tool output found for function call b."),
    (
        "/input/4/call_id = \"x\"",
        "No tool call found for function call output with call_id x.",
    ),
    (
        "+ /input/5",
        "No tool call found for function call output with call_id b.",
    ),
    ("/input/4/output = {}", "output must be a string or a list"),
    (
        "- /input/2/arguments",
        "Missing required parameter: 'input[2].arguments'",
    ),
    (
        "- /input/1",
        "was provided without its required 'reasoning' item",
    ),
    (
        "/input/1/encrypted_content = \"forged\"",
        "could not be verified",
    ),
    (
        "/previous_response_id = \"resp_9\"",
        "Previous response with id 'resp_9' not found.",
    ),
    (
        "/input/0 = {\"type\": \"item_reference\", \"id\": \"msg_9\"}",
        "Item with id 'msg_9' not found",
    ),
    ("/input/0/type = \"massage\"", "Invalid value: 'massage'"),
    (
        "/tools/0/type = \"functions\"",
        "Invalid value: 'functions'",
    ),
    (
        "/tool_choice = {\"type\": \"function\", \"name\": \"x\"}",
        "Tool choice 'x' not found",
    ),
    ("/messages = []", "Unknown parameter: 'messages'."),
    ("- /model", "Missing required parameter: 'model'."),
];

const ANTHROPIC: Rows = &[
    (
        "- /messages/2/content/1",
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: b",
    ),
    ("- /messages/2", "messages.2: `tool_use` ids were found"),
    (
        "^ /messages/2/content = {\"type\": \"text\", \"text\": \"hi\"}",
        "messages.2: `tool_use` ids were found",
    ),
    (
        "/messages/2/content/0/tool_use_id = \"x\"",
        "unexpected `tool_use_id` found in `tool_result` blocks: x",
    ),
    (
        "+ /messages/2/content/1",
        "Found multiple `tool_result` blocks with id: b",
    ),
    (
        "/messages/1/content/2/id = \"a\"",
        "`tool_use` ids must be unique",
    ),
    (
        "/messages/1/content/1/id = \"a.b\"",
        "String should match pattern",
    ),
    (
        "/messages/1/content/1/input = \"{}\"",
        "Input should be a valid dictionary",
    ),
    (
        "/messages/1/content/0/thinking = \"ha\"",
        "Invalid `signature` in `thinking` block",
    ),
    (
        "/messages/2/content/0 = {\"type\": \"tool_result\", \"tool_use_id\": \"a\", \"is_error\": true, \"content\": [{\"type\": \"image\"}]}",
        "all content must be type \\\"text\\\"",
    ),
    (
        "/messages/1/content/1/toolset_name = \"computer\"",
        "`toolset_name` must match",
    ),
    (
        "- /messages/0",
        "first message must use the \\\"user\\\" role",
    ),
    (
        "/messages/0/content = \"\"",
        "all messages must have non-empty content",
    ),
    ("/tools/1/name = \"one\"", "Tool names must be unique"),
    (
        "/tools/1/name = \"a.b\"",
        "tools.1.custom.name: String should match pattern",
    ),
    (
        "- /tools/0/input_schema",
        "tools.0.custom.input_schema: Field required",
    ),
    ("- /max_tokens", "max_tokens: Field required"),
    (
        "/tool_choice = {\"type\": \"tool\", \"name\": \"x\"}",
        "Tool 'x' not found",
    ),
    ("/stop = \"x\"", "stop: Extra inputs are not permitted"),
    (
        "/tools = [{\"name\": \"one\", \"input_schema\": {\"type\": \"object\"}, \"defer_loading\": true}]",
        "At least one tool must have defer_loading=false",
    ),
];

const GEMINI: Rows = &[
    (
        "- /contents/2/parts/1",
        "number of function response parts is equal",
    ),
    (
        "- /contents/1",
        "function response turn comes immediately after a function call turn",
    ),
    (
        "- /contents/0",
        "function call turn comes immediately after a user turn",
    ),
    (
        "/contents/2/parts/0/functionResponse/id = \"x\"",
        "has the name 'one' and this id",
    ),
    (
        "/contents/2/parts/0/functionResponse/name = \"\"",
        "Name cannot be empty",
    ),
    (
        "/contents/2/parts/0/functionResponse/response = \"1\"",
        "google.protobuf.Struct",
    ),
    (
        "- /contents/1/parts/1/thoughtSignature",
        "missing a thought_signature",
    ),
    (
        "/contents/1/parts/1/thoughtSignature = \"scripted0\"",
        "Thought signature is not valid",
    ),
    (
        "/tools/0/functionDeclarations/0/name = \"7zip\"",
        "Invalid function name",
    ),
    (
        "/tools/0/functionDeclarations/1/name = \"one\"",
        "Duplicate function declaration found: one",
    ),
    (
        "/tools/0/functionDeclarations/0/parameters = {}",
        "only one of parameters",
    ),
    (
        "/toolConfig = {\"functionCallingConfig\": {\"allowedFunctionNames\": [\"one\"]}}",
        "only when function calling mode is ANY",
    ),
    ("/messages = []", "Unknown name \\\"messages\\\""),
];

/// Applies a row's change to a request.
fn change(body: &mut Value, change: &str) {
    let (path, value) = change.split_once(" = ").unwrap_or((change, "null"));
    let value: Value = serde_json::from_str(value).unwrap();
    let (what, path) = path.split_once(' ').unwrap_or(("", path));
    if what == "^" {
        let list = body.pointer_mut(path).and_then(Value::as_array_mut);
        return list.unwrap().insert(0, value);
    }
    let (parent, key) = path.rsplit_once('/').unwrap();
    match body.pointer_mut(parent).unwrap() {
        Value::Array(list) => {
            let at: usize = key.parse().unwrap();
            match what {
                "-" => drop(list.remove(at)),
                "+" => list.push(list[at].clone()),
                _ => list[at] = value,
            }
        }
        object if what == "-" => assert!(object.as_object_mut().unwrap().remove(key).is_some()),
        object => object[key] = value,
    }
}

#[tokio::test]
async fn a_wrong_request_gets_the_providers_error_and_a_right_one_does_not() {
    let tables = [
        (Dialect::OpenAiChat, CHAT),
        (Dialect::OpenAiResponses, RESPONSES),
        (Dialect::Anthropic, ANTHROPIC),
        (Dialect::Gemini, GEMINI),
    ];
    for (dialect, rows) in tables {
        for (row, expect) in rows {
            let server = server(TWO).await;
            let mut body = right(&server, dialect).await;
            let whole = post(server.address(), dialect, false, &body).await;
            assert_eq!(whole.status, 200, "{dialect}: {}", whole.text());
            change(&mut body, row);
            let answer = post(server.address(), dialect, false, &body).await;
            let text = answer.text();
            assert!(
                (400..405).contains(&answer.status),
                "{dialect} {row}: {text}"
            );
            assert!(text.contains(expect), "{dialect} {row}: {text}");
            let error = &answer.json()["error"];
            let kind = match dialect {
                Dialect::Gemini => &error["status"],
                _ => &error["type"],
            };
            assert!(kind.is_string() && error["message"].is_string(), "{error}");
            assert_eq!(server.problems().len(), 1);
        }
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
        ("/v1/chat/completions", "[]", 400, "it is not an object"),
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
            "the turn calls `two`, and the request allows only one",
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
