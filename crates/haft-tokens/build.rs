//! Packs the o200k token table: each token's length, the split of its last merge, and its longest shorter prefix.
//!
//! The table comes from the `bpe-openai` crate, in which it takes 32 MB; packed, it takes less than 2 MB. See `src/table.rs`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "o200k")]
    o200k::pack();
}

#[cfg(feature = "o200k")]
#[expect(
    clippy::expect_used,
    reason = "a build that cannot pack the table must stop"
)]
mod o200k {
    use std::collections::HashMap;
    use std::path::Path;

    pub(super) fn pack() {
        let bpe = &bpe_openai::o200k_base().bpe;
        let count = u32::try_from(bpe.num_tokens()).expect("token ids are 32 bits");
        let tokens: Vec<&[u8]> = (0..count).map(|id| bpe.token_bytes(id)).collect();
        let ids: HashMap<&[u8], u32> = tokens.iter().copied().zip(0..).collect();
        let byte = |length: usize| u8::try_from(length).expect("no token is over 255 bytes");
        let mut packed: Vec<u8> = tokens.iter().map(|token| byte(token.len())).collect();
        packed.extend(
            tokens
                .iter()
                .zip(0..)
                .map(|(token, id)| byte(split(&ids, token, id))),
        );
        packed.extend(tokens.iter().map(|token| byte(prefix(&ids, token))));
        packed.extend(tokens.iter().copied().flatten());
        let mut file = count.to_le_bytes().to_vec();
        file.extend(
            u32::try_from(packed.len())
                .expect("a few megabytes")
                .to_le_bytes(),
        );
        file.extend(miniz_oxide::deflate::compress_to_vec(&packed, 9));
        let folder = std::env::var("OUT_DIR").expect("cargo sets it");
        std::fs::write(Path::new(&folder).join("o200k.bin"), file).expect("the folder is writable");
    }

    /// Returns where the merge that makes this token joins its two parts; 0 for a token that no merge makes.
    fn split(ids: &HashMap<&[u8], u32>, token: &[u8], id: u32) -> usize {
        let mut ends: Vec<usize> = (0..=token.len()).collect();
        while ends.len() > 3 {
            let merges = ends.windows(3).enumerate().filter_map(|(at, ends)| {
                let merged = ids.get(&token[ends[0]..ends[2]])?;
                (*merged < id).then_some((*merged, at))
            });
            let (_, at) = merges.min().expect("every token is reached by merges");
            ends.remove(at + 1);
        }
        if ends.len() == 3 { ends[1] } else { 0 }
    }

    /// Returns the length of the longest token that is a proper prefix; 0 for a single byte.
    fn prefix(ids: &HashMap<&[u8], u32>, token: &[u8]) -> usize {
        let shorter = (1..token.len())
            .rev()
            .find(|&length| ids.contains_key(&token[..length]));
        shorter.unwrap_or(0)
    }
}
