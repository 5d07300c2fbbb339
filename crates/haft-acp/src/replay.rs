//! Replays a conversation to a client that loads it.

use haft_agent::ConversationEntry;
use haft_app::app::App;
use haft_wire::{ContentPart, Turn, TurnItem};
use serde_json::{Value, json};

use crate::updates::{Updates, card, text};

/// Sends all of a conversation.
pub(crate) async fn replay(updates: &Updates, app: &App, entries: Vec<ConversationEntry>) {
    let mut turn = 0;
    for entry in entries {
        updates.client().outbox().room().await;
        match entry {
            ConversationEntry::User(parts) => {
                for part in &parts {
                    chunk(updates, "user_message_chunk", part);
                }
            }
            ConversationEntry::Turn { turn: said, .. } => {
                turn += 1;
                tell(updates, app, turn, &said);
            }
            ConversationEntry::Answered { place, answer } => {
                let texts: Vec<&str> = answer.parts.iter().filter_map(words).collect();
                let texts = app.redactor().redact(&texts.join("\n")).into_owned();
                let status = if answer.is_error {
                    "failed"
                } else {
                    "completed"
                };
                updates.send(&json!({
                    "sessionUpdate": "tool_call_update", "toolCallId": id(turn, place),
                    "status": status, "content": [text::output(&texts)],
                }));
            }
            _ => {}
        }
    }
}

/// Returns the id of a call, as in the record.
fn id(turn: u32, place: usize) -> String {
    format!("turn-{turn}-{}", place + 1)
}

fn words(part: &ContentPart) -> Option<&str> {
    match part {
        ContentPart::Text(text) => Some(text),
        _ => None,
    }
}

fn chunk(updates: &Updates, kind: &str, part: &ContentPart) {
    let content = match part {
        ContentPart::Text(text) => text::block(text),
        ContentPart::Image { media_type, data } => {
            json!({"type": "image", "data": data, "mimeType": media_type})
        }
        ContentPart::File { name, .. } => text::block(&format!("({name})")),
        ContentPart::Audio { .. } => return,
    };
    updates.send(&json!({"sessionUpdate": kind, "content": content}));
}

/// Sends what the model wrote in one turn, and the calls that it made.
fn tell(updates: &Updates, app: &App, turn: u32, said: &Turn) {
    let mut place = 0;
    for item in &said.items {
        let told: Value = match item {
            TurnItem::Text(words) | TurnItem::Refusal(words) => {
                json!({"sessionUpdate": "agent_message_chunk", "content": text::block(words)})
            }
            TurnItem::Thinking(words) => {
                json!({"sessionUpdate": "agent_thought_chunk", "content": text::block(words)})
            }
            TurnItem::Call(call) => {
                let own = id(turn, place);
                place += 1;
                json!({
                    "sessionUpdate": "tool_call",
                    "toolCallId": own,
                    "title": card::title(&call.name, &call.arguments, app.redactor()),
                    "name": call.name,
                    "kind": card::kind(&call.name, updates.class(&call.name)),
                    "status": "pending",
                    "locations": card::locations(&call.arguments, app.workspace()),
                    "rawInput": text::raw(&call.arguments, app.redactor()),
                })
            }
            _ => continue,
        };
        updates.send(&told);
    }
}
