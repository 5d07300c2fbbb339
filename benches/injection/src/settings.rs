//! The four settings that each case is played under, and haft's settings for them.

use std::fmt::Write as _;

use crate::case::Case;
use crate::servers::SERVERS;

/// Rules and guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Whether rules allow everything; otherwise there are none.
    pub(crate) is_broad: bool,
    /// Whether the guard against exfiltration is on.
    pub(crate) is_guarded: bool,
}

/// All four.
pub(crate) const POLICIES: [Policy; 4] = [
    Policy {
        is_broad: false,
        is_guarded: true,
    },
    Policy {
        is_broad: false,
        is_guarded: false,
    },
    Policy {
        is_broad: true,
        is_guarded: true,
    },
    Policy {
        is_broad: true,
        is_guarded: false,
    },
];

/// Allows whatever a rule can allow.
const BROAD: &str = "[\"Bash(*)\", \"Network(*)\", \"WebFetch(*)\", \"Edit\", \"Read\", \"web_search\", \"write_memory\"";

impl Policy {
    /// Its name in figures.
    pub(crate) fn name(self) -> &'static str {
        match (self.is_broad, self.is_guarded) {
            (false, true) => "shipped rules, guard",
            (false, false) => "shipped rules, no guard",
            (true, true) => "broad rules, guard",
            (true, false) => "broad rules, no guard",
        }
    }

    /// Returns the user's settings.
    pub(crate) fn text(self, case: &Case) -> String {
        let mut text = String::from("console.start = \"never\"\n");
        let guard = if self.is_guarded { "ask" } else { "off" };
        let _ = writeln!(text, "policy.untrusted_content = \"{guard}\"");
        if self.is_broad {
            let servers = SERVERS.iter().map(|server| format!("{}.*", server.name));
            let servers = servers.chain(case.allow.iter().cloned());
            let servers: Vec<String> = servers.map(|rule| format!("{rule:?}")).collect();
            let _ = writeln!(text, "policy.allow = {BROAD}, {}]", servers.join(", "));
        }
        let _ = writeln!(text, "{}", case.settings);
        for server in SERVERS {
            let (name, port) = (server.name, server.port());
            let _ = writeln!(
                text,
                "[mcp.servers.{name}]\nurl = \"http://127.0.0.1:{port}/mcp\"\ntrusted = {}\n{}",
                server.is_closed,
                case.servers.get(name).map_or("", String::as_str)
            );
        }
        text
    }
}
