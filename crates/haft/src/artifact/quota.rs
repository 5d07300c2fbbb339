//! The bound on a tenant's artifacts, the same for every store: what goes so that more fits.

/// Most bytes kept for one tenant unless told otherwise: 10 GiB.
pub const MAX_BYTES: u64 = 10 << 30;

/// What a tenant has of its quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Bytes kept.
    pub used: u64,
    /// Most bytes kept.
    pub limit: u64,
}

/// An artifact as the quota sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept<I> {
    /// What the store knows it by.
    pub id: I,
    /// Its size.
    pub bytes: u64,
    /// When it was stored, in nanoseconds since 1970.
    pub created: i64,
    /// Whether a run in use holds it.
    pub held: bool,
}

/// What there is to do before more bytes are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Room<I> {
    /// These go, the oldest first; none where it fits as it is.
    Evict(Vec<I>),
    /// It does not fit, whatever goes: so many bytes would.
    Full(u64),
}

/// Makes room for `size` more bytes: the oldest that no run in use holds go. A tenth of the quota is freed along with it, so
/// that a full store does not look through all it has with every artifact.
pub fn make_room<I>(limit: u64, size: u64, mut kept: Vec<Kept<I>>) -> Room<I> {
    let sum = |kept: &[Kept<I>]| {
        kept.iter()
            .fold(0, |sum: u64, one| sum.saturating_add(one.bytes))
    };
    let mut used = sum(&kept);
    if used.saturating_add(size) <= limit {
        return Room::Evict(Vec::new());
    }
    kept.retain(|one| !one.held);
    let left = limit.saturating_sub(used.saturating_sub(sum(&kept)));
    if size > left {
        return Room::Full(left);
    }
    kept.sort_by_key(|one| one.created);
    let goal = (limit - limit / 10).max(limit - left + size);
    let mut evicted = Vec::new();
    for one in kept {
        if used.saturating_add(size) <= goal {
            break;
        }
        used -= one.bytes;
        evicted.push(one.id);
    }
    Room::Evict(evicted)
}

#[cfg(test)]
mod tests {
    use super::{Kept, Room, make_room};

    #[test]
    fn j14_the_oldest_that_nobody_holds_go_first() {
        let kept = |all: &[(char, u64, i64, bool)]| {
            let one = |&(id, bytes, created, held): &(char, u64, i64, bool)| Kept {
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
            (0, Room::Evict(vec![])),
            // A tenth is freed along with what is needed.
            (1, Room::Evict(vec!['b'])),
            (20, Room::Evict(vec!['b', 'c'])),
            (45, Room::Evict(vec!['b', 'c', 'd'])),
            (70, Room::Evict(vec!['b', 'c', 'd'])),
            (71, Room::Full(70)),
            (u64::MAX, Room::Full(70)),
        ];
        for (size, expect) in rows {
            assert_eq!(make_room(100, size, all.clone()), expect, "{size}");
        }
        assert_eq!(make_room::<char>(10, 11, Vec::new()), Room::Full(10));
        let over = kept(&[('a', 200, 1, true)]);
        assert_eq!(make_room(100, 1, over), Room::Full(0));
    }
}
