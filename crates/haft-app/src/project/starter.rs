//! The haft.toml that `haft init` writes: small, tailored to the folder, with every line explained.

use std::fmt::Write as _;

use crate::project::{FittingRule, Project};

/// Returns the text of the file for a folder with this project.
pub fn text(project: &Project) -> String {
    let mut out = String::from(
        "# haft's settings for this folder. They apply while the folder is trusted; `haft trust --remove` revokes the trust.\n\
         # `haft policy show` prints the rules in force, `haft config show` all settings, `haft config explain KEY` one.\n\
         \n\
         [policy]\n\
         # Where no rule below decides: reading runs; writing and the network need approval; a command runs in the jail, on a copy\n\
         # of this folder, and needs approval only for what it changed. Other profiles: \"read-only\" (stricter), \"trusted\" (looser).\n\
         profile = \"workspace\"\n",
    );
    let allow = "# Commands that run without approval, in the jail; what they change here is applied. Each host that\n\
                 # one connects to is asked about unless a Network rule allows it.\n\
                 # Each rule is the whole command: with other arguments it is judged by what it changed. ` *` at the end would let in any\n\
                 # arguments, and with some of them many tools start any program. `haft runs undo RUN` takes changes back.\n";
    if project.allow.is_empty() {
        let _ = write!(
            out,
            "\n{allow}# allow = [\"Bash(make test)\"]          # for example\n"
        );
    } else {
        list(&mut out, allow, "allow", &project.allow);
    }
    let ask = "# Commands that need approval before they run, whatever else allows them.\n";
    if !project.ask.is_empty() {
        list(&mut out, ask, "ask", &project.ask);
    }
    out.push_str(
        "\n# Calls that never run; nothing overrides these.\n\
         # deny = [\"Read(/secrets/**)\"]         # for example: no tool reads that folder\n",
    );
    out
}

fn list(out: &mut String, about: &str, key: &str, rules: &[FittingRule]) {
    let width = rules.iter().map(|rule| rule.rule.len()).max().unwrap_or(0) + 4;
    let _ = writeln!(out, "\n{about}{key} = [");
    for FittingRule { rule, why } in rules {
        // Every JSON string is a TOML string.
        let quoted = format!("{},", serde_json::Value::String(rule.clone()));
        let _ = writeln!(out, "    {quoted:<width$}# {why}");
    }
    out.push_str("]\n");
}
