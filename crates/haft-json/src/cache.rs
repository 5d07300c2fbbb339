//! `SchemaCache`: equal schemas share one compiled form.
//!
//! ```
//! use std::sync::Arc;
//! use haft_json::cache::SchemaCache;
//! use serde_json::json;
//!
//! let cache = SchemaCache::new();
//! let one = cache.get(&Arc::new(json!({"type": "object"})))?;
//! let other = cache.get(&Arc::new(json!({"type": "object"})))?;
//! assert!(Arc::ptr_eq(&one, &other));
//! # Ok::<(), haft_json::schema::SchemaError>(())
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::schema::{Schema, SchemaError};

/// Compiled schemas by the hash of their text. A registry owns one; the cache does not keep schemas alive.
#[derive(Debug, Default)]
pub struct SchemaCache {
    known: Mutex<HashMap<[u8; 32], Weak<Schema>>>,
}

impl SchemaCache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the compiled form of a schema, shared with every equal schema that is still in use.
    ///
    /// # Errors
    ///
    /// Those of [`Schema::compile`].
    pub fn get(&self, schema: &Arc<Value>) -> Result<Arc<Schema>, SchemaError> {
        let hash: [u8; 32] = Sha256::digest(schema.to_string()).into();
        let mut known = self.known.lock();
        if let Some(shared) = known.get(&hash).and_then(Weak::upgrade) {
            return Ok(shared);
        }
        if known.len() == known.capacity() {
            known.retain(|_, schema| schema.strong_count() > 0);
        }
        let compiled = Arc::new(Schema::shared(Arc::clone(schema))?);
        known.insert(hash, Arc::downgrade(&compiled));
        Ok(compiled)
    }
}
