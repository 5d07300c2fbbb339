//! The policy from settings: the profile, the rules of all layers with their layers, the guards' paths.

use std::path::PathBuf;
use std::sync::Arc;

use haft::budget::{Budgets, EffectLimits, Ledger};
use haft::permission::Verdict;
use haft::policy::{
    Guard, OwnProgram, Policy, PolicyContext, Profile, RuleOfTwo, RuleSet, RuleText, RulesError,
    SecretFiles, SecretNames, UntrustedContent,
};
use haft::workspace::Workspace;
use haft_builtins::proxy::AllowList;

use crate::config::typed::{
    PROFILE, RULE_OF_TWO, SANDBOX_NETWORK, SECRET_FILES, TRUST_WORKSPACE, UNTRUSTED_CONTENT,
};
use crate::config::{FILE_NAME, Settings, ValueOrigin};
use crate::own_program::OwnProgramFiles;
use crate::policy_in_force::PolicyInForce;
use crate::problem::{Problem, SourceLocation};
use crate::site::Site;
use crate::wiring::{changes, record, stores};

/// The rules as written, and the folders that their paths refer to.
#[derive(Debug, Clone)]
pub(crate) struct RuleSources {
    /// The rules of all layers.
    pub(crate) rules: RuleSet,
    /// What `//` and `~/` mean in them.
    pub(crate) places: PolicyContext,
}

/// Collects the rules of all layers.
pub(crate) fn written(at: &Site, settings: &Settings) -> Result<RuleSources, Problem> {
    let list = |key: &str| -> Result<Vec<RuleText>, Problem> {
        let items = settings.items(key).into_iter();
        items.map(|(value, source)| rule(value, source)).collect()
    };
    let shown = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let mut allow = list("policy.allow")?;
    allow.extend(host_rules(settings));
    Ok(RuleSources {
        rules: RuleSet {
            allow,
            ask: list("policy.ask")?,
            deny: list("policy.deny")?,
        },
        places: PolicyContext {
            workspace: Some(shown(&at.workspace)),
            home: at.environment.folder("HOME").map(|home| shown(&home)),
            classes: haft_builtins::classes().collect(),
            ..PolicyContext::default()
        },
    })
}

/// Returns the allow rules that `sandbox.allow_hosts` stands for if each connection of a command is judged: guards
/// override them like any other rule.
fn host_rules(settings: &Settings) -> Vec<RuleText> {
    if settings.get(SANDBOX_NETWORK) != "ask" {
        return Vec::new();
    }
    let items = settings.items("sandbox.allow_hosts").into_iter();
    let rule = |(value, source): (&toml::Value, &ValueOrigin)| {
        // An invalid entry stops the start where the network of commands is set up.
        let host = value
            .as_str()
            .filter(|host| AllowList::read([host]).is_ok())?;
        let mut rule = RuleText::new(format!("Network({host})"));
        source.layer.as_str().clone_into(&mut rule.layer);
        Some(rule)
    };
    items.filter_map(rule).collect()
}

fn rule(value: &toml::Value, source: &ValueOrigin) -> Result<RuleText, Problem> {
    let read: Result<RuleText, _> = value.clone().try_into();
    let mut rule = read.map_err(|e: toml::de::Error| {
        let problem = Problem::settings(format!("cannot read a rule: {}", e.message()));
        match &source.place {
            Some(place) => problem.at(place.clone()),
            None => problem,
        }
    })?;
    source.layer.as_str().clone_into(&mut rule.layer);
    Ok(rule)
}

/// Opens the workspace, with haft's own files hidden.
fn workspace(at: &Site, settings: &Settings) -> Result<Workspace, Problem> {
    let opened = Workspace::open(&at.workspace);
    let opened = opened.map_err(|e| Problem::failed(format!("cannot open the workspace: {e}")))?;
    let opened = opened.with_repository();
    let opened = opened.with_hidden(hidden_paths(at, settings));
    Ok(opened.with_secret_names(secret_names(settings)?))
}

/// Returns which file names suggest secrets: the built-in list plus those that the settings add.
fn secret_names(settings: &Settings) -> Result<SecretNames, Problem> {
    let mut names = SecretNames::default();
    for (value, source) in settings.items("policy.secret_names") {
        names = names.with(value.as_str()).map_err(|error| {
            let problem = Problem::settings(error.to_string());
            match &source.place {
                Some(place) => problem.at(place.clone()),
                None => problem,
            }
        })?;
    }
    Ok(names)
}

/// Reads what happens to calls on those files.
fn secret_files(settings: &Settings) -> SecretFiles {
    match settings.get(SECRET_FILES).as_str() {
        "allow" => SecretFiles::Allow,
        "ask" => SecretFiles::Ask,
        // The key takes three words; any other word means the strictest.
        _ => SecretFiles::Deny,
    }
}

/// Returns the guard between untrusted content and the outside world; `None` if the settings turn it off.
fn untrusted_content(settings: &Settings) -> Option<UntrustedContent> {
    let verdict = match settings.get(UNTRUSTED_CONTENT).as_str() {
        "off" => return None,
        "ask" => Verdict::Ask,
        // The key takes three words; any other word means the strictest.
        _ => Verdict::Deny,
    };
    Some(UntrustedContent::new(verdict).commands_reach_out(commands_reach_out(settings)))
}

/// Returns the guard for the Rule of Two; `None` if the settings leave it off.
fn rule_of_two(settings: &Settings) -> Option<RuleOfTwo> {
    let verdict = match settings.get(RULE_OF_TWO).as_str() {
        "off" => return None,
        "ask" => Verdict::Ask,
        // The key takes three words; any other word means the strictest.
        _ => Verdict::Deny,
    };
    Some(RuleOfTwo::new(verdict).commands_reach_out(commands_reach_out(settings)))
}

/// Returns whether commands have network access that is not judged per connection, so that a command itself counts as reaching out.
fn commands_reach_out(settings: &Settings) -> bool {
    !matches!(settings.get(SANDBOX_NETWORK).as_str(), "none" | "ask")
}

/// Reads how much calls may use before the user is asked.
fn budgets(at: &Site, settings: &Settings) -> Budgets {
    let limits = |period: &str| {
        let count = |what: &str| settings.whole(&format!("budgets.{period}.{what}"));
        let money = settings.amount(&["budgets", period, "money"]);
        EffectLimits {
            deletions: count("deletions").filter(|most| *most > 0),
            sends: count("sends").filter(|most| *most > 0),
            commands: count("commands").filter(|most| *most > 0),
            money: money.filter(|most| *most > 0.0),
        }
    };
    let ledger = Ledger::in_folder(at.home.join("budgets"));
    Budgets::of_run(limits("run"))
        .with_day(limits("day"), ledger)
        .commands_reach_out(commands_reach_out(settings))
}

/// What calls are based on: one workspace, and the policy for it.
pub(crate) struct PolicyInputs {
    /// The folder, with its hidden paths, for tools and skills.
    pub(crate) workspace: Workspace,
    /// The policy in force.
    pub(crate) policy: Arc<Policy>,
    /// The same policy, for tools that outlive it.
    pub(crate) in_force: PolicyInForce,
}

/// Opens the workspace and reads the rules. A rule that cannot be parsed or contradicts its own example is an error at its position.
/// `guards` are the host's.
pub(crate) fn build(
    at: &Site,
    settings: &Settings,
    guards: &[Arc<dyn Guard>],
) -> Result<PolicyInputs, Problem> {
    let workspace = workspace(at, settings)?;
    let policy = over(at, settings, guards, &workspace)?;
    Ok(PolicyInputs {
        workspace,
        in_force: PolicyInForce::new(Arc::clone(&policy)),
        policy,
    })
}

/// Builds the policy from changed settings, for the workspace as it was opened.
pub(crate) fn again(
    at: &Site,
    settings: &Settings,
    guards: &[Arc<dyn Guard>],
    workspace: &Workspace,
) -> Result<Arc<Policy>, Problem> {
    let workspace = workspace.clone().with_secret_names(secret_names(settings)?);
    over(at, settings, guards, &workspace)
}

fn over(
    at: &Site,
    settings: &Settings,
    guards: &[Arc<dyn Guard>],
    workspace: &Workspace,
) -> Result<Arc<Policy>, Problem> {
    let mut builder = Policy::builder(profile(settings))
        .classes(haft_builtins::classes())
        .rules(written(at, settings)?.rules)
        .commands(changes::commands(settings))
        .secret_files(secret_files(settings))
        .workspace(workspace);
    if let Some(home) = at.environment.folder("HOME") {
        builder = builder.home(&home);
    }
    builder = builder
        .commands_reach_out(commands_reach_out(settings))
        .distrust_workspace(settings.get(TRUST_WORKSPACE).as_str() != "yes");
    if let Some(guard) = untrusted_content(settings) {
        builder = builder.guard(Arc::new(guard));
    }
    if let Some(guard) = rule_of_two(settings) {
        builder = builder.guard(Arc::new(guard));
    }
    let program = OwnProgramFiles::current();
    if program.all().any(|path| path.starts_with(workspace.root())) {
        let guard = OwnProgram::new(program.files.clone(), program.links.clone());
        builder = builder.guard(guard.in_workspace(workspace.root()));
    }
    for guard in guards {
        builder = builder.guard(Arc::clone(guard));
    }
    let policy = builder.build().map_err(|error| problem(&error, settings))?;
    Ok(Arc::new(policy.with_budgets(budgets(at, settings))))
}

/// Returns the paths that no tool touches: haft's state, settings, secret files, certificate key, and the key of the record's log. The workspace's haft.toml may be read.
pub(crate) fn hidden_paths(at: &Site, settings: &Settings) -> Vec<PathBuf> {
    let readable = at.workspace.join(FILE_NAME);
    let home = at.home.path().to_owned();
    let files = settings.files.iter().map(|file| file.path.clone());
    let files = files.filter(|file| *file != readable);
    [home]
        .into_iter()
        .chain(files)
        .chain(settings.secrets.files.iter().cloned())
        .chain(stores::hidden_paths(at, settings))
        .chain(record::hidden_paths(at, settings))
        .chain(tls_files(settings))
        .collect()
}

/// Returns the certificate and the key that `serve.tls` names.
fn tls_files(settings: &Settings) -> impl Iterator<Item = PathBuf> {
    ["serve.tls.cert", "serve.tls.key"]
        .into_iter()
        .filter_map(|key| settings.text(key))
        .filter_map(|path| std::path::absolute(path).ok())
}

/// Reads the profile: the verdict if no rule matches.
pub(crate) fn profile(settings: &Settings) -> Profile {
    match settings.get(PROFILE).as_str() {
        "trusted" => Profile::Trusted,
        "workspace" => Profile::Workspace,
        // The key takes three words; any other word means the strictest.
        _ => Profile::ReadOnly,
    }
}

/// Converts an error in a rule into a problem, at the rule's position.
pub(crate) fn problem(error: &RulesError, settings: &Settings) -> Problem {
    let (rule, list) = match error {
        RulesError::Unreadable { rule, list, .. } | RulesError::Example { rule, list, .. } => {
            (rule, list)
        }
        RulesError::Unknown(unknown) => (&unknown.rule, &unknown.list),
        RulesError::NeverMatches(never) => (&never.rule, &never.list),
    };
    let problem =
        Problem::settings(error.to_string()).advise("`haft policy check` lists every fault");
    match place(settings, &format!("policy.{list}"), rule) {
        Some(place) => problem.at(place),
        None => problem,
    }
}

/// Returns the position of a rule.
fn place(settings: &Settings, key: &str, rule: &str) -> Option<SourceLocation> {
    let items = settings.items(key);
    let text = |value: &toml::Value| {
        let table = value.get("rule").and_then(toml::Value::as_str);
        value.as_str().or(table).map(str::to_owned)
    };
    let (_, source) = items
        .into_iter()
        .find(|(value, _)| text(value).as_deref() == Some(rule))?;
    source.place.clone()
}
