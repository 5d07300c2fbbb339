//! The o200k table in memory: token bytes, and their ids by hash. `build.rs` packs it.

/// The packed table from the build script: count, unpacked length, then deflated lengths, splits, prefixes and bytes.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.bin"));

/// Number of slots in the hash table: a power of two, over twice the 200,000 tokens.
const SLOTS: usize = 1 << 19;
/// Number of leading bytes that select an entry of the longest-token table.
const STEM: usize = 3;
/// Number of entries in the longest-token table.
const STEMS: usize = 1 << 16;

/// A hash that can be extended byte by byte.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hash(u64);

impl Hash {
    #[inline]
    pub(super) fn push(self, byte: u8) -> Self {
        Self(
            (self.0 + u64::from(byte) + 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(23),
        )
    }

    pub(super) fn of(bytes: &[u8]) -> Self {
        bytes
            .iter()
            .fold(Self::default(), |hash, &byte| hash.push(byte))
    }

    #[inline]
    fn slot(self) -> usize {
        usize::try_from(self.0 >> 40).unwrap_or_default() & (SLOTS - 1)
    }

    #[inline]
    fn print(self) -> u32 {
        u32::try_from(self.0 & 0xffff_ffff).unwrap_or_default()
    }
}

/// A slot of the hash table; `id` is [`FREE`] in an empty one.
#[derive(Debug, Clone, Copy)]
struct Slot {
    print: u32,
    id: u32,
}

const FREE: u32 = u32::MAX;

/// All tokens.
pub(super) struct Table {
    starts: Vec<u32>,
    splits: Vec<u8>,
    prefixes: Vec<u32>,
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    /// The length of the longest token for each stem.
    longest: Vec<u8>,
    most: usize,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("tokens", &self.splits.len())
            .finish_non_exhaustive()
    }
}

impl Table {
    /// Unpacks the table. `None` only if the binary is damaged.
    pub(super) fn load() -> Option<Self> {
        let (count, rest) = PACKED.split_first_chunk::<4>()?;
        let (length, packed) = rest.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let length = u32::from_le_bytes(*length) as usize;
        let all = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, length).ok()?;
        let (lengths, rest) = all.split_at_checked(count)?;
        let (splits, rest) = rest.split_at_checked(count)?;
        let (prefixes, bytes) = rest.split_at_checked(count)?;
        let mut starts = Vec::with_capacity(count + 1);
        let mut end = 0_u32;
        starts.push(end);
        for &length in lengths {
            end += u32::from(length);
            starts.push(end);
        }
        let mut table = Self {
            starts,
            splits: splits.to_vec(),
            prefixes: Vec::with_capacity(count),
            bytes: bytes.to_vec(),
            slots: vec![Slot { print: 0, id: FREE }; SLOTS],
            longest: vec![0; STEMS],
            most: lengths.iter().copied().max().map_or(1, usize::from),
        };
        for id in 0..u32::try_from(count).ok()? {
            table.enter(id)?;
        }
        for (&length, id) in prefixes.iter().zip(0..) {
            let prefix = table.token(id).get(..usize::from(length))?;
            let prefix = table.find(prefix).unwrap_or(FREE);
            table.prefixes.push(prefix);
        }
        Some(table)
    }

    fn enter(&mut self, id: u32) -> Option<()> {
        let token = self.token(id);
        let length = u8::try_from(token.len()).ok()?;
        let hash = Hash::of(token);
        let stem = stem(token);
        let mut at = hash.slot();
        while self.slots.get(at)?.id != FREE {
            at = (at + 1) & (SLOTS - 1);
        }
        *self.slots.get_mut(at)? = Slot {
            print: hash.print(),
            id,
        };
        if let Some(stem) = stem {
            let longest = self.longest.get_mut(stem)?;
            *longest = length.max(*longest);
        }
        Some(())
    }

    /// Returns the bytes of a token.
    #[inline]
    pub(super) fn token(&self, id: u32) -> &[u8] {
        let id = id as usize;
        match (self.starts.get(id), self.starts.get(id + 1)) {
            (Some(&from), Some(&to)) => self
                .bytes
                .get(from as usize..to as usize)
                .unwrap_or_default(),
            _ => &[],
        }
    }

    /// Returns the token with exactly these bytes.
    #[inline]
    pub(super) fn find(&self, bytes: &[u8]) -> Option<u32> {
        self.find_hashed(bytes, Hash::of(bytes))
    }

    #[inline]
    pub(super) fn find_hashed(&self, bytes: &[u8], hash: Hash) -> Option<u32> {
        let mut at = hash.slot();
        loop {
            let slot = self.slots.get(at)?;
            if slot.id == FREE {
                return None;
            }
            if slot.print == hash.print() && self.token(slot.id) == bytes {
                return Some(slot.id);
            }
            at = (at + 1) & (SLOTS - 1);
        }
    }

    /// Returns the prefix of a text that can matter for the longest token there.
    pub(super) fn reach<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let most = match stem(text).and_then(|stem| self.longest.get(stem)) {
            Some(&longest) => usize::from(longest).max(STEM - 1),
            None => text.len(),
        };
        text.get(..most).unwrap_or(text)
    }

    /// Returns the longest token that `text` starts with.
    pub(super) fn longest(&self, text: &[u8]) -> Option<u32> {
        let text = self.reach(text);
        let mut hash = Hash::default();
        let mut best = None;
        for &byte in text {
            hash = hash.push(byte);
            best = self.likely(hash).or(best);
        }
        // For each length only the hash is compared; the bytes only for the longest hit.
        if best.is_some_and(|id| text.starts_with(self.token(id))) {
            return best;
        }
        self.longest_compared(text)
    }

    /// Returns the token that most likely has this hash.
    #[inline]
    fn likely(&self, hash: Hash) -> Option<u32> {
        let mut at = hash.slot();
        loop {
            let slot = self.slots.get(at)?;
            if slot.id == FREE {
                return None;
            }
            if slot.print == hash.print() {
                return Some(slot.id);
            }
            at = (at + 1) & (SLOTS - 1);
        }
    }

    #[cold]
    fn longest_compared(&self, text: &[u8]) -> Option<u32> {
        let beginnings = (1..=text.len())
            .rev()
            .filter_map(|length| text.get(..length));
        beginnings
            .into_iter()
            .find_map(|beginning| self.find(beginning))
    }

    /// Returns the length of the longest token, in bytes.
    pub(super) fn most_bytes(&self) -> usize {
        self.most
    }

    /// Returns where the merge that makes a token joins its parts; 0 if no merge makes it.
    #[inline]
    pub(super) fn split(&self, id: u32) -> usize {
        self.splits.get(id as usize).copied().map_or(0, usize::from)
    }

    /// Returns the longest token that is a proper prefix of a token.
    pub(super) fn prefix(&self, id: u32) -> Option<u32> {
        let prefix = self.prefixes.get(id as usize).copied();
        prefix.filter(|&prefix| prefix != FREE)
    }
}

fn stem(bytes: &[u8]) -> Option<usize> {
    let &[a, b, c] = bytes.first_chunk::<STEM>()?;
    let word = u32::from_le_bytes([a, b, c, 0]);
    usize::try_from(word.wrapping_mul(0x9e37_79b1) >> 16).ok()
}
