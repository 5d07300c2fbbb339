//! The effective policy, and why a call is judged as it is.

use haft::clock;
use haft::error::ErrorKind;
use haft::policy::{
    CheckReport, Explanation, Failure, Finding, GuardView, Layer, List, PolicyView, Profile,
    SecretFiles,
};
use haft::skill::Skill;
use haft::toolset::Toolset;
use serde::Serialize;

use crate::app::App;
use crate::config::{Settings, layer};
use crate::problem::{Problem, ProblemKind};
use crate::site::Site;
use crate::view::runs;
use crate::wiring::names::names;
use crate::wiring::policy::written;

pub mod rules;

use rules::ShownRule;

/// The effective policy with the limits that settings put beside it.
#[derive(Debug, Serialize)]
pub struct Overview {
    /// The profile.
    pub profile: Profile,
    /// The rules of all layers, in the order they are read; those that decide nothing are marked.
    pub rules: Vec<ShownRule>,
    /// What stands over the rules.
    pub guards: Vec<GuardView>,
    /// What becomes of calls on files that hold secrets by their names.
    pub secret_files: SecretFiles,
    /// Those names, the last that fits decides.
    pub secret_names: Vec<String>,
    /// Rules whose text matches nothing.
    pub findings: Vec<Finding>,
    /// How many recent calls were looked at to count what rules decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<usize>,
    /// When the oldest of them was: RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_since: Option<String>,
    /// The floor under commands.
    pub sandbox: MinimumVerdict,
    /// The skills that ask for rules or narrow the run they are loaded into. They grant nothing.
    pub skills: Vec<SkillRequest>,
}

/// What a skill says of tools.
#[derive(Debug, Serialize)]
pub struct SkillRequest {
    /// The skill.
    pub name: String,
    /// Rules it asks for; shown, never granted.
    pub requests: Vec<String>,
    /// The only rules a call may fall under while it is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restricts_to: Option<Vec<String>>,
    /// Rules no call may fall under while it is active.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
}

impl SkillRequest {
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

    /// Says it in a line.
    pub fn to_line(&self) -> String {
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

/// The floor under commands.
#[derive(Debug, Serialize)]
pub struct MinimumVerdict {
    /// The weakest confinement that they may run in.
    pub require: &'static str,
    /// What they reach.
    pub network: &'static str,
}

/// Returns the policy that is in force.
pub fn overview(app: &App) -> Overview {
    let PolicyView {
        profile,
        rules,
        guards,
        secret_files,
        secret_names,
        findings,
    } = app.executor().policy().view();
    Overview {
        profile,
        rules: rules::marked(app, rules),
        guards,
        secret_files,
        secret_names,
        findings,
        looked_at: None,
        looked_since: None,
        sandbox: MinimumVerdict {
            require: app.sandbox().config().require.word(),
            network: app.network().word(),
        },
        skills: app
            .skill_tools()
            .skills()
            .iter()
            .filter_map(SkillRequest::of)
            .collect(),
    }
}

/// Adds what each rule decided among recent calls, for whoever may read all records.
///
/// # Errors
/// A [`Problem`] where the records cannot be read.
pub async fn count(app: &App, shown: &mut Overview) -> Result<(), Problem> {
    let calls = runs::recent_calls(app, rules::COUNTED).await?;
    rules::count(&mut shown.rules, &calls);
    shown.looked_at = Some(calls.len());
    shown.looked_since = rules::oldest(&calls).map(clock::rfc3339);
    Ok(())
}

/// Says why a call would be allowed, asked about or denied.
///
/// # Errors
/// There is no such tool, or the arguments are none of its.
pub fn explain(app: &App, tool: &str, arguments: &str) -> Result<Explanation, Problem> {
    let (shown, all) = (app.tools().snapshot(), app.all().snapshot());
    let on = shown.entry(tool);
    let Some(entry) = on.or_else(|| all.entry(tool)) else {
        let problem = Problem::usage(format!("no tool `{tool}`"));
        return Err(match shown.nearest(tool).first() {
            Some(near) => problem.advise(format!("did you mean `{near}`?")),
            None => problem.advise("`haft tools` lists them"),
        });
    };
    let mut explanation = app
        .executor()
        .explain(entry, arguments)
        .map_err(|failure| {
            let kind = match failure.kind {
                ErrorKind::InvalidArguments | ErrorKind::NotFound => ProblemKind::Usage,
                ErrorKind::Denied => ProblemKind::Denied,
                _ => ProblemKind::Failed,
            };
            let problem = Problem::new(kind, failure.message);
            match failure.advice {
                Some(advice) => problem.advise(advice),
                None => problem,
            }
        })?;
    if on.is_none() {
        explanation.enabled = Some(false);
    }
    let network = app.network();
    if network.word() != "none" && explanation.parts.iter().any(|part| part.kind == "run") {
        explanation.layers.push(Layer {
            layer: "sandbox".into(),
            verdict: None,
            rule: format!("sandbox.network = {}", network.word()).into(),
            reason: network.meaning().into(),
        });
    }
    for skill in app.skill_tools().skills() {
        let asked = app.executor().asked_for(entry, arguments, skill.requests());
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

/// What the test of the rules' own examples found.
#[derive(Debug)]
pub struct Check {
    /// Every rule whose example is judged otherwise than it says, that cannot be read or that names no tool.
    pub report: CheckReport,
    /// Names of tools that only a server could have, which none has now.
    pub warnings: Vec<String>,
    /// Why the tools cannot be wired as settings say. The names were compared all the same.
    pub fault: Option<Problem>,
}

/// Tests the rules' own examples; needs no application, for wrong rules would stop it from being assembled.
///
/// # Errors
/// The settings of the rules cannot be read at all.
pub fn check(site: &Site, settings: &Settings) -> Result<Check, Problem> {
    let written = written(site, settings)?;
    let mut report = written.rules.check(&written.places);
    let (unknown, fault) = match names(site, settings) {
        Ok(names) => (names.unknown, names.fault),
        // Rules that cannot be read are reported already, and hold no names.
        Err(_) if !report.ok => (Vec::new(), None),
        Err(problem) => return Err(problem),
    };
    let mut warnings = Vec::new();
    for name in unknown {
        let kept = name.list == List::Allow && name.layer == layer::Layer::Always.as_str();
        if name.of_server || kept {
            warnings.push(name.to_string());
            continue;
        }
        report.ok = false;
        // That no tool has the name says more than that the rule never matches.
        report.failures.retain(|failure| failure.rule != name.rule);
        report.failures.push(Failure::from(name));
    }
    Ok(Check {
        report,
        warnings,
        fault,
    })
}
