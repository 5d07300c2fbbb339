//! `PathText`: a path in JSON, as text or, if it is not UTF-8, as bytes.

use std::borrow::Borrow;
use std::ffi::OsString;
use std::ops::Deref;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path that survives a round trip through JSON.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathText(pub PathBuf);

impl Deref for PathText {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

/// Both order and hash alike, so a map by paths is asked without a copy of the path.
impl Borrow<Path> for PathText {
    fn borrow(&self) -> &Path {
        &self.0
    }
}

impl From<&Path> for PathText {
    fn from(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

/// The two JSON forms.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathTextJson {
    Text(String),
    Bytes(Vec<u8>),
}

impl Serialize for PathText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = match self.0.to_str() {
            Some(text) => PathTextJson::Text(text.to_owned()),
            None => PathTextJson::Bytes(self.0.as_os_str().as_bytes().to_vec()),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PathText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match PathTextJson::deserialize(deserializer)? {
            PathTextJson::Text(text) => text.into(),
            PathTextJson::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }))
    }
}
