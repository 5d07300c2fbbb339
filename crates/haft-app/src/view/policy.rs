//! The effective policy, and explanations of verdicts.

use haft::clock;
use haft::error::ErrorKind;
use haft::policy::{
    CheckReport, EffectExplanation, Explanation, GuardView, LayerVerdict, PolicyView, Profile,
    RuleFailure, RuleFinding, RuleList, SecretFiles,
};
use haft::skill::Skill;
use haft::toolset::Toolset;
use haft_builtins::command::program_section;
use haft_hook::Agent;
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

/// The effective policy with related limits from the settings.
#[derive(Debug, Serialize)]
pub struct PolicyOverview {
    /// The profile.
    pub profile: Profile,
    /// The rules of all layers, in the order in which they are read; those that decide nothing are marked.
    pub rules: Vec<ShownRule>,
    /// The guards that override the rules.
    pub guards: Vec<GuardView>,
    /// What happens to calls on files whose names suggest secrets.
    pub secret_files: SecretFiles,
    /// Those names; the last match decides.
    pub secret_names: Vec<String>,
    /// Rules whose text matches nothing.
    pub findings: Vec<RuleFinding>,
    /// Number of recent calls from which the rules' decisions were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<usize>,
    /// The time of the oldest of them: RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_since: Option<String>,
    /// The minimum confinement of commands.
    pub sandbox: MinimumConfinement,
    /// The skills that ask for rules or restrict the run that they are loaded into. They grant nothing.
    pub skills: Vec<SkillRequest>,
}

/// What a skill says about tools.
#[derive(Debug, Serialize)]
pub struct SkillRequest {
    /// The skill's name.
    pub name: String,
    /// The rules that it asks for; shown, never granted.
    pub requests: Vec<String>,
    /// The only rules that a call may match while it is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restricts_to: Option<Vec<String>>,
    /// Rules that no call may match while it is active.
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

    /// Describes it in one line.
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

/// The minimum confinement of commands.
#[derive(Debug, Serialize)]
pub struct MinimumConfinement {
    /// The weakest confinement that they may run in.
    pub require: &'static str,
    /// Their network access.
    pub network: &'static str,
}

/// Returns the policy that is in force.
pub fn overview(app: &App) -> PolicyOverview {
    let PolicyView {
        profile,
        rules,
        guards,
        secret_files,
        secret_names,
        findings,
    } = app.executor().policy().view();
    PolicyOverview {
        profile,
        rules: rules::mark_rules(app, rules),
        guards,
        secret_files,
        secret_names,
        findings,
        looked_at: None,
        looked_since: None,
        sandbox: MinimumConfinement {
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

/// Adds how many recent calls each rule decided, for a user who may read all records.
///
/// # Errors
/// A [`Problem`] if the records cannot be read.
pub async fn count(app: &App, shown: &mut PolicyOverview) -> Result<(), Problem> {
    let calls = runs::recent_calls(app, rules::MAX_COUNTED).await?;
    rules::count(&mut shown.rules, &calls);
    shown.looked_at = Some(calls.len());
    shown.looked_since = rules::oldest_call(&calls).map(clock::rfc3339);
    Ok(())
}

/// Returns what is wrong with the name of a tool that there is not; `near` is the name most like it.
fn unknown_tool(tool: &str, near: Option<&str>) -> Problem {
    let problem = Problem::usage(format!("no tool `{tool}`"));
    let agent = tool.split_once('.');
    let agent = agent.and_then(|(agent, _)| Agent::from_name(agent));
    if let Some(agent) = agent {
        let agent = agent.title();
        return problem.advise(format!(
            "this is what the record calls a tool of {agent} itself, which its hook judges when it is called; a command in the jail is the tool \
             run_command: `haft policy explain run_command --args '{{\"command\":\"…\"}}'`"
        ));
    }
    match near {
        Some(near) => problem.advise(format!("did you mean `{near}`?")),
        None => problem.advise("`haft tools` lists them"),
    }
}

/// Explains why a call would be allowed, denied or need approval.
///
/// # Errors
/// There is no such tool, or the arguments do not fit its schema.
pub fn explain(app: &App, tool: &str, arguments: &str) -> Result<Explanation, Problem> {
    let (shown, all) = (app.tools().snapshot(), app.all().snapshot());
    let on = shown.entry(tool);
    // What a command connects to, or sends, is a call of a tool that no client sees.
    let internal = app.executor().internal_toolset();
    let internal = internal.entry(tool);
    let Some(entry) = on.or_else(|| all.entry(tool)).or(internal) else {
        return Err(unknown_tool(tool, shown.nearest(tool).first().copied()));
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
    if on.is_none() && internal.is_none() {
        explanation.enabled = Some(false);
    }
    let network = app.network();
    if network.word() != "none" && explanation.parts.iter().any(|part| part.kind == "run") {
        explanation.layers.push(LayerVerdict {
            layer: "sandbox".into(),
            verdict: None,
            rule: format!("sandbox.network = {}", network.word()).into(),
            reason: network.meaning().into(),
        });
    }
    explanation
        .layers
        .extend(git_layer(app, &explanation.parts));
    for skill in app.skill_tools().skills() {
        let asked = app.executor().asked_for(entry, arguments, skill.requests());
        explanation.layers.extend(asked.into_iter().map(|rule| {
            LayerVerdict {
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

/// Names the section of git's settings because of which a command of git that only reads may not count as one.
fn git_layer(app: &App, parts: &[EffectExplanation]) -> Option<LayerVerdict> {
    let runs_git = |part: &EffectExplanation| part.kind == "run" && part.value.starts_with("git ");
    let section = parts
        .iter()
        .any(runs_git)
        .then(|| program_section(app.files()))??;
    Some(LayerVerdict {
        layer: "git".into(),
        verdict: None,
        rule: section.into(),
        reason: "git may start a program because of it, so a command of git that only reads needs a rule where it stands beside others, \
                 unless a rule covers another command of git there"
            .into(),
    })
}

/// The result of testing the rules' own examples.
#[derive(Debug)]
pub struct PolicyCheck {
    /// Every rule whose example is judged differently than it says, that cannot be parsed or that names no tool.
    pub report: CheckReport,
    /// Tool names that only an external server could have, but none has now.
    pub warnings: Vec<String>,
    /// Why the tools cannot be wired as the settings say. The names were still compared.
    pub fault: Option<Problem>,
}

/// Tests the rules' own examples; needs no application, since wrong rules prevent assembling one.
///
/// # Errors
/// The settings of the rules cannot be read.
pub fn check(site: &Site, settings: &Settings) -> Result<PolicyCheck, Problem> {
    let written = written(site, settings)?;
    let mut report = written.rules.check(&written.places);
    let (unknown, fault) = match names(site, settings) {
        Ok(names) => (names.unknown, names.fault),
        // Rules that cannot be parsed are already reported, and have no names.
        Err(_) if !report.ok => (Vec::new(), None),
        Err(problem) => return Err(problem),
    };
    let mut warnings = Vec::new();
    for name in unknown {
        let is_kept =
            name.list == RuleList::Allow && name.layer == layer::SettingsLayer::Always.as_str();
        if name.of_server || is_kept {
            warnings.push(name.to_string());
            continue;
        }
        report.ok = false;
        // That no tool has the name is more informative than that the rule never matches.
        report.failures.retain(|failure| failure.rule != name.rule);
        report.failures.push(RuleFailure::from(name));
    }
    Ok(PolicyCheck {
        report,
        warnings,
        fault,
    })
}
