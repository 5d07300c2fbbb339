//! Which requests must be decided on their own, and why: the others may be approved together once the user has seen each.

use haft::approval::ApprovalRequest;
use haft::permission::{Effect, PathClaim};
use haft::policy::{Policy, protected, protected_from_commands};
use haft::spec::Risk;

/// The condition that states a command's network access.
const NETWORK: &str = "network";
/// The suffix of its value if every connection that no rule allows needs its own approval.
const CONNECTION_JUDGED: &str = "connection is judged";

/// Returns why this request cannot be approved together with others; `None` if it can.
pub fn reason(policy: &Policy, request: &ApprovalRequest) -> Option<&'static str> {
    if request.is_question() {
        return Some("a question is answered on its own");
    }
    if request.risk == Risk::Critical {
        return Some("critical");
    }
    if request.snapshot.more_permissions.is_some() {
        return Some("it has more effects than a request names");
    }
    let permissions = &request.snapshot.permissions;
    let by_command = permissions
        .iter()
        .any(|wanted| matches!(wanted.effect, Effect::Run { .. } | Effect::Apply { .. }));
    let of_effects = permissions
        .iter()
        .find_map(|wanted| reason_for_effect(policy, &wanted.effect, by_command));
    let reaches = request.snapshot.conditions.iter().any(|condition| {
        let closed = condition.value == "none" || condition.value.ends_with(CONNECTION_JUDGED);
        condition.name == NETWORK && !closed
    });
    of_effects
        .or_else(|| reaches.then_some("it reaches the network"))
        .or_else(|| request.needs_person().then_some("a guard asks about it"))
}

fn reason_for_effect(policy: &Policy, effect: &Effect, by_command: bool) -> Option<&'static str> {
    match effect {
        Effect::Connect { .. } => return Some("it connects to the network"),
        Effect::Sign { .. } => return Some("it uses one of your logins"),
        Effect::Run { jailed: false, .. } => return Some("it runs without a sandbox"),
        _ => {}
    }
    let changes = effect.changed_path().is_some();
    claim_paths(effect.path()?).find_map(|path| of_path(policy, path, changes, by_command))
}

fn of_path(policy: &Policy, path: &str, changes: bool, by_command: bool) -> Option<&'static str> {
    let names = policy.secret_names();
    let guarded = match (changes, by_command) {
        (false, _) => None,
        (true, false) => protected(path),
        (true, true) => protected_from_commands(path),
    };
    if names.covers(path) || names.covers_folder(path) {
        Some("it touches a file that may hold secrets")
    } else if guarded.is_some() {
        Some("it changes a protected file")
    } else if path.starts_with('/') || path == ".." || path.starts_with("../") {
        Some("it reaches outside the workspace")
    } else {
        None
    }
}

/// Returns the path as written, and the target of its links.
fn claim_paths(claim: &PathClaim) -> impl Iterator<Item = &str> {
    std::iter::once(claim.path.as_str()).chain(claim.target.as_deref())
}

#[cfg(test)]
mod tests {
    use haft::permission::Permission;
    use haft::policy::Profile;

    use super::*;

    fn effect_reason(effect: &Effect, by_command: bool) -> Option<&'static str> {
        reason_for_effect(&Policy::new(Profile::Workspace), effect, by_command)
    }

    #[test]
    fn secrets_the_network_protected_files_and_what_lies_outside_are_decided_alone() {
        let linked = |path: &str, target: &str| PathClaim {
            path: path.into(),
            target: Some(target.into()),
        };
        let run = |jailed| Effect::Run {
            command: "make".to_owned(),
            argv: None,
            jailed,
            on_copy: false,
        };
        let connect = Effect::Connect {
            url: "https://example.org/".to_owned(),
            host: "example.org".to_owned(),
            method: None,
            leads_to: Vec::new(),
        };
        let write = |path: &str| Permission::write(PathClaim::plain(path)).effect;
        let read = |path: &str| Permission::read(PathClaim::plain(path)).effect;
        let remove = |path: &str| Permission::remove(PathClaim::plain(path)).effect;
        for (effect, by_command, expect) in [
            (write("src/a.rs"), false, None),
            (remove("src/a.rs"), false, None),
            (read("src/a.rs"), true, None),
            (run(true), true, None),
            (run(false), true, Some("sandbox")),
            (connect, false, Some("network")),
            (read(".env"), false, Some("secrets")),
            (write("keys/server.pem"), true, Some("secrets")),
            (write(".env.example"), false, None),
            (write(".git/hooks/pre-commit"), true, Some("protected")),
            (write(".git/index"), true, None),
            (write(".git/index"), false, Some("protected")),
            (write(".vscode/tasks.json"), false, Some("protected")),
            (read(".vscode/tasks.json"), false, None),
            (write("/etc/hosts"), true, Some("outside")),
            (read("../other"), true, Some("outside")),
            (Effect::Write(linked("a", ".env")), false, Some("secrets")),
        ] {
            let reason = effect_reason(&effect, by_command);
            let fits = match (reason, expect) {
                (None, None) => true,
                (Some(reason), Some(expect)) => reason.contains(expect),
                _ => false,
            };
            assert!(fits, "{effect:?}: {reason:?}");
        }
    }
}
