//! The options of an agent from settings: instructions, budgets, prices.

use haft_agent::{AgentOptions, Budget, ProviderTool};

use crate::agent::instructions;
use crate::app::App;
use crate::config::{Settings, typed};
use crate::problem::Problem;

/// Returns the options of an agent that asks the model of this name.
pub(super) fn options(
    app: &App,
    settings: &Settings,
    model: &str,
    max_turns: Option<u32>,
) -> Result<AgentOptions, Problem> {
    let prices = settings.prices(model);
    let money = settings.amount(&["agent", "max_cost"]);
    if prices.is_none()
        && let Some(key) = budget_of_money(settings)
    {
        return Err(Problem::settings(format!(
            "`{key}` needs the prices of {model}"
        ))
        .advise(format!(
            "set `models.\"{model}\".input_price` and `models.\"{model}\".output_price`, or remove `{key}`"
        )));
    }
    let turns = u32::try_from(settings.get(typed::AGENT_TURNS)).unwrap_or(u32::MAX);
    let most = settings.whole("agent.max_reply_tokens");
    Ok(AgentOptions {
        system: instructions::text(app, settings)?,
        budget: Budget {
            turns: Some(max_turns.unwrap_or(turns)),
            tokens: settings.whole("agent.max_tokens"),
            money,
            time: settings.seconds("agent.max_time_s"),
            ..Budget::default()
        },
        prices,
        suggest: settings.get(typed::AGENT_SUGGEST),
        provided: provided(settings)?,
        window: whole(settings, &["models", model, "window"]),
        max_tokens: most.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
        ..AgentOptions::default()
    })
}

/// Returns the setting with a budget of money, if there is one.
fn budget_of_money(settings: &Settings) -> Option<&'static str> {
    const KEYS: [(&str, bool); 3] = [
        ("agent.max_cost", true),
        ("budgets.run.money", false),
        ("budgets.day.money", false),
    ];
    let problem = |(key, even_zero): &(&str, bool)| {
        let path: Vec<&str> = key.split('.').collect();
        let money = settings.amount(&path);
        money.is_some_and(|money| *even_zero || money > 0.0)
    };
    KEYS.into_iter().find(problem).map(|(key, _)| key)
}

/// Reads the tools that providers define, by their words in settings.
fn provided(settings: &Settings) -> Result<Vec<ProviderTool>, Problem> {
    let known = |word: &str| {
        ProviderTool::ALL
            .into_iter()
            .find(|one| one.as_str() == word)
    };
    let mut all = Vec::new();
    for (value, source) in settings.items("agent.provided") {
        let word = value.as_str().unwrap_or_default();
        let Some(one) = known(word) else {
            let words: Vec<&str> = ProviderTool::ALL.iter().map(|one| one.as_str()).collect();
            let problem = Problem::settings(format!(
                "`agent.provided`: {word:?} is not a provider-defined tool"
            ));
            let problem = problem.advise(format!("choose from {}", words.join(", ")));
            return Err(match &source.place {
                Some(place) => problem.at(place.clone()),
                None => problem,
            });
        };
        all.push(one);
    }
    Ok(all)
}

fn whole(settings: &Settings, path: &[&str]) -> Option<u64> {
    u64::try_from(settings.entry(path)?.value.as_integer()?).ok()
}
