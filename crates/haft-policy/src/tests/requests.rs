//! Rules by method and path, and by the arguments of a server's tools.

use serde_json::{Value, json};

use super::{ALLOW, ASK, DENY, Lists, Scene, builder, judge, policy, tool};
use crate::classes::Classes;
use crate::explain::proposal::{refuse_proposal, rule_coverage};
use crate::profile::Profile;
use haft_files::secret_names::SecretNames;
use haft_types::permission::{Effect, Permission, Verdict};
use haft_types::spec::{Risk, ToolClass};

/// Returns a request of a command: `METHOD URL`, or `host:port` for a connection that may carry anything.
fn request(text: &str) -> Scene {
    let (method, url) = match text.split_once(' ') {
        Some((method, url)) => (Some(method.to_owned()), url),
        None => (None, text),
    };
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', ':']).next().unwrap_or_default();
    let effect = Effect::Connect {
        url: url.to_owned(),
        host: host.to_owned(),
        method,
        leads_to: Vec::new(),
    };
    let risk = Risk::High;
    let wanted = vec![Permission { effect, risk }];
    let mut scene = tool("connect", Risk::Safe, &json!({}), wanted);
    scene.spec.class = Some(ToolClass::Network);
    scene
}

/// Returns a call of a tool that gets a page.
fn page(url: &str) -> Scene {
    let mut scene = request(&format!("GET {url}"));
    let permissions = scene.permissions.split_off(0);
    tool("fetch_url", Risk::High, &json!({ "url": url }), permissions)
}

fn in_list(list: &str, rules: &[&'static str]) -> Lists<'static> {
    let rules: &'static [&'static str] = Box::leak(rules.to_vec().into());
    match list {
        "deny" => Lists {
            deny: rules,
            ..Lists::default()
        },
        "ask" => Lists {
            ask: rules,
            ..Lists::default()
        },
        _ => Lists {
            allow: rules,
            ..Lists::default()
        },
    }
}

#[test]
fn a_rule_by_method_and_path_covers_these_requests_of_its_host() {
    const REPOS: &str = "Network(api.github.com: GET /repos/**)";
    for (rule, wanted, allow, deny) in [
        (REPOS, "GET https://api.github.com/repos/a/b", ALLOW, DENY),
        (REPOS, "GET https://api.github.com/user", ASK, ASK),
        (REPOS, "POST https://api.github.com/repos/a", ASK, ASK),
        (REPOS, "GET https://github.com/repos/a", ASK, ASK),
        (REPOS, "GET http://api.github.com/repos/a", ALLOW, DENY),
        (REPOS, "GET https://api.github.com:8443/repos/a", ASK, DENY),
        (REPOS, "api.github.com:443", ASK, DENY),
        (REPOS, "api.github.com:22", ASK, DENY),
        (
            "Network(api.github.com:443: GET /**)",
            "api.github.com:22",
            ASK,
            ASK,
        ),
        (
            "Network(*.github.com: * /x)",
            "PUT https://api.github.com/x",
            ALLOW,
            DENY,
        ),
        (
            "Network(github: GET /x)",
            "GET https://api.github.com/x",
            ALLOW,
            DENY,
        ),
        (
            "Network(github: GET /x)",
            "POST https://api.github.com/x",
            ASK,
            ASK,
        ),
        (
            "Network(x.example.com:8443: GET /a)",
            "GET https://x.example.com:8443/a",
            ALLOW,
            DENY,
        ),
        (
            "Network(api.github.com)",
            "DELETE https://api.github.com/x",
            ALLOW,
            DENY,
        ),
        ("Network", "DELETE https://api.github.com/x", ALLOW, DENY),
        (
            "WebFetch(domain:api.github.com: GET /**)",
            "GET https://api.github.com/x",
            ASK,
            ASK,
        ),
    ] {
        let scene = request(wanted);
        assert_eq!(
            judge(in_list("allow", &[rule]), &scene).verdict,
            allow,
            "allow {rule} {wanted}"
        );
        assert_eq!(
            judge(in_list("deny", &[rule]), &scene).verdict,
            deny,
            "deny {rule} {wanted}"
        );
    }
    let both = Lists {
        deny: &["Network(api.github.com: DELETE /**)"],
        allow: &["Network(api.github.com)"],
        ..Lists::default()
    };
    for (wanted, expect) in [
        ("GET https://api.github.com/x", ALLOW),
        ("DELETE https://api.github.com/x", DENY),
        ("delete https://api.github.com/x", DENY),
        // It could carry what is denied.
        ("api.github.com:443", DENY),
    ] {
        let ruling = judge(both, &request(wanted));
        assert_eq!(ruling.verdict, expect, "{wanted}");
    }
    let ruling = judge(both, &request("DELETE https://api.github.com/x"));
    let says = "matches sending DELETE to https://api.github.com/x";
    assert!(ruling.reason.contains(says), "{}", ruling.reason);
}

#[test]
fn pages_are_judged_by_the_same_rules() {
    const DOCS: &str = "WebFetch(domain:example.com: GET /docs/**)";
    for (rule, url, allow, deny) in [
        (DOCS, "https://example.com/docs/a", ALLOW, DENY),
        (DOCS, "https://example.com/admin", ASK, ASK),
        (DOCS, "https://example.com/docs/%2e%2e/admin", ASK, ASK),
        (DOCS, "https://example.com/docs/..%2fadmin", ASK, DENY),
        (DOCS, "http://example.com:8080/docs/a", ASK, DENY),
        (DOCS, "https://example.com:80/docs/a", ASK, DENY),
        (
            "WebFetch(domain:example.com:8443: GET /a)",
            "https://example.com:8443/a",
            ALLOW,
            DENY,
        ),
        (
            "fetch_url(domain:example.com: * /a)",
            "https://example.com/a",
            ALLOW,
            DENY,
        ),
        (
            "WebFetch(domain:example.com: POST /a)",
            "https://example.com/a",
            ASK,
            ASK,
        ),
        (
            "Network(example.com: GET /a)",
            "https://example.com/a",
            ASK,
            ASK,
        ),
    ] {
        let scene = page(url);
        assert_eq!(
            judge(in_list("allow", &[rule]), &scene).verdict,
            allow,
            "allow {rule} {url}"
        );
        assert_eq!(
            judge(in_list("deny", &[rule]), &scene).verdict,
            deny,
            "deny {rule} {url}"
        );
    }
}

#[test]
fn a_rule_that_no_request_matches_says_what_works() {
    for (rule, says) in [
        ("Network(example.com: /a)", "is not a method and a path"),
        ("Network(example.com: GET)", "is not a method and a path"),
        ("Network(example.com: GET a)", "does not begin with a slash"),
        ("Network(example.com: GET /a/../b)", "without . and .."),
        ("Network(example.com: GET /a//b)", "in different ways"),
        ("Network(example.com: GET /a b)", "%20"),
        ("Network(example.com: G@T /a)", "is not a method"),
        ("Network(unix:/run/x.sock: GET /a)", "not judged by method"),
        ("Network(a b: GET /a)", "neither a host nor a bundle"),
        (
            "WebFetch(domain:*.example.com:8443: GET /a)",
            "is not a host",
        ),
    ] {
        for list in ["allow", "ask", "deny"] {
            let built = builder(Profile::Workspace, in_list(list, &[rule]).set()).build();
            let text = format!("{built:?}");
            assert!(
                text.contains(says) && text.contains("never"),
                "{list} {rule}: {text:.400}"
            );
        }
    }
}

#[test]
fn examples_of_rules_are_requests() {
    let table = crate::RuleText {
        matches: vec!["GET https://api.github.com/repos/a".into()],
        no_match: vec![
            "POST https://api.github.com/repos/a".into(),
            "GET https://api.github.com/user".into(),
            "https://api.github.com/repos/a".into(),
        ],
        ..crate::RuleText::new("Network(api.github.com: GET /repos/**)")
    };
    let set = crate::RuleSet {
        allow: vec![table],
        ..crate::RuleSet::default()
    };
    let report = set.check(&crate::PolicyContext::default());
    assert!(report.ok, "{report:?}");
}

#[test]
fn the_rule_that_is_offered_for_a_request_is_as_narrow_as_it() {
    let rules = in_list(
        "allow",
        &[
            "Network(api.github.com: GET /ok)",
            "WebFetch(domain:example.com: GET /ok)",
        ],
    );
    let policy = policy(Profile::Workspace, rules);
    for (scene, rule) in [
        (
            request("POST https://api.github.com/a/%2Ab?x=*"),
            r"Network(api.github.com: POST /a/%2Ab?x=\*)",
        ),
        (
            request("GET https://api.github.com/a%2fb"),
            "Network(api.github.com: GET /a%2Fb)",
        ),
        (
            request("GET https://api.github.com:8443/"),
            "Network(api.github.com:8443: GET /)",
        ),
        (request("api.github.com:443"), "Network(api.github.com)"),
        (
            page("https://example.com/a"),
            "WebFetch(domain:example.com: GET /a)",
        ),
        (
            page("https://example.org/a"),
            "WebFetch(domain:example.org)",
        ),
    ] {
        assert_eq!(policy.suggest(&scene.call()), [rule]);
    }
    // What no rule can name is asked about each time.
    for url in [
        "GET https://api.github.com/a//b",
        "GET https://api.github.com/%zz",
    ] {
        assert_eq!(
            policy.suggest(&request(url).call()),
            Vec::<String>::new(),
            "{url}"
        );
    }
}

#[test]
fn the_rules_of_a_place_decide_whether_its_requests_are_judged() {
    let lists = Lists {
        allow: &[
            "Network(a.example.com: GET /x)",
            "Network(*.example.org:8443: GET /x)",
        ],
        deny: &["Network(b.example.com: DELETE /**)"],
        ask: &["WebFetch(domain:c.example.com: GET /x)"],
    };
    let policy = policy(Profile::Workspace, lists);
    for (class, host, port, expect) in [
        (ToolClass::Network, "a.example.com", 443, true),
        (ToolClass::Network, "A.Example.com.", 80, true),
        (ToolClass::Network, "a.example.com", 8443, false),
        (ToolClass::Network, "x.example.org", 8443, true),
        (ToolClass::Network, "b.example.com", 8443, true),
        (ToolClass::Network, "c.example.com", 443, false),
        (ToolClass::WebFetch, "c.example.com", 443, true),
        (ToolClass::WebFetch, "a.example.com", 443, false),
    ] {
        let rule = policy.rule_on_requests(class, host, Some(port));
        assert_eq!(rule.is_some(), expect, "{class:?} {host}:{port}");
    }
    assert!(policy.judges_requests_of_commands());
    assert_eq!(policy.named_ports().into_iter().collect::<Vec<_>>(), [8443]);
}

#[test]
fn proposed_rules_by_method_and_path_or_by_arguments_are_narrow() {
    let classes: Classes = [("connect", ToolClass::Network)].into_iter().collect();
    let secrets = SecretNames::default();
    for (rule, refused) in [
        ("Network(api.github.com: GET /repos/**)", None),
        (
            "Network(*.github.com: GET /repos/**)",
            Some("several hosts"),
        ),
        (
            "Network(localhost:3000: GET /repos/**)",
            Some("several hosts"),
        ),
        ("Network(api.github.com: GET repos)", Some("never matches")),
        ("github.create_issue(repo: acme/x, title: a)", None),
        (
            "github.create_issue(repo: acme/*, title: a)",
            Some("not exact"),
        ),
        ("github.create_issue", Some("every call")),
    ] {
        let found = refuse_proposal(rule, &classes, &secrets);
        match refused {
            None => assert_eq!(found, None, "{rule}"),
            Some(says) => assert!(found.is_some_and(|found| found.contains(says)), "{rule}"),
        }
    }
    for (rule, says) in [
        (
            "Network(api.github.com: GET /repos/**)",
            "whatever their query is",
        ),
        (
            "Network(api.github.com: GET /a?b=c)",
            "whatever they send with it",
        ),
        (
            "github.create_issue(repo: acme/*, title: a)",
            "whose repo is acme/* and title is a",
        ),
    ] {
        let covers = rule_coverage(rule, &classes).unwrap();
        assert!(covers.contains(says), "{rule}: {covers}");
    }
}

/// Returns a call of a server's tool.
fn issue(arguments: &Value) -> Scene {
    let mut scene = tool("github.create_issue", Risk::High, arguments, Vec::new());
    scene.spec.input_schema = json!({"type": "object", "properties": {
        "repo": {"type": "string"}, "labels": {"type": "array"}, "draft": {"default": false}, "to": {},
    }}).into();
    scene
}

#[test]
fn a_servers_tool_is_allowed_and_denied_by_its_arguments() {
    let repo = |repo: &str| json!({ "repo": repo });
    let profile: Verdict = ASK;
    for (rule, arguments, allow, deny) in [
        (
            "github.create_issue(repo: acme/*)",
            repo("acme/x"),
            ALLOW,
            DENY,
        ),
        (
            "github.create_issue(repo: acme/*)",
            repo("evil/x"),
            profile,
            profile,
        ),
        ("github.create_issue(repo: acme/*)", json!({}), profile, ASK),
        ("github.*(repo: acme/*)", repo("acme/x"), ALLOW, DENY),
        (
            "mcp__github__create_issue(repo: acme/*)",
            repo("acme/x"),
            ALLOW,
            DENY,
        ),
        (
            "github.create_issue(repo: acme/*, labels: bug)",
            json!({"repo": "acme/x", "labels": ["bug"]}),
            ALLOW,
            DENY,
        ),
        (
            "github.create_issue(repo: acme/*, labels: bug)",
            json!({"repo": "acme/x", "labels": ["bug", "x"]}),
            profile,
            DENY,
        ),
        (
            "github.create_issue(repo: acme/*, labels: bug)",
            repo("acme/x"),
            profile,
            ASK,
        ),
        (
            "github.create_issue(draft: true)",
            repo("acme/x"),
            profile,
            profile,
        ),
        (
            "github.create_issue(to.name: ann)",
            json!({"to": {"name": "ann"}}),
            ALLOW,
            DENY,
        ),
        (
            "github.create_issue(to.name: ann)",
            json!({"to": [{"name": "ann"}, {"name": "bob"}]}),
            profile,
            DENY,
        ),
    ] {
        let scene = issue(&arguments);
        assert_eq!(
            judge(in_list("allow", &[rule]), &scene).verdict,
            allow,
            "allow {rule} {arguments}"
        );
        assert_eq!(
            judge(in_list("deny", &[rule]), &scene).verdict,
            deny,
            "deny {rule} {arguments}"
        );
    }
    // What a call leaves out may be what a deny rule names, whatever an allow rule says; tools of haft's own fill in nothing.
    for (allow, deny, arguments, expect) in [
        (
            &["github.create_issue"][..],
            &["github.create_issue(repo: acme/*)"][..],
            json!({}),
            ASK,
        ),
        (
            &["github.create_issue"],
            &["github.create_issue(repo: acme/*)"],
            repo("evil/x"),
            ALLOW,
        ),
        (
            &["github.create_issue"],
            &["github.create_issue(draft: true)"],
            json!({}),
            ALLOW,
        ),
        (
            &["github.create_issue"],
            &["*(path: /etc/*)"],
            json!({}),
            ALLOW,
        ),
    ] {
        let lists = Lists {
            deny,
            allow,
            ..Lists::default()
        };
        assert_eq!(
            judge(lists, &issue(&arguments)).verdict,
            expect,
            "{deny:?} {arguments}"
        );
    }
    let lists = Lists {
        deny: &["run_command(background:true)"],
        allow: &["run_command"],
        ..Lists::default()
    };
    let own = tool(
        "run_command",
        Risk::High,
        &json!({"command": "ls"}),
        Vec::new(),
    );
    assert_eq!(judge(lists, &own).verdict, ALLOW);
}

#[test]
fn several_arguments_of_a_standard_tool_are_those_that_rules_may_name() {
    for (rule, fine) in [
        ("run_command(background:true, cwd: sub)", true),
        ("run_command(background:true, command: ls)", false),
    ] {
        let built = builder(Profile::Workspace, in_list("deny", &[rule]).set()).build();
        assert_eq!(built.unwrap().findings().is_empty(), fine, "{rule}");
    }
}

#[test]
fn a_rule_that_an_earlier_one_decides_is_found() {
    for (deny, allow, dead) in [
        (
            "Network(example.com: GET /a/**)",
            "Network(example.com: GET /a/b)",
            true,
        ),
        (
            "Network(example.com)",
            "Network(example.com: GET /a/b)",
            true,
        ),
        (
            "Network(example.com: GET /a/**)",
            "Network(example.com)",
            false,
        ),
        (
            "Network(example.com: GET /a/**)",
            "Network(example.com: GET,POST /a/b)",
            false,
        ),
        (
            "github.x(repo: acme/*)",
            "github.x(repo: acme/y, n: 1)",
            true,
        ),
        (
            "github.x(repo: acme/*, n: 1)",
            "github.x(repo: acme/y)",
            false,
        ),
    ] {
        let (deny, allow) = ([deny], [allow]);
        let lists = Lists {
            deny: &deny,
            allow: &allow,
            ..Lists::default()
        };
        let found = policy(Profile::Workspace, lists).dead_rules();
        assert_eq!(!found.is_empty(), dead, "{deny:?} {allow:?}: {found:?}");
    }
}
