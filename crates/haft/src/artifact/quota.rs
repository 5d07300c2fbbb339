//! The limit on a tenant's artifacts, the same for every store: what to evict to make room.

/// Default maximum number of bytes stored for one tenant: 10 GiB.
pub const MAX_BYTES: u64 = 10 << 30;

/// A tenant's usage of its quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Bytes stored.
    pub used: u64,
    /// Maximum number of bytes.
    pub limit: u64,
}

/// An artifact as the quota sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredArtifact<I> {
    /// The store's id for it.
    pub id: I,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was stored, in nanoseconds since 1970.
    pub created: i64,
    /// Whether a run in use holds it.
    pub held: bool,
}

/// An artifact does not fit, whatever is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// Its size in bytes.
    pub bytes: u64,
    /// The bytes that would fit after evicting everything that no run in use holds.
    pub left: u64,
}

/// The maximum number of bytes of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota(pub u64);

impl Quota {
    /// Refuses an artifact that would not fit even into an empty store.
    ///
    /// # Errors
    /// [`QuotaExceeded`] for an artifact that is larger than the whole quota.
    pub fn admit(self, bytes: u64) -> Result<(), QuotaExceeded> {
        if bytes > self.0 {
            return Err(QuotaExceeded {
                bytes,
                left: self.0,
            });
        }
        Ok(())
    }

    /// Whether `bytes` more fit beside those in use.
    pub fn has_room(self, used: u64, bytes: u64) -> bool {
        used.saturating_add(bytes) <= self.0
    }

    /// Returns a tenant's usage of the quota.
    pub fn usage(self, used: u64) -> QuotaUsage {
        QuotaUsage {
            used,
            limit: self.0,
        }
    }

    /// Makes room for `bytes` more: returns what to evict, oldest first, except what runs in use hold. Also frees a tenth of
    /// the quota, so that a full store does not search all its artifacts for each new one.
    ///
    /// # Errors
    /// [`QuotaExceeded`] if runs in use hold too much.
    pub fn make_room<I>(
        self,
        bytes: u64,
        mut kept: Vec<StoredArtifact<I>>,
    ) -> Result<Vec<I>, QuotaExceeded> {
        let limit = self.0;
        let sum = |kept: &[StoredArtifact<I>]| {
            kept.iter()
                .fold(0, |sum: u64, one| sum.saturating_add(one.bytes))
        };
        let mut used = sum(&kept);
        if self.has_room(used, bytes) {
            return Ok(Vec::new());
        }
        kept.retain(|one| !one.held);
        let left = limit.saturating_sub(used.saturating_sub(sum(&kept)));
        if bytes > left {
            return Err(QuotaExceeded { bytes, left });
        }
        kept.sort_by_key(|one| one.created);
        let goal = (limit - limit / 10).max(limit - left + bytes);
        let mut evicted = Vec::new();
        for one in kept {
            if used.saturating_add(bytes) <= goal {
                break;
            }
            used -= one.bytes;
            evicted.push(one.id);
        }
        Ok(evicted)
    }
}

#[cfg(test)]
mod tests {
    use super::{Quota, QuotaExceeded, StoredArtifact};

    #[test]
    fn j14_the_oldest_that_nobody_holds_go_first() {
        let kept = |all: &[(char, u64, i64, bool)]| {
            let one = |&(id, bytes, created, held): &(char, u64, i64, bool)| StoredArtifact {
                id,
                bytes,
                created,
                held,
            };
            all.iter().map(one).collect::<Vec<_>>()
        };
        let all = kept(&[
            ('c', 30, 3, false),
            ('a', 30, 1, true),
            ('b', 20, 2, false),
            ('d', 20, 4, false),
        ]);
        let rows = [
            (0, Ok(vec![])),
            // A tenth is freed in addition to what is needed.
            (1, Ok(vec!['b'])),
            (20, Ok(vec!['b', 'c'])),
            (45, Ok(vec!['b', 'c', 'd'])),
            (70, Ok(vec!['b', 'c', 'd'])),
            (71, Err(70)),
            (u64::MAX, Err(70)),
        ];
        for (size, expect) in rows {
            let expect = expect.map_err(|left| QuotaExceeded { bytes: size, left });
            let room = Quota(100).make_room(size, all.clone());
            assert_eq!(room, expect, "{size}");
        }
        let full = |bytes, left| QuotaExceeded { bytes, left };
        assert_eq!(Quota(10).admit(11), Err(full(11, 10)));
        assert_eq!(Quota(10).admit(10), Ok(()));
        let nothing = Quota(10).make_room::<char>(11, Vec::new());
        assert_eq!(nothing, Err(full(11, 10)));
        let over = kept(&[('a', 200, 1, true)]);
        assert_eq!(Quota(100).make_room(1, over), Err(full(1, 0)));
    }
}
