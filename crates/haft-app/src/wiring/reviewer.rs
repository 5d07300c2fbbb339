//! The reviewer of `policy.reviewer`: the model that is asked about requests before a person is, and what its verdicts decide.

use std::sync::Arc;
use std::time::Duration;

use haft::approval::review::{ReviewPowers, Reviewer};
use haft_agent::http_model::retry::Retry;
use haft_agent::http_model::timeouts::Timeouts;
use haft_agent::review::{ModelReviewer, ReviewerSettings};
use haft_agent::{HttpSettings, ModelName, Prices};

use crate::config::{Settings, typed};
use crate::model_client::{ModelSource, unknown_model};
use crate::policy_in_force::PolicyInForce;
use crate::problem::{Problem, ProblemKind};
use crate::site::Site;
use crate::upstream::upstream;

/// The setting that names the model.
const MODEL: &str = "policy.reviewer.model";
/// The setting that says what it may.
const MAY: &str = "policy.reviewer.may";

/// Maximum number of bytes read of an answer.
const MAX_REPLY: usize = 1 << 20;

/// A request is sent again once: a person waits.
const RETRY: Retry = Retry {
    attempts: 2,
    first: Duration::from_millis(300),
    longest: Duration::from_secs(2),
};

/// Returns the reviewer that the settings name, if they do. It has no verdict where its key is missing: a person is asked.
///
/// # Errors
/// A setting is wrong, or a budget of money needs the model's prices.
pub(crate) fn reviewer(
    at: &Site,
    settings: &Settings,
    policy: &PolicyInForce,
) -> Result<Option<Arc<dyn Reviewer>>, Problem> {
    let powers = powers(settings)?;
    let Some(text) = settings.text(MODEL).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let name: ModelName = text.parse().map_err(|error| {
        let advice = "write the model of a provider, such as anthropic:claude-haiku-4-5; docs/guide/models.md lists the providers";
        let problem = unknown_model(&error, text, advice);
        let says = Problem::new(ProblemKind::Settings, format!("`{MODEL}`: {problem}"));
        let says = says.advise(problem.advice().unwrap_or(advice));
        settings.at_setting(says, MODEL)
    })?;
    let prices = prices(settings, &name)?;
    let in_force = policy.clone();
    let time_limit = settings.get(typed::REVIEWER_TIMEOUT);
    let parts = ReviewerSettings {
        powers,
        time_limit,
        prices,
        redactor: settings.redactor.clone(),
        policy: Arc::new(move || in_force.now()),
    };
    let proxy = upstream(settings)?;
    let source = ModelSource {
        settings,
        environment: &at.environment,
        redactor: &settings.redactor,
        proxy: proxy.as_ref(),
    };
    let shown = name.to_string();
    if let Some(why) = source.missing_key(&name) {
        let none = ModelReviewer::unavailable(&shown, why, parts);
        return Ok(Some(Arc::new(none)));
    }
    let own = settings.text("policy.reviewer.base_url").map(str::to_owned);
    let mut http = HttpSettings {
        base_url: own.or_else(|| source.base_url(&name)),
        retry: RETRY,
        timeouts: Timeouts {
            first_byte: time_limit,
            whole: time_limit,
            ..Timeouts::default()
        },
        ..HttpSettings::default()
    };
    // A verdict is short.
    http.limits.reply = MAX_REPLY;
    http.limits.event = MAX_REPLY;
    let model = source.client(&name, http).map_err(|error| {
        let problem = Problem::settings(format!("`{MODEL}`: {error}"));
        settings.at_setting(problem, MODEL)
    })?;
    Ok(Some(Arc::new(ModelReviewer::new(Arc::new(model), parts))))
}

/// Reads what the reviewer may: one word, or a list of words.
fn powers(settings: &Settings) -> Result<ReviewPowers, Problem> {
    let path: Vec<&str> = MAY.split('.').collect();
    let value = settings.entry(&path).map(|entry| &entry.value);
    let words = match value {
        None => Some(vec!["deny"]),
        Some(toml::Value::String(word)) => Some(vec![word.as_str()]),
        Some(toml::Value::Array(words)) => words.iter().map(toml::Value::as_str).collect(),
        Some(_) => None,
    };
    let wrong = |why: String| {
        let problem = Problem::settings(format!("`{MAY}`: {why}")).advise(
            "write deny, opinion, allow:CLASS, or a list such as [\"deny\", \"allow:Edit\"]",
        );
        settings.at_setting(problem, MAY)
    };
    let words =
        words.ok_or_else(|| wrong("it is neither a word nor a list of words".to_owned()))?;
    ReviewPowers::parse(words).map_err(|error| wrong(error.to_string()))
}

/// Returns the prices of the reviewer's model.
///
/// # Errors
/// The day has a budget of money, and there are none.
fn prices(settings: &Settings, name: &ModelName) -> Result<Option<Prices>, Problem> {
    let model = name.to_string();
    let prices = settings.prices(&model);
    let day = settings.amount(&["budgets", "day", "money"]);
    if prices.is_none() && day.is_some_and(|money| money > 0.0) {
        let problem = Problem::settings(format!(
            "`budgets.day.money` needs the prices of {model}, the reviewer's model"
        ));
        return Err(problem.advise(format!(
            "set `models.\"{model}\".input_price` and `models.\"{model}\".output_price`, or remove `budgets.day.money`"
        )));
    }
    Ok(prices)
}
