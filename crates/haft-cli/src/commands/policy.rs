//! `haft policy`: the effective policy, why a call is judged as it is, the rules' own examples as tests.

use std::fmt::Write as _;

use haft::error::ErrorKind;
use haft::permission::Verdict;
use haft::policy::{CheckReport, Explanation, Failure, Layer, PolicyView};
use haft::skill::Skill;
use haft::toolset::Toolset;
use serde::Serialize;

use crate::args::PolicyAction;
use crate::assemble::{House, names, written};
use crate::commands::{Done, arguments};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::problem::Problem;
use crate::screen::list::{Cut, List};
use crate::screen::{BOLD, DIM, GREEN, RED, YELLOW, styled, visible};
use crate::settings::Settings;

/// The effective policy with the limits that settings put beside it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    view: PolicyView,
    /// The floor under commands.
    sandbox: Floor,
    /// The skills that ask for rules or narrow the run they are loaded into. They grant nothing.
    skills: Vec<Asking>,
}

/// What a skill says of tools.
#[derive(Debug, Serialize)]
struct Asking {
    name: String,
    /// Rules it asks for; shown, never granted.
    requests: Vec<String>,
    /// The only rules a call may fall under while it is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    restricts_to: Option<Vec<String>>,
    /// Rules no call may fall under while it is active.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    excludes: Vec<String>,
}

impl Asking {
    fn of(skill: &Skill) -> Option<Self> {
        let (only, excludes) = (skill.restricts_to(), skill.excludes());
        let silent = skill.requests().is_empty() && only.is_none() && excludes.is_empty();
        (!silent).then(|| Self {
            name: skill.name().to_owned(),
            requests: skill.requests().to_vec(),
            restricts_to: only.map(<[String]>::to_vec),
            excludes: excludes.to_vec(),
        })
    }

    /// In a line.
    fn told(&self) -> String {
        let mut parts = Vec::new();
        if !self.requests.is_empty() {
            parts.push(format!(
                "asks for {} (grants nothing)",
                self.requests.join(", ")
            ));
        }
        if let Some(only) = &self.restricts_to {
            let only = if only.is_empty() {
                "no tool".to_owned()
            } else {
                only.join(", ")
            };
            parts.push(format!("limits itself to {only}"));
        }
        if !self.excludes.is_empty() {
            parts.push(format!("does without {}", self.excludes.join(", ")));
        }
        format!("skill {} {}", self.name, parts.join("; "))
    }
}

#[derive(Debug, Serialize)]
struct Floor {
    require: &'static str,
    network: &'static str,
}

/// The policy that is in force in this house.
pub(crate) fn shown(house: &House) -> Shown {
    Shown {
        view: house.executor().policy().view(),
        sandbox: Floor {
            require: house.sandbox().config().require.word(),
            network: house.network().word(),
        },
        skills: house
            .skill_tools()
            .skills()
            .iter()
            .filter_map(Asking::of)
            .collect(),
    }
}

/// Shows it.
pub(crate) fn show(at: &Invocation, house: &House) -> Done {
    let shown = shown(house);
    if at.screen.json {
        at.screen.document(&shown)?;
        return Ok(Exit::Done);
    }
    let view = &shown.view;
    let mut out = format!("profile {}\n", styled(BOLD, view.profile.as_str()));
    if !view.rules.is_empty() {
        let mut list = List::new(&[
            ("LIST", Cut::Never),
            ("RULE", Cut::Middle),
            ("FROM", Cut::Never),
        ]);
        for rule in &view.rules {
            list.row([&rule.list.to_string(), &rule.rule, &rule.layer]);
        }
        out.push_str(&list.render());
    }
    let guards: Vec<&str> = view
        .guards
        .iter()
        .map(|guard| guard.name.as_str())
        .collect();
    let _ = writeln!(out, "guards {}", guards.join(", "));
    let _ = writeln!(
        out,
        "sandbox at least {}, network {}",
        shown.sandbox.require, shown.sandbox.network
    );
    for skill in &shown.skills {
        let _ = writeln!(out, "{}", visible::line(&skill.told()));
    }
    at.screen.out(&out)?;
    warn_of_idle_rules(at, view);
    Ok(Exit::Done)
}

fn warn_of_idle_rules(at: &Invocation, view: &PolicyView) {
    for finding in &view.findings {
        let text = format!(
            "{} never matches: {}; {}",
            finding.rule, finding.problem, finding.advice
        );
        at.screen.warn(&visible::line(&text));
    }
}

/// Explains one call; the verdict does not change the exit code.
pub(crate) fn explain(at: &Invocation, house: &House, tool: &str, args: &str) -> Done {
    let explanation = explained(house, tool, &arguments::read(args)?)?;
    if at.screen.json {
        at.screen.document(&explanation)?;
    } else {
        at.screen.out(&told(&explanation))?;
    }
    Ok(Exit::Done)
}

/// Why a call would be allowed, asked about or denied.
pub(crate) fn explained(
    house: &House,
    tool: &str,
    arguments: &str,
) -> Result<Explanation, Problem> {
    let (shown, all) = (house.tools().snapshot(), house.all().snapshot());
    let on = shown.entry(tool);
    let Some(entry) = on.or_else(|| all.entry(tool)) else {
        let problem = Problem::usage(format!("no tool `{tool}`"));
        return Err(match shown.nearest(tool).first() {
            Some(near) => problem.advise(format!("did you mean `{near}`?")),
            None => problem.advise("`haft tools` lists them"),
        });
    };
    let mut explanation = house
        .executor()
        .explain(entry, arguments)
        .map_err(|failure| {
            let exit = match failure.kind {
                ErrorKind::InvalidArguments | ErrorKind::NotFound => Exit::Usage,
                ErrorKind::Denied => Exit::Denied,
                _ => Exit::Failed,
            };
            let problem = Problem::new(exit, failure.message);
            match failure.advice {
                Some(advice) => problem.advise(advice),
                None => problem,
            }
        })?;
    if on.is_none() {
        explanation.enabled = Some(false);
    }
    let network = house.network();
    if network.word() != "none" && explanation.parts.iter().any(|part| part.kind == "run") {
        explanation.layers.push(Layer {
            layer: "sandbox".into(),
            verdict: None,
            rule: format!("sandbox.network = {}", network.word()).into(),
            reason: network.meaning().into(),
        });
    }
    for skill in house.skill_tools().skills() {
        let asked = house
            .executor()
            .asked_for(entry, arguments, skill.requests());
        explanation.layers.extend(asked.into_iter().map(|rule| {
            Layer {
                layer: "skill".into(),
                verdict: None,
                rule: rule.into(),
                reason: format!(
                    "the skill {} asks for it; asking grants nothing",
                    skill.name()
                )
                .into(),
            }
        }));
    }
    Ok(explanation)
}

fn colored(verdict: Verdict) -> String {
    let style = match verdict {
        Verdict::Allow => GREEN,
        Verdict::Ask => YELLOW,
        Verdict::Deny => RED,
    };
    styled(style, verdict.as_str())
}

fn told(explanation: &Explanation) -> String {
    let tool = visible::line(&explanation.tool);
    let mut out = format!("{} {tool}\n", colored(explanation.verdict));
    if explanation.enabled == Some(false) {
        out.push_str("  the tool is off: callers do not know it\n");
    }
    let mut parts = List::new(&[
        ("EFFECT", Cut::Never),
        ("OF", Cut::Middle),
        ("VERDICT", Cut::Never),
        ("BY", Cut::Middle),
        ("FROM", Cut::Never),
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
    for layer in &explanation.layers {
        let verdict = layer.verdict.map_or("–", Verdict::as_str);
        let line = format!(
            "  {}: {verdict} {} {}",
            layer.layer, layer.rule, layer.reason
        );
        out.push_str(&styled(DIM, visible::line(&line).trim_end()));
        out.push('\n');
    }
    out
}

/// Tests the rules' own examples; needs no parts, for wrong rules would stop them from being built.
pub(crate) fn check(at: &Invocation, settings: &Settings) -> Done {
    let written = written(at, settings)?;
    let mut report = written.rules.check(&written.places);
    let (unknown, fault) = match names(at, settings) {
        Ok(names) => (names.unknown, names.fault),
        // Rules that cannot be read are reported already, and hold no names.
        Err(_) if !report.ok => (Vec::new(), None),
        Err(problem) => return Err(problem),
    };
    for name in unknown {
        if name.of_server {
            at.screen.warn(&visible::line(&name.to_string()));
            continue;
        }
        report.ok = false;
        // That no tool has the name says more than that the rule never matches.
        report.failures.retain(|failure| failure.rule != name.rule);
        report.failures.push(Failure::from(name));
    }
    if at.screen.json {
        at.screen.document(&report)?;
    } else {
        at.screen.out(&said(&report))?;
    }
    if let Some(fault) = fault {
        return Err(fault);
    }
    Ok(if report.ok {
        Exit::Done
    } else {
        Exit::Settings
    })
}

fn said(report: &CheckReport) -> String {
    if report.ok {
        return format!("{} every rule holds\n", styled(GREEN, "ok"));
    }
    let mut out = String::new();
    for failure in &report.failures {
        let example = match failure.example.as_str() {
            "" => String::new(),
            example => format!(" on {}", visible::line(example)),
        };
        let rule = visible::line(&failure.rule);
        let (expected, got) = (
            visible::line(&failure.expected),
            visible::line(&failure.got),
        );
        let _ = writeln!(
            out,
            "{} {rule}{example}: expected {expected}, got {got}",
            styled(RED, "wrong")
        );
    }
    out
}

/// One of the three; `show` when none is named.
pub(crate) fn run(at: &Invocation, house: &House, action: Option<&PolicyAction>) -> Done {
    match action {
        Some(PolicyAction::Explain { tool, args }) => explain(at, house, tool, args),
        None | Some(PolicyAction::Show | PolicyAction::Check) => show(at, house),
    }
}
