//! Buckets on S3 or a compatible server, configured by a URL and environment variables.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::{BackoffConfig, RetryConfig};
use url::Url;

use super::http::ObjectClient;
use super::{Dial, ObjectArtifacts, RetentionLimits};
use crate::error::StoreError;

/// Maximum length of a prefix: with what haft appends, keys stay well below their limit of 1,024 bytes.
const MAX_PREFIX: usize = 500;

impl ObjectArtifacts {
    /// Creates a store for the bucket that `s3://BUCKET/PREFIX` names, on the server that the variables describe. `dial`, if
    /// given, opens the connections.
    ///
    /// The variables are those of AWS's own tools: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, optionally,
    /// `AWS_SESSION_TOKEN`; `AWS_REGION` or `AWS_DEFAULT_REGION` (default `us-east-1`); `AWS_ENDPOINT_URL_S3` or
    /// `AWS_ENDPOINT_URL` for a server other than Amazon's, which may be `http://` only with `AWS_ALLOW_HTTP=true`.
    ///
    /// # Errors
    /// A variable is missing or invalid, or the URL is invalid. This does not contact the server.
    pub fn s3(
        url: &str,
        variable: impl Fn(&str) -> Option<String>,
        terms: RetentionLimits,
        dial: Option<Arc<dyn Dial>>,
    ) -> Result<Self, StoreError> {
        let (bucket, prefix) = place(url).map_err(|why| StoreError(why.into()))?;
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        let wanted = |name: &str| {
            given(name).ok_or_else(|| {
                StoreError(format!("the bucket's credentials are missing: set {name}").into())
            })
        };
        let region = given("AWS_REGION").or_else(|| given("AWS_DEFAULT_REGION"));
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(region.unwrap_or_else(|| "us-east-1".to_owned()))
            .with_access_key_id(wanted("AWS_ACCESS_KEY_ID")?)
            .with_secret_access_key(wanted("AWS_SECRET_ACCESS_KEY")?)
            .with_retry(patience());
        if let Some(token) = given("AWS_SESSION_TOKEN") {
            builder = builder.with_token(token);
        }
        let mut plain = false;
        for name in ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"] {
            if let Some(endpoint) = given(name) {
                let allowed =
                    given("AWS_ALLOW_HTTP").is_some_and(|word| word == "true" || word == "1");
                plain = is_plain(name, &endpoint, allowed).map_err(|why| StoreError(why.into()))?;
                builder = builder.with_endpoint(endpoint).with_allow_http(plain);
                break;
            }
        }
        let store = builder
            .with_http_connector(ObjectClient::new(plain, dial))
            .build()
            .map_err(|_| StoreError("its AWS_… variables do not fit together".into()))?;
        let place = format!("s3://{bucket}/{prefix}");
        let place = place.trim_end_matches('/');
        Ok(Self::new(Arc::new(store), place, prefix, terms))
    }
}

/// Splits a URL into bucket and prefix.
fn place(url: &str) -> Result<(&str, &str), String> {
    let rest = url
        .strip_prefix("s3://")
        .ok_or("it is not of the form s3://BUCKET/PREFIX")?;
    if rest.contains('@') {
        return Err(
            "credentials do not belong in it: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                .into(),
        );
    }
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let sound = (3..=63).contains(&bucket.len())
        && bucket.bytes().all(|b| letter(b) || b == b'-' || b == b'.')
        && bucket.bytes().next().is_some_and(letter)
        && bucket.bytes().last().is_some_and(letter);
    if !sound {
        return Err("the bucket's name has 3 to 63 lower-case letters, digits, `-` and `.`".into());
    }
    let prefix = match prefix.strip_suffix('/') {
        Some(named) if !named.is_empty() => named,
        _ => prefix,
    };
    let part = |part: &str| {
        let sound = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        !part.is_empty() && part != "." && part != ".." && part.bytes().all(sound)
    };
    if !prefix.is_empty() && (prefix.len() > MAX_PREFIX || !prefix.split('/').all(part)) {
        return Err(
            "its prefix has at most 500 letters, digits, `-`, `_` and `.`, in parts between `/`"
                .into(),
        );
    }
    Ok((bucket, prefix))
}

/// Returns whether the endpoint is unencrypted.
fn is_plain(name: &str, endpoint: &str, allowed: bool) -> Result<bool, String> {
    let url = Url::parse(endpoint).map_err(|_| format!("{name} is not a URL"))?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err(format!("{name} holds more than a server's address"));
    }
    match url.scheme() {
        "https" => Ok(false),
        "http" if allowed => Ok(true),
        "http" => Err(format!(
            "{name} is not encrypted: set AWS_ALLOW_HTTP=true if that is meant"
        )),
        _ => Err(format!("{name} is neither https:// nor http://")),
    }
}

/// Returns a short retry schedule: an operation has 30 seconds in all.
fn patience() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: 3,
        retry_timeout: Duration::from_secs(15),
    }
}
