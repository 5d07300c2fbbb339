//! A client of a provider's model from settings: its key, its address, and the proxy that leads there.

use std::sync::Arc;

use haft::audit::redact::Redactor;
use haft_agent::provider::{ModelNameError, PROVIDERS};
use haft_agent::{HttpModel, HttpSettings, ModelError, ModelName, Prices};
use haft_builtins::web::http::Http;
use haft_builtins::web::upstream::UpstreamProxy;

use crate::config::Settings;
use crate::environment::Environment;
use crate::nearest::nearest;
use crate::problem::{Problem, ProblemKind};

/// What clients of models are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelSource<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) environment: &'a Environment,
    pub(crate) redactor: &'a Redactor,
    pub(crate) proxy: Option<&'a UpstreamProxy>,
}

impl ModelSource<'_> {
    /// Returns the address of a provider, if the settings have one for it: a key must not go to an address that was set for another one.
    pub(crate) fn base_url(&self, name: &ModelName) -> Option<String> {
        let default = self.settings.text("model.default");
        let default: Option<ModelName> = default.and_then(|text| text.parse().ok());
        let same = default.is_none_or(|default| default.provider == name.provider);
        let set = self.settings.text("model.base_url").filter(|_| same);
        set.map(str::to_owned)
    }

    /// Returns why the provider's key is missing, if it needs one. What repeats a key hides it from now on.
    pub(crate) fn missing_key(&self, name: &ModelName) -> Option<String> {
        let keys = name.provider.keys;
        let values = keys.iter().filter_map(|key| self.environment.get(key));
        self.redactor.learn(values);
        let is_set = |key: &&str| {
            let value = self.environment.get(key);
            value.is_some_and(|key| !key.trim().is_empty())
        };
        if name.provider.key_optional || keys.iter().any(is_set) {
            return None;
        }
        let (provider, keys) = (name.provider.name, keys.join(" or "));
        Some(format!("no key for {provider}: set {keys}"))
    }

    /// Returns the client of a model, with its key from the environment. Without `dial` in the settings, connections go through the proxy.
    pub(crate) fn client(
        &self,
        name: &ModelName,
        settings: HttpSettings,
    ) -> Result<HttpModel, ModelError> {
        let variable = |key: &str| self.environment.get(key).map(str::to_owned);
        client(self.proxy, name, settings, variable)
    }
}

/// Returns the client of a model whose connections go through the proxy.
pub(crate) fn client(
    proxy: Option<&UpstreamProxy>,
    name: &ModelName,
    settings: HttpSettings,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<HttpModel, ModelError> {
    let proxy = proxy.cloned();
    let settings = HttpSettings {
        dial: proxy.map(|proxy| Arc::new(Http::trusted().with_upstream(Some(proxy))) as _),
        ..settings
    };
    HttpModel::new(name, settings, variable)
}

/// Returns the error for an invalid model name, with the provider that was probably meant.
pub(crate) fn unknown_model(error: &ModelNameError, text: &str, advice: &str) -> Problem {
    let problem = Problem::new(ProblemKind::Usage, error.to_string());
    let names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
    let (name, model) = text.split_once(':').unwrap_or((text, ""));
    match (error, nearest(name, &names)) {
        (ModelNameError::Unknown { .. }, Some(near)) if !model.is_empty() => {
            problem.advise(format!("did you mean `{near}:{model}`?"))
        }
        _ => problem.advise(advice),
    }
}

impl Settings {
    /// Returns the model's prices, if the settings have an input or output price.
    pub(crate) fn prices(&self, model: &str) -> Option<Prices> {
        let price = |name| self.amount(&["models", model, name]);
        let (input, output) = (price("input_price"), price("output_price"));
        if input.is_none() && output.is_none() {
            return None;
        }
        let input = input.unwrap_or_default();
        Some(Prices {
            input,
            cached: price("cached_price").unwrap_or(input),
            output: output.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Settings;

    #[test]
    fn prices_are_those_of_the_model_and_cached_tokens_cost_what_others_do_unless_said() {
        let name = r#"models."openai:gpt-5.2""#;
        for (options, expect) in [
            (vec![], None),
            (vec!["input_price=2".to_owned()], Some((2.0, 2.0, 0.0))),
            (
                vec![
                    "input_price=2.5".to_owned(),
                    "cached_price=0".to_owned(),
                    "output_price=10".to_owned(),
                ],
                Some((2.5, 0.0, 10.0)),
            ),
        ] {
            let options: Vec<String> = options.iter().map(|one| format!("{name}.{one}")).collect();
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let settings = Settings::of_options(&options).unwrap();
            let prices = settings.prices("openai:gpt-5.2");
            let prices = prices.map(|prices| (prices.input, prices.cached, prices.output));
            assert_eq!(prices, expect, "{options:?}");
        }
    }
}
