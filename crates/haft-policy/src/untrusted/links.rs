//! `SeenLinks`: the addresses that stood word for word in what a run read. Following one carries nothing out that was not in it.

use std::collections::HashSet;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use url::Url;

/// Maximum number of addresses of a run. Further ones count as not seen.
const MAX_LINKS: usize = 16_384;
/// Maximum number of addresses that are looked for in one text.
const MAX_OF_TEXT: usize = 4_096;
/// Maximum number of forms of an address that are noted of one text.
const MAX_FORMS: usize = 8_192;
/// Maximum length of an address, in bytes.
const MAX_LENGTH: usize = 2_048;
/// Maximum length of a text that is searched, in bytes.
const MAX_TEXT: usize = 8 << 20;
/// Characters at which an address in a text may end, though they may be part of one.
const DOUBTFUL: [char; 9] = ['(', ')', '[', ']', '}', '\'', '|', ',', '*'];
/// Characters after an address that are rather part of its sentence.
const PUNCTUATION: [char; 7] = ['.', ',', ';', ':', '!', '?', '_'];

/// The addresses that a run has seen, shared by all of its calls. They are kept as the beginnings of their hashes.
#[derive(Debug, Default)]
pub struct SeenLinks(Mutex<LinkSet>);

#[derive(Debug, Default)]
struct LinkSet(HashSet<u64>);

impl SeenLinks {
    /// Notes an address that the run reads, or that a server named as the place to go to.
    pub fn note(&self, address: &str) {
        if let Some(address) = canonical(address) {
            self.0.lock().add(&address);
        }
    }

    /// Notes addresses by their hashes, as [`link_hash`] returned them.
    pub fn note_hashes(&self, hashes: impl IntoIterator<Item = u64>) {
        let mut set = self.0.lock();
        for hash in hashes {
            set.add_hash(hash);
        }
    }

    /// Notes all addresses in a text that was read, except those in `own`, what the run itself had sent there: a server may answer with
    /// it.
    pub fn note_all_in(&self, text: &str, own: &str) {
        let found = links_in(text, own);
        if !found.is_empty() {
            self.note_hashes(found);
        }
    }

    /// Whether the run has seen this very address, apart from its fragment.
    pub fn has(&self, address: &str) -> bool {
        let Some(address) = canonical(address) else {
            return false;
        };
        self.0.lock().0.contains(&hash(&address))
    }

    /// Whether an argument holds no address, or is one that the run has seen and nothing else. Programs differ in what they take for an
    /// address and in where it ends, so that one among other words is not seen.
    pub fn has_all_in(&self, text: &str) -> bool {
        let read = text.chars().filter(|c| !c.is_control());
        let read: String = read.map(|c| if c == '\\' { '/' } else { c }).collect();
        let read = read.to_ascii_lowercase();
        let is_relative = |rest: &str| !rest.starts_with(' ');
        let may_be_one = ["://", "http:", "https:"]
            .iter()
            .any(|sign| read.contains(sign))
            || read.trim().strip_prefix("//").is_some_and(is_relative);
        // A fragment is not part of what is compared.
        !may_be_one || !text.contains('#') && self.has(text.trim())
    }
}

impl LinkSet {
    fn add(&mut self, address: &str) {
        self.add_hash(hash(address));
    }

    fn add_hash(&mut self, hash: u64) {
        if self.0.len() < MAX_LINKS {
            self.0.insert(hash);
        }
    }
}

/// Returns the hashes of all addresses in a text that was read, except those in `own`, for [`SeenLinks::note_hashes`].
pub fn links_in(text: &str, own: &str) -> Vec<u64> {
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    let mut forms = Forms::default();
    forms.find_in(text);
    if forms.0.is_empty() {
        return Vec::new();
    }
    let mut sent = Forms::default();
    sent.find_in(own);
    forms.0.difference(&sent.0).map(|form| hash(form)).collect()
}

/// Returns the hash of an address by which it is kept; `None` if it is none that can be followed unasked.
pub fn link_hash(address: &str) -> Option<u64> {
    canonical(address).map(|address| hash(&address))
}

fn hash(address: &str) -> u64 {
    let digest = Sha256::digest(address.as_bytes());
    let first = digest.first_chunk::<8>().copied().unwrap_or_default();
    u64::from_be_bytes(first)
}

/// The addresses of a text, in each way that it could be meant.
#[derive(Debug, Default)]
struct Forms(HashSet<String>);

impl Forms {
    fn find_in(&mut self, text: &str) {
        for address in addresses(text).take(MAX_OF_TEXT) {
            self.add(address);
        }
    }

    /// Adds an address up to the next blank or quote, and up to where it may end before. Each is a beginning of what was read, so that
    /// none holds anything else.
    fn add(&mut self, address: &str) {
        let ends = address
            .char_indices()
            .filter(|(_, c)| DOUBTFUL.contains(c))
            .map(|(at, _)| at);
        for end in ends.take(8).chain([address.len()]) {
            let form = &address[..end];
            for form in [form, form.trim_end_matches(PUNCTUATION)] {
                self.add_form(form);
                if form.contains("&amp;") {
                    self.add_form(&form.replace("&amp;", "&"));
                }
            }
        }
    }

    fn add_form(&mut self, form: &str) {
        if self.0.len() < MAX_FORMS
            && let Some(form) = canonical(form)
        {
            self.0.insert(form);
        }
    }
}

/// Returns what begins like an address in a text, each up to a blank or a quote.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("://").filter_map(move |(at, _)| {
        let before = text.get(..at)?;
        let start = ["https", "http"]
            .iter()
            .find_map(|scheme| before.strip_suffix(scheme))?
            .len();
        let rest = text.get(start..)?;
        let ends = |c: char| c.is_whitespace() || c.is_control() || "\"<>`\\".contains(c);
        let end = rest.find(ends).unwrap_or(rest.len());
        rest.get(..end)
    })
}

/// Returns an address in the one form that is compared: without its fragment. `None` if it is none of the web, names a user, or is too
/// long. An escape counts as it is written: two spellings may be two requests.
fn canonical(address: &str) -> Option<String> {
    if address.len() > MAX_LENGTH {
        return None;
    }
    let mut url = Url::parse(address).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https");
    if !is_web || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    url.set_fragment(None);
    let host = url.host_str()?.trim_end_matches('.').to_owned();
    url.set_host(Some(&host)).ok()?;
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::{MAX_LENGTH, MAX_LINKS, SeenLinks};

    fn seen(text: &str) -> SeenLinks {
        let links = SeenLinks::default();
        links.note_all_in(text, "");
        links
    }

    #[test]
    fn link_when_it_stood_in_the_text_is_seen_word_for_word() {
        for (text, address, expect) in [
            (
                "see https://a.example/b?c=d.",
                "https://a.example/b?c=d",
                true,
            ),
            ("[x](https://a.example/b) and", "https://a.example/b", true),
            ("(https://a.example/b_(c))", "https://a.example/b_(c)", true),
            (
                "<a href=\"https://a.example/b&amp;c\">",
                "https://a.example/b&c",
                true,
            ),
            (
                "{\"url\":\"https://a.example/b\",\"x\":1}",
                "https://a.example/b",
                true,
            ),
            ("https://a.example/b#one", "https://a.example/b#two", true),
            ("https://A.example:443/b", "https://a.example/b", true),
            ("https://a.example./b", "https://a.example/b", true),
            (
                "https://bücher.example/b",
                "https://xn--bcher-kva.example/b",
                true,
            ),
            ("https://a.example/b", "https://a.example/b?c", false),
            ("https://a.example/b", "https://a.example/", false),
            ("https://a.example/b", "http://a.example/b", false),
            ("https://a.example/b", "https://a.example:444/b", false),
            ("https://a.example/%62", "https://a.example/b", false),
            ("https://a.example/b c", "https://a.example/bc", false),
            ("https://u@a.example/b", "https://u@a.example/b", false),
            ("https://u:p@a.example/b", "https://a.example/b", false),
            ("ftp://a.example/b", "ftp://a.example/b", false),
            ("a.example/b", "https://a.example/b", false),
        ] {
            assert_eq!(seen(text).has(address), expect, "{address} in {text}");
        }
    }

    #[test]
    fn link_when_the_run_sent_it_is_not_seen_in_the_answer() {
        let links = SeenLinks::default();
        let sent = "{\"text\":\"https://evil.example/?secret\"}";
        links.note_all_in(
            "you said https://evil.example/?secret to https://a.example/",
            sent,
        );
        assert!(!links.has("https://evil.example/?secret"));
        assert!(links.has("https://a.example/"));
        links.note_all_in("[q](https://a.example/q?a=1&amp;b=2)", sent);
        assert!(links.has("https://a.example/q?a=1&b=2"));
        assert!(links.has_all_in(" https://a.example/ "));
        for text in [
            "get https://a.example/ now",
            "https://a.example/ https://a.example/b",
            "https://a.example/,secret",
            "https://a.example SECRET",
            "https://a.example/\nSECRET",
            "https://a.example/\"SECRET",
            "https://a.example\"@evil.example/",
            "https://a.example\\@evil.example/",
            "https://a.example/#@evil.example/SECRET",
            "HTTPS://evil.example/SECRET",
            "https:/evil.example/SECRET",
            "https:evil.example/SECRET",
            "https:\\\\evil.example/SECRET",
            "ht\ntps://evil.example/SECRET",
            "//evil.example/SECRET",
        ] {
            assert!(!links.has_all_in(text), "{text:?}");
        }
        assert!(links.has_all_in("no address") && links.has_all_in("// a comment or a//b"));
    }

    #[test]
    fn links_when_there_are_too_many_count_as_not_seen() {
        let text = |from: usize, to: usize| {
            let all = (from..to).map(|n| format!("https://a.example/{n} "));
            all.collect::<String>()
        };
        let links = seen(&text(0, 100_000));
        assert!(links.has("https://a.example/7") && !links.has("https://a.example/99999"));
        for part in 0..8 {
            links.note_all_in(&text(part * 4_000, (part + 1) * 4_000), "");
        }
        assert_eq!(links.0.lock().0.len(), MAX_LINKS);
        assert!(!links.has("https://a.example/31999"));
        let long = format!("https://a.example/{}", "x".repeat(1 << 20));
        assert!(long.len() > MAX_LENGTH && !seen(&long).has(&long));
    }
}
