//! What a request keeps of very many effects: the gravest one by one, and a digest of all others.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::approval::preview::{FileChange, MAX_LISTED, MAX_TEXT};
use crate::permission::Permission;
use crate::spec::Risk;
use crate::text::hex;

/// Maximum number of effects that a request names one by one.
pub const MAX_PERMISSIONS: usize = 2_000;

/// Maximum number of files, modes and folders that a request names.
const MAX_FILES: usize = 2 * MAX_LISTED + 200;

/// The effects of a call beyond those that its request names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MorePermissions {
    /// The number of these effects.
    pub count: u64,
    /// The SHA-256 over them, in order.
    pub sha256: String,
}

/// Returns which effects a request names, in order: first those that are not about paths, then those of the highest
/// risk.
pub(crate) fn named(permissions: &[Permission]) -> Vec<bool> {
    let mut named = vec![permissions.len() <= MAX_PERMISSIONS; permissions.len()];
    let mut room = MAX_PERMISSIONS;
    if permissions.len() <= room {
        return named;
    }
    let rank = |permission: &Permission| match permission.risk {
        _ if permission.effect.path().is_none() => 0,
        Risk::Critical => 1,
        Risk::High => 2,
        Risk::Safe => 3,
    };
    for turn in 0..=3 {
        let each = permissions.iter().zip(&mut named);
        let of_turn = each.filter(|(permission, _)| rank(permission) == turn);
        for (_, named) in of_turn.take(room) {
            *named = true;
            room -= 1;
        }
    }
    named
}

/// Returns the effects that a request names, and what it keeps of the others.
pub(crate) fn permissions(all: &[Permission]) -> (Vec<Permission>, Option<MorePermissions>) {
    if all.len() <= MAX_PERMISSIONS {
        return (all.to_vec(), None);
    }
    let (mut count, mut digest) = (0, JsonDigest::default());
    let mut kept = Vec::with_capacity(MAX_PERMISSIONS);
    for (permission, is_named) in all.iter().zip(named(all)) {
        if is_named {
            kept.push(permission.clone());
        } else {
            count += 1;
            digest.add(permission);
        }
    }
    let sha256 = digest.hex();
    (kept, Some(MorePermissions { count, sha256 }))
}

/// Keeps as much of the content of files as a request may show, and counts those beyond the number that it may name, whatever tool
/// they come from.
pub(crate) fn files(all: &mut Vec<FileChange>) {
    let mut room = MAX_TEXT;
    for file in all.iter_mut() {
        file.fit(&mut room);
    }
    if all.len() <= MAX_FILES {
        return;
    }
    let mut digest = JsonDigest::default();
    let more = all.split_off(MAX_FILES);
    for file in &more {
        digest.add(file);
    }
    let mut rest = FileChange::unread(".");
    rest.files = Some(more.len() as u64);
    rest.after_sha256 = Some(digest.hex());
    rest.fold("the request names no more files");
    all.push(rest);
}

/// A SHA-256 over values as JSON.
#[derive(Default)]
struct JsonDigest(Sha256);

impl JsonDigest {
    fn add(&mut self, value: &impl Serialize) {
        // Plain data: this cannot fail.
        let line = serde_json::to_vec(value).unwrap_or_default();
        self.0.update((line.len() as u64).to_le_bytes());
        self.0.update(line);
    }

    fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}
