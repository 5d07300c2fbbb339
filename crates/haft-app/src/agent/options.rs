//! The options of an agent from settings: instructions, budgets, prices.

use haft_agent::{AgentOptions, Budget, Prices, ProviderTool};

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
    let prices = prices(settings, model);
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

/// Returns the model's prices, if the settings have an input or output price.
fn prices(settings: &Settings, model: &str) -> Option<Prices> {
    let price = |name| settings.amount(&["models", model, name]);
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

#[cfg(test)]
mod tests {
    use super::prices;
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
            let prices = prices(&settings, "openai:gpt-5.2");
            let prices = prices.map(|prices| (prices.input, prices.cached, prices.output));
            assert_eq!(prices, expect, "{options:?}");
        }
    }
}
