//! Which settings differ, and which of two values of one lets more through: by the table in `orders.rs`.

use haft::text::clip;
use serde::Serialize;
use toml::Value;

use crate::config::Settings;
use crate::config::keys::SettingType;
use crate::config::value::amount;
use crate::policy_diff::orders::ValueOrder::{
    self, Adds, Budget, Choices, Confining, Flag, Less, More, Names, Neither, Only, Removes,
    Secrets, Unordered, Words,
};
use crate::policy_diff::orders::order_of;

/// Maximum length of a value that is shown, in bytes.
const MAX_SHOWN: usize = 80;

/// How a setting differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingShift {
    /// It lets more through.
    Loosened,
    /// It lets commands reach less, and has calls run for that reason which were asked about; or the reverse.
    BothWays,
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
            SettingShift::BothWays => "changed both ways",
            SettingShift::NotJudged => "changed, not judged",
            SettingShift::Tightened => "tightened",
        };
        let key = &self.key;
        let line = match (&self.old, &self.new) {
            (None, None) => format!("{word}: {key}"),
            (old, new) => {
                let shown = |value: &Option<String>| value.as_deref().unwrap_or("unset").to_owned();
                format!("{word}: {key} {} → {}", shown(old), shown(new))
            }
        };
        match self.shift {
            SettingShift::BothWays => format!(
                "{line} (where commands reach less, fewer of them are asked about, and the reverse)"
            ),
            _ => line,
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
    if values.0 == values.1 || key.kind == SettingType::Rules {
        return None;
    }
    let written = (
        old.map(|entry| &entry.written),
        new.map(|entry| &entry.written),
    );
    let order = order_of(&parts, key);
    let shown = |value: Option<&Value>| {
        let shows = order != Unordered && !matches!(key.kind, SettingType::Text | SettingType::Map);
        let value = value.filter(|_| shows)?;
        Some(clip(&value.to_string(), MAX_SHOWN).into_owned())
    };
    Some(SettingDifference {
        shift: shift(order, values.0, values.1)?,
        old: shown(written.0),
        new: shown(written.1),
        key: path.join("."),
    })
}

/// Returns how a value differs; `None` if both mean the same.
fn shift(order: ValueOrder, old: Option<&Value>, new: Option<&Value>) -> Option<SettingShift> {
    let number = |value: Option<&Value>| value.and_then(amount);
    let word = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    match order {
        Neither => None,
        Unordered => Some(SettingShift::NotJudged),
        Words(groups, unset) => {
            let given = |value| word(value).or((!unset.is_empty()).then(|| unset.to_owned()));
            of_words(groups, given(old), given(new))
        }
        Confining(groups, freer) => {
            let is_freer = |value| word(value).map(|word| freer.contains(&word.as_str()));
            if is_freer(old) == is_freer(new) {
                of_words(groups, word(old), word(new))
            } else {
                Some(SettingShift::BothWays)
            }
        }
        Choices(words) => {
            let rank = |value| {
                words
                    .iter()
                    .position(|own| Some(*own) == word(value).as_deref())
            };
            compared(rank(old), rank(new))
        }
        More => compared(number(new), number(old)),
        Less => compared(number(old), number(new)),
        Budget => {
            let limit = |value| number(value).filter(|most| *most > 0.0);
            let limit = |value| limit(value).unwrap_or(f64::INFINITY);
            compared(Some(limit(new)), Some(limit(old)))
        }
        Flag(loose, unset) => {
            // The looser flag comes first.
            let rank = |value: Option<&Value>| {
                let flag = value.and_then(Value::as_bool).or(unset);
                flag.map(|flag| flag != loose)
            };
            compared(rank(old), rank(new))
        }
        Adds | Removes | Only | Names | Secrets => of_items(order, old, new),
    }
}

/// Compares what both values are ranked as, where less is looser; `None` if they are equal.
fn compared<T: PartialOrd>(old: Option<T>, new: Option<T>) -> Option<SettingShift> {
    let (Some(old), Some(new)) = (old, new) else {
        return Some(SettingShift::NotJudged);
    };
    (old != new).then(|| {
        if new < old {
            SettingShift::Loosened
        } else {
            SettingShift::Tightened
        }
    })
}

/// Compares two words of groups; within a group, none is known to be looser.
fn of_words(groups: &[&[&str]], old: Option<String>, new: Option<String>) -> Option<SettingShift> {
    if old == new {
        return None;
    }
    let rank = |word: Option<String>| {
        let word = word?;
        groups
            .iter()
            .position(|group| group.contains(&word.as_str()))
    };
    Some(compared(rank(old), rank(new)).unwrap_or(SettingShift::NotJudged))
}

fn of_items(order: ValueOrder, old: Option<&Value>, new: Option<&Value>) -> Option<SettingShift> {
    let items = |value: Option<&Value>| -> Vec<Value> {
        let all = value.and_then(Value::as_array).cloned().unwrap_or_default();
        // Of two that are alike, the last counts: of names, the last that matches decides.
        let is_last = |(at, one): &(usize, &Value)| !all[at + 1..].contains(one);
        let last = all.iter().enumerate().filter(is_last);
        last.map(|(_, one)| one.clone()).collect()
    };
    let (old, new) = (items(old), items(new));
    let keeps = |list: &[Value], others: &[Value]| -> Vec<Value> {
        let kept = list.iter().filter(|one| others.contains(one));
        kept.cloned().collect()
    };
    // In another order, names mean something else.
    let negates = matches!(order, Names | Secrets);
    if negates && keeps(&old, &new) != keeps(&new, &old) {
        return Some(SettingShift::NotJudged);
    }
    if order == Only && old.is_empty() != new.is_empty() {
        return compared(Some(!old.is_empty()), Some(!new.is_empty()));
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
        let more_is_looser = matches!(order, Adds | Only | Names);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::{KEYS, SettingKey};

    /// Returns values of a key, all different.
    fn values(key: &SettingKey) -> Vec<Option<Value>> {
        let list = |items: &[&str]| Value::from(items.to_vec());
        let texts = |items: &[&str]| items.iter().map(|text| Some((*text).into())).collect();
        let mut values: Vec<Option<Value>> = match key.kind {
            SettingType::Flag => vec![Some(true.into()), Some(false.into())],
            SettingType::Whole(least) => [0, 1, 10].map(|more| Some((least + more).into())).into(),
            SettingType::Seconds | SettingType::Amount => {
                [1.5, 2.5].map(|one| Some(one.into())).into()
            }
            SettingType::Choice(words) => texts(words),
            SettingType::Text => texts(&["a", "b"]),
            SettingType::Items => [&["a"][..], &["a", "b"], &["b"], &["!a"], &["a", "!b"]]
                .map(|items| Some(list(items)))
                .into(),
            SettingType::Rules | SettingType::Map | SettingType::Anything => Vec::new(),
        };
        if key.default.is_empty() {
            values.push(None);
        }
        values
    }

    /// What is looser in one direction is not looser in the other, and what is not judged is so in both.
    #[test]
    fn a_setting_that_is_changed_back_is_judged_the_other_way() {
        use SettingShift::{Loosened, Tightened};
        for key in KEYS {
            let path: Vec<&str> = key.path.split('.').collect();
            let (order, values) = (order_of(&path, key), values(key));
            for (at, old) in values.iter().enumerate() {
                for new in &values[at..] {
                    let there = shift(order, old.as_ref(), new.as_ref());
                    let back = shift(order, new.as_ref(), old.as_ref());
                    let shown = format!("{} {old:?} {new:?}: {there:?}, {back:?}", key.path);
                    match (there, back) {
                        (Some(Loosened), Some(Tightened)) | (Some(Tightened), Some(Loosened)) => {}
                        // Of lists, some items may come and others go: looser both times.
                        (Some(Loosened), Some(Loosened)) => {
                            assert_eq!(key.kind, SettingType::Items, "{shown}");
                        }
                        (there, back) => assert_eq!(there, back, "{shown}"),
                    }
                    assert_ne!((there, back), (Some(Tightened), Some(Tightened)), "{shown}");
                }
            }
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn each_kind_of_order_knows_the_looser_value() {
        use SettingShift::{BothWays, Loosened, NotJudged, Tightened};
        let value = |text: &str| match text {
            "" => None,
            text => text
                .parse::<toml::Table>()
                .ok()
                .and_then(|table| table.get("v").cloned()),
        };
        for (path, old, new, expect) in [
            (
                "policy.profile",
                "v='workspace'",
                "v='trusted'",
                Some(Loosened),
            ),
            ("policy.keep_marks_s", "v=3600", "v=7200", Some(Tightened)),
            ("policy.keep_marks_s", "v=3600", "v=0", Some(Loosened)),
            (
                "policy.trust_workspace",
                "v='yes'",
                "v='no'",
                Some(Tightened),
            ),
            ("budgets.day.money", "v=5", "v=5.0", None),
            ("budgets.day.money", "", "v=0", None),
            ("budgets.day.money", "v=5", "", Some(Loosened)),
            ("sandbox.network", "v='full'", "v='none'", Some(BothWays)),
            ("sandbox.network", "v='install'", "v='ask'", Some(BothWays)),
            ("sandbox.network", "v='ask'", "v='full'", Some(BothWays)),
            ("sandbox.network", "v='ask'", "v='none'", Some(Tightened)),
            ("sandbox.network", "v='install'", "v='full'", Some(Loosened)),
            (
                "sandbox.network",
                "v='install'",
                "v='allow-list'",
                Some(NotJudged),
            ),
            ("sandbox.changes", "v='direct'", "v='copy'", Some(BothWays)),
            ("sandbox.changes", "v='copy'", "v='review'", Some(Tightened)),
            (
                "sandbox.backend",
                "v='passthrough'",
                "v='jail'",
                Some(BothWays),
            ),
            ("sandbox.backend", "v='auto'", "v='jail'", Some(NotJudged)),
            ("mcp.servers.x.enabled", "", "v=true", None),
            ("mcp.servers.x.enabled", "v=false", "", Some(Loosened)),
            ("mcp.servers.x.sampling", "", "v='pass'", Some(Loosened)),
            ("mcp.servers.x.elicitation", "", "v='pass'", None),
            ("files.read_before_write", "", "v=true", Some(NotJudged)),
            ("policy.secret_names", "", "v=['a/']", Some(Tightened)),
            ("policy.secret_names", "v=['a/']", "v=['a/', 'a/']", None),
            (
                "policy.secret_names",
                "v=['a/', '!a/']",
                "v=['!a/', 'a/']",
                Some(NotJudged),
            ),
            (
                "policy.secret_names",
                "v=['a/']",
                "v=['b', 'a/']",
                Some(Tightened),
            ),
            ("policy.secret_names", "v=['a/']", "v=['b']", Some(Loosened)),
            ("policy.secret_names", "v=['!a']", "", Some(Tightened)),
            ("skills.allow", "", "v=['a']", Some(Tightened)),
            ("skills.allow", "v=['a']", "v=['a', 'b']", Some(Loosened)),
            ("views.x.tools", "v=['a']", "", Some(Loosened)),
            ("locale", "", "v='de'", None),
            ("web.user_agent", "", "v='a'", Some(NotJudged)),
        ] {
            let parts: Vec<&str> = path.split('.').collect();
            let owned: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            let crate::config::keys::KeyLookup::Key(key) = crate::config::keys::find(&owned) else {
                panic!("{path}");
            };
            let found = shift(
                order_of(&parts, key),
                value(old).as_ref(),
                value(new).as_ref(),
            );
            assert_eq!(found, expect, "{path} {old} {new}");
        }
    }
}
