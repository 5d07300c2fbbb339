//! Commands of an agent in the jail whose shell has another environment than haft's server: what a person decided holds for what runs.

use crate::harness::ended;
use crate::serve::Server;
use crate::signals::jailed;
use crate::wrapped::{decided, in_shell, lab};

/// Certificates that any program may read.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

#[test]
fn what_is_decided_holds_where_the_agents_environment_is_another_than_the_servers() {
    if !jailed(&lab("")) {
        return;
    }
    let refers = "[sandbox]\nenv = { GOT = \"${env:GIVEN}\" }\n";
    // What the settings refer to, the variable, what the server has of it, what the agent has, and what the command gets.
    let rows = [
        ("", "SSL_CERT_FILE", None, "own.pem", "$SSL_CERT_FILE"),
        (
            "",
            "REQUESTS_CA_BUNDLE",
            None,
            "own.pem",
            "$REQUESTS_CA_BUNDLE",
        ),
        (refers, "GIVEN", Some("old"), "agents-value", "$GOT"),
        (refers, "GIVEN", Some(""), "agents-value", "$GOT"),
    ];
    for (settings, name, of_server, of_agent, got) in rows {
        let row = format!("{name} {of_server:?} {of_agent}");
        let policy = "[policy]\nprofile = \"trusted\"\nask = [\"Bash(touch *)\"]\n";
        let mut lab = lab(&format!("{policy}{settings}"));
        if let Some(value) = of_server {
            lab.set(name, value);
        }
        let _server = Server::start(&lab, &[]);
        let value = if name == "GIVEN" {
            of_agent.to_owned()
        } else {
            let Ok(text) = std::fs::read(CERTIFICATES) else {
                eprintln!("skipped: no {CERTIFICATES}");
                return;
            };
            let own = lab.home().parent().unwrap().join(of_agent);
            std::fs::write(&own, text).unwrap();
            own.to_str().unwrap().to_owned()
        };
        lab.set(name, value);
        let line = format!("touch made.txt; [ -n \"{got}\" ] && echo \"{got}\"");
        let (verdict, run) = decided(&lab, &line, "approve");
        assert_eq!(verdict, "allow", "{row}: {run}");
        // The shell may have another one yet: the approval holds for nothing else, and the variable is named.
        let other = format!("export {name}=/etc/hostname; {run}");
        let ran = ended(lab.program("bash", &["-c", &other]).spawn().unwrap());
        assert_eq!(ran.code, 1, "{row}: {}", ran.stderr);
        let named = if name == "GIVEN" { "GOT" } else { name };
        assert!(ran.stderr.contains(named), "{row}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("another environment"),
            "{row}: {}",
            ran.stderr
        );
        assert!(
            !ran.stderr.contains(of_agent) || name != "GIVEN",
            "{row}: {}",
            ran.stderr
        );
        let (verdict, run) = decided(&lab, &line, "approve");
        assert_eq!(verdict, "allow", "{row}: {run}");
        let ran = in_shell(&lab, &run);
        assert_eq!(ran.code, 0, "{row}: {}", ran.stderr);
        assert!(!ran.stdout.trim().is_empty(), "{row}");
    }
}
