//! `CallSnapshot`: what a call would do at one moment, as shown to the user who decides. An approval holds for exactly this.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::approval::bounded::{self, MorePermissions};
use crate::approval::meaning::Meaning;
use crate::approval::preview::{FileChange, MAX_TEXT};
use crate::permission::{Condition, Effect, PathClaim, Permission};

/// A call's effects, the conditions it runs under, and the files it would change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallSnapshot {
    /// The permissions that the call needs.
    pub permissions: Vec<Permission>,
    /// The permissions beyond those that are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_permissions: Option<MorePermissions>,
    /// What settings decide about the call: how it is confined, what it can reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What would happen to which files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preview: Vec<FileChange>,
    /// What these changes amount to. It is read from the same files, so nothing compares it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanings: Vec<Meaning>,
}

impl CallSnapshot {
    /// Creates the snapshot of a call with these permissions. It keeps what a request may hold: the effects and files that it names, and
    /// as much of the content of files.
    pub(crate) fn of(
        permissions: &[Permission],
        conditions: Vec<Condition>,
        mut preview: Vec<FileChange>,
        mut meanings: Vec<Meaning>,
    ) -> Self {
        bounded::files(&mut preview);
        let mut room = MAX_TEXT;
        for meaning in &mut meanings {
            meaning.fit(&mut room);
        }
        let (permissions, more_permissions) = bounded::permissions(permissions);
        Self {
            permissions,
            more_permissions,
            conditions,
            preview,
            meanings,
        }
    }

    /// Describes the first difference from what was shown; `None` if there is none.
    pub fn difference(&self, now: &Self) -> Option<String> {
        self.other_effects(now).or_else(|| self.changed_file(now))
    }

    /// Like [`difference`](Self::difference), without file contents: comparing those requires that no other call of the session writes.
    pub fn other_effects(&self, now: &Self) -> Option<String> {
        self.changed_condition(now)
            .or_else(|| self.changed_effect(now))
    }

    /// Returns whether the first difference is one of the environment of the process that makes the call.
    pub fn differs_by_environment(&self, now: &Self) -> bool {
        let both = self.conditions.iter().chain(&now.conditions);
        let name = self.changed_name(now);
        let mut named = both.filter(|one| Some(one.name.as_str()) == name);
        named.next().is_some_and(Condition::is_of_environment)
    }

    /// Returns the name of the first condition that has changed.
    fn changed_name<'a>(&'a self, now: &'a Self) -> Option<&'a str> {
        let values = |of: &'a Self, name: &'a str| -> Vec<&'a str> {
            let named = of.conditions.iter().filter(|one| one.name == name);
            named.map(|one| &*one.value).collect()
        };
        let both = self.conditions.iter().chain(&now.conditions);
        both.map(|condition| condition.name.as_str())
            .find(|name| values(self, name) != values(now, name))
    }

    fn changed_condition(&self, now: &Self) -> Option<String> {
        let name = self.changed_name(now)?;
        let values = |of: &Self, than: &Self| {
            let named = of.conditions.iter().filter(|one| one.name == name);
            let values: Vec<String> = named
                .filter_map(|one| Some(format!("`{}`", value_besides(one, &than.conditions)?)))
                .collect();
            if values.is_empty() {
                "not set".to_owned()
            } else {
                values.join(", ")
            }
        };
        let (was, is) = (values(self, now), values(now, self));
        Some(format!("{name} was shown as {was} but is now {is}"))
    }

    fn changed_effect(&self, now: &Self) -> Option<String> {
        if self.permissions == now.permissions {
            let other = self.more_permissions != now.more_permissions;
            return other.then(|| {
                "effects that the request counts but that are not named changed".to_owned()
            });
        }
        let new = now
            .permissions
            .iter()
            .find(|permission| !self.permissions.contains(permission));
        let removed = self
            .permissions
            .iter()
            .find(|permission| !now.permissions.contains(permission));
        Some(match (removed, new) {
            (Some(removed), Some(new)) => {
                let (was, is) = (describe(removed), describe(new));
                format!("it was shown as {was} but would now be {is}")
            }
            (None, Some(new)) => format!("{} was not shown", describe(new)),
            (Some(removed), None) if removed.effect.changed_path().is_some() => {
                let was = describe(removed);
                format!("{was} is no longer part of it: something else has changed it meanwhile")
            }
            (Some(removed), None) => format!("{} is no longer part of it", describe(removed)),
            (None, None) => "its effects differ in order or number from those shown".to_owned(),
        })
    }

    fn changed_file(&self, now: &Self) -> Option<String> {
        let pairs = self.preview.iter().zip(&now.preview);
        let mut changed = pairs
            .filter(|(shown, now)| !shown.is_same(now))
            .map(|(shown, _)| shown);
        let longer = |of: &'_ Self, than: &Self| of.preview.get(than.preview.len()).cloned();
        let file = changed.next().cloned();
        let file = file
            .or_else(|| longer(self, now))
            .or_else(|| longer(now, self))?;
        Some(format!("{} changed after it was shown", file.path))
    }
}

/// Returns the value of a condition; of a list that the environment decides, only the items that the same condition has not among these.
fn value_besides(condition: &Condition, others: &[Condition]) -> Option<String> {
    if !condition.is_of_environment() {
        return Some(condition.value.clone());
    }
    let same = others.iter().filter(|other| other.name == condition.name);
    let known: Vec<&str> = same.flat_map(|other| other.value.split(", ")).collect();
    let items = condition.value.split(", ");
    let only: Vec<&str> = items.filter(|item| !known.contains(item)).collect();
    (!only.is_empty()).then(|| only.join(", "))
}

/// Joins addresses for display.
fn join_addresses(addresses: &[IpAddr]) -> String {
    let each: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    each.join(", ")
}

/// Describes an effect in a few words, with the target of links and its confinement.
fn describe(permission: &Permission) -> String {
    let claim = |claim: &PathClaim| match &claim.target {
        Some(target) => format!("{} → {target}", claim.path),
        None => claim.path.clone(),
    };
    let effect = &permission.effect;
    let value = match effect {
        Effect::Run { jailed: false, .. } => format!("{} without the jail", effect.value()),
        Effect::Remember { scope, digest } => format!("{scope} {digest}"),
        Effect::Connect { url, leads_to, .. } => {
            let method = effect.method_shown();
            let method = method.map_or_else(String::new, |method| format!("{method} "));
            let at = if leads_to.is_empty() {
                String::new()
            } else {
                format!(" at {}", join_addresses(leads_to))
            };
            format!("{method}{url}{at}")
        }
        Effect::Sign { purpose, by } => format!("{purpose} by {by}"),
        other => other.path().map_or_else(|| other.value().to_owned(), claim),
    };
    let value: String = value.chars().take(160).collect();
    format!("{} {value} (risk {})", effect.kind(), permission.risk)
}

#[cfg(test)]
mod tests {
    use super::CallSnapshot;
    use crate::approval::bounded::MAX_PERMISSIONS;
    use crate::approval::preview::FileChange;
    use crate::permission::{Condition, PathClaim, Permission};
    use crate::spec::Risk;

    fn linked(target: &str) -> PathClaim {
        PathClaim {
            path: "ln".to_owned(),
            target: Some(target.to_owned()),
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn p9_every_part_that_was_shown_is_compared() {
        let write = |claim| CallSnapshot {
            permissions: vec![Permission::write(claim)],
            ..CallSnapshot::default()
        };
        let under = |name: &str, value: &str| CallSnapshot {
            conditions: vec![Condition::new(name, value)],
            ..CallSnapshot::default()
        };
        let file = |text: &str, target: Option<&str>| CallSnapshot {
            preview: vec![
                FileChange::new("a", Some(text.as_bytes()), Some(b"new"))
                    .leading_to(target.map(str::to_owned)),
            ],
            ..CallSnapshot::default()
        };
        let risky = CallSnapshot {
            permissions: vec![Permission::write(PathClaim::plain("a")).at(Risk::Critical)],
            ..CallSnapshot::default()
        };
        let rows = [
            (write(linked("t1")), write(linked("t2")), "ln → t2"),
            (
                write(linked("t1")),
                write(PathClaim::plain("ln")),
                "would now be write ln",
            ),
            (write(PathClaim::plain("a")), risky, "risk critical"),
            (
                write(PathClaim::plain("a")),
                CallSnapshot::default(),
                "no longer",
            ),
            (
                CallSnapshot::default(),
                write(PathClaim::plain("a")),
                "was not shown",
            ),
            (
                under("network", "none"),
                under("network", "full"),
                "is now `full`",
            ),
            (
                under("sandbox", "jail"),
                CallSnapshot::default(),
                "is now not set",
            ),
            (
                CallSnapshot::default(),
                under("sandbox", "none"),
                "was shown as not set",
            ),
            (file("one", None), file("two", None), "a changed"),
            (
                file("one", Some("t1")),
                file("one", Some("t2")),
                "a changed",
            ),
            (file("one", None), CallSnapshot::default(), "a changed"),
            (CallSnapshot::default(), file("one", None), "a changed"),
        ];
        for (shown, now, says) in rows {
            let difference = shown.difference(&now).unwrap();
            assert!(difference.contains(says), "{difference} lacks {says}");
            assert_eq!(shown.difference(&shown), None);
            assert_eq!(now.difference(&now), None);
        }
    }

    fn very_many(last: &str) -> CallSnapshot {
        let write = |path: String| Permission::write(PathClaim::plain(path));
        let mut permissions = vec![Permission::apply("make".to_owned())];
        permissions.extend((0..200_000).map(|nth| write(format!("out/{nth}"))));
        permissions.push(write(".mcp.json".to_owned()).at(Risk::Critical));
        permissions.push(write(last.to_owned()));
        CallSnapshot::of(&permissions, Vec::new(), Vec::new(), Vec::new())
    }

    #[test]
    fn a_snapshot_with_very_many_effects_names_the_gravest_and_binds_all() {
        let shown = very_many("last");
        assert_eq!(shown.permissions.len(), MAX_PERMISSIONS);
        let names = |path: &str| {
            let mut effects = shown.permissions.iter().map(|wanted| wanted.effect.value());
            effects.any(|value| value == path)
        };
        assert!(names(".mcp.json") && names("make") && !names("last"));
        let more = shown.more_permissions.as_ref().unwrap();
        assert_eq!(more.count, 200_003 - MAX_PERMISSIONS as u64);
        let json = serde_json::to_string(&shown).unwrap();
        assert!(json.len() < 1 << 20, "{}", json.len());
        assert_eq!(shown.difference(&very_many("last")), None);
        let difference = shown.difference(&very_many("other")).unwrap();
        assert!(difference.contains("not named"), "{difference}");
    }
}
