//! Pseudorandom numbers that are reproducible from a seed: `SplitMix64`.

#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// Creates the generator of one reply: each reply of a scenario gets different numbers.
    pub(crate) fn new(seed: u64, reply: u64) -> Self {
        Self(seed ^ reply.wrapping_mul(0xa076_1d64_78bd_642f))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 1 to `most`.
    pub(crate) fn up_to(&mut self, most: usize) -> usize {
        let most = u64::try_from(most.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % most).unwrap_or_default() + 1
    }

    /// Returns the text in pieces of a few characters, as a model writes it; at most some hundreds.
    pub(crate) fn deltas(&mut self, text: &str) -> Vec<String> {
        let most = (text.len() / 200).max(16);
        let mut pieces = Vec::new();
        let mut chars = text.chars().peekable();
        while chars.peek().is_some() {
            let length = self.up_to(most);
            pieces.push(chars.by_ref().take(length).collect());
        }
        pieces
    }

    /// Returns letters with which a provider pads its events, so that their lengths reveal nothing.
    pub(crate) fn padding(&mut self) -> String {
        let length = self.up_to(16);
        (0..length)
            .map(|_| char::from(b'a' + self.letter()))
            .collect()
    }

    fn letter(&mut self) -> u8 {
        u8::try_from(self.next() % 26).unwrap_or_default()
    }
}

/// Returns eight digits that represent a text, used as a provider's signature, so that a changed echo is noticed.
pub(crate) fn digest(text: &str) -> String {
    // FNV-1a: nothing here has to withstand an attacker.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}
