//! Bounds between settings: no call outlives its run, no wait for a decision outlives the call in a script.

use toml::Value;

use crate::config::layer::SettingsLayer;
use crate::config::value;
use crate::config::{Settings, ValueOrigin};
use crate::problem::Problem;

/// The first may be at most the second; if the flag is set, it must be less.
const ORDERED_PAIRS: [(&str, &str, bool); 4] = [
    ("limits.call_timeout_s", "limits.total_timeout_s", false),
    ("limits.approval_timeout_s", "limits.total_timeout_s", false),
    ("chain.call_timeout_s", "chain.total_timeout_s", false),
    ("chain.approval_timeout_s", "chain.call_timeout_s", true),
];

/// Checks all pairs. A built-in value is lowered to its bound; one that the user set is an error.
///
/// # Errors
/// A [`Problem`] that names the two settings that contradict each other.
pub fn check(settings: &mut Settings) -> Result<(), Problem> {
    for (lesser, greater, strictly) in ORDERED_PAIRS {
        let (Some(low), Some(high)) = (number(settings, lesser), number(settings, greater)) else {
            continue;
        };
        if low < high || (low <= high && !strictly) {
            continue;
        }
        let bound = if strictly { high * 0.9 } else { high };
        if !follow(settings, lesser, bound) {
            let relation = if strictly { "must be below" } else { "is over" };
            let problem = Problem::settings(format!(
                "`{lesser}` ({low} s) {relation} `{greater}` ({high} s)"
            ))
            .advise(format!("lower `{lesser}` or raise `{greater}`"));
            let place = place(settings, lesser).or_else(|| place(settings, greater));
            return Err(match place {
                Some(place) => problem.at(place),
                None => problem,
            });
        }
    }
    Ok(())
}

fn number(settings: &Settings, dotted: &str) -> Option<f64> {
    value::seconds(&settings.at(dotted)?.value)
}

fn place(settings: &Settings, dotted: &str) -> Option<crate::problem::SourceLocation> {
    settings.at(dotted)?.sources.first()?.place.clone()
}

/// Lowers a built-in value to its bound; returns `false` if the user set it.
fn follow(settings: &mut Settings, dotted: &str, bound: f64) -> bool {
    let path: Vec<String> = dotted.split('.').map(str::to_owned).collect();
    let Some(entry) = settings.entries.get_mut(&path) else {
        return false;
    };
    if !matches!(
        entry.sources.as_slice(),
        [ValueOrigin {
            layer: SettingsLayer::BuiltIn,
            ..
        }]
    ) {
        return false;
    }
    entry.value = Value::Float(bound);
    entry.written = Value::Float(bound);
    true
}
