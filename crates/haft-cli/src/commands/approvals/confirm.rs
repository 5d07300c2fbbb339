//! Shows a request and asks for confirmation at the terminal before a decision counts.

use std::io::{self, BufRead};

use haft::approval::inbox::StoredApproval;
use haft::approval::{ApprovalRequest, ApprovalScope, Choice};
use haft::spec::Risk;

use crate::invocation::is_interactive;
use crate::screen::{BOLD, Screen, styled, visible};
use haft_app::problem::Problem;
use haft_app::view::coverage::coverage;

/// Shows the request if a user can see it. A critical call needs its name typed, and a rule to be kept a yes;
/// `yes` replaces both. Without a terminal, only that option approves a critical call.
pub(super) fn confirm(
    screen: Screen,
    facts: &[String],
    entry: &StoredApproval,
    choice: &Choice,
    yes: bool,
) -> Result<(), Problem> {
    let request = &entry.request;
    let there = is_interactive();
    if there {
        for line in facts {
            screen.err(line);
        }
    }
    let Choice::Approve {
        scope,
        edited,
        rule,
    } = choice
    else {
        return Ok(());
    };
    if let Some(edited) = edited.as_deref().filter(|_| there) {
        screen.err(&format!("runs with {} instead", visible::line(edited)));
    }
    if request.risk == Risk::Critical && !yes {
        critical(screen, request, there)?;
    }
    if *scope == ApprovalScope::Always {
        return keeps(screen, request, rule.as_deref(), there && !yes);
    }
    Ok(())
}

fn critical(screen: Screen, request: &ApprovalRequest, there: bool) -> Result<(), Problem> {
    if !there {
        let what = format!("{} is critical", request.tool);
        return Err(Problem::usage(what)
            .advise("approve it at a terminal or in the console, or add --yes in a script"));
    }
    let tool = request.tool.as_str();
    screen.err(&format!("type {} to run it:", styled(BOLD, tool)));
    if typed()?.trim() == tool {
        Ok(())
    } else {
        Err(undecided())
    }
}

/// Shows the rules that would be kept, and asks about them if a user can answer.
fn keeps(
    screen: Screen,
    request: &ApprovalRequest,
    rule: Option<&str>,
    asks: bool,
) -> Result<(), Problem> {
    for kept in request.kept_rules(rule) {
        let only = match &kept.tool {
            Some(tool) => format!(" (for {tool} with the same remaining arguments)"),
            None => String::new(),
        };
        let text = styled(BOLD, &visible::line(&kept.rule));
        screen.err(&format!("keeps for this workspace: {text}{only}"));
        if let Some(covers) = coverage(&kept.rule) {
            screen.err(&format!("  {}", visible::line(&covers)));
        }
    }
    if !asks {
        return Ok(());
    }
    screen.err("keep it? [y/N]");
    match typed()?.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(undecided()),
    }
}

fn typed() -> Result<String, Problem> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|e| Problem::failed(format!("cannot read the answer: {e}")))?;
    Ok(line)
}

fn undecided() -> Problem {
    Problem::usage("not approved").advise("nothing was decided: the request is still pending")
}
