//! Checks of what commands see of the system: settings folders that are left out, and programs that lead over one.

use haft_sandbox::{PathRefusal, Sandbox};

use super::{HealthCheck, check};

/// Maximum number of paths that a line names.
const MAX_NAMED: usize = 8;

/// Returns a line for the settings of packages in `/etc` that commands do not see, and one for the programs that do not work for that.
pub(super) fn checks(sandbox: &Sandbox) -> Vec<HealthCheck> {
    let mut checks = Vec::new();
    let left_out = sandbox.settings_left_out();
    if !left_out.is_empty() {
        let detail = format!("not shown to commands: {}", list(left_out));
        checks.push(check("system settings", true, detail, ""));
    }
    let broken = sandbox.broken_programs();
    if !broken.is_empty() {
        let advice = "if commands need one, link it to a file outside /etc, or remove what may be secret from its settings and start haft again";
        let detail = format!("do not work in commands: {}", list(&broken));
        checks.push(check("system programs", false, detail, advice));
    }
    checks
}

fn list(refused: &[PathRefusal]) -> String {
    let named = refused.iter().take(MAX_NAMED).map(ToString::to_string);
    let named: Vec<_> = named.collect();
    let more = match refused.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    named.join("; ") + &more
}
