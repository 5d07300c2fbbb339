//! The store of large results: the folder, bucket or memory that `artifacts.url` names, by default a folder in the state folder.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use haft::artifact::ArtifactStore;
use haft::artifact::dir::DirArtifacts;
use haft::artifact::memory::MemoryArtifacts;
#[cfg(feature = "s3")]
use haft_store::artifacts::{ObjectArtifacts, RetentionLimits};

use crate::config::Settings;
use crate::config::typed::ARTIFACT_BYTES;
use crate::problem::Problem;
use crate::site::Site;
#[cfg(feature = "s3")]
use crate::upstream;

/// How often expired artifacts are removed.
const SWEEP_INTERVAL: Duration = Duration::from_hours(24);

/// Maximum total size of artifacts in memory, in bytes, whatever the settings say.
const MAX_MEMORY: u64 = 1 << 30;

/// Builds the store that the settings ask for; expired artifacts are removed, at most once a day.
pub(crate) fn artifacts(at: &Site, settings: &Settings) -> Result<Arc<dyn ArtifactStore>, Problem> {
    let quota = settings.get(ARTIFACT_BYTES);
    let root = match settings.text("artifacts.url") {
        None => at.home.join("artifacts"),
        Some("memory:") => {
            // The quota is meant for disks: memory gets less.
            let quota = quota.min(MAX_MEMORY);
            return Ok(Arc::new(MemoryArtifacts::new().with_quota(quota)));
        }
        Some(url) if url.starts_with("s3:") => return bucket(at, settings, url, quota),
        Some(url) => match folder(url) {
            Some(folder) => folder,
            None => return Err(refused("it names no known store")),
        },
    };
    let store = Arc::new(DirArtifacts::new(root).with_quota(quota));
    // A command that exits earlier leaves it to the next one. The task ends with the store, or with the runtime.
    tokio::spawn(sweep_daily(Arc::downgrade(&store)));
    Ok(store)
}

async fn sweep_daily(store: Weak<DirArtifacts>) {
    while let Some(store) = store.upgrade() {
        if let Err(error) = store.sweep_if_due(SWEEP_INTERVAL).await {
            tracing::warn!(%error, "sweep expired artifacts");
        }
        drop(store);
        tokio::time::sleep(SWEEP_INTERVAL).await;
    }
}

/// Builds a bucket store with the credentials in haft's own environment: it belongs to haft, not to any tool.
#[cfg(feature = "s3")]
fn bucket(
    at: &Site,
    settings: &Settings,
    url: &str,
    quota: u64,
) -> Result<Arc<dyn ArtifactStore>, Problem> {
    let terms = RetentionLimits {
        quota,
        sweep: Some(SWEEP_INTERVAL),
        ..RetentionLimits::default()
    };
    let variable = |name: &str| at.environment.get(name).map(str::to_owned);
    let store = ObjectArtifacts::s3(url, variable, terms, upstream::dial(settings)?);
    Ok(Arc::new(store.map_err(|e| refused(&e.to_string()))?))
}

#[cfg(not(feature = "s3"))]
fn bucket(
    _at: &Site,
    _settings: &Settings,
    _url: &str,
    _quota: u64,
) -> Result<Arc<dyn ArtifactStore>, Problem> {
    Err(refused("this haft was built without buckets"))
}

/// Returns the folder that `artifacts.url` names.
pub(crate) fn folder(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("file://")?;
    path.starts_with('/').then(|| {
        let path = percent_encoding::percent_decode_str(path);
        PathBuf::from(path.decode_utf8_lossy().into_owned())
    })
}

/// Neither the value nor its line is shown, since the value may contain a password.
fn refused(why: &str) -> Problem {
    Problem::settings(format!("`artifacts.url`: {why}"))
        .advise("write file:///PATH, s3://BUCKET/PREFIX or memory:, or remove it")
}
