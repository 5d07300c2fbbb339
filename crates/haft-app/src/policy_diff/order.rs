//! Which value of a setting lets more through: one table by key. A key that is not in it, and differs, is reported as not judged.

use haft::text::clip;
use serde::Serialize;
use toml::Value;

use crate::config::Settings;
use crate::config::keys::{SettingKey, SettingType, Untrusted};
use crate::config::value::amount;

/// Maximum length of a value that is shown, in bytes.
const MAX_SHOWN: usize = 80;

/// How the values of a key are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueOrder {
    /// Words in groups, the loosest group first. Words of one group are not compared.
    Words(&'static [&'static [&'static str]]),
    /// The words of the table of keys, the loosest first.
    Choices(&'static [&'static str]),
    /// A larger number is looser.
    More,
    /// A larger number is looser; none, or 0, is looser than any.
    Budget,
    /// This flag is looser.
    Flag(bool),
    /// An item more is looser.
    Adds,
    /// An item less is looser.
    Removes,
    /// Names; one more is looser, and one less that begins with `!`.
    Names,
    /// The reverse.
    Secrets,
}

use ValueOrder::{Adds, Budget, Flag, Names, Removes, Secrets, Words};

/// The keys whose order does not follow from what an untrusted folder may do with them (`config/keys.rs`). `*` stands for one name.
const ORDERS: &[(&str, ValueOrder)] = &[
    (
        "approval.mode",
        Words(&[&["auto:high"], &["auto:safe"], &["ask"], &["deny"]]),
    ),
    (
        "policy.on_approval_timeout",
        Words(&[&["suspend"], &["deny"]]),
    ),
    ("policy.build_outputs", Names),
    ("policy.secret_names", Secrets),
    (
        "sandbox.network",
        Words(&[&["full"], &["install", "allow-list", "ask"], &["none"]]),
    ),
    (
        "sandbox.backend",
        Words(&[&["passthrough"], &["auto", "jail", "microvm", "kubernetes"]]),
    ),
    ("sandbox.allow_hosts", Adds),
    ("sandbox.read", Adds),
    ("sandbox.write", Adds),
    ("sandbox.path", Adds),
    ("sandbox.sockets", Adds),
    ("budgets.run.*", Budget),
    ("budgets.day.*", Budget),
    ("tools.enable", Adds),
    ("tools.disable", Removes),
    ("tools.*.enabled", Flag(true)),
    ("files.read_before_write", Flag(false)),
    ("web.robots", Flag(false)),
    (
        "memory.write_mode",
        Words(&[&["external"], &["candidate"], &["disabled"]]),
    ),
    ("skills.deny", Removes),
    ("mcp.servers.*.enabled", Flag(true)),
    ("mcp.servers.*.trusted", Flag(true)),
    ("mcp.servers.*.elicitation", Words(&[&["pass"], &["deny"]])),
    ("mcp.servers.*.sampling", Words(&[&["pass"], &["deny"]])),
    (
        "mcp.servers.*.sandbox.backend",
        Words(&[&["passthrough"], &["jail"]]),
    ),
    (
        "mcp.servers.*.sandbox.network",
        Words(&[&["host"], &["none"]]),
    ),
    ("mcp.servers.*.sandbox.read", Adds),
    ("mcp.servers.*.sandbox.write", Adds),
    ("mcp.trusted_clients", Adds),
    ("hook.wrap", Words(&[&["none"], &["jail"]])),
    ("views.*.deny", Removes),
];

/// Keys that say nothing about what may run: how it looks, and how fast it goes.
const NEITHER: &[&str] = &[
    "locale",
    "progress.enabled",
    "progress.flush_ms",
    "progress.flush_bytes",
    "console.notify",
    "console.start",
];

/// How a setting differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingShift {
    /// It lets more through.
    Loosened,
    /// The table does not say which of the two lets more through.
    NotJudged,
    /// It lets less through.
    Tightened,
}

/// A setting that differs, except the rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingDifference {
    /// How.
    pub shift: SettingShift,
    /// The key.
    pub key: String,
    /// The old value, as it is written; absent if there is none, or if it may hold a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

impl SettingDifference {
    /// Describes it in one line.
    pub fn to_line(&self) -> String {
        let word = match self.shift {
            SettingShift::Loosened => "loosened",
            SettingShift::NotJudged => "changed, not judged",
            SettingShift::Tightened => "tightened",
        };
        let key = &self.key;
        match (&self.old, &self.new) {
            (None, None) => format!("{word}: {key}"),
            (old, new) => {
                let shown = |value: &Option<String>| value.as_deref().unwrap_or("unset").to_owned();
                format!("{word}: {key} {} → {}", shown(old), shown(new))
            }
        }
    }
}

/// Returns the settings that differ, the looser first. Rules are not among them.
pub(super) fn differences(old: &Settings, new: &Settings) -> Vec<SettingDifference> {
    let mut paths: Vec<&[String]> = old.iter().chain(new.iter()).map(|(path, _)| path).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut found: Vec<_> = paths
        .into_iter()
        .filter_map(|path| difference(path, old, new))
        .collect();
    found.sort_by_key(|one| one.shift);
    found
}

fn difference(path: &[String], old: &Settings, new: &Settings) -> Option<SettingDifference> {
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    let (old, new) = (old.entry(&parts), new.entry(&parts));
    let key = old.or(new)?.key;
    let values = (old.map(|entry| &entry.value), new.map(|entry| &entry.value));
    let name = path.join(".");
    if values.0 == values.1 || key.kind == SettingType::Rules || NEITHER.contains(&name.as_str()) {
        return None;
    }
    let written = (
        old.map(|entry| &entry.written),
        new.map(|entry| &entry.written),
    );
    let order = order_of(&parts, key);
    let shown = |value: Option<&Value>| {
        let shows = order.is_some() && !matches!(key.kind, SettingType::Text | SettingType::Map);
        let value = value.filter(|_| shows)?;
        Some(clip(&value.to_string(), MAX_SHOWN).into_owned())
    };
    let shift = match order {
        Some(order) => shift(order, values.0, values.1)?,
        None => SettingShift::NotJudged,
    };
    Some(SettingDifference {
        shift,
        old: shown(written.0),
        new: shown(written.1),
        key: name,
    })
}

fn order_of(path: &[&str], key: &'static SettingKey) -> Option<ValueOrder> {
    let fits = |pattern: &str| {
        let parts: Vec<&str> = pattern.split('.').collect();
        let same = |(own, part): (&&str, &&str)| *own == "*" || own == part;
        parts.len() == path.len() && parts.iter().zip(path).all(same)
    };
    let found = ORDERS.iter().find(|(pattern, _)| fits(pattern));
    if let Some((_, order)) = found {
        return Some(*order);
    }
    match (key.untrusted, key.kind) {
        (
            Untrusted::Stricter,
            SettingType::Whole(_) | SettingType::Seconds | SettingType::Amount,
        ) => Some(ValueOrder::More),
        (Untrusted::Stricter, SettingType::Choice(words)) => Some(ValueOrder::Choices(words)),
        _ => None,
    }
}

/// Returns how a value differs; `None` if both mean the same.
fn shift(order: ValueOrder, old: Option<&Value>, new: Option<&Value>) -> Option<SettingShift> {
    let by = |loosens: Option<bool>| {
        Some(match loosens {
            Some(true) => SettingShift::Loosened,
            Some(false) => SettingShift::Tightened,
            None => SettingShift::NotJudged,
        })
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let number = |value: Option<&Value>| value.and_then(amount);
    match order {
        Words(groups) => {
            let rank = |value| {
                let text = text(value)?;
                let mut groups = groups.iter();
                groups.position(|group| group.contains(&text.as_str()))
            };
            by(compared(rank(new), rank(old)))
        }
        ValueOrder::Choices(words) => {
            let rank = |value| {
                let text = text(value)?;
                words.iter().position(|word| *word == text)
            };
            by(compared(rank(new), rank(old)))
        }
        ValueOrder::More => by(compared(number(old), number(new))),
        Budget => {
            let limit = |value| number(value).filter(|most| *most > 0.0);
            let limit = |value| limit(value).unwrap_or(f64::INFINITY);
            by(compared(Some(limit(old)), Some(limit(new))))
        }
        Flag(loose) => by(new.and_then(Value::as_bool).map(|flag| flag == loose)),
        Adds | Removes | Names | Secrets => of_items(order, old, new),
    }
}

/// Returns whether the first is smaller; `None` if they are equal or one is missing.
fn compared<T: PartialOrd>(small: Option<T>, large: Option<T>) -> Option<bool> {
    let (small, large) = (small?, large?);
    (small != large).then_some(small < large)
}

fn of_items(order: ValueOrder, old: Option<&Value>, new: Option<&Value>) -> Option<SettingShift> {
    let items = |value: Option<&Value>| -> Vec<Value> {
        value.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (old, new) = (items(old), items(new));
    let keeps = |list: &[Value], others: &[Value]| -> Vec<Value> {
        let kept = list.iter().filter(|one| others.contains(one));
        kept.cloned().collect()
    };
    // Of names, the last that matches decides: in another order they mean something else.
    let negates = matches!(order, Names | Secrets);
    if negates && keeps(&old, &new) != keeps(&new, &old) {
        return Some(SettingShift::NotJudged);
    }
    let added = new
        .iter()
        .filter(|one| !old.contains(one))
        .map(|one| (one, true));
    let removed = old
        .iter()
        .filter(|one| !new.contains(one))
        .map(|one| (one, false));
    let loosens = |(item, came): (&Value, bool)| {
        let negated = negates && item.as_str().is_some_and(|name| name.starts_with('!'));
        let more_is_looser = matches!(order, Adds | Names);
        (came != negated) == more_is_looser
    };
    let all: Vec<bool> = added.chain(removed).map(loosens).collect();
    // Otherwise the same items stand in another order, or one stands there twice.
    let differs = !all.is_empty();
    differs.then_some(if all.contains(&true) {
        SettingShift::Loosened
    } else {
        SettingShift::Tightened
    })
}
