//! `Place`: a bucket of any kind, which tests read, write and age behind the store's back.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use haft_store::artifacts::{Dial, ObjectArtifacts, RetentionLimits};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde_json::json;

use crate::server::Server;
use crate::waiting::wait;

/// The prefix of the store's keys.
pub(crate) const PREFIX: &str = "some/prefix";

static BUCKETS: AtomicU32 = AtomicU32::new(0);

/// A bucket.
#[derive(Debug)]
pub(crate) enum Place {
    /// In memory.
    Memory(Arc<InMemory>),
    /// In a folder.
    Local(tempfile::TempDir),
    /// On a server.
    S3(Arc<Server>, String),
}

impl Place {
    pub(crate) fn memory() -> Self {
        Self::Memory(Arc::default())
    }

    pub(crate) fn local() -> Self {
        Self::Local(tempfile::tempdir().unwrap())
    }

    /// Creates a fresh bucket on a server.
    pub(crate) fn s3(server: &Arc<Server>) -> Self {
        let name = format!("bucket-{}", BUCKETS.fetch_add(1, Ordering::Relaxed));
        server.tell(&json!({"do": "bucket", "bucket": name}));
        Self::S3(Arc::clone(server), name)
    }

    /// Opens the artifacts in it, each time as another haft.
    pub(crate) fn open(&self, terms: RetentionLimits) -> ObjectArtifacts {
        match self {
            Self::Memory(store) => {
                let store = Arc::clone(store) as Arc<dyn ObjectStore>;
                ObjectArtifacts::new(store, "memory", PREFIX, terms)
            }
            Self::Local(dir) => {
                let store = LocalFileSystem::new_with_prefix(dir.path()).unwrap();
                ObjectArtifacts::new(Arc::new(store), "local", PREFIX, terms)
            }
            Self::S3(server, bucket) => {
                let variables = server.variables();
                let url = format!("s3://{bucket}/{PREFIX}/");
                open_s3(&url, &variables, terms).unwrap()
            }
        }
    }

    /// Returns the keys in it.
    pub(crate) fn keys(&self) -> Vec<String> {
        match self {
            Self::Memory(store) => keys(&**store),
            Self::Local(dir) => keys(&LocalFileSystem::new_with_prefix(dir.path()).unwrap()),
            Self::S3(server, bucket) => {
                let keys = server.tell(&json!({"do": "keys", "bucket": bucket}));
                serde_json::from_value(keys).unwrap()
            }
        }
    }

    /// Returns the keys with bytes of artifacts.
    pub(crate) fn blobs(&self) -> Vec<String> {
        let mut keys = self.keys();
        keys.retain(|key| key.starts_with(PREFIX) && key.split('/').count() == 8);
        keys
    }

    /// Returns the keys that were written within the last day.
    pub(crate) fn fresh(&self) -> Vec<String> {
        match self {
            Self::Memory(_) => self.keys(),
            Self::Local(dir) => {
                let mut keys = self.keys();
                keys.retain(|key| {
                    let written = dir.path().join(key).metadata().unwrap().modified();
                    let age = written.unwrap().elapsed().unwrap_or_default();
                    age < Duration::from_hours(24)
                });
                keys
            }
            Self::S3(server, bucket) => {
                let keys = server.tell(&json!({"do": "fresh", "bucket": bucket}));
                serde_json::from_value(keys).unwrap()
            }
        }
    }

    /// Writes an object.
    pub(crate) fn write(&self, key: &str, bytes: &[u8]) {
        match self {
            Self::Memory(store) => {
                let path = Path::from(key);
                wait(store.put(&path, bytes.to_vec().into())).unwrap();
            }
            Self::Local(dir) => {
                let path = dir.path().join(key);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, bytes).unwrap();
            }
            Self::S3(server, bucket) => {
                let mut hex = String::new();
                for byte in bytes {
                    write!(hex, "{byte:02x}").unwrap();
                }
                server.tell(&json!({"do": "write", "bucket": bucket, "key": key, "hex": hex}));
            }
        }
    }

    /// Makes all objects older whose key contains `part`; returns their number.
    pub(crate) fn age(&self, part: &str, days: i64) -> usize {
        let mut keys = self.keys();
        keys.retain(|key| key.contains(part));
        for key in &keys {
            match self {
                Self::Memory(_) => panic!("memory has no clock to turn"),
                Self::Local(dir) => age_file(dir.path().join(key), days),
                Self::S3(server, bucket) => {
                    let seconds = days * 86_400;
                    server.tell(
                        &json!({"do": "age", "bucket": bucket, "key": key, "seconds": seconds}),
                    );
                }
            }
        }
        keys.len()
    }
}

/// Returns the store for a URL and variables.
pub(crate) fn open_s3(
    url: &str,
    variables: &[(&'static str, String)],
    terms: RetentionLimits,
) -> Result<ObjectArtifacts, haft_store::StoreError> {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone())
    };
    ObjectArtifacts::s3(url, variable, terms, None)
}

/// The same over connections that `dial` opens.
pub(crate) fn open_s3_by(
    url: &str,
    server: &Server,
    dial: Arc<dyn Dial>,
) -> Result<ObjectArtifacts, haft_store::StoreError> {
    let variables = server.variables();
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone())
    };
    ObjectArtifacts::s3(url, variable, RetentionLimits::default(), Some(dial))
}

fn keys(store: &dyn ObjectStore) -> Vec<String> {
    let all = wait(store.list(None).try_collect::<Vec<_>>()).unwrap();
    let mut keys: Vec<String> = all.iter().map(|meta| meta.location.to_string()).collect();
    keys.sort();
    keys
}

fn age_file(path: PathBuf, days: i64) {
    let by = Duration::from_secs(days.unsigned_abs() * 86_400);
    let file = std::fs::File::options().append(true).open(path).unwrap();
    let was = file.metadata().unwrap().modified().unwrap();
    let then = if days < 0 { was + by } else { was - by };
    file.set_modified(then).unwrap();
}
