//! Unknown names in settings: errors at their place, because a misspelt deny allows what it was meant to deny.

use crate::harness::Lab;

/// A setting and the message about it; for a rule, `policy check` gives it, too.
const ROWS: &[(&str, &str)] = &[
    ("tools.read_fil.enabled=false", "did you mean `read_file`?"),
    (
        "tools.read_fil.bind={path=\"a\"}",
        "did you mean `read_file`?",
    ),
    ("tools.disable=[\"read_fil\"]", "did you mean `read_file`?"),
    (
        "tools.memory.enabled=false",
        "write tools.disable = [\"memory\"]",
    ),
    (
        "tools.files.enabled=false",
        "write tools.disable = [\"files\"]",
    ),
    ("tools.enable=[\"comands\"]", "did you mean `commands`?"),
    ("tools.read_file.bind={pat=\"a\"}", "pat"),
    ("policy.deny=[\"read_fil\"]", "did you mean `read_file`?"),
    ("policy.deny=[\"Reed(a.txt)\"]", "did you mean `Read`?"),
    ("policy.ask=[\"bash(rm *)\"]", "did you mean `Bash`?"),
    (
        "policy.allow=[\"raed_file(a.txt)\"]",
        "did you mean `read_file`?",
    ),
    ("policy.deny=[\"raed_*\"]", "unknown tool or class `raed_*`"),
    (
        "policy.deny=[\"Write(/db/**)\"]",
        "Write rules are never consulted; write Edit(/db/**)",
    ),
    (
        "policy.deny=[\"Write\"]",
        "haft has no tool Write; write Edit",
    ),
    (
        "policy.ask=[\"Bash(npm test && ls)\"]",
        "write Bash(npm test) and Bash(ls)",
    ),
    // An allow rule of a form that is haft's own, too: it looks as if it allowed something.
    (
        "policy.allow=[\"Sign(github.com)\"]",
        "write Sign(https:example.com)",
    ),
    (
        "policy.allow=[\"Sign(gpg:20327E4CAFE743A3)\"]",
        "Sign(gpg:FINGERPRINT)",
    ),
    (
        "policy.allow=[\"Network(https://example.com/)\"]",
        "write Network(example.com)",
    ),
    (
        "policy.allow=[\"WebFetch(example.com)\"]",
        "write WebFetch(domain:example.com)",
    ),
    ("policy.allow=[\"Expose(web)\"]", "write Expose(3000)"),
    (
        "policy.deny=[\"ask_user(titl:*)\"]",
        "did you mean `title`?",
    ),
    (
        "policy.deny=[\"ask_user(nam:x)\"]",
        "unknown parameter `nam`",
    ),
];

#[test]
fn policy_check_names_rules_that_never_match_and_what_would() {
    let lab = Lab::new();
    for (rule, says) in [
        (
            "Write(/src/**)",
            "Write rules are never consulted; write Edit(/src/**)",
        ),
        ("Bash(npm test && ls)", "write Bash(npm test) and Bash(ls)"),
    ] {
        for list in ["allow", "ask", "deny"] {
            let setting = format!("policy.{list}=[\"{rule}\"]");
            let ran = lab.run(&["policy", "check", "-c", &setting]);
            assert_eq!(ran.code, 5, "{setting}: {}", ran.stdout);
            assert!(ran.stdout.contains(says), "{setting}: {}", ran.stdout);
        }
    }
}

#[test]
fn rules_that_decide_nothing_are_marked_with_the_reason() {
    let lab = Lab::new();
    lab.user_settings(
        "[policy]\ndeny = [\"Edit(/src/**)\"]\nallow = [\"Edit(/src/gen/**)\", \"delete_file\", \"gone.tool\", \"Read(//etc/**)\", \"Edit(/a)\", \"Edit(/a)\"]\n",
    );
    let ran = lab.run(&["policy", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown = ran.json();
    let rules = shown["rules"].as_array().unwrap();
    let causes: Vec<_> = rules
        .iter()
        .map(|rule| rule["dead"]["cause"].as_str())
        .collect();
    let expect = [
        None,
        Some("shadowed"),
        Some("tool_off"),
        Some("unknown_tool"),
        Some("outside"),
        None,
        Some("repeated"),
    ];
    assert_eq!(causes, expect, "{shown}");
    assert_eq!(rules[1]["dead"]["by"], 0);
    let ran = lab.run(&["policy"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for row in [
        "shadowed",
        "tool is off",
        "no such tool",
        "outside",
        "repeated",
    ] {
        assert!(ran.stdout.contains(row), "{row}: {}", ran.stdout);
    }
    let says = "the allow rule Edit(/src/gen/**) decides nothing: the deny rule Edit(/src/**) of user already decides everything that it covers";
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
}

#[test]
fn f8_a_name_that_nothing_has_is_an_error_at_load() {
    let lab = Lab::new();
    for (setting, says) in ROWS {
        for command in [&["tools"][..], &["policy", "check"]] {
            let is_rule = setting.starts_with("policy.");
            if command == ["policy", "check"] && !is_rule {
                continue;
            }
            let ran = lab.run(&[command, &["-c", setting]].concat());
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert_eq!(ran.code, 5, "{setting}: {said}");
            assert!(said.contains(says), "{setting}: {said}");
        }
    }
    lab.user_settings("[policy]\ndeny = [\n  \"Read(.env)\",\n  \"Reed(a.txt)\",\n]\n");
    let ran = lab.run(&["tools"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("config.toml:4:3"), "{}", ran.stderr);
    lab.user_settings("[tools.read_fil]\nenabled = false\n");
    let ran = lab.run(&["tools"]);
    assert!(ran.stderr.contains("config.toml:2:11"), "{}", ran.stderr);
}

#[test]
fn f8_what_other_settings_or_a_server_would_bring_is_no_error() {
    let lab = Lab::new();
    for (setting, warns) in [
        ("policy.deny=[\"run_command\"]", false),
        (
            "policy.deny=[\"web_search\", \"tool_chain\", \"memory\"]",
            false,
        ),
        ("policy.deny=[\"load_skill\", \"delete_*\", \"*\"]", false),
        ("policy.allow=[\"Write(a.txt)\"]", true),
        ("policy.allow=[\"github.get_issue\"]", true),
        ("policy.deny=[\"mcp__github__create_issue\"]", true),
        ("policy.deny=[\"mcp__github\"]", true),
        ("tools.web_search.enabled=true", false),
        ("tools.memory.enabled=true", false),
        ("tools.\"read.fil\".enabled=false", true),
        ("tools.disable=[\"github.get_issue\"]", true),
    ] {
        let ran = lab.run(&["policy", "show", "-c", setting]);
        assert_eq!(ran.code, 0, "{setting}: {}", ran.stderr);
        let warned = ran.stderr.contains("warning");
        assert_eq!(warned, warns, "{setting}: {}", ran.stderr);
    }
}

#[test]
fn f8_another_fault_of_the_settings_hides_no_unknown_name() {
    let lab = Lab::new();
    for (fault, says) in [
        ("web.search.provider=\"searxng\"", "web.search.url"),
        ("files.check={\"*.py\"=1}", "files.check"),
    ] {
        let deny = "policy.deny=[\"read_fil\"]";
        let ran = lab.run(&["policy", "check", "-c", deny, "-c", fault]);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, 5, "{fault}: {said}");
        assert!(
            said.contains("did you mean `read_file`?"),
            "{fault}: {said}"
        );
        assert!(ran.stderr.contains(says), "{fault}: {said}");
        // Without an unknown name, the other error is reported all the same.
        assert_eq!(
            lab.run(&["policy", "check", "-c", fault]).code,
            5,
            "{fault}"
        );
    }
}

#[test]
fn a_call_of_a_tool_that_is_not_there_says_where_tools_are_listed() {
    let lab = Lab::new();
    for (name, near) in [("nosuch", false), ("read_fil", true)] {
        let ran = lab.run(&["call", name]);
        assert_eq!(ran.code, 2, "{name}: {}", ran.stderr);
        assert_eq!(
            ran.stderr.contains("did you mean read_file"),
            near,
            "{name}"
        );
        assert!(
            ran.stderr.contains("`haft tools` lists the tools"),
            "{name}: {}",
            ran.stderr
        );
    }
}
