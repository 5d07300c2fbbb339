//! `haft approvals review`: what the reviewer said, what a person says of that, and the figures.

use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::view::approvals::reviews::{self, PersonFigures, ReviewFigures};
use haft_app::view::when;

use crate::args::ReviewWord;
use crate::commands::ExitResult;
use crate::commands::approvals::{find_request, print_status, show};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::list::{TextTable, Truncation};
use crate::screen::{DIM, styled, visible};

/// Maximum number of requests in a list.
const MOST: usize = 1000;

/// Lists the newest reviews.
pub(super) async fn list(at: &Invocation, app: &App, limit: usize) -> ExitResult {
    if limit > MOST {
        let what = format!("--limit {limit} is more than the {MOST} requests that a list has");
        return Err(Problem::usage(what).advise(format!("name at most {MOST}")));
    }
    let items = reviews::newest(app, limit).await?;
    if at.screen.json {
        at.screen.document(&items)?;
        return Ok(Exit::Done);
    }
    let mut table = TextTable::new(&[
        ("ID", Truncation::Never),
        ("TOOL", Truncation::Never),
        ("ASKED", Truncation::Never),
        ("STATUS", Truncation::Never),
        ("REVIEWER", Truncation::End),
        ("WHAT", Truncation::End),
    ]);
    for item in &items {
        let sentence = item.review.as_ref().map(|review| review.sentence.as_str());
        table.row([
            &item.id,
            &item.tool,
            &when::ago(&item.created),
            &item.status,
            &visible::line(sentence.unwrap_or_default()),
            &visible::line(&item.fact.sentence()),
        ]);
    }
    at.screen.out(&table.render())?;
    if items.is_empty() {
        let none = "no request was reviewed; policy.reviewer.model names a model that reviews";
        at.screen.say(&styled(DIM, none));
    }
    Ok(Exit::Done)
}

/// Shows one review, or stores what a person says of it.
pub(super) async fn one(
    at: &Invocation,
    app: &App,
    id: &str,
    word: Option<ReviewWord>,
) -> ExitResult {
    let Some(word) = word else {
        return show(at, app, id).await;
    };
    let entry = find_request(app, id).await?;
    let agrees = word == ReviewWord::Agree;
    let entry = reviews::say(app, &entry.request.id, agrees).await?;
    print_status(at, app, &entry)
}

/// Shows the figures.
pub(super) async fn stats(at: &Invocation, app: &App) -> ExitResult {
    let stats = reviews::stats(app).await?;
    if at.screen.json {
        at.screen.document(&stats)?;
        return Ok(Exit::Done);
    }
    let heads = [
        "CLASS",
        "REVIEWED",
        "ALLOWED",
        "DENIED",
        "OPINIONS",
        "PASSED",
        "FAILED",
        "OTHERWISE",
        "TOKENS",
        "COST",
    ];
    let mut table = TextTable::new(&heads.map(|head| (head, Truncation::Never)));
    let classes = stats.classes.iter();
    let classes = classes.map(|(class, figures)| (class.as_str(), figures));
    for (class, figures) in classes.chain([("all", &stats.all)]) {
        let row = row(class, figures);
        table.row(row.each_ref().map(String::as_str));
    }
    at.screen.out(&table.render())?;
    let told = "OTHERWISE: of the verdicts to allow and to deny, those about whose request a person decided or said something, how many said otherwise";
    at.screen.say(&styled(DIM, told));
    Ok(Exit::Done)
}

fn row(class: &str, figures: &ReviewFigures) -> [String; 10] {
    let ReviewFigures { cost, .. } = figures;
    let otherwise = |of: PersonFigures| format!("{} of {}", of.otherwise, of.known);
    let money = cost.money.map(|money| format!("{money:.4}"));
    [
        class.to_owned(),
        figures.reviewed.to_string(),
        figures.allowed.to_string(),
        figures.denied.to_string(),
        (figures.would_allow + figures.would_deny).to_string(),
        figures.passed.to_string(),
        (figures.failed + figures.unanswered).to_string(),
        format!(
            "allow {}, deny {}",
            otherwise(figures.allow),
            otherwise(figures.deny)
        ),
        cost.input.saturating_add(cost.output).to_string(),
        money.unwrap_or_else(|| "-".to_owned()),
    ]
}
