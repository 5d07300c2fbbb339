//! Reviews as data: what the reviewer said of requests, what it decided, and how often a person would have said otherwise.

use std::collections::BTreeMap;

use haft::approval::inbox::{RequestFilter, StoredApproval};
use haft::approval::listing;
use haft::approval::review::{PersonsWord, Review, ReviewCost, ReviewVerdict, asked_classes};
use haft::approval::{ApprovalId, Choice, Decision};
use haft::audit::redact::Redactor;
use haft::clock;
use serde::Serialize;

use crate::app::App;
use crate::problem::Problem;
use crate::view::approvals::ApprovalListItem;

/// A review, for a person.
#[derive(Debug, Serialize)]
pub struct ReviewSummary {
    model: String,
    /// What the model says: `allow`, `deny`, `pass`; absent while it is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// Whether there is no verdict of the model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    /// Why an allow or a deny is only an opinion.
    #[serde(skip_serializing_if = "Option::is_none")]
    opinion: Option<String>,
    /// Whether its verdict is the decision.
    decided: bool,
    /// The classes of what was asked about.
    class: String,
    cost: ReviewCost,
    began: String,
    took_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<PersonSummary>,
    /// The same in one sentence.
    pub sentence: String,
}

/// A person's word on a review.
#[derive(Debug, Serialize)]
struct PersonSummary {
    agrees: bool,
    by: String,
    at: String,
}

impl ReviewSummary {
    /// Converts the review of a request, if it has one.
    pub fn of(entry: &StoredApproval, redactor: &Redactor) -> Option<Self> {
        let review = entry.request.review.as_deref()?;
        let redacted = |text: &str| redactor.redact(text).into_owned();
        let person = review.person.as_ref();
        Some(Self {
            model: review.model.clone(),
            verdict: review.verdict.map(ReviewVerdict::as_str),
            reason: redacted(&review.reason),
            failed: review.failed,
            opinion: review.opinion.as_deref().map(redacted),
            decided: is_decided(entry),
            class: asked_classes(&entry.request),
            cost: review.cost,
            began: clock::rfc3339(review.began.into()),
            took_ms: review.took_ms,
            person: person.map(|word| PersonSummary {
                agrees: word.agrees,
                by: word.by.clone(),
                at: clock::rfc3339(word.at.into()),
            }),
            sentence: redacted(&review.sentence()),
        })
    }
}

/// Returns the newest reviewed requests, newest first.
///
/// # Errors
/// The inbox cannot be read.
pub async fn newest(app: &App, most: usize) -> Result<Vec<ApprovalListItem>, Problem> {
    let mut found = std::collections::VecDeque::new();
    let keep = |entry: StoredApproval| {
        if entry.request.review.is_none() || most == 0 {
            return;
        }
        if found.len() >= most {
            found.pop_front();
        }
        found.push_back(ApprovalListItem::of(app, &entry));
    };
    visit(app, keep).await?;
    Ok(found.into_iter().rev().collect())
}

/// Visits all requests, oldest first, however many there are: the newest reviews are the last.
async fn visit(app: &App, visit: impl FnMut(StoredApproval)) -> Result<(), Problem> {
    let filter = RequestFilter {
        tenant: app.principal().tenant.to_string(),
        limit: usize::MAX,
        ..RequestFilter::default()
    };
    let visited = listing::each(&**app.executor().inbox(), filter, visit).await;
    visited.map_err(|error| Problem::failed(error.to_string()))
}

/// Figures about reviews of one class of effects, or of all.
#[derive(Debug, Default, Clone, Serialize)]
pub struct ReviewFigures {
    /// Requests that a model was asked about.
    pub reviewed: u64,
    /// Requests that the reviewer allowed.
    pub allowed: u64,
    /// Requests that the reviewer denied.
    pub denied: u64,
    /// Verdicts to allow that were opinions.
    pub would_allow: u64,
    /// Verdicts to deny that were opinions.
    pub would_deny: u64,
    /// Requests that the model left to a person.
    pub passed: u64,
    /// Reviews without a verdict of the model.
    pub failed: u64,
    /// Reviews whose answer was not waited for: a person was first, or the process exited.
    pub unanswered: u64,
    /// Verdicts to allow about which a person has said something, and how many of those persons said otherwise.
    pub allow: PersonFigures,
    /// The same for verdicts to deny.
    pub deny: PersonFigures,
    /// What the reviews used.
    pub cost: ReviewCost,
}

/// What persons said about verdicts of one kind.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct PersonFigures {
    /// Verdicts about whose request a person decided or said something.
    pub known: u64,
    /// Those about which the person said otherwise.
    pub otherwise: u64,
}

/// Figures about all reviews that are stored.
#[derive(Debug, Default, Serialize)]
pub struct ReviewStats {
    /// All of them.
    pub all: ReviewFigures,
    /// By the classes of what was asked about.
    pub classes: BTreeMap<String, ReviewFigures>,
}

/// Returns the figures about all reviews of stored requests.
///
/// # Errors
/// The inbox cannot be read.
pub async fn stats(app: &App) -> Result<ReviewStats, Problem> {
    let mut stats = ReviewStats::default();
    let count = |entry: StoredApproval| {
        let Some(review) = entry.request.review.as_deref() else {
            return;
        };
        let class = asked_classes(&entry.request);
        for figures in [&mut stats.all, stats.classes.entry(class).or_default()] {
            figures.add(&entry, review);
        }
    };
    visit(app, count).await?;
    Ok(stats)
}

impl ReviewFigures {
    fn add(&mut self, entry: &StoredApproval, review: &Review) {
        self.reviewed += 1;
        self.cost.input = self.cost.input.saturating_add(review.cost.input);
        self.cost.output = self.cost.output.saturating_add(review.cost.output);
        if let Some(money) = review.cost.money {
            self.cost.money = Some(self.cost.money.unwrap_or_default() + money);
        }
        let decided = is_decided(entry);
        let (count, persons) = match review.verdict {
            None => return self.unanswered += 1,
            Some(_) if review.failed => return self.failed += 1,
            Some(ReviewVerdict::Pass) => return self.passed += 1,
            Some(ReviewVerdict::Allow) if decided => (&mut self.allowed, &mut self.allow),
            Some(ReviewVerdict::Allow) => (&mut self.would_allow, &mut self.allow),
            Some(ReviewVerdict::Deny) if decided => (&mut self.denied, &mut self.deny),
            Some(ReviewVerdict::Deny) => (&mut self.would_deny, &mut self.deny),
        };
        *count += 1;
        if let Some(agrees) = person_agrees(entry, review) {
            persons.known += 1;
            persons.otherwise += u64::from(!agrees);
        }
    }
}

/// Returns whether the reviewer's verdict is the decision about a request.
fn is_decided(entry: &StoredApproval) -> bool {
    let decision = entry.decision.as_ref();
    decision.is_some_and(Decision::is_by_reviewer)
}

/// Returns whether a person said what the reviewer said: by a decision about the request, or afterwards. An approval of other arguments
/// is not what the reviewer allowed.
fn person_agrees(entry: &StoredApproval, review: &Review) -> Option<bool> {
    let by_person = entry.decision.as_ref().filter(|one| !one.is_by_reviewer());
    let allows = review.verdict == Some(ReviewVerdict::Allow);
    match by_person.map(|decision| &decision.choice) {
        Some(Choice::Approve { edited, .. }) => Some(allows && edited.is_none()),
        Some(Choice::Deny { .. }) => Some(!allows),
        Some(Choice::Answer { .. }) | None => review.person.as_ref().map(|word| word.agrees),
    }
}

/// Stores a person's word on the review of a request.
///
/// # Errors
/// The request has no verdict of a reviewer, or it cannot be stored.
pub async fn say(app: &App, id: &ApprovalId, agrees: bool) -> Result<StoredApproval, Problem> {
    let entry = app.entry(id).await?;
    let review = entry.request.review.as_deref();
    let verdict = review.filter(|review| review.verdict.is_some() && !review.failed);
    let review = verdict.ok_or_else(|| {
        Problem::usage(format!("no reviewer has said anything about {id}"))
            .advise("`haft approvals review` lists the requests that were reviewed")
    })?;
    let said = Review {
        person: Some(PersonsWord {
            agrees,
            by: app.principal().subject.to_string(),
            at: i64::try_from(clock::now()).unwrap_or(i64::MAX),
        }),
        ..review.clone()
    };
    let inbox = app.executor().inbox();
    let stored = inbox.set_review(id, Some(review), &said).await;
    if stored.map_err(|error| Problem::failed(error.to_string()))? {
        return app.entry(id).await;
    }
    let late = Problem::failed("another user said something about it at the same moment");
    Err(late.advise("look at it, and say it again"))
}
