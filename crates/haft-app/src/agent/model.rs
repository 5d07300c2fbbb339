//! The model that an agent asks: named in the task or settings, a scenario served by this process, or a program's own.

use std::sync::Arc;

use haft_agent::provider::ModelNameError;
use haft_agent::{HttpSettings, Model, ModelName};
use haft_scripted::{Scenario, ScenarioServer, scenarios, serve};

use crate::agent::{AgentTask, of_model};
use crate::app::App;
use crate::config::Settings;
use crate::model_client::{ModelSource, client, unknown_model};
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
            .map_err(|e: ModelNameError| unknown_model(&e, text, TRY_SCRIPT))?;
        let source = ModelSource {
            settings,
            environment: &self.site().environment,
            redactor: self.redactor(),
            proxy: self.upstream(),
        };
        if let Some(why) = source.missing_key(&name) {
            return Err(Problem::settings(format!("{why}, {TRY_HINT}")));
        }
        let base_url = task.base_url.clone();
        let http = HttpSettings {
            base_url: base_url.or_else(|| source.base_url(&name)),
            ..HttpSettings::default()
        };
        let model = source.client(&name, http);
        let model = model.map_err(|error| of_model(&error))?;
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
        let http = HttpSettings {
            base_url: Some(server.url()),
            ..HttpSettings::default()
        };
        let model = client(self.upstream(), &name, http, |_| Some(key.clone()));
        let model = model.map_err(|error| of_model(&error))?;
        Ok(ModelChoice {
            name: format!("{SCRIPTED}{scenario}"),
            model: Arc::new(model),
            served: Some(server),
        })
    }
}
