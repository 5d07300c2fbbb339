//! The model that an agent asks: named in the task or settings, a scenario served by this process, or a program's own.

use std::sync::Arc;

use haft_agent::provider::{ModelNameError, PROVIDERS};
use haft_agent::{HttpModel, HttpSettings, Model, ModelName};
use haft_builtins::web::http::Http;
use haft_scripted::{Scenario, ScenarioServer, scenarios, serve};

use crate::agent::{AgentTask, of_model};
use crate::app::App;
use crate::config::Settings;
use crate::nearest::nearest;
use crate::problem::Problem;

/// The prefix of a scenario's name or file.
const SCRIPTED: &str = "scripted:";
/// The provider and model under which a scenario is asked.
const SCRIPTED_AS: &str = "anthropic:scripted";
/// The names of the built-in scenarios.
const FIRST_TRY: &str = "first-try";
const SIX_TURNS: &str = "six-turns";
/// Advice on other kinds of names than a provider's model.
const TRY_SCRIPT: &str =
    "scripted:FILE is a model that follows a script; docs/guide/models.md lists the providers";
/// How to try haft without a model.
const TRY_HINT: &str = "or try haft without a key: --model scripted:first-try";

/// Returns the error for an invalid model name, with the provider that was probably meant.
fn unknown_model(error: &ModelNameError, text: &str) -> Problem {
    let problem = Problem::usage(error.to_string());
    let names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
    let (name, model) = text.split_once(':').unwrap_or((text, ""));
    match (error, nearest(name, &names)) {
        (ModelNameError::Unknown { .. }, Some(near)) if !model.is_empty() => {
            problem.advise(format!("did you mean `{near}:{model}`?"))
        }
        _ => problem.advise(TRY_SCRIPT),
    }
}

/// A model with its name.
pub(super) struct ModelChoice {
    pub(super) name: String,
    pub(super) model: Arc<dyn Model>,
    /// The server of a scenario, which runs until dropped.
    pub(super) served: Option<ScenarioServer>,
}

/// Returns the name of a task's model; `None` if none is set.
pub(super) fn name_of(settings: &Settings, task: &AgentTask) -> Option<String> {
    if let Some(model) = &task.own_model {
        return Some(model.name().to_owned());
    }
    let text = task.model.as_deref();
    let text = text.or_else(|| settings.text("model.default"))?;
    let named: Result<ModelName, _> = text.parse();
    Some(named.map_or_else(|_| text.to_owned(), |name| name.to_string()))
}

impl App {
    /// Returns the model that the task or the settings name.
    pub(super) async fn model(
        &self,
        settings: &Settings,
        task: &AgentTask,
    ) -> Result<ModelChoice, Problem> {
        if let Some(model) = &task.own_model {
            return Ok(ModelChoice {
                name: model.name().to_owned(),
                model: Arc::clone(model),
                served: None,
            });
        }
        let default = settings.text("model.default");
        let Some(text) = task.model.as_deref().or(default) else {
            return Err(Problem::settings(format!(
                "no model is set: use --model PROVIDER:MODEL or set `model.default`, {TRY_HINT}"
            )));
        };
        if let Some(scenario) = text.strip_prefix(SCRIPTED) {
            return self.scripted(scenario).await;
        }
        let name: ModelName = text
            .parse()
            .map_err(|e: ModelNameError| unknown_model(&e, text))?;
        let base_url = task.base_url.clone().or_else(|| {
            // A key must not go to an address that was set for another provider.
            let default: Option<ModelName> = default.and_then(|text| text.parse().ok());
            let same = default.is_none_or(|default| default.provider == name.provider);
            let set = settings.text("model.base_url").filter(|_| same);
            set.map(str::to_owned)
        });
        let environment = &self.site().environment;
        let keys = name.provider.keys;
        // Results, records and messages hide the key, whatever repeats it.
        self.redactor()
            .learn(keys.iter().filter_map(|key| environment.get(key)));
        let is_set = |key: &&str| {
            environment
                .get(key)
                .is_some_and(|key| !key.trim().is_empty())
        };
        if !name.provider.key_optional && !keys.iter().any(is_set) {
            let (provider, keys) = (name.provider.name, keys.join(" or "));
            return Err(Problem::settings(format!(
                "no key for {provider}: set {keys}, {TRY_HINT}"
            )));
        }
        let model = self.http_model(&name, base_url, |key| {
            environment.get(key).map(str::to_owned)
        })?;
        Ok(ModelChoice {
            name: name.to_string(),
            model: Arc::new(model),
            served: None,
        })
    }

    /// Returns a scenario by its name or file, served on this machine.
    async fn scripted(&self, scenario: &str) -> Result<ModelChoice, Problem> {
        let read = match scenario {
            FIRST_TRY => Scenario::from_toml(scenarios::FIRST_TRY),
            SIX_TURNS => Scenario::from_toml(scenarios::SIX_TURNS),
            file => Scenario::load(file),
        };
        let read = read.map_err(|e| {
            Problem::usage(format!("the model {SCRIPTED}{scenario}: {e}")).advise(
                "scripted:FILE takes a scenario (docs/guide/scripted-models.md), scripted:first-try and scripted:six-turns need none",
            )
        })?;
        let key = read.key.clone().unwrap_or_else(|| "scripted".to_owned());
        let server = serve(read).await;
        let server =
            server.map_err(|e| Problem::failed(format!("cannot serve the scenario: {e}")))?;
        let name: ModelName = SCRIPTED_AS
            .parse()
            .map_err(|e: ModelNameError| Problem::failed(e.to_string()))?;
        let model = self.http_model(&name, Some(server.url()), |_| Some(key.clone()))?;
        Ok(ModelChoice {
            name: format!("{SCRIPTED}{scenario}"),
            model: Arc::new(model),
            served: Some(server),
        })
    }

    fn http_model(
        &self,
        name: &ModelName,
        base_url: Option<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<HttpModel, Problem> {
        let proxy = self.upstream().cloned();
        let settings = HttpSettings {
            base_url,
            dial: proxy.map(|proxy| Arc::new(Http::trusted().with_upstream(Some(proxy))) as _),
            ..HttpSettings::default()
        };
        HttpModel::new(name, settings, variable).map_err(|error| of_model(&error))
    }
}
