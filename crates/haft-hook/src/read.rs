//! `read`: turns the bytes that an agent sent into an event.

use crate::agent::Agent;
use crate::agents;
use crate::caller;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::HookEvent;

/// Maximum size of an event in bytes: 16 MiB. The largest tool inputs seen from agents have 10 MB.
pub const MAX_EVENT: usize = 16 * 1024 * 1024;

/// Reads what an agent wrote to the standard input of `haft hook`.
///
/// `invoked_as` is the agent in the command; [`HookEvent::agent`] is the agent that sent the event, which may be another.
///
/// Members and tools of newer versions cause no error: an unknown one is passed along, or becomes [`CallAction::Other`](crate::CallAction::Other).
///
/// ```
/// use haft_hook::{CallAction, Agent, HookEventKind, read};
///
/// let event = read(Agent::Claude, br#"{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"/etc/hosts"}}"#)?;
/// let HookEventKind::Before(call) = &event.kind else { panic!("{event:?}") };
/// assert!(matches!(&call.actions[..], [CallAction::Read { path }] if path == "/etc/hosts"));
/// # Ok::<(), haft_hook::ReadError>(())
/// ```
///
/// # Errors
///
/// The bytes are more than [`MAX_EVENT`], not UTF-8, or not one JSON object; a required member is missing; or two readers could read the
/// event differently (a name comes twice, the tool's input fails the strict scan of `haft-json`). The call must be denied then;
/// [`refusal`](crate::refusal) does so.
pub fn read(invoked_as: Agent, bytes: &[u8]) -> Result<HookEvent, ReadError> {
    const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
    if bytes.len() > MAX_EVENT {
        return Err(ReadError::TooLarge {
            size: bytes.len(),
            limit: MAX_EVENT,
        });
    }
    // Cursor was seen to write a byte order mark on Windows.
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text =
        std::str::from_utf8(bytes).map_err(|error| ReadError::NotUtf8(error.valid_up_to()))?;
    let event = Envelope::read(invoked_as, text)?;
    let agent = caller::of(invoked_as, &event);
    let event = event.with_agent(agent);
    agents::read(agent, invoked_as, &event)
}
