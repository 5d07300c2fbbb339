//! What `document.rs` accepts and refuses, each refusal with its position.

use super::{dotted, parse, parse_single};

/// Returns where a text is refused, and with which message.
fn refused(text: &str) -> (String, String) {
    let problem = parse("haft.toml", text).unwrap_err();
    let place = problem.place().unwrap().to_string();
    (place, problem.what().to_owned())
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_wrong_file_is_refused_with_line_and_column() {
    let rows = [
        (
            "[policy]\nprofil = \"trusted\"",
            "haft.toml:2:1",
            "unknown setting `policy.profil`",
        ),
        ("x = 1", "haft.toml:1:1", "unknown setting `x`"),
        (
            "[policy]\nprofile = 3",
            "haft.toml:2:11",
            "`policy.profile` takes one of",
        ),
        (
            "[policy]\nprofile = \"root\"",
            "haft.toml:2:11",
            "`policy.profile` takes one of",
        ),
        (
            "policy = 1",
            "haft.toml:1:10",
            "`policy` is a section, not an integer",
        ),
        (
            "[policy]\ndeny = [\"A\", 5]",
            "haft.toml:2:14",
            "`policy.deny` takes",
        ),
        (
            "[limits]\nmax_calls = 0",
            "haft.toml:2:13",
            "`limits.max_calls` takes a whole number of at least 1",
        ),
        (
            "[limits]\nmax_calls = 99999999999999999999",
            "haft.toml:2:13",
            "`limits.max_calls` takes",
        ),
        (
            "[limits]\ncall_timeout_s = -1",
            "haft.toml:2:18",
            "`limits.call_timeout_s` takes",
        ),
        (
            "[limits]\ncall_timeout_s = inf",
            "haft.toml:2:18",
            "`limits.call_timeout_s` takes",
        ),
        (
            "[tools.a]\nenabled = \"no\"",
            "haft.toml:2:11",
            "`tools.a.enabled` takes true or false",
        ),
        ("[policy\nprofile = 1", "haft.toml:1:8", "this is not TOML"),
        (
            "[policy]\nprofile = \"a\"\nprofile = \"b\"",
            "haft.toml:3:1",
            "this is not TOML",
        ),
        (
            "[policy]\nallow = [{ rul = \"Read\" }]",
            "haft.toml:2:10",
            "`policy.allow` takes",
        ),
    ];
    for (text, place, what) in rows {
        let (at, said) = refused(text);
        assert_eq!(at, place, "{text}\n{said}");
        assert!(said.starts_with(what), "{text}\n{said}");
    }
}

#[test]
fn a_right_file_gives_each_key_with_its_place() {
    let text = "[policy]\nprofile = \"trusted\"\ndeny = [\n  \"Bash\",\n  { rule = \"Read(x)\" },\n]\n\
                [tools.\"srv.tool\"]\nbind = { a = [1, 2] }\n[limits]\ncall_timeout_s = 1.5\n";
    let given = parse("haft.toml", text).unwrap();
    let shown: Vec<String> = given
        .iter()
        .map(|g| format!("{} {} {}", g.path.join("/"), g.value, g.place))
        .collect();
    assert_eq!(
        shown,
        [
            "policy/profile \"trusted\" haft.toml:2:11",
            "policy/deny [\"Bash\", { rule = \"Read(x)\" }] haft.toml:3:8",
            "tools/srv.tool/bind { a = [1, 2] } haft.toml:8:8",
            "limits/call_timeout_s 1.5 haft.toml:10:18",
        ]
    );
    assert_eq!(given[1].items[1].to_string(), "haft.toml:5:3");
}

#[test]
fn a_single_value_is_toml_or_stands_for_itself() {
    let rows = [
        ("policy.profile", "trusted", "\"trusted\""),
        ("policy.profile", "\"trusted\"", "\"trusted\""),
        ("locale", "5", "\"5\""),
        ("policy.deny", "Bash(rm *)", "[\"Bash(rm *)\"]"),
        ("policy.deny", "[\"a\", \"b\"]", "[\"a\", \"b\"]"),
        ("limits.max_calls", "7", "7"),
        ("tools.x.enabled", "false", "false"),
    ];
    for (path, text, value) in rows {
        let given = parse_single("-c", dotted(path).unwrap(), text).unwrap();
        assert_eq!(given.value.to_string(), value, "{path}={text}");
    }
    for (path, text) in [("limits.max_calls", "many"), ("policy", "1"), ("nope", "1")] {
        assert!(
            parse_single("-c", dotted(path).unwrap(), text).is_err(),
            "{path}"
        );
    }
}

#[test]
fn a_dotted_key_is_read_as_toml_reads_it() {
    assert_eq!(dotted("a.\"b.c\".d").unwrap(), ["a", "b.c", "d"]);
    for wrong in ["", "a b", "a.", "a = 1\nb", "[a]", "a#"] {
        assert_eq!(dotted(wrong), None, "{wrong:?}");
    }
}

/// Each rule held the whole line that it stood in: 30,000 in one line took gigabytes.
#[test]
fn the_lists_of_a_file_have_a_most_and_their_places_share_a_line() {
    let list = |items: usize| vec!["\"Read(a)\""; items].join(",");
    for (text, expect) in [
        (format!("[policy]\ndeny = [{}]", list(10_000)), None),
        (
            format!("[policy]\ndeny = [{}]", list(10_001)),
            Some("haft.toml:2:8"),
        ),
        (
            format!(
                "[policy]\nask = [{}]\ndeny = [{}]",
                list(6_000),
                list(4_001)
            ),
            Some("haft.toml:3:8"),
        ),
    ] {
        match (parse("haft.toml", &text), expect) {
            (Ok(given), None) => {
                let lines = given.iter().flat_map(|entry| &entry.items);
                let mut lines = lines.map(|place| &place.spot.as_ref().unwrap().text);
                let first = lines.next().unwrap();
                assert!(lines.all(|line| std::sync::Arc::ptr_eq(line, first)));
            }
            (Err(problem), Some(place)) => {
                assert_eq!(problem.place().unwrap().to_string(), place);
                assert!(problem.what().contains("may have 10000"), "{problem}");
            }
            (found, _) => panic!("{found:?}"),
        }
    }
    let option = format!("[{}]", list(10_001));
    let path = vec!["policy".to_owned(), "deny".to_owned()];
    assert!(parse_single("-c x", path, &option).is_err());
}
