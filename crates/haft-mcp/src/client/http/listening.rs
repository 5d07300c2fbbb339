//! The stream on which a handshake-era server sends what belongs to no request: changes of its lists, and pings.

use std::sync::Weak;
use std::time::Duration;

use haft_http::connections::HttpExchange;
use haft_http::waits::Waits;
use haft_wire::events::SseParser;
use tokio::sync::oneshot;

use super::session::{RETRY_DELAY, StreamableSession};
use crate::client::error::ClientError;
use crate::client::server_change::ServerChange;
use crate::client::speech::{self, ServerMessage};
use crate::era::Era;

/// Maximum delay before a stream that broke off is requested again.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Number of consecutive streams without events after which haft stops asking.
const MAX_EMPTY_STREAMS: u32 = 8;

/// Listens to the stream for as long as its wire exists and the server offers it. Signals `opened` once the stream is open or
/// known to be missing.
pub(super) async fn listen(wire: Weak<StreamableSession>, era: Era, opened: oneshot::Sender<()>) {
    let mut opened = Some(opened);
    let mut events: Option<SseParser> = None;
    let mut empty = 0;
    while empty < MAX_EMPTY_STREAMS {
        let Some(session) = wire.upgrade() else {
            return;
        };
        let last = events.as_ref().and_then(|events| events.last_id.clone());
        let stream = session.stream(last.as_deref(), Some(era)).await;
        let longest = session.courier.endpoint.longest;
        drop(session);
        if let Some(opened) = opened.take() {
            let _not_waited_for = opened.send(());
        }
        let mut now = events
            .take()
            .map_or_else(|| SseParser::new(longest), SseParser::resumed);
        let heard = match stream {
            Ok(mut exchange) => listen_until_end(&wire, &mut exchange, &mut now, era).await,
            Err(ClientError::Unreachable(_) | ClientError::Closed { .. }) => false,
            // Subscribers have to subscribe again in another session.
            Err(ClientError::SessionOver) => {
                if let Some(session) = wire.upgrade() {
                    session.bulletin.post(ServerChange::Over);
                }
                return;
            }
            // The server has no such stream.
            Err(_) => return,
        };
        empty = if heard { 0 } else { empty + 1 };
        let pause = now.retry.unwrap_or(RETRY_DELAY).max(RETRY_DELAY) * 2_u32.pow(empty);
        events = Some(now);
        tokio::time::sleep(pause.min(MAX_PAUSE)).await;
    }
}

/// Listens to one stream until its end; returns whether it had any events.
async fn listen_until_end(
    wire: &Weak<StreamableSession>,
    exchange: &mut HttpExchange,
    events: &mut SseParser,
    era: Era,
) -> bool {
    let mut heard = false;
    while let Ok(Some(part)) = exchange.next(&Waits::default()).await {
        let (Some(session), Ok(found)) = (wire.upgrade(), events.push(&part)) else {
            return heard;
        };
        for event in found {
            heard = true;
            match speech::hear(&event.data) {
                ServerMessage::News(news) => session.bulletin.post(news),
                ServerMessage::Request(ask) => {
                    session.answer(&session.call_of_server_request(), ask, era);
                }
                ServerMessage::Notification(method, params) => {
                    session.call_of_server_request().hear(&method, params);
                }
                _ => {}
            }
        }
    }
    heard
}
