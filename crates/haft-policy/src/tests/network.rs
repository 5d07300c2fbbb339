//! `Network` rules: the hosts that commands connect to.

use serde_json::json;

use super::*;

/// Creates a connection of a command.
fn connection(host: &str, port: u16) -> Scene {
    connection_to(host, port, &[])
}

/// Creates a connection of a command to a host whose name resolves to these private addresses.
fn connection_to(host: &str, port: u16, leads_to: &[&str]) -> Scene {
    let permission = Permission {
        effect: Effect::Connect {
            url: format!("{host}:{port}"),
            host: host.to_owned(),
            method: None,
            leads_to: leads_to.iter().map(|to| to.parse().unwrap()).collect(),
        },
        risk: Risk::High,
    };
    let mut scene = tool(
        "connect",
        Risk::Safe,
        &json!({ "host": host, "port": port }),
        vec![permission],
    );
    scene.spec.class = Some(ToolClass::Network);
    scene
}

#[test]
fn connections_of_commands_are_judged_by_their_own_rules() {
    let allow = |rules: &'static [&'static str]| Lists {
        allow: rules,
        ..Lists::default()
    };
    for (rules, host, port, expect) in [
        (&[][..], "example.com", 443, ASK),
        (&["Network(example.com)"], "example.com", 443, ALLOW),
        (&["Network(example.com)"], "example.com", 8443, ASK),
        (&["Network(example.com:8443)"], "example.com", 8443, ALLOW),
        (&["Network(*.example.com)"], "a.example.com", 443, ALLOW),
        (&["Network(*.example.com)"], "example.com", 443, ASK),
        (&["Network(npm)"], "registry.npmjs.org", 443, ALLOW),
        (&["Network(npm)"], "example.com", 443, ASK),
        (&["Network"], "example.com", 22, ALLOW),
        (&["WebFetch"], "example.com", 443, ASK),
        (&["WebFetch(domain:example.com)"], "example.com", 443, ASK),
        // A private place needs approval, whatever wider rules say.
        (&["Network", "Network(localhost)"], "localhost", 443, ASK),
        (&["Network(10.0.0.1)"], "10.0.0.1", 443, ASK),
        // Except by a rule that names host and port; metadata services remain denied.
        (&["Network(10.0.0.1:443)"], "10.0.0.1", 443, ALLOW),
        (&["Network(10.0.0.1:443)"], "10.0.0.1", 8443, ASK),
        (&["Network(localhost:5432)"], "localhost", 5432, ALLOW),
        (
            &["Network(169.254.169.254:80)"],
            "169.254.169.254",
            80,
            DENY,
        ),
        (&[], "[fd00:ec2::254]", 80, DENY),
        (&[], "metadata.google.internal", 80, DENY),
        (&["Network(metadata.goog:80)"], "metadata.goog", 80, DENY),
        (&[], "168.63.129.16", 80, DENY),
        (&[], "[fe80::1]", 80, DENY),
    ] {
        let ruling = judge(allow(rules), &connection(host, port));
        assert_eq!(ruling.verdict, expect, "{rules:?} {host}:{port}");
    }
    for (deny, host, port, expect) in [
        (&["Network(example.com)"][..], "example.com", 8443, DENY),
        (&["Network(example.com:22)"], "example.com", 443, ALLOW),
        (&["Network(*.example.com)"], "a.example.com", 443, DENY),
        (&["Network(github)"], "github.com", 22, DENY),
    ] {
        let lists = Lists {
            deny,
            allow: &["Network(*)", "Network(example.com:8443)"],
            ..Lists::default()
        };
        let ruling = judge(lists, &connection(host, port));
        assert_eq!(ruling.verdict, expect, "deny {deny:?} {host}:{port}");
    }
    // Nor do these rules apply to what the web tools fetch.
    let ruling = judge(allow(&["Network"]), &fetch("example.com"));
    assert_eq!(ruling.verdict, ASK);
}

#[test]
fn n8_a_wider_rule_does_not_take_the_place_of_the_rule_for_a_private_place() {
    let allow = |rules: &'static [&'static str]| Lists {
        allow: rules,
        ..Lists::default()
    };
    // Before it or after it.
    for rules in [
        &["fetch_url", "WebFetch(domain:127.0.0.1:8080)"][..],
        &["WebFetch(domain:127.0.0.1:8080)", "*", "fetch_url"],
        &["WebFetch", "WebFetch(domain:127.0.0.1:8080)"],
    ] {
        let fetched = judge(allow(rules), &fetch("127.0.0.1:8080"));
        assert_eq!(fetched.verdict, ALLOW, "{rules:?}");
        let fetched = judge(allow(rules), &fetch("127.0.0.1:8081"));
        assert_eq!(fetched.verdict, DENY, "{rules:?}");
    }
}

#[test]
fn a_public_name_that_leads_to_a_private_address_needs_more_than_a_rule_for_the_name() {
    let private = "Network(private:registry.example.com:8443)";
    for (rules, leads_to, expect) in [
        (&["Network(registry.example.com:8443)"][..], &[][..], ALLOW),
        // The name was public when the rule was saved, and now is not.
        (
            &["Network(registry.example.com:8443)", "Network"],
            &["10.0.0.7"],
            ASK,
        ),
        (&[private], &["10.0.0.7"], ALLOW),
        (&[private], &["10.0.0.7", "fd12::7"], ALLOW),
        (&[private], &[], ALLOW),
        (&[private], &["169.254.169.254"], DENY),
        (&[private], &["10.0.0.7", "fd00:ec2::254"], DENY),
        (&[], &["168.63.129.16"], DENY),
    ] {
        let lists = Lists {
            allow: rules,
            ..Lists::default()
        };
        let scene = connection_to("registry.example.com", 8443, leads_to);
        let ruling = judge(lists, &scene);
        assert_eq!(ruling.verdict, expect, "{rules:?} {leads_to:?}");
    }
    let denied = Lists {
        deny: &["Network(*.example.com)"],
        allow: &[private],
        ..Lists::default()
    };
    let scene = connection_to("registry.example.com", 8443, &["10.0.0.7"]);
    assert_eq!(judge(denied, &scene).verdict, DENY);
}

#[test]
fn the_rule_that_is_offered_for_a_private_place_opens_just_this_place() {
    for (host, leads_to, rule) in [
        ("10.0.0.7", &[][..], "Network(10.0.0.7:443)"),
        ("localhost", &[], "Network(localhost:443)"),
        ("registry.internal", &[], "Network(registry.internal:443)"),
        (
            "registry.example.com",
            &["10.0.0.7"],
            "Network(private:registry.example.com:443)",
        ),
    ] {
        let mut scene = connection_to(host, 443, leads_to);
        scene.permissions[0].risk = Risk::Critical;
        let policy = policy(Profile::Workspace, Lists::default());
        assert_eq!(policy.suggest(&scene.call()), [rule]);
        let ruling = policy.judge(&scene.call());
        assert_eq!(ruling.verdict, ASK);
        assert!(ruling.reason.contains("private"), "{}", ruling.reason);
        assert!(ruling.operator.contains(rule), "{}", ruling.operator);
    }
    let scene = connection("169.254.169.254", 80);
    let policy = policy(Profile::Workspace, Lists::default());
    assert_eq!(policy.suggest(&scene.call()), Vec::<String>::new());
}

#[test]
fn hosts_of_a_bundle_that_are_asked_about_together_are_allowed_by_one_rule() {
    let mut scene = connection("pypi.org", 443);
    let other = connection("files.pythonhosted.org", 443).permissions;
    scene.permissions.extend(other);
    let policy = policy(Profile::Workspace, Lists::default());
    assert_eq!(policy.suggest(&scene.call()), ["Network(pypi)"]);
}

#[test]
fn use_11_a_rule_that_names_host_and_port_opens_a_server_of_this_machine() {
    let at = |place: &str| {
        let url = format!("http://{place}/x");
        let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
        let effect = Effect::connect(url.clone(), host);
        let risk = Risk::High;
        tool(
            "fetch_url",
            Risk::High,
            &json!({ "url": url }),
            vec![Permission { effect, risk }],
        )
    };
    let rule = ["WebFetch(domain:localhost:3000)"];
    for (allow, ask, place, expect) in [
        (&rule[..], &[][..], "localhost:3000", ALLOW),
        (&[], &rule[..], "localhost:3000", ASK),
        (&rule, &[], "localhost:3001", DENY),
        (&rule, &[], "127.0.0.1:3000", DENY),
        (&["WebFetch"], &[], "localhost:3000", DENY),
        (&["WebFetch(domain:localhost)"], &[], "localhost:3000", DENY),
        (&["WebFetch(domain:[::1]:3000)"], &[], "[::1]:3000", ALLOW),
        (
            &["WebFetch(domain:*.internal:80)"],
            &[],
            "a.internal:80",
            DENY,
        ),
    ] {
        let lists = Lists {
            ask,
            allow,
            ..Lists::default()
        };
        assert_eq!(
            judge(lists, &at(place)).verdict,
            expect,
            "{allow:?} {ask:?} {place}"
        );
    }
    let denied = Lists {
        deny: &["WebFetch"],
        allow: &rule,
        ..Lists::default()
    };
    assert_eq!(judge(denied, &at("localhost:3000")).verdict, DENY);
}

#[test]
fn profiles_ask_about_connections_or_deny_them() {
    for (profile, expect) in [
        (Profile::ReadOnly, DENY),
        (Profile::Workspace, ASK),
        (Profile::Trusted, ASK),
    ] {
        let scene = connection("example.com", 443);
        let judged = policy(profile, Lists::default()).judge(&scene.call());
        assert_eq!(judged.verdict, expect, "{profile}");
    }
}

#[test]
fn the_rule_that_is_offered_names_host_and_port() {
    for (host, port, rule) in [
        ("example.com", 443, "Network(example.com)"),
        ("example.com", 80, "Network(example.com)"),
        ("example.com", 8443, "Network(example.com:8443)"),
    ] {
        let scene = connection(host, port);
        let policy = policy(Profile::Workspace, Lists::default());
        assert_eq!(policy.suggest(&scene.call()), [rule]);
        let ruling = policy.judge(&scene.call());
        assert!(ruling.operator.contains(rule), "{}", ruling.operator);
    }
}

#[test]
fn a_rule_that_names_no_host_says_which_form_works() {
    for wrong in [
        "Network(https://example.com/)",
        "Network(domain:example.com)",
    ] {
        let lists = Lists {
            deny: &[wrong],
            ..Lists::default()
        };
        let findings = builder(Profile::Workspace, lists.set()).build();
        let text = format!("{findings:?}");
        assert!(text.contains("Network(example.com"), "{wrong}: {text}");
    }
}

#[test]
fn a_host_without_a_port_is_the_usual_one_in_an_allow_and_every_one_in_a_deny() {
    let (plain, below, port) = (
        "WebFetch(domain:example.com)",
        "WebFetch(domain:*.example.com)",
        "WebFetch(domain:example.com:8443)",
    );
    for (rule, host, allowed, denied) in [
        (plain, "example.com", ALLOW, DENY),
        (plain, "example.com:443", ALLOW, DENY),
        (plain, "example.com:8443", ASK, DENY),
        // The default port of another scheme.
        (plain, "example.com:80", ASK, DENY),
        (below, "a.example.com", ALLOW, DENY),
        (below, "a.example.com:8443", ASK, DENY),
        (port, "example.com:8443", ALLOW, DENY),
        (port, "example.com", ASK, ASK),
        ("WebFetch", "example.com:8443", ALLOW, DENY),
    ] {
        let list = [rule];
        let allow = Lists {
            allow: &list,
            ..Lists::default()
        };
        let deny = Lists {
            deny: &list,
            ..Lists::default()
        };
        assert_eq!(judge(allow, &fetch(host)).verdict, allowed, "{rule} {host}");
        assert_eq!(judge(deny, &fetch(host)).verdict, denied, "{rule} {host}");
    }
}
