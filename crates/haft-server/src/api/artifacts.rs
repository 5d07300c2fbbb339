//! Artifacts over HTTP: listed, and read whole or in part, streamed in pieces at the client's pace.

use std::convert::Infallible;
use std::ops::Range;

use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use haft::artifact::{ArtifactError, ArtifactInfo, ArtifactOwner, ArtifactRef};
use haft::bounds::ConcurrencyPermit;
use haft::call::RunId;
use http::header::{ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, RANGE};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};

use crate::api::state::{ApiState, failed};
use crate::bounds::{LimitReached, Piecemeal};
use crate::caller::ApiCaller;
use crate::{query, reply};
use haft_app::app::App;

/// Bytes read from the store at a time.
const PIECE_BYTES: u64 = 256 << 10;

/// Lists the caller's artifacts, newest first.
pub(crate) async fn list(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
) -> Response {
    match listed(&api.app, api.readable(caller)).await {
        Ok(all) => reply::document(&all),
        Err(e) => failed(&e.to_string()),
    }
}

/// Returns all artifacts of the app's principal, or only those of the given runs.
async fn listed(app: &App, only: Option<Vec<RunId>>) -> Result<Vec<ArtifactInfo>, ArtifactError> {
    let (store, principal) = (app.artifacts(), app.principal());
    let Some(runs) = only else {
        return store.list(principal, None).await;
    };
    let mut all = Vec::new();
    for run in &runs {
        all.extend(store.list(principal, Some(run)).await?);
    }
    Ok(all)
}

/// Returns an artifact's bytes, or a part of them (RFC 9110 §14.2, one range).
pub(crate) async fn read(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    Path(text): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let named = query::text(&uri, "run").map(RunId::new);
    let run = named.or_else(|| api.own.of(caller).into_iter().next());
    let (Some(reference), Some(run)) = (ArtifactRef::parse(&text), run) else {
        return reply::not_found("no such artifact");
    };
    if !api.may_read(caller, run.as_str()) {
        return reply::not_found("no such artifact");
    }
    let Some(place) = api.bounds.downloads.take(&caller.class().into()) else {
        let busy = LimitReached("artifacts are being read").to_string();
        return reply::error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &busy);
    };
    let source = ArtifactSource {
        owner: ArtifactOwner {
            principal: api.app.principal().clone(),
            run,
        },
        app: api.app.clone(),
        reference,
    };
    let size = match source.size().await {
        Ok(size) => size,
        Err(refused) => return refused,
    };
    match part(headers.get(RANGE), size) {
        ArtifactRange::All => source.send(place, 0..size, StatusCode::OK),
        ArtifactRange::Some(range) => {
            let content = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            let mut response = source.send(place, range, StatusCode::PARTIAL_CONTENT);
            set(&mut response, CONTENT_RANGE, &content);
            response
        }
        ArtifactRange::Outside => {
            let message = format!("the artifact has {size} bytes: no such range");
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            let mut response = reply::error(status, "invalid_arguments", &message);
            set(&mut response, CONTENT_RANGE, &format!("bytes */{size}"));
            response
        }
    }
}

/// The part of an artifact that a client requests.
#[derive(Debug, PartialEq, Eq)]
enum ArtifactRange {
    All,
    Some(Range<u64>),
    Outside,
}

/// Parses a `Range` header. Ignores anything but a single byte range, as the standard allows.
fn part(header: Option<&HeaderValue>, size: u64) -> ArtifactRange {
    let text = header.and_then(|value| value.to_str().ok());
    let range = text.and_then(|text| text.strip_prefix("bytes="));
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return ArtifactRange::All;
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(size),
        (Some(first), None) if last.trim().is_empty() => first..size,
        (None, Some(last)) if first.trim().is_empty() => size.saturating_sub(last)..size,
        _ => return ArtifactRange::All,
    };
    if range.start < range.end {
        ArtifactRange::Some(range)
    } else {
        ArtifactRange::Outside
    }
}

/// The artifact to read from.
struct ArtifactSource {
    app: App,
    owner: ArtifactOwner,
    reference: ArtifactRef,
}

impl ArtifactSource {
    async fn size(&self) -> Result<u64, Response> {
        let info = self.app.artifacts().info(&self.owner, &self.reference);
        match info.await {
            Ok(info) => Ok(info.bytes),
            Err(ArtifactError::NotFound(_)) => Err(reply::not_found("no such artifact")),
            Err(e) => Err(failed(&e.to_string())),
        }
    }

    /// Reads a piece of it.
    async fn piece(&self, range: Range<u64>) -> Result<Bytes, ArtifactError> {
        let read = self
            .app
            .artifacts()
            .read(&self.owner, &self.reference, range);
        read.await
    }

    /// Returns a response with this part. If the store fails midway, the response breaks off, shorter than its `Content-Length`.
    fn send(self, place: ConcurrencyPermit, range: Range<u64>, status: StatusCode) -> Response {
        let length = range.end - range.start;
        let pieces = unfold(
            (self, place, range),
            |(source, place, mut rest)| async move {
                if rest.is_empty() {
                    return None;
                }
                let end = rest.end.min(rest.start + PIECE_BYTES);
                let bytes = source.piece(rest.start..end).await;
                rest.start = end;
                match bytes {
                    Ok(bytes) => Some((Ok::<_, Infallible>(bytes), (source, place, rest))),
                    Err(error) => {
                        tracing::warn!(%error, artifact = ?source.reference, "read an artifact");
                        None
                    }
                }
            },
        );
        let mut response = reply::typed(status, "application/octet-stream", Bytes::new());
        *response.body_mut() = Body::from_stream(pieces);
        response.extensions_mut().insert(Piecemeal);
        set(&mut response, CONTENT_LENGTH, &length.to_string());
        set(&mut response, ACCEPT_RANGES, "bytes");
        set(&mut response, CONTENT_DISPOSITION, "attachment");
        response
    }
}

fn set(response: &mut Response, name: http::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::{ArtifactRange, part};

    #[test]
    fn w16_a_range_is_read_as_the_standard_says() {
        for (header, expect) in [
            (None, ArtifactRange::All),
            (Some("bytes=0-9"), ArtifactRange::Some(0..10)),
            (Some("bytes=5-5"), ArtifactRange::Some(5..6)),
            (Some("bytes=90-"), ArtifactRange::Some(90..100)),
            (Some("bytes=90-500"), ArtifactRange::Some(90..100)),
            (Some("bytes=-10"), ArtifactRange::Some(90..100)),
            (Some("bytes=-500"), ArtifactRange::Some(0..100)),
            (Some("bytes=-0"), ArtifactRange::Outside),
            (Some("bytes=100-"), ArtifactRange::Outside),
            (Some("bytes=100-200"), ArtifactRange::Outside),
            (Some("bytes=18446744073709551615-"), ArtifactRange::Outside),
            // These are not single byte ranges, and are ignored.
            (Some("bytes=9-5"), ArtifactRange::All),
            (Some("bytes=0-1,5-6"), ArtifactRange::All),
            (Some("bytes=x-"), ArtifactRange::All),
            (Some("bytes=-"), ArtifactRange::All),
            (Some("lines=0-9"), ArtifactRange::All),
        ] {
            let header = header.map(HeaderValue::from_static);
            assert_eq!(part(header.as_ref(), 100), expect, "{header:?}");
        }
    }
}
