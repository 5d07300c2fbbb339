//! `Network` rules: the hosts that commands connect to.

use serde_json::json;

use super::*;

/// A connection of a command.
fn connection(host: &str, port: u16) -> Scene {
    let permission = Permission {
        effect: Effect::Connect {
            url: format!("{host}:{port}"),
            host: host.to_owned(),
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
        // No rule lifts the guard.
        (&["Network", "Network(localhost)"], "localhost", 443, DENY),
        (&["Network(10.0.0.1)"], "10.0.0.1", 443, DENY),
        // Save one that names host and port; metadata services stay out of reach.
        (&["Network(10.0.0.1:443)"], "10.0.0.1", 443, ALLOW),
        (&["Network(10.0.0.1:443)"], "10.0.0.1", 8443, DENY),
        (&["Network(localhost:5432)"], "localhost", 5432, ALLOW),
        (
            &["Network(169.254.169.254:80)"],
            "169.254.169.254",
            80,
            DENY,
        ),
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
    // Nor do they speak of what the web tools fetch.
    let ruling = judge(allow(&["Network"]), &fetch("example.com"));
    assert_eq!(ruling.verdict, ASK);
}

#[test]
fn use_11_a_rule_that_names_host_and_port_opens_a_server_of_this_machine() {
    let at = |place: &str| {
        let url = format!("http://{place}/x");
        let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
        let effect = Effect::Connect {
            url: url.clone(),
            host: host.to_owned(),
        };
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
fn the_rule_that_is_offered_names_host_and_unusual_port() {
    for (host, port, rule) in [
        ("example.com", 443, "Network(example.com)"),
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
