//! `Safeguards`: what restricts calls under a policy, in a form that another process can compare with its own.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Policy;
use crate::budget::{CountedEffect, EffectLimits};
use crate::profile::CommandPolicy;
use crate::profile::Profile;
use crate::rules::RuleText;
use crate::rules::rule::RuleList;
use crate::secret_files::SecretFiles;
use haft_types::text::hex;

/// Maximum number of safeguards that a request lists by name.
const MAX_LISTED: usize = 128;
/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 120;
/// Length of a digest, in bytes.
const DIGEST_BYTES: usize = 8;

/// One restriction: a deny or ask rule, a guard, a name of secret files, a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Safeguard {
    /// What it is, for people; long names are cut.
    pub name: String,
    /// The beginning of the SHA-256 digest of the whole name, in hexadecimal.
    pub digest: String,
    /// For a budget: the most that it leaves. Less is stricter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
}

/// The restrictions of a policy. A set, so that fewer can be told from more: a decision holds where nothing is missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Safeguards {
    listed: Vec<Safeguard>,
    /// The number of further ones, and a digest of them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    further: Option<SafeguardOverflow>,
    /// What settings take from the restrictions on secret files. Here, more are weaker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    openings: Vec<Safeguard>,
    /// Whether secret files are not restricted at all, so that openings take nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    open: bool,
}

/// What does not fit into the list. It is only compared as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SafeguardOverflow {
    count: usize,
    digest: String,
}

impl Safeguard {
    fn new(name: &str) -> Self {
        Self {
            digest: digest(name.as_bytes()),
            name: name[..name.floor_char_boundary(MAX_NAME)].to_owned(),
            most: None,
        }
    }

    fn at_most(name: &str, most: f64) -> Self {
        Self {
            most: Some(most),
            ..Self::new(name)
        }
    }

    /// Whether the other one restricts at least as much.
    fn is_kept_by(&self, other: &Self) -> bool {
        let as_low = match (self.most, other.most) {
            (Some(most), Some(now)) => now <= most,
            (None, _) => true,
            (Some(_), None) => false,
        };
        self.digest == other.digest && as_low
    }
}

impl Safeguards {
    fn of(all: Vec<Safeguard>) -> Self {
        Self {
            listed: sorted(all),
            ..Self::default()
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Returns them in a bounded form, for a request.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let rest = self.listed.split_off(self.listed.len().min(MAX_LISTED));
        if !rest.is_empty() {
            self.further = Some(SafeguardOverflow::of(&rest.iter().collect::<Vec<_>>()));
        }
        // One that is not listed counts as added later.
        self.openings.truncate(MAX_LISTED);
        self
    }

    /// Names a safeguard that a policy with these does not have; `None` if it has all. More are fine, except beyond the list of a
    /// request: there, fewer cannot be told from more.
    pub fn missing_in(&self, now: &Self) -> Option<String> {
        let is_missing = |one: &&Safeguard| !now.listed.iter().any(|other| one.is_kept_by(other));
        if let Some(missing) = self.listed.iter().find(is_missing) {
            return Some(match missing.most {
                Some(most) => format!("{} (at most {most})", missing.name),
                None => missing.name.clone(),
            });
        }
        if let Some(opening) = self.added_opening(now) {
            return Some(format!("a policy without {}", opening.name));
        }
        let further = self.further.as_ref()?;
        let is_listed = |one: &Safeguard| self.listed.iter().any(|own| own.digest == one.digest);
        let rest: Vec<&Safeguard> = now.listed.iter().filter(|one| !is_listed(one)).collect();
        (*further != SafeguardOverflow::of(&rest))
            .then(|| format!("one of {} further rules", further.count))
    }

    /// Returns what opens secret files under a policy with the other ones and not under this one.
    fn added_opening<'n>(&self, now: &'n Self) -> Option<&'n Safeguard> {
        if self.open {
            return None;
        }
        let is_known = |one: &&Safeguard| self.openings.iter().any(|own| own.digest == one.digest);
        now.openings.iter().find(|one| !is_known(one))
    }
}

/// Sorts by digest, each once.
fn sorted(mut all: Vec<Safeguard>) -> Vec<Safeguard> {
    all.sort_by(|one, other| one.digest.cmp(&other.digest));
    all.dedup_by(|one, other| one.digest == other.digest);
    all
}

impl Policy {
    /// Returns what restricts calls under this policy. The standard guards and protected names are not listed: every policy has them.
    pub fn safeguards(&self) -> Safeguards {
        let written = self.rule_set();
        let rule = |list: &'static str| {
            move |rule: &RuleText| Safeguard::new(&format!("the {list} rule {}", rule.rule))
        };
        let mut all: Vec<Safeguard> = written.deny.iter().map(rule("deny")).collect();
        all.extend(written.ask.iter().map(rule("ask")));
        let guards = self.added.iter().flat_map(|guard| guard.safeguards());
        all.extend(guards.map(|name| Safeguard::new(&name)));
        all.extend(self.ladders().map(Safeguard::new));
        let own = self.secret_names().added().filter(|(_, secret)| *secret);
        all.extend(own.map(|(name, _)| Safeguard::new(&format!("the secret name {name}"))));
        if let Some(budgets) = self.budgets() {
            all.extend(limits("run", budgets.run()));
            all.extend(limits("day", budgets.day()));
        }
        Safeguards {
            openings: sorted(self.openings()),
            open: self.secret_files() == SecretFiles::Allow,
            ..Safeguards::of(all)
        }
    }

    /// Returns what opens secret files: exemptions from their names, and allow rules that name them.
    fn openings(&self) -> Vec<Safeguard> {
        let entries: Vec<_> = self.secret_names().added().collect();
        let exemptions = entries
            .iter()
            .enumerate()
            .filter(|(_, (_, secret))| !secret);
        let exemptions = exemptions.map(|(nth, (name, _))| {
            // An exemption takes nothing from the names after it: what it takes depends on the ones before.
            let (before, after) = entries.split_at(nth);
            let taken = before.iter().filter(|one| one.1 && !after.contains(one));
            let mut whole = format!("the exemption {name} from the secret names");
            let shown = Safeguard::new(&whole);
            for (name, _) in taken {
                whole.extend(["\n", name]);
            }
            Safeguard {
                digest: digest(whole.as_bytes()),
                ..shown
            }
        });
        // A rule that was kept for one call opens nothing to another one.
        let rules = self.rules.all().iter();
        let rules = rules.filter(|rule| rule.list == RuleList::Allow && rule.kept_for.is_none());
        let asks = self.secret_files() == SecretFiles::Ask;
        let rules = rules.filter(|rule| asks && self.names_secrets(rule).is_some());
        let rules = rules.map(|rule| Safeguard::new(&format!("the allow rule {}", rule.text)));
        exemptions.chain(rules).collect()
    }

    /// Returns the steps of settings that have an order: a stricter value has all steps of a weaker one.
    fn ladders(&self) -> impl Iterator<Item = &'static str> {
        let profile: &[&str] = match self.profile {
            Profile::Trusted => &[],
            Profile::Workspace => &["the profile workspace"],
            Profile::ReadOnly => &["the profile workspace", "the profile read-only"],
        };
        let secrets: &[&str] = match self.secret_files() {
            SecretFiles::Allow => &[],
            SecretFiles::Ask => &["asking about secret files"],
            SecretFiles::Deny => &["asking about secret files", "denying secret files"],
        };
        let commands: &[&str] = match self.commands {
            CommandPolicy::Copy => &[],
            CommandPolicy::Ask => &["asking before commands run"],
        };
        profile.iter().chain(secrets).chain(commands).copied()
    }
}

fn limits(period: &'static str, limits: &EffectLimits) -> impl Iterator<Item = Safeguard> {
    let counts: Vec<Safeguard> = CountedEffect::ALL
        .into_iter()
        .filter_map(|counted| {
            let name = format!("the budget of {} of a {period}", counted.as_str());
            #[expect(clippy::cast_precision_loss, reason = "a limit is far below 2^52")]
            let most = limits.get(counted)? as f64;
            Some(Safeguard::at_most(&name, most))
        })
        .collect();
    let money = limits.money;
    let money =
        money.map(|most| Safeguard::at_most(&format!("the budget of money of a {period}"), most));
    counts.into_iter().chain(money)
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..DIGEST_BYTES])
}

impl SafeguardOverflow {
    /// Summarizes safeguards that are in the order of their digests.
    fn of(all: &[&Safeguard]) -> Self {
        let mut hasher = Sha256::new();
        for one in all {
            hasher.update(one.digest.as_bytes());
            hasher.update(one.most.unwrap_or(-1.0).to_be_bytes());
        }
        Self {
            count: all.len(),
            digest: hex(&hasher.finalize()[..DIGEST_BYTES]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budgets;
    use crate::builder::PolicyBuilder;
    use crate::guards::untrusted_content::UntrustedContent;
    use crate::rules::RuleSet;
    use crate::rules::RuleText;
    use haft_files::secret_names::SecretNames;
    use haft_types::permission::Verdict;

    fn denying(rules: impl IntoIterator<Item = String>) -> Safeguards {
        let rules = RuleSet {
            deny: rules.into_iter().map(RuleText::new).collect(),
            ..RuleSet::default()
        };
        let policy = Policy::builder(Profile::Workspace).rules(rules).build();
        policy.unwrap().safeguards()
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn fewer_safeguards_are_told_from_more() {
        let build = |policy: crate::PolicyBuilder| policy.build().unwrap();
        let plain = || Policy::builder(Profile::Workspace);
        let guarded = |verdict| plain().guard(UntrustedContent::new(verdict));
        let budget = |most| {
            let limits = EffectLimits {
                sends: Some(most),
                ..EffectLimits::default()
            };
            build(plain()).with_budgets(Budgets::of_run(limits))
        };
        let rows = [
            (
                build(plain().deny("Read(/a)")),
                build(plain()),
                "the deny rule Read(/a)",
            ),
            (
                build(plain().ask("Bash(make *)")),
                build(plain()),
                "the ask rule Bash(make *)",
            ),
            (
                build(plain()),
                build(Policy::builder(Profile::Trusted)),
                "the profile workspace",
            ),
            (
                build(plain().secret_files(SecretFiles::Deny)),
                build(plain().secret_files(SecretFiles::Ask)),
                "denying secret files",
            ),
            (
                build(plain().commands(CommandPolicy::Ask)),
                build(plain()),
                "asking before commands run",
            ),
            (
                build(guarded(Verdict::Ask)),
                build(plain()),
                "the guard untrusted-content",
            ),
            (
                build(guarded(Verdict::Deny)),
                build(guarded(Verdict::Ask)),
                "denying what may follow from untrusted content",
            ),
            (
                budget(5),
                budget(9),
                "the budget of sends of a run (at most 5)",
            ),
            (
                budget(5),
                build(plain()),
                "the budget of sends of a run (at most 5)",
            ),
        ];
        for (asked, now, missing) in rows {
            let (asked, now) = (asked.safeguards().bounded(), now.safeguards());
            assert_eq!(asked.missing_in(&now).as_deref(), Some(missing));
            assert_eq!(
                now.bounded().missing_in(&asked),
                None,
                "{missing}: more is fine"
            );
        }
        // The same text in another list is another rule.
        let asked = build(plain().deny("Read(/a)")).safeguards();
        let now = build(plain().ask("Read(/a)")).safeguards();
        let missing = asked.missing_in(&now);
        assert_eq!(missing.as_deref(), Some("the deny rule Read(/a)"));
    }

    #[test]
    fn what_opens_secret_files_counts_as_fewer_safeguards() {
        let named = |entries: &[&str]| {
            let names = SecretNames::default().with(entries.iter().copied());
            let mut policy = Policy::builder(Profile::Workspace);
            policy.secrets.names = names.unwrap();
            policy
        };
        let build = |policy: PolicyBuilder| policy.build().unwrap().safeguards();
        let env = "a policy without the exemption !.env from the secret names";
        let rule = "a policy without the allow rule Read(.env)";
        let reads = |policy: PolicyBuilder| policy.allow("Read(.env)");
        let unasked = named(&[]).secret_files(SecretFiles::Allow);
        let rows = [
            (named(&[]), named(&["!.env"]), Some(env)),
            (named(&["!.env"]), named(&["!.env"]), None),
            (named(&["!.env"]), named(&[]), None),
            (named(&["!.env", "x"]), named(&["x", "!.env"]), Some(env)),
            (
                named(&["!.env", ".env"]),
                named(&["!.env"]),
                Some("the secret name .env"),
            ),
            (named(&[]), reads(named(&[])), Some(rule)),
            (reads(named(&[])), reads(named(&[])), None),
            (reads(named(&[])), named(&[]), None),
            (named(&[]), named(&[]).allow("Read(src/**)"), None),
            (unasked, reads(named(&["!.env"])), None),
        ];
        for (nth, (asked, now, missing)) in rows.into_iter().enumerate() {
            let text = serde_json::to_string(&build(asked).bounded()).unwrap();
            let asked: Safeguards = serde_json::from_str(&text).unwrap();
            let found = asked.missing_in(&build(now));
            assert_eq!(found.as_deref(), missing, "row {nth}");
        }
    }

    #[test]
    fn safeguards_beyond_the_list_are_compared_as_a_whole() {
        let rules = |n: usize| (0..n).map(|n| format!("Read(/{n})"));
        let many = MAX_LISTED * 2;
        let asked = denying(rules(many)).bounded();
        assert_eq!(asked.listed.len(), MAX_LISTED);
        assert_eq!(asked.missing_in(&denying(rules(many))), None);
        for n in 0..many {
            let one_less = rules(many).enumerate().filter(|(nth, _)| *nth != n);
            let missing = asked.missing_in(&denying(one_less.map(|(_, rule)| rule)));
            assert!(missing.is_some(), "without rule {n}");
        }
        let text = serde_json::to_string(&asked).unwrap();
        assert!(text.len() < 16 << 10, "{} bytes", text.len());
    }
}
