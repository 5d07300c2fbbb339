//! `KeySet`: the keys of an issuer, read on demand and cached for a while. A client that sends tokens with made-up key names cannot make
//! haft ask more often than [`KeyRefresh::retry`] allows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::json::scan::scan_object;
use haft_builtins::web::http::{FetchLimits, Http};
use parking_lot::RwLock;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::oauth::jwk::{Algorithm, Jwk, PublicKey};
use crate::oauth::split;

/// Maximum size of a response, in bytes.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// Maximum number of keys.
const MAX_KEYS: usize = 100;

/// Returns the limits of a request to the issuer.
pub(crate) fn limits() -> FetchLimits {
    FetchLimits {
        connect: Duration::from_secs(5),
        whole: Duration::from_secs(10),
        max_bytes: MAX_BYTES,
        redirects: 0,
    }
}

/// How long keys are cached, and how often the issuer is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyRefresh {
    /// The age at which they are read again.
    pub(crate) fresh: Duration,
    /// The age up to which they are used if they cannot be read again.
    pub(crate) stale: Duration,
    /// Minimum time between two requests to the issuer.
    pub(crate) retry: Duration,
}

impl Default for KeyRefresh {
    fn default() -> Self {
        Self {
            fresh: Duration::from_mins(10),
            stale: Duration::from_hours(1),
            retry: Duration::from_secs(15),
        }
    }
}

/// Where the keys are found.
#[derive(Debug, Clone)]
pub(crate) enum KeySource {
    /// At this URL from the settings.
    Url(String),
    /// At the URL in this issuer's metadata.
    Issuer(String),
}

/// How the issuer is reached.
#[derive(Debug, Clone)]
pub(crate) struct IssuerHttp {
    /// For hosts named in the settings.
    pub(crate) named: Http,
    /// For other hosts that the issuer names: public addresses only.
    pub(crate) public: Http,
}

/// Why there is no key for a token.
#[derive(Debug, Clone)]
pub(super) enum KeyError {
    /// The issuer has no key of this name for this algorithm.
    Unknown(String),
    /// The issuer's keys could not be read.
    Unavailable(String),
}

/// The keys of an issuer.
#[derive(Debug)]
pub(crate) struct KeySet {
    reach: IssuerHttp,
    source: KeySource,
    pace: KeyRefresh,
    known: RwLock<Option<CachedKeys>>,
    /// Locked while the issuer is asked: the time and the result of the last request.
    last_request: Mutex<Option<(Instant, Result<(), String>)>>,
}

#[derive(Debug, Clone)]
struct CachedKeys {
    keys: Arc<[PublicKey]>,
    read: Instant,
}

impl KeySet {
    pub(crate) fn new(reach: IssuerHttp, source: KeySource, pace: KeyRefresh) -> Self {
        Self {
            reach,
            source,
            pace,
            known: RwLock::default(),
            last_request: Mutex::default(),
        }
    }

    /// Returns the key of this name for this algorithm.
    pub(super) async fn find(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<PublicKey, KeyError> {
        if let Some(known) = self.current(self.pace.fresh)
            && let Some(key) = choose(&known, kid, algorithm)
        {
            return Ok(key);
        }
        let usable = self.current(self.pace.stale);
        let usable = usable.and_then(|known| choose(&known, kid, algorithm));
        if let Some(key) = usable
            && self.last_request.try_lock().is_err()
        {
            // The issuer is being asked: this key is good enough meanwhile.
            return Ok(key);
        }
        let refreshed = self.refresh().await;
        match self.current(self.pace.stale) {
            Some(known) => choose(&known, kid, algorithm).ok_or_else(|| {
                KeyError::Unknown("its issuer has no key of this name and kind".to_owned())
            }),
            None => Err(KeyError::Unavailable(refreshed.err().unwrap_or_default())),
        }
    }

    /// Returns the number of keys.
    pub(super) async fn count(&self) -> Result<usize, String> {
        if self.current(self.pace.fresh).is_none() {
            self.refresh().await?;
        }
        Ok(self.current(self.pace.stale).map_or(0, |keys| keys.len()))
    }

    fn current(&self, most: Duration) -> Option<Arc<[PublicKey]>> {
        let known = self.known.read();
        let known = known.as_ref().filter(|known| known.read.elapsed() < most);
        known.map(|known| Arc::clone(&known.keys))
    }

    /// Asks the issuer, unless it was asked very recently.
    async fn refresh(&self) -> Result<(), String> {
        let mut asked = self.last_request.lock().await;
        if let Some((when, came)) = &*asked
            && when.elapsed() < self.pace.retry
        {
            return came.clone();
        }
        let came = self.read().await.map(|keys| {
            *self.known.write() = Some(CachedKeys {
                keys: keys.into(),
                read: Instant::now(),
            });
        });
        if let Err(error) = &came {
            tracing::warn!(%error, "read the keys of the authorization server");
        }
        *asked = Some((Instant::now(), came.clone()));
        came
    }

    async fn read(&self) -> Result<Vec<PublicKey>, String> {
        let text = match &self.source {
            KeySource::Url(url) => answer(&self.reach.named, url).await?,
            KeySource::Issuer(issuer) => {
                let url = self.discover(issuer).await?;
                let same = split(&url).0 == split(issuer).0;
                let http = if same {
                    &self.reach.named
                } else {
                    &self.reach.public
                };
                answer(http, &url).await?
            }
        };
        keys(&text)
    }

    /// Returns the URL of the keys from the issuer's metadata (RFC 8414, or the OIDC discovery document).
    async fn discover(&self, issuer: &str) -> Result<String, String> {
        let (origin, path) = split(issuer);
        let places = [
            format!("{origin}/.well-known/oauth-authorization-server{path}"),
            format!("{origin}/.well-known/openid-configuration{path}"),
            format!("{origin}{path}/.well-known/openid-configuration"),
        ];
        let mut failed = String::new();
        for place in places {
            match answer(&self.reach.named, &place).await {
                Ok(text) => return key_place(&text, issuer),
                Err(error) if failed.is_empty() => failed = error,
                Err(_) => {}
            }
        }
        Err(failed)
    }
}

/// Fetches a document of the issuer, completely.
async fn answer(http: &Http, url: &str) -> Result<String, String> {
    let reply = http.get(url, &[("accept", "application/json")]).await;
    let reply = reply.map_err(|error| format!("{url}: {error}"))?;
    if reply.status != 200 {
        return Err(format!("{url} answered with status {}", reply.status));
    }
    if reply.cut.is_some() {
        return Err(format!("{url} answered with more than {MAX_BYTES} bytes"));
    }
    let text = String::from_utf8(reply.body.to_vec());
    let text = text.map_err(|_| format!("{url} answered with what is not UTF-8"))?;
    scan_object(&text).map_err(|error| format!("{url} answered with no JSON object: {error}"))?;
    Ok(text)
}

#[derive(Deserialize)]
struct IssuerMetadata {
    issuer: String,
    jwks_uri: Option<String>,
}

fn key_place(text: &str, issuer: &str) -> Result<String, String> {
    let metadata: IssuerMetadata = serde_json::from_str(text)
        .map_err(|error| format!("the metadata of {issuer} cannot be read: {error}"))?;
    if metadata.issuer != issuer {
        return Err(format!(
            "the metadata at {issuer} belongs to another issuer"
        ));
    }
    let url = metadata.jwks_uri;
    let url = url.ok_or_else(|| format!("the metadata of {issuer} name no jwks_uri"))?;
    // An unencrypted issuer on this machine may name unencrypted keys at its own address, but nowhere else.
    let encrypted = url.starts_with("https://");
    if encrypted || split(&url).0 == split(issuer).0 {
        Ok(url)
    } else {
        Err(format!(
            "the metadata of {issuer} name a jwks_uri without https"
        ))
    }
}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Value>,
}

/// Returns the keys that can verify signatures here; others are left out.
fn keys(text: &str) -> Result<Vec<PublicKey>, String> {
    let jwks: Jwks =
        serde_json::from_str(text).map_err(|error| format!("the keys cannot be read: {error}"))?;
    if jwks.keys.len() > MAX_KEYS {
        return Err(format!("there are more than {MAX_KEYS} keys"));
    }
    let known = jwks.keys.into_iter();
    let known = known.filter_map(|key| serde_json::from_value::<Jwk>(key).ok()?.public_key());
    // An issuer that withdraws all its keys says so with an empty list: no token counts then, also not by an earlier key.
    Ok(known.collect())
}

/// Returns the only key of this name that fits; for a token that names none, the only key that fits.
fn choose(keys: &[PublicKey], kid: Option<&str>, algorithm: Algorithm) -> Option<PublicKey> {
    let named = |key: &&PublicKey| kid.is_none() || key.kid.as_deref() == kid;
    let mut found = keys.iter().filter(named).filter(|key| key.fits(algorithm));
    let first = found.next()?;
    found.next().is_none().then(|| first.clone())
}
