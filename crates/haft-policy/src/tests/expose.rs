//! `Expose` rules: the ports of a run's servers that may be opened to this machine.

use serde_json::json;

use super::*;
use haft_types::permission::EXPOSE_EFFECT;

fn exposing(port: u16) -> Scene {
    let permission = Permission {
        effect: Effect::Other {
            kind: EXPOSE_EFFECT.to_owned(),
            value: port.to_string(),
        },
        risk: Risk::Critical,
    };
    tool(
        "expose_port",
        Risk::Safe,
        &json!({ "port": port }),
        vec![permission],
    )
}

#[test]
fn a_port_is_opened_by_a_rule_that_names_it_and_asked_about_otherwise() {
    for (allow, deny, port, expect) in [
        (&[][..], &[][..], 3000, ASK),
        (&["Expose(3000)"], &[], 3000, ALLOW),
        (&["Expose(3000)"], &[], 3001, ASK),
        (&["Expose(3000)"], &[], 30_000, ASK),
        (&["Expose"], &[], 3001, ALLOW),
        (&["Expose(*)"], &[], 3001, ALLOW),
        (&["expose_port(port:3000)"], &[], 3000, ALLOW),
        (&["Bash", "Network", "Edit"], &[], 3000, ASK),
        (&["Expose"], &["Expose(3000)"], 3000, DENY),
        (&["Expose"], &["Expose(3000)"], 3001, ALLOW),
        (&["Expose(3000)"], &["Expose"], 3000, DENY),
    ] {
        let lists = Lists {
            deny,
            allow,
            ..Lists::default()
        };
        for profile in [Profile::Workspace, Profile::Trusted] {
            let ruling = policy(profile, lists).judge(&exposing(port).call());
            assert_eq!(
                ruling.verdict, expect,
                "{allow:?} {deny:?} {port} {profile:?}"
            );
        }
    }
    let ruling = policy(Profile::ReadOnly, Lists::default()).judge(&exposing(3000).call());
    assert_eq!(ruling.verdict, DENY);
}

#[test]
fn a_rule_for_no_port_never_matches_and_says_so() {
    let classes = CLASSES.into_iter().collect();
    let secrets = haft_files::secret_names::SecretNames::default();
    for rule in [
        "Expose(http)",
        "Expose(03000)",
        "Expose(70000)",
        "Expose(3000-3010)",
        "Expose(-1)",
    ] {
        let said = crate::explain::proposal::refuse_proposal(rule, &classes, &secrets);
        assert!(
            said.is_some_and(|said| said.contains("is not a port")),
            "{rule}"
        );
    }
    // A model proposes none: what answers would be its own.
    assert!(
        crate::explain::proposal::refuse_proposal("Expose(3000)", &classes, &secrets).is_some()
    );
}
