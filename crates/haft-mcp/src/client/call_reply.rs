//! `CallReply`: what a server's tool said. The call has run, so whatever the server sent is a reply.

use haft::json::members::{Member, members};
use serde_json::value::RawValue;

use crate::client::speech::ServerResult;
use crate::wire::reply;

/// The result of calling a server's tool.
#[derive(Debug, Clone)]
pub struct CallReply {
    /// The content blocks, byte for byte.
    pub content: Vec<Box<RawValue>>,
    /// The structured content, byte for byte.
    pub structured: Option<Box<RawValue>>,
    /// Whether the tool reports failure.
    pub is_error: bool,
    /// The whole result, byte for byte but for members that were null; none if it is not what the protocol says.
    pub result: Option<Box<RawValue>>,
    /// What was read otherwise than it was sent.
    pub notes: Vec<String>,
}

impl CallReply {
    /// Reads a result, whatever it is: a value in place of a list of blocks becomes a block.
    pub(crate) fn read(answer: ServerResult) -> Self {
        let ServerResult { raw, notes } = answer;
        let notes = notes
            .into_iter()
            .map(|what| format!("the server's answer: {what}"));
        let mut notes: Vec<String> = notes.collect();
        let Some(all) = members(raw.get()).ok().filter(|_| is_object(&raw)) else {
            notes.push(
                "the server's answer is no result of a call; here it is as a text".to_owned(),
            );
            return Self {
                content: block(&raw).into_iter().collect(),
                structured: None,
                is_error: false,
                result: None,
                notes,
            };
        };
        let member = |name: &str| all.iter().find(|member| member.is(name)).map(Member::value);
        let content = member("content");
        let read = content.map(|content| serde_json::from_str::<Vec<&RawValue>>(content.get()));
        let (content, is_regular) = match (content, read) {
            (_, Some(Ok(blocks))) => {
                let is_regular = blocks.iter().all(|one| is_object(one));
                (blocks.into_iter().filter_map(block).collect(), is_regular)
            }
            (Some(other), _) => (block(other).into_iter().collect(), false),
            (None, _) => (Vec::new(), true),
        };
        if !is_regular {
            notes.push(
                "the server's content is no list of blocks; it is shown as a text".to_owned(),
            );
        }
        let is_error = member("isError")
            .is_some_and(|flag| !matches!(flag.get(), "false" | "0" | "\"false\"" | "\"\""));
        Self {
            content,
            structured: member("structuredContent").map(ToOwned::to_owned),
            is_error,
            result: is_regular.then_some(raw),
            notes,
        }
    }
}

fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// Returns a block: as sent if it is an object, else a text.
fn block(raw: &RawValue) -> Option<Box<RawValue>> {
    if is_object(raw) {
        return Some(raw.to_owned());
    }
    let text = serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
    let mut out = b"{\"type\":\"text\",\"text\":".to_vec();
    reply::json(&mut out, &text);
    out.push(b'}');
    RawValue::from_string(String::from_utf8(out).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::CallReply;
    use crate::client::speech::result;

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn whatever_a_tool_says_is_delivered() {
        let text = r#"{"type":"text","text":"a"}"#;
        let rows = [
            (
                r#"{"content":[{"type":"text","text":"a"}]}"#,
                text,
                false,
                0,
            ),
            (
                r#"{"content":null,"structuredContent":{"a":1}}"#,
                "",
                false,
                0,
            ),
            (r#"{"structuredContent":{"a":1}}"#, "", false, 0),
            ("{}", "", false, 0),
            (r#"{"content":"a"}"#, text, false, 1),
            (r#"{"content":["a",null]}"#, text, false, 1),
            (r#"{"content":{"type":"text","text":"a"}}"#, text, false, 1),
            (
                r#"{"content":[{"type":"text","text":"a"}],"isError":null}"#,
                text,
                false,
                0,
            ),
            (
                r#"{"content":[{"type":"text","text":"a"}],"isError":"true"}"#,
                text,
                true,
                0,
            ),
            (
                r#"{"content":[{"type":"text","text":"a"}],"isError":1}"#,
                text,
                true,
                0,
            ),
            (r#""a""#, text, false, 1),
            ("null", r#"{"type":"text","text":"null"}"#, false, 1),
            ("[1]", r#"{"type":"text","text":"[1]"}"#, false, 1),
            (
                r#"{"content":[{"type":"text","text":"\ud83d"}]}"#,
                r#"{"type":"text","text":"\ufffd"}"#,
                false,
                1,
            ),
        ];
        for (sent, content, is_error, notes) in rows {
            for (id, more) in [
                ("7", ""),
                ("\"7\"", ""),
                ("7.0", ",\"error\":null,\"params\":null"),
            ] {
                let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{sent}{more}}}"#);
                let reply = CallReply::read(result(message.as_bytes()).unwrap());
                let found: Vec<&str> = reply.content.iter().map(|raw| RawValue::get(raw)).collect();
                assert_eq!(found.concat(), content, "{message}");
                assert_eq!(
                    (reply.is_error, reply.notes.len()),
                    (is_error, notes),
                    "{message}"
                );
            }
        }
    }
}
