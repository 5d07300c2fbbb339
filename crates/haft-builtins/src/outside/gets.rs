//! URLs of which a command line is known only to get what is there: rules by method and path can allow these.

use haft::permission::{Effect, Permission};
use haft::policy::CommandLine;

/// Options of curl that change neither the request nor where it goes (curl(1)), one letter each.
const LETTERS: &str = "fgiNsSv46#";
/// The same, in words.
const WORDS: [&str; 10] = [
    "--compressed",
    "--fail",
    "--fail-with-body",
    "--globoff",
    "--http1.1",
    "--include",
    "--no-progress-meter",
    "--show-error",
    "--silent",
    "--verbose",
];
/// The same, each with a value.
const WITH_VALUE: [&str; 8] = [
    "-m",
    "-o",
    "-w",
    "--connect-timeout",
    "--max-time",
    "--output",
    "--retry",
    "--write-out",
];

/// States the method of each connection that the line is known to make only to get its URL.
pub(super) fn with_methods(line: &CommandLine, mut effects: Vec<Permission>) -> Vec<Permission> {
    for permission in &mut effects {
        if let Effect::Connect { url, method, .. } = &mut permission.effect
            && method.is_none()
            && is_only_got(line, url)
        {
            *method = Some("GET".to_owned());
        }
    }
    effects
}

/// Whether each part of the line that names a URL is a curl that gets it.
fn is_only_got(line: &CommandLine, url: &str) -> bool {
    line.parts.iter().all(|part| {
        let words = part.argv.as_deref();
        words.is_some_and(|words| {
            let named = words.iter().any(|word| word.contains(url));
            !named || gets(words, url)
        })
    })
}

/// Whether the words are those of a curl that sends nothing but GET, to addresses as they are written.
fn gets(words: &[String], url: &str) -> bool {
    let Some((program, words)) = words.split_first() else {
        return false;
    };
    let mut words = words.iter();
    let mut named = false;
    while let Some(word) = words.next() {
        let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty());
        if WITH_VALUE.contains(&&**word) {
            words.next();
        } else if word == url && !word.contains(['{', '}', '[', ']']) {
            named = true;
        } else if word.starts_with('-') {
            let plain = letters.is_some_and(|all| all.chars().all(|one| LETTERS.contains(one)));
            if !plain && !WORDS.contains(&&**word) {
                return false;
            }
        } else if !word.contains("://") || word.contains(['{', '}', '[', ']']) {
            return false;
        }
    }
    named && program == "curl"
}

#[cfg(test)]
mod tests {
    use haft::policy::CommandLine;

    use super::is_only_got;

    #[test]
    fn only_a_plain_curl_is_known_to_get_its_url() {
        const URL: &str = "https://example.com/a";
        for (line, expect) in [
            ("curl https://example.com/a", true),
            ("curl -sSf --max-time 5 -o x https://example.com/a", true),
            ("curl -sS https://example.com/a | head -5", true),
            ("curl -s https://example.org/b https://example.com/a", true),
            ("curl -X DELETE https://example.com/a", false),
            ("curl -XDELETE https://example.com/a", false),
            ("curl -sX DELETE https://example.com/a", false),
            ("curl -d x https://example.com/a", false),
            ("curl --json '{}' https://example.com/a", false),
            ("curl -T f https://example.com/a", false),
            ("curl -I https://example.com/a", false),
            ("curl -K c https://example.com/a", false),
            (
                "curl -H 'X-HTTP-Method-Override: DELETE' https://example.com/a",
                false,
            ),
            // It goes on to where the host says.
            ("curl -L https://example.com/a", false),
            ("curl -x http://p:1 https://example.com/a", false),
            (
                "curl https://example.com/a https://example.com/{b,c}",
                false,
            ),
            (
                "curl https://example.com/a --next -d x https://example.com/a",
                false,
            ),
            ("curl https://example.com/a example.com/b", false),
            (
                "curl https://example.com/a && curl -d x https://example.com/a",
                false,
            ),
            ("curl $X https://example.com/a", false),
            ("./curl https://example.com/a", false),
            ("wget https://example.com/a", false),
            ("echo https://example.com/a", false),
            ("curl -- https://example.com/a", false),
        ] {
            assert_eq!(is_only_got(&CommandLine::new(line), URL), expect, "{line}");
        }
    }
}
