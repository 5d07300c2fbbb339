//! Streams as each provider sends them: a text in pieces, then a call whose arguments come in pieces if the provider splits them.

use std::fmt::Write;

/// Size of a stream in bytes.
const SIZE: usize = 10_000_000;

/// Words of a model, one per piece: plain ones, one with an escape, one that is not ASCII.
const WORDS: [&str; 6] = [" capital", " of", " the", "\\n- ", " käse", " framework"];

/// Returns a stream of Chat: text, then a call whose arguments come in pieces.
pub(crate) fn chat() -> String {
    let head = r#"data: {"id":"chatcmpl-Dx0Xq5Xx9rHB2ehcHZCRDsnuymUXc","object":"chat.completion.chunk","created":1782955818,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_d0469e1700","choices":[{"index":0,"delta":"#;
    let tail = |finish: &str| {
        format!(
            r#","logprobs":null,"finish_reason":{finish}}}],"usage":null,"obfuscation":"HM7mrUsjk"}}"#
        )
    };
    let mut sse = String::with_capacity(SIZE + 1024);
    let mut at = 0;
    while sse.len() < SIZE / 2 {
        let word = WORDS[at % WORDS.len()];
        write!(sse, "{head}{{\"content\":\"{word}\"}}{}\n\n", tail("null")).expect("a String");
        at += 1;
    }
    let begin = r#"{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"write","arguments":"{\"text\":\""}}]}"#;
    write!(sse, "{head}{begin}{}\n\n", tail("null")).expect("a String");
    while sse.len() < SIZE {
        let word = WORDS[at % WORDS.len()].replace('\\', "\\\\");
        let delta =
            format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{word}"}}}}]}}"#);
        write!(sse, "{head}{delta}{}\n\n", tail("null")).expect("a String");
        at += 1;
    }
    let end = r#"{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}"#;
    write!(
        sse,
        "{head}{end}{}\n\n{head}{{}}{}\n\ndata: [DONE]\n\n",
        tail("null"),
        tail("\"tool_calls\"")
    )
    .expect("a String");
    sse
}

/// Returns a stream of Responses: a text in pieces, then complete, once as an item and once in the response.
pub(crate) fn responses() -> String {
    let mut sse = String::with_capacity(SIZE + (1 << 20));
    let mut text = String::new();
    let mut at = 0;
    while sse.len() + 2 * text.len() < SIZE {
        let word = WORDS[at % WORDS.len()];
        write!(sse, "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{},\"item_id\":\"msg_00b9cc7a23d047270068faa0f63798819f83c5348ca838d252\",\"output_index\":0,\"content_index\":0,\"delta\":\"{word}\",\"logprobs\":[],\"obfuscation\":\"Vk0HCjd5u0Ukrjt\"}}\n\n", at + 1).expect("a String");
        text += word;
        at += 1;
    }
    let item = format!(
        r#"{{"id":"msg_1","type":"message","status":"completed","content":[{{"type":"output_text","annotations":[],"logprobs":[],"text":"{text}"}}],"role":"assistant"}}"#
    );
    write!(sse, "event: response.output_item.done\ndata: {{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{item}}}\n\n").expect("a String");
    write!(sse, "event: response.completed\ndata: {{\"type\":\"response.completed\",\"response\":{{\"id\":\"resp_1\",\"model\":\"m\",\"status\":\"completed\",\"output\":[{item}]}}}}\n\n").expect("a String");
    sse
}

/// Adds an event of Anthropic; returns the length so far.
fn block(sse: &mut String, kind: &str, rest: &str) -> usize {
    write!(
        sse,
        "event: {kind}\ndata: {{\"type\":\"{kind}\"{rest}}}\n\n"
    )
    .expect("a String");
    sse.len()
}

/// Returns a stream of Anthropic: a text, then a call whose input comes in pieces of JSON.
pub(crate) fn anthropic() -> String {
    let mut sse = String::with_capacity(SIZE + 1024);
    let start = r#","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}"#;
    block(&mut sse, "message_start", start);
    let text = r#","index":0,"content_block":{"type":"text","text":""}"#;
    block(&mut sse, "content_block_start", text);
    let mut at = 0;
    while sse.len() < SIZE / 2 {
        let word = WORDS[at % WORDS.len()];
        let delta = format!(r#","index":0,"delta":{{"type":"text_delta","text":"{word}"}}"#);
        block(&mut sse, "content_block_delta", &delta);
        at += 1;
    }
    block(&mut sse, "content_block_stop", r#","index":0"#);
    let call = r#","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"write","input":{}}"#;
    block(&mut sse, "content_block_start", call);
    let piece = |sse: &mut String, json: &str| {
        let delta =
            format!(r#","index":1,"delta":{{"type":"input_json_delta","partial_json":"{json}"}}"#);
        block(sse, "content_block_delta", &delta)
    };
    piece(&mut sse, r#"{\"text\":\""#);
    while sse.len() < SIZE {
        let word = WORDS[at % WORDS.len()].replace('\\', "\\\\");
        piece(&mut sse, &word);
        at += 1;
    }
    piece(&mut sse, r#"\"}"#);
    block(&mut sse, "content_block_stop", r#","index":1"#);
    let end =
        r#","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}"#;
    block(&mut sse, "message_delta", end);
    block(&mut sse, "message_stop", "");
    sse
}

/// Returns a stream of Gemini: a few words of text per event, then a complete call.
pub(crate) fn gemini() -> String {
    let mut sse = String::with_capacity(SIZE + 1024);
    let event = |sse: &mut String, parts: &str, finish: &str| {
        write!(
            sse,
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{parts}],\"role\":\"model\"}},{finish}\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":10,\"candidatesTokenCount\":9,\"totalTokenCount\":19,\"promptTokensDetails\":[{{\"modality\":\"TEXT\",\"tokenCount\":10}}]}},\"modelVersion\":\"gemini-2.5-flash\",\"responseId\":\"wq1naPzVFNWvkdUP7f7B8Q4\"}}\r\n\r\n"
        )
        .expect("a String");
    };
    let mut at = 0;
    while sse.len() < SIZE {
        let words: String = (at..at + WORDS.len())
            .map(|at| WORDS[at % WORDS.len()])
            .collect();
        event(&mut sse, &format!(r#"{{"text":"{words}"}}"#), "");
        at += 1;
    }
    let call = r#"{"functionCall":{"name":"write","args":{"text":"all of it"}}}"#;
    event(&mut sse, call, r#""finishReason":"STOP","#);
    sse
}
