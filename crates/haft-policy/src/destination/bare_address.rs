//! Addresses in the arguments of servers' tools that are written without their scheme: `evil.example/path`.

/// Words in the name of an argument that say that its value is an address or a host.
const NAMES: [&str; 12] = [
    "address", "domain", "endpoint", "host", "hostname", "href", "link", "site", "uri", "url",
    "webpage", "website",
];

/// Signs in which an address may be put.
const QUOTES: [char; 6] = ['"', '\'', '`', '<', '>', '('];

/// Whether the text of an argument of this name is the address of a page or a host without a scheme: a host with a path, a query or a port, or
/// in an argument for addresses a host alone. A file's name looks like the latter, and is one in any other argument.
pub(super) fn is_bare_address(name: &str, text: &str) -> bool {
    let text = plain(text);
    let text = text.trim_matches(|c: char| c.is_whitespace() || QUOTES.contains(&c));
    if text.starts_with('[') && text.contains("]/") {
        return true;
    }
    let end = text.find(['/', '\\', '?', '#', ':']);
    let (host, rest) = text.split_at(end.unwrap_or(text.len()));
    // A user before the host is part of the address only if something follows: otherwise it is one of a mail.
    let host = host
        .rsplit('@')
        .next()
        .filter(|_| !rest.is_empty())
        .unwrap_or(host);
    is_host(host) && (!rest.is_empty() && begins_an_address(rest) || is_for_addresses(name))
}

/// Returns a text as the programs read it that take addresses: without what nobody sees, and with dots for the signs that names may have
/// instead (IDNA, RFC 3490).
fn plain(text: &str) -> String {
    let is_seen = |c: &char| {
        !c.is_control()
            && !matches!(
                c,
                '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'
            )
    };
    let dotted = |c: char| match c {
        '\u{3002}' | '\u{ff0e}' | '\u{ff61}' => '.',
        other => other,
    };
    text.chars().filter(is_seen).map(dotted).collect()
}

fn is_host(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let labels: Vec<&str> = text.split('.').collect();
    let is_label = |label: &&str| {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        !label.is_empty() && label.chars().all(is_part)
    };
    let is_number = |label: &&str| label.parse::<u8>().is_ok();
    let is_ip = labels.len() == 4 && labels.iter().all(is_number);
    let ends_in_a_word = labels.last().is_some_and(|last| {
        let is_word = last.chars().count() > 1 && last.chars().all(char::is_alphabetic);
        is_word || last.to_ascii_lowercase().starts_with("xn--")
    });
    labels.len() > 1 && labels.iter().all(is_label) && (is_ip || ends_in_a_word)
}

/// Whether what follows a host is a path, a query or a port, rather than a line of a file (`main.rs:12`) or a word (`a.b: c`).
fn begins_an_address(rest: &str) -> bool {
    let mut chars = rest.chars();
    match chars.next() {
        Some('/' | '\\' | '?') => true,
        Some(':') => {
            let port = chars.as_str();
            let end = port.find(|c: char| !c.is_ascii_digit());
            end.is_some_and(|end| end > 0 && port[end..].starts_with(['/', '\\', '?']))
        }
        _ => false,
    }
}

/// Whether a word of the argument's name says that it takes addresses: `url`, `page_urls`, `targetUrl`.
fn is_for_addresses(name: &str) -> bool {
    let mut words: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let begins = c.is_uppercase() && was_lower;
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(last) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            last.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    let is_one = |word: &String| {
        let one = word.strip_suffix('s').unwrap_or(word);
        NAMES.contains(&one) || NAMES.contains(&word.strip_suffix("es").unwrap_or(word))
    };
    words.iter().any(is_one)
}

#[cfg(test)]
mod tests {
    use super::is_bare_address;

    #[test]
    fn address_when_written_without_a_scheme_is_told_from_names_of_files_and_words() {
        for (name, text, expect) in [
            ("q", "evil.example/c?d=secret", true),
            ("q", " evil.example/ ", true),
            ("q", "evil.example?d=secret", true),
            ("q", "evil.example:8080/x", true),
            ("q", "a@evil.example/x", true),
            ("q", "93.184.216.34/x", true),
            ("q", "dоcs.example/x", true),
            ("q", "xn--dcs-jxa.xn--p1ai/x", true),
            ("q", "evil.example\\x", true),
            ("q", "evil.example/c?d=secret and more", true),
            ("q", "<evil.example/x>", true),
            ("q", "evil\u{200b}.example/x", true),
            ("q", "evil\u{3002}example/x", true),
            ("q", "[2001:db8::1]/x", true),
            // It may be the name of a file, or of a class.
            ("q", "secret.evil.example", false),
            ("path", "README.md", false),
            ("path", "src/a.b/c", false),
            ("path", ".github/workflows", false),
            ("path", "main.rs:12", false),
            ("path", "v1.2/x", false),
            ("q", "look at evil.example/x", false),
            ("q", "ann@shop.example", false),
            ("q", "10:30", false),
            ("number", "12", false),
            ("url", "secret.evil.example", true),
            ("page_urls", "secret.evil.example", true),
            ("targetUrl", "secret.evil.example.", true),
            ("address", "ann@shop.example", false),
            ("hosts", "evil.example", true),
            ("addresses", "evil.example", true),
            ("security", "a.b", false),
            ("url", "12", false),
        ] {
            assert_eq!(is_bare_address(name, text), expect, "{name} = {text:?}");
        }
    }
}
