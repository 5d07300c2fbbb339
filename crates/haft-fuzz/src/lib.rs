//! A small fuzzer for the stable toolchain: mutates a corpus for some seconds, from a seed that it prints on failure.
//!
//! It does not look for coverage like a fuzzer with instrumentation, but it runs wherever the tests run. A fuzz target is an ordinary test:
//!
//! ```
//! # let corpus = std::env::temp_dir().join(format!("haft-fuzz-{}", std::process::id()));
//! # std::fs::create_dir_all(&corpus)?;
//! # std::fs::write(corpus.join("plain"), "a\nb")?;
//! haft_fuzz::fuzz(&corpus, &["\r\n", "é"], |input| {
//!     let text = String::from_utf8_lossy(input);
//!     assert_eq!(text.split('\n').collect::<Vec<_>>().join("\n"), text);
//! });
//! # std::fs::remove_dir_all(&corpus)?;
//! # Ok::<(), std::io::Error>(())
//! ```

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Fragments of command lines, for targets that parse them.
pub const SHELL_WORDS: &[&str] = &[
    "$(",
    "${",
    "`",
    "<<E\n",
    "E\n",
    ";",
    "&&",
    "|",
    "(",
    ")",
    "{ ",
    " }",
    "'",
    "\"",
    "$'",
    "\\",
    "\\\n",
    "> ",
    "2>&1",
    "# ",
    "sudo ",
    "sh -c ",
    "timeout 5 ",
    "env A=1 ",
    "if ",
    "; then ",
    "; fi",
    "case x in x) ",
    ";; esac",
    "for i in a; do ",
    "; done",
    "f() ",
    "[[ ",
    " ]]",
    "((",
    "))",
    "=(",
    "<(",
    "<<<",
    "${x:-",
    "$((",
    "@P}",
    "coproc ",
    "! ",
    "printf -v 'x[",
];

/// Runs `target` on the files in `corpus`, then on mutations of them that also insert words of `dictionary`.
///
/// `HAFT_FUZZ_SECONDS` sets how long (default 2), `HAFT_FUZZ_SEED` the seed. A target reports a failure by panicking; the seed and the
/// input that caused it are printed to stderr.
///
/// # Panics
///
/// If the target panics, or if `corpus` contains no file.
pub fn fuzz(corpus: &Path, dictionary: &[&str], target: impl Fn(&[u8])) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seconds = number("HAFT_FUZZ_SECONDS").unwrap_or(2);
    let seed = number("HAFT_FUZZ_SEED").unwrap_or(0x5eed_1e55);
    let inputs = read_corpus(corpus);
    assert!(!inputs.is_empty(), "no corpus in {}", corpus.display());
    let mut random = Random(seed);
    let mut tried = 0_u64;
    for input in &inputs {
        target(input);
    }
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        for _ in 0..64 {
            let input = mutate(&inputs, dictionary, &mut random);
            let report = Report {
                input: &input,
                seed,
                tried,
            };
            target(&input);
            std::mem::forget(report);
            tried += 1;
        }
    }
    assert!(tried > 0, "nothing was tried");
}

/// Prints the input if the target panics: it would be lost otherwise.
struct Report<'a> {
    input: &'a [u8],
    seed: u64,
    tried: u64,
}

impl Drop for Report<'_> {
    #[expect(clippy::print_stderr, reason = "a fuzzer's report")]
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(self.input);
        eprintln!("fuzz: seed {} input {}: {text:?}", self.seed, self.tried);
    }
}

fn read_corpus(corpus: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(corpus).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
        .iter()
        .filter_map(|file| fs::read(file).ok())
        .collect()
}

/// Returns an input with one to eight mutations: bytes, pieces, words, duplications.
fn mutate(inputs: &[Vec<u8>], dictionary: &[&str], random: &mut Random) -> Vec<u8> {
    let mut input = inputs[random.below(inputs.len())].clone();
    for _ in 0..=random.below(8) {
        let at = random.below(input.len() + 1);
        match random.below(7) {
            0 if at < input.len() => input[at] = random.byte(),
            1 => input.insert(at, random.byte()),
            2 if at < input.len() => {
                input.remove(at);
            }
            3 => {
                let word = dictionary
                    .get(random.below(dictionary.len()))
                    .copied()
                    .unwrap_or("0");
                input.splice(at..at, word.bytes());
            }
            4 => input.truncate(at),
            5 => {
                let end = (at + random.below(32)).min(input.len());
                let piece = input[at..end].to_vec();
                let to = random.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            _ => {
                let other = &inputs[random.below(inputs.len())];
                let from = random.below(other.len() + 1);
                input.splice(at..at, other[from..].iter().copied().take(256));
            }
        }
        input.truncate(1 << 16);
    }
    input
}

/// xorshift64*: reproducible from its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or(0) % end.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }
}
