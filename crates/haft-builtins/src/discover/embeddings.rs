//! `HttpEmbedder`: embeddings from any service with `OpenAI`'s `/v1/embeddings` API.

use haft::error::HostFailure;
use haft::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::discover::meaning::{EmbedError, Embedder};
use crate::web::http::Http;

/// An embedding service and how to query it.
#[derive(Clone)]
pub struct HttpEmbedder {
    http: Http,
    url: String,
    model: String,
    api_key: Option<String>,
}

impl std::fmt::Debug for HttpEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpEmbedder")
            .field("url", &self.url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct EmbeddingsRequest<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    embedding: Vec<f32>,
    index: Option<usize>,
}

impl HttpEmbedder {
    /// Creates an embedder for the service at this URL, which is that of its embeddings (`…/v1/embeddings`).
    pub fn new(http: Http, url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            http,
            url: url.into(),
            model: model.into(),
            api_key: None,
        }
    }

    /// Sets a key, sent as a bearer token.
    pub fn with_api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let ask = EmbeddingsRequest {
            model: &self.model,
            input: texts,
            encoding_format: "float",
        };
        let body = serde_json::to_vec(&ask).map_err(|e| EmbedError(HostFailure::of(e)))?;
        let bearer = self.api_key.as_ref().map(|key| format!("Bearer {key}"));
        let mut headers = vec![("accept", "application/json")];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        let sent = self.http.post_json(&self.url, &headers, body).await;
        let reply = sent.map_err(|e| EmbedError(HostFailure::of(e)))?;
        if !reply.is_success() {
            let message = format!("{} answered with status {}", self.url, reply.status);
            return Err(EmbedError(message.into()));
        }
        if let Some(cut) = reply.cut {
            let message = format!("the answer of {} is cut: {}", self.url, cut.as_str());
            return Err(EmbedError(message.into()));
        }
        let answer: EmbeddingsResponse = serde_json::from_slice(&reply.body).map_err(|e| {
            let message = format!("the answer of {} is not as expected: {e}", self.url);
            EmbedError(HostFailure::new(message).with_source(e))
        })?;
        sort_by_index(answer.data, texts.len())
    }
}

/// Returns the vectors in the order of the texts, by their index if the service provides it.
fn sort_by_index(items: Vec<EmbeddingItem>, count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (place, item) in items.into_iter().enumerate() {
        if let Some(slot) = vectors.get_mut(item.index.unwrap_or(place)) {
            *slot = Some(item.embedding);
        }
    }
    let whole: Option<Vec<Vec<f32>>> = vectors.into_iter().collect();
    whole.ok_or_else(|| EmbedError(format!("not every one of {count} texts has a vector").into()))
}

impl Embedder for HttpEmbedder {
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move { self.ask(&texts).await })
    }
}
