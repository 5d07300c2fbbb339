//! `haft policy`: shows the effective policy, explains how a call is judged, tests the rules' own examples.

use std::fmt::Write as _;

use haft::permission::Verdict;
use haft::policy::{CheckReport, Explanation, LayerVerdict};
use haft_app::app::App;
use haft_app::config::Settings;
use haft_app::policy_diff;
use haft_app::problem::Problem;
use haft_app::rules::RuleChange;
use haft_app::view::policy;
use haft_app::view::policy::rules::{RuleMark, RuleMarkCause, ShownRule};

use crate::args::{CallArguments, PolicyAction, PolicyDiffArguments, RulesAction};
use crate::commands::{ExitResult, arguments};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::list::{TextTable, Truncation};
use crate::screen::{BOLD, DIM, GREEN, RED, YELLOW, styled, visible};

/// Shows the policy.
pub(crate) async fn show(at: &Invocation, app: &App) -> ExitResult {
    let mut shown = policy::overview(app);
    if let Err(problem) = policy::count(app, &mut shown).await {
        at.screen.problem(&problem);
    }
    if at.screen.json {
        at.screen.document(&shown)?;
        return Ok(Exit::Done);
    }
    let mut out = format!("profile {}\n", styled(BOLD, shown.profile.as_str()));
    if !shown.rules.is_empty() {
        out.push_str(&render_rules(&shown.rules));
    }
    let guards: Vec<&str> = shown
        .guards
        .iter()
        .map(|guard| guard.name.as_str())
        .collect();
    let _ = writeln!(out, "guards {}", guards.join(", "));
    let _ = writeln!(out, "secret files {}", shown.secret_files.as_str());
    let _ = writeln!(
        out,
        "commands need {} (sandbox.require), network {}",
        app.sandbox().config().require.meaning(),
        shown.sandbox.network
    );
    for skill in &shown.skills {
        let _ = writeln!(out, "{}", visible::line(&skill.to_line()));
    }
    at.screen.out(&out)?;
    warn_of_dead_rules(at, &shown.rules);
    Ok(Exit::Done)
}

fn render_rules(rules: &[ShownRule]) -> String {
    let mut list = TextTable::new(&[
        ("LIST", Truncation::Never),
        ("RULE", Truncation::Middle),
        ("FROM", Truncation::Never),
        ("DECIDED", Truncation::Never),
        ("", Truncation::Never),
    ]);
    for shown in rules {
        let rule = &shown.rule;
        let decided = shown.matched.map(|count| count.to_string());
        list.row([
            &rule.list.to_string(),
            &rule.rule,
            &rule.layer,
            decided.as_deref().unwrap_or_default(),
            shown.dead.as_ref().map_or("", |mark| mark.cause.as_str()),
        ]);
    }
    list.render()
}

/// Explains why rules have no effect. Names that no server has were already reported at the start; rules that were only not used
/// lately are marked in the list alone.
fn warn_of_dead_rules(at: &Invocation, rules: &[ShownRule]) {
    let is_new = |mark: &&RuleMark| {
        !matches!(
            mark.cause,
            RuleMarkCause::Unused | RuleMarkCause::UnknownTool
        )
    };
    for shown in rules {
        let Some(mark) = shown.dead.as_ref().filter(is_new) else {
            continue;
        };
        let (list, rule) = (shown.rule.list, &shown.rule.rule);
        let text = match mark.cause {
            RuleMarkCause::NeverMatches => {
                format!("{rule} never matches: {}; {}", mark.problem, mark.advice)
            }
            _ => format!(
                "the {list} rule {rule} decides nothing: {}; {}",
                mark.problem, mark.advice
            ),
        };
        at.screen.warn(&visible::line(&text));
    }
}

/// Explains one call; the verdict does not change the exit code.
pub(crate) fn explain(at: &Invocation, app: &App, tool: &str, typed: &CallArguments) -> ExitResult {
    let text = {
        let tools = app.tools().snapshot();
        let entry = tools.entry(tool);
        arguments::of_call(typed, entry.map(|entry| &*entry.spec().input_schema))?
    };
    let explanation = policy::explain(app, tool, &text)?;
    if at.screen.json {
        at.screen.document(&explanation)?;
    } else {
        at.screen.out(&render_explanation(&explanation))?;
    }
    Ok(Exit::Done)
}

fn colored(verdict: Verdict) -> String {
    let style = match verdict {
        Verdict::Allow => GREEN,
        Verdict::Ask => YELLOW,
        Verdict::Deny => RED,
    };
    styled(style, verdict.as_str())
}

fn render_explanation(explanation: &Explanation) -> String {
    let tool = visible::line(&explanation.tool);
    let mut out = format!("{} {tool}\n", colored(explanation.verdict));
    if explanation.enabled == Some(false) {
        out.push_str("  the tool is off: callers do not know it\n");
    }
    let mut parts = TextTable::new(&[
        ("EFFECT", Truncation::Never),
        ("OF", Truncation::Middle),
        ("VERDICT", Truncation::Never),
        ("BY", Truncation::Middle),
        ("FROM", Truncation::Never),
    ]);
    for part in &explanation.parts {
        parts.row([
            &part.kind,
            &part.value,
            part.verdict.as_str(),
            &part.rule,
            &part.layer,
        ]);
    }
    out.push_str(&parts.render());
    for part in &explanation.parts {
        if let Some(does) = &part.does {
            let command = visible::line(&part.value);
            let _ = writeln!(out, "  {command}: {}", visible::line(does));
        }
    }
    // A guard that allows a call without a reason decides nothing: the number of such guards is enough.
    let passes = |layer: &&LayerVerdict| {
        layer.layer == "guard"
            && layer.verdict == Some(Verdict::Allow)
            && layer.reason.to_string().is_empty()
    };
    for layer in explanation.layers.iter().filter(|layer| !passes(layer)) {
        let verdict = layer.verdict.map_or("–", Verdict::as_str);
        let line = format!(
            "  {}: {verdict} {} {}",
            layer.layer, layer.rule, layer.reason
        );
        out.push_str(&styled(DIM, visible::line(&line).trim_end()));
        out.push('\n');
    }
    let passing = explanation.layers.iter().filter(passes).count();
    if passing > 0 {
        let line = format!("  guards that let it pass: {passing} (named with --json)");
        out.push_str(&styled(DIM, &line));
        out.push('\n');
    }
    out
}

/// Tests the rules' own examples and looks for rules that never match; needs no application, because wrong rules would prevent its assembly.
pub(crate) fn check(at: &Invocation, settings: &Settings) -> ExitResult {
    let check = policy::check(&at.site, settings)?;
    for warning in &check.warnings {
        at.screen.warn(&visible::line(warning));
    }
    if at.screen.json {
        at.screen.document(&check.report)?;
    } else {
        at.screen.out(&render_check(&check.report))?;
    }
    if let Some(fault) = check.fault {
        return Err(fault);
    }
    Ok(if check.report.ok {
        Exit::Done
    } else {
        Exit::Settings
    })
}

fn render_check(report: &CheckReport) -> String {
    if report.ok {
        return format!("{} every rule can match\n", styled(GREEN, "ok"));
    }
    let mut out = String::new();
    for failure in &report.failures {
        let rule = visible::line(&failure.rule);
        let (expected, got) = (
            visible::line(&failure.expected),
            visible::line(&failure.got),
        );
        let wrong = styled(RED, "wrong");
        let _ = match failure.example.as_str() {
            // The fault names the right word already.
            "" if got.contains(&expected) => writeln!(out, "{wrong} {rule}: {got}"),
            "" => writeln!(out, "{wrong} {rule}: {got}; {expected}"),
            example => writeln!(
                out,
                "{wrong} {rule} on {}: expected {expected}, got {got}",
                visible::line(example)
            ),
        };
    }
    out
}

/// Lists and changes the rules kept with approvals.
fn rules(at: &Invocation, app: &App, action: Option<&RulesAction>) -> ExitResult {
    let (change, id) = match action {
        None | Some(RulesAction::List) => return list_rules(at, app),
        Some(RulesAction::Remove { id }) => (RuleChange::Remove, id),
        Some(RulesAction::Edit { id, rule, any_call }) => {
            let any_call = *any_call;
            (RuleChange::Edit { rule, any_call }, id)
        }
    };
    let old = app.change_rule(id, change)?;
    if at.screen.json {
        at.screen.document(&old)?;
        return Ok(Exit::Done);
    }
    let rule = visible::line(&old.rule);
    at.screen.say(&match change {
        RuleChange::Remove => {
            format!("removed {rule}: haft asks again about the calls that it covered")
        }
        RuleChange::Edit { rule: new, .. } => format!("{rule} is now {}", visible::line(new)),
    });
    Ok(Exit::Done)
}

fn list_rules(at: &Invocation, app: &App) -> ExitResult {
    let rules = app.kept_rules()?;
    if at.screen.json {
        at.screen.document(&rules)?;
        return Ok(Exit::Done);
    }
    if rules.is_empty() {
        at.screen.say("approvals saved no rules in this workspace");
        return Ok(Exit::Done);
    }
    let mut list = TextTable::new(&[
        ("ID", Truncation::Never),
        ("RULE", Truncation::Middle),
        ("FOR", Truncation::Never),
        ("WHY", Truncation::Middle),
    ]);
    for rule in &rules {
        let calls = rule.tool.as_deref().map_or_else(
            || "any call".to_owned(),
            |tool| format!("calls of {tool} like the one approved"),
        );
        let (calls, why) = match &rule.fault {
            Some(fault) => ("nothing: it does not load".to_owned(), fault.as_str()),
            None => (calls, rule.reason.as_deref().unwrap_or_default()),
        };
        list.row([&rule.id, &rule.rule, &calls, why]);
    }
    at.screen.out(&list.render())?;
    Ok(Exit::Done)
}

/// Shows what a change lets through. Exits with 1 if that is anything, or may be.
async fn diff(at: &Invocation, app: &App, named: &PolicyDiffArguments) -> ExitResult {
    let found = match (&named.kept, &named.old, &named.new) {
        (Some(id), ..) => policy_diff::of_kept_rule(app, id).await,
        (None, Some(old), Some(new)) => policy_diff::of_files(app, old, new).await,
        (None, ..) => Err(Problem::usage("name two settings files, or --kept ID")),
    };
    // What cannot be compared is neither looser nor not: every problem has the same exit code.
    let found = match found {
        Ok(found) => found,
        Err(problem) => {
            at.screen.problem(&problem.redacted(app.redactor()));
            return Ok(Exit::Usage);
        }
    };
    if at.screen.json {
        at.screen.document(&found)?;
    } else {
        let lines = found.to_lines();
        let lines = lines
            .iter()
            .map(|line| visible::line(&app.redactor().redact(line)) + "\n");
        at.screen.out(&lines.collect::<String>())?;
    }
    Ok(if found.looser {
        Exit::Failed
    } else {
        Exit::Done
    })
}

/// Runs the action; `show` if none is given.
pub(crate) async fn run(at: &Invocation, app: &App, action: Option<&PolicyAction>) -> ExitResult {
    match action {
        Some(PolicyAction::Explain { tool, arguments }) => explain(at, app, tool, arguments),
        Some(PolicyAction::Diff(named)) => diff(at, app, named).await,
        Some(PolicyAction::Rules { action }) => rules(at, app, action.as_ref()),
        None | Some(PolicyAction::Show | PolicyAction::Check) => show(at, app).await,
    }
}
