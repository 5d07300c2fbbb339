//! Injected faults, and the reply that follows them.

use haft_scripted::{Dialect, Scenario, ScenarioServer, serve};

use tokio::io::AsyncReadExt;

use crate::client::{Answer, ask, headers, open, path, post, read};
use crate::readers;

async fn server(faults: &str) -> ScenarioServer {
    let scenario = format!(
        "title = \"t\"\nseed = 3\n[[turns]]\nfaults = [{faults}]\nsay = [{{ text = \"Grüße aus Zürich, und noch viel mehr Text.\" }}]"
    );
    serve(Scenario::from_toml(&scenario).unwrap())
        .await
        .unwrap()
}

async fn try_once(server: &ScenarioServer, dialect: Dialect, stream: bool) -> Answer {
    let mut body = ask(dialect, stream, "hello", &[]);
    if dialect == Dialect::OpenAiChat && stream {
        body["stream_options"] = serde_json::json!({"include_usage": true});
    }
    post(server.address(), dialect, stream, &body).await
}

#[tokio::test]
async fn an_error_status_has_the_providers_shape_and_the_next_try_succeeds() {
    let rows = [
        (Dialect::OpenAiChat, 429, r#""type":"rate_limit_error""#),
        (Dialect::OpenAiResponses, 500, r#""type":"server_error""#),
        (Dialect::Anthropic, 529, r#""type":"overloaded_error""#),
        (Dialect::Anthropic, 429, r#""type":"rate_limit_error""#),
        (Dialect::Gemini, 429, r#""retryDelay":"2s""#),
        (Dialect::Gemini, 503, r#""status":"UNAVAILABLE""#),
    ];
    for (dialect, code, expect) in rows {
        let server = server(&format!(
            "{{ status = {{ code = {code}, retry_after_s = 2, headers = {{ x-left = \"0\" }} }} }}"
        ))
        .await;
        for stream in [true, false] {
            let answer = try_once(&server, dialect, stream).await;
            if stream {
                assert_eq!(answer.status, code, "{dialect}");
                assert!(
                    answer.text().contains(expect),
                    "{dialect}: {}",
                    answer.text()
                );
                assert!(answer.head.contains("retry-after: 2"), "{}", answer.head);
                assert!(answer.head.contains("x-left: 0"), "{}", answer.head);
            } else {
                let read = readers::read(dialect, stream, &answer);
                assert!(read.text.starts_with("Grüße"), "{dialect}");
            }
        }
        let requests = server.requests();
        assert_eq!(
            requests.iter().map(|r| r.is_faulty).collect::<Vec<_>>(),
            [true, false]
        );
        assert_eq!(requests[0].status, code);
    }
}

#[tokio::test]
async fn a_proxys_page_comes_in_place_of_the_providers_error() {
    let server = server("{ status = { code = 502, body = \"<html>bad gateway</html>\" } }").await;
    let answer = try_once(&server, Dialect::Anthropic, true).await;
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (502, "<html>bad gateway</html>")
    );
    assert!(
        answer.head.contains("content-type: text/html"),
        "{}",
        answer.head
    );
}

#[tokio::test]
async fn a_connection_breaks_after_so_many_bytes() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let server = server("{ abort_after = 100 }").await;
            let answer = try_once(&server, dialect, stream).await;
            assert_eq!(
                (answer.status, answer.body.len(), answer.is_whole),
                (200, 100, false),
                "{dialect} {stream}"
            );
            let next = try_once(&server, dialect, stream).await;
            assert!(
                readers::read(dialect, stream, &next)
                    .text
                    .ends_with("Text.")
            );
        }
    }
}

#[tokio::test]
async fn a_stream_ends_without_saying_how() {
    let ends = [
        (Dialect::OpenAiChat, "finish_reason\":\"stop"),
        (Dialect::OpenAiResponses, "response.completed"),
        (Dialect::Anthropic, "message_stop"),
        (Dialect::Gemini, "finishReason"),
    ];
    for (dialect, end) in ends {
        let server = server("\"unterminated\"").await;
        let answer = try_once(&server, dialect, true).await;
        assert!(
            answer.is_whole && !answer.text().contains(end),
            "{dialect}: {}",
            answer.text()
        );
        assert!(answer.text().contains("Text") || dialect != Dialect::OpenAiResponses);
        let next = try_once(&server, dialect, true).await;
        assert!(next.text().contains(end), "{dialect}: {}", next.text());
    }
}

#[tokio::test]
async fn an_error_stands_in_the_middle_of_a_stream() {
    let rows = [
        (Dialect::OpenAiChat, "data: {\"error\":"),
        (
            Dialect::OpenAiResponses,
            "event: error\ndata: {\"code\":\"overloaded\"",
        ),
        (
            Dialect::Anthropic,
            "event: error\ndata: {\"error\":{\"message\":\"Too much.\",\"type\":\"overloaded\"}",
        ),
        (Dialect::Gemini, "\"status\":\"overloaded\""),
    ];
    for (dialect, expect) in rows {
        let server =
            server("{ error_event = { kind = \"overloaded\", message = \"Too much.\" } }").await;
        let answer = try_once(&server, dialect, true).await;
        let events = answer.events();
        assert!(
            answer.text().contains(expect),
            "{dialect}: {}",
            answer.text()
        );
        assert!(events.len() > 1 && answer.is_whole, "{dialect}");
        assert!(
            events.last().unwrap().to_string().contains("Too much."),
            "{dialect}"
        );
    }
}

#[tokio::test]
async fn an_event_comes_twice() {
    for dialect in Dialect::ALL {
        let server = server("{ repeat_event = 1 }, { repeat_event = -1 }").await;
        let first = try_once(&server, dialect, true).await.events();
        assert_eq!(first[1], first[2], "{dialect}");
        let second = try_once(&server, dialect, true).await.events();
        assert_eq!(
            second[second.len() - 1],
            second[second.len() - 2],
            "{dialect}"
        );
        let plain = try_once(&server, dialect, true).await.events();
        assert_ne!(plain[1], plain[2], "{dialect}");
    }
}

#[tokio::test]
async fn a_byte_is_no_utf8() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let server = server("\"broken_utf8\"").await;
            let answer = try_once(&server, dialect, stream).await;
            assert!(
                std::str::from_utf8(&answer.body).is_err(),
                "{dialect} {stream}"
            );
        }
    }
}

#[tokio::test]
async fn a_response_hangs_until_the_server_stops() {
    let server = server("{ hang_after = 40 }").await;
    let body = ask(Dialect::Anthropic, true, "hello", &[]).to_string();
    let path = path(Dialect::Anthropic, true);
    let mut stream = open(server.address(), &path, headers(Dialect::Anthropic), &body).await;
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") || read(&bytes).body.len() < 40 {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0);
    }
    let more = stream.try_read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(more, Err(std::io::ErrorKind::WouldBlock));
    drop(server);
    assert!(!matches!(stream.read_buf(&mut bytes).await, Ok(1..)));
    assert!(!read(&bytes).is_whole);
}

#[tokio::test]
async fn raw_arguments_that_are_no_json_come_where_arguments_are_text() {
    let scenario = r#"
    title = "t"
    [[turns]]
    stop = "length"
    say = [{ call = { tool = "read_file", raw = '{"path": "a' } }]
    "#;
    let rows = [
        (Dialect::OpenAiChat, false, Ok("length")),
        (Dialect::OpenAiChat, true, Ok("length")),
        (Dialect::OpenAiResponses, false, Ok("incomplete")),
        (Dialect::OpenAiResponses, true, Ok("incomplete")),
        (Dialect::Anthropic, true, Ok("max_tokens")),
        (
            Dialect::Anthropic,
            false,
            Err("scenario: turn 1: the raw arguments"),
        ),
        (
            Dialect::Gemini,
            false,
            Err("scenario: turn 1: the raw arguments"),
        ),
        (
            Dialect::Gemini,
            true,
            Err("scenario: turn 1: the raw arguments"),
        ),
    ];
    for (dialect, stream, expect) in rows {
        let server = serve(Scenario::from_toml(scenario).unwrap()).await.unwrap();
        let body = ask(dialect, stream, "hello", &["read_file"]);
        let answer = post(server.address(), dialect, stream, &body).await;
        match expect {
            Ok(stop) => {
                assert_eq!(answer.status, 200, "{dialect}: {}", answer.text());
                assert!(
                    answer.text().contains(&format!("\"{stop}\"")),
                    "{dialect}: {}",
                    answer.text()
                );
            }
            Err(words) => {
                assert_eq!(answer.status, 400, "{dialect}");
                assert!(
                    server.problems()[0].starts_with(words),
                    "{:?}",
                    server.problems()
                );
            }
        }
    }
}
