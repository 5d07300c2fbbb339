//! The table of settings by what their values let through: one row for each key, with the direction in which a change is looser.

use crate::config::keys::{SettingKey, SettingType, Untrusted};

/// Words in groups, the loosest group first. Words of one group are not compared.
type WordGroups = &'static [&'static [&'static str]];

/// How the values of a key are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueOrder {
    /// The groups, and the word that holds if none is given; empty if that depends on more.
    Words(WordGroups, &'static str),
    /// Words, of which these have commands run with more in reach, and asked about more for that reason: a change from or to one of them
    /// is looser in one way and stricter in the other.
    Confining(WordGroups, &'static [&'static str]),
    /// The words of the table of keys, the loosest first.
    Choices(&'static [&'static str]),
    /// A larger number is looser.
    More,
    /// A smaller number is looser.
    Less,
    /// A larger number is looser; none, or 0, is looser than any.
    Budget,
    /// This flag is looser; and the flag that holds if none is given, if that is always the same.
    Flag(bool, Option<bool>),
    /// An item more is looser.
    Adds,
    /// An item less is looser.
    Removes,
    /// The only ones that count: an item more is looser, and no list is looser than any.
    Only,
    /// Names; one more is looser, and one less that begins with `!`.
    Names,
    /// The reverse.
    Secrets,
    /// A different value may let more through, or something else: no order says.
    Unordered,
    /// It says nothing about what may run: how it looks, and how fast it goes.
    Neither,
}

use ValueOrder::{
    Adds, Budget, Confining, Flag, Less, More, Names, Neither, Only, Removes, Secrets, Unordered,
    Words,
};

/// The keys whose order does not follow from what an untrusted folder may do with them (`config/keys.rs`). `*` stands for one name.
#[rustfmt::skip]
pub(super) const ORDERS: &[(&str, ValueOrder)] = &[
    ("policy.on_approval_timeout", Words(&[&["suspend"], &["deny"]], "")),
    ("policy.build_outputs", Names),
    ("policy.keep_marks_s", Less),
    ("policy.secret_names", Secrets),
    ("policy.reviewer.model", Unordered),
    ("policy.reviewer.may", Unordered),
    ("policy.reviewer.base_url", Unordered),
    ("policy.reviewer.timeout_s", Neither),
    ("budgets.run.*", Budget),
    ("budgets.day.*", Budget),
    ("approval.mode", Words(&[&["auto:high"], &["auto:safe"], &["ask"], &["deny"]], "ask")),
    ("approval.webhook.url", Unordered),
    ("approval.webhook.secret", Unordered),
    ("tools.enable", Adds),
    ("tools.disable", Removes),
    ("tools.defer", Neither),
    ("tools.*.enabled", Flag(true, None)),
    ("tools.*.description", Unordered),
    ("tools.*.i18n", Unordered),
    ("tools.*.bind", Unordered),
    ("tools.*.timeout_s", More),
    ("tools.*.overflow", Unordered),
    ("tools.*.inline_tokens", More),
    ("chain.engine", Unordered),
    ("sandbox.backend", Confining(&[&["passthrough"], &["auto", "jail", "microvm", "kubernetes"]], &["passthrough"])),
    ("sandbox.network", Confining(&[&["full"], &["install", "allow-list"], &["ask"], &["none"]], &["full", "install", "allow-list"])),
    ("sandbox.changes", Confining(&[&["direct"], &["copy"], &["review"]], &["direct"])),
    ("sandbox.allow_hosts", Adds),
    ("sandbox.read", Adds),
    ("sandbox.write", Adds),
    ("sandbox.path", Adds),
    ("sandbox.sockets", Adds),
    ("sandbox.env", Unordered),
    ("sandbox.memory_mb", Unordered),
    ("files.read_before_write", Flag(false, None)),
    ("files.check", Unordered),
    ("web.robots", Flag(false, Some(true))),
    ("web.user_agent", Unordered),
    ("web.search.provider", Unordered),
    ("web.search.url", Unordered),
    ("web.search.api_key", Unordered),
    ("web.search.headers", Unordered),
    ("web.search.results", Unordered),
    ("web.search.title", Unordered),
    ("web.search.link", Unordered),
    ("web.search.snippet", Unordered),
    ("network.proxy", Unordered),
    ("network.no_proxy", Unordered),
    ("network.credentials.*.host", Unordered),
    ("network.credentials.*.source", Unordered),
    ("network.credentials.*.command", Unordered),
    ("network.credentials.*.header", Unordered),
    ("memory.enabled", Flag(true, Some(true))),
    ("memory.provider", Unordered),
    ("memory.recall.tool", Unordered),
    ("memory.recall.argument", Unordered),
    ("memory.write.tool", Unordered),
    ("memory.write.argument", Unordered),
    ("memory.write_mode", Words(&[&["external"], &["candidate"], &["disabled"]], "candidate")),
    ("skills.dirs", Adds),
    ("skills.allow", Only),
    ("skills.deny", Removes),
    ("skills.as_tools", Flag(true, Some(false))),
    ("search.embeddings.url", Unordered),
    ("search.embeddings.model", Unordered),
    ("search.embeddings.api_key", Unordered),
    ("mcp.servers.*.command", Unordered),
    ("mcp.servers.*.args", Unordered),
    ("mcp.servers.*.env", Unordered),
    ("mcp.servers.*.cwd", Unordered),
    ("mcp.servers.*.url", Unordered),
    ("mcp.servers.*.headers", Unordered),
    ("mcp.servers.*.oauth.client_id", Unordered),
    ("mcp.servers.*.oauth.client_secret", Unordered),
    ("mcp.servers.*.oauth.issuer", Unordered),
    ("mcp.servers.*.oauth.scopes", Adds),
    ("mcp.servers.*.enabled", Flag(true, Some(true))),
    ("mcp.servers.*.strict", Flag(false, Some(false))),
    ("mcp.servers.*.trusted", Flag(true, Some(false))),
    ("mcp.servers.*.connect_timeout_s", More),
    ("mcp.servers.*.list_timeout_s", More),
    ("mcp.servers.*.call_timeout_s", More),
    ("mcp.servers.*.max_calls", More),
    ("mcp.servers.*.prefix", Unordered),
    ("mcp.servers.*.elicitation", Words(&[&["pass"], &["deny"]], "pass")),
    ("mcp.servers.*.sampling", Words(&[&["pass"], &["deny"]], "deny")),
    ("mcp.servers.*.roots", Unordered),
    ("mcp.servers.*.sandbox.backend", Words(&[&["passthrough"], &["jail"]], "jail")),
    ("mcp.servers.*.sandbox.network", Words(&[&["host"], &["none"]], "none")),
    ("mcp.servers.*.sandbox.read", Adds),
    ("mcp.servers.*.sandbox.write", Adds),
    ("mcp.trusted_clients", Adds),
    ("model.default", Unordered),
    ("model.base_url", Unordered),
    ("models.*.input_price", Unordered),
    ("models.*.cached_price", Unordered),
    ("models.*.output_price", Unordered),
    ("models.*.window", Unordered),
    ("agent.system", Unordered),
    ("agent.max_turns", More),
    ("agent.max_tokens", Budget),
    ("agent.max_cost", Budget),
    ("agent.max_time_s", Budget),
    ("agent.suggest", Neither),
    ("agent.provided", Unordered),
    ("agent.max_reply_tokens", Budget),
    ("store.url", Unordered),
    ("record.key", Unordered),
    ("record.anchor", Unordered),
    ("artifacts.url", Unordered),
    ("artifacts.max_bytes", Unordered),
    ("progress.enabled", Neither),
    ("progress.flush_ms", Neither),
    ("progress.flush_bytes", Neither),
    ("console.start", Neither),
    ("hook.ask", Unordered),
    ("hook.wrap", Confining(&[&["none"], &["jail"]], &["none"])),
    ("hook.shell_state", Unordered),
    ("hook.wait_s", Unordered),
    ("console.notify", Neither),
    ("serve.http", Unordered),
    ("serve.behind_proxy", Unordered),
    ("serve.hosts", Adds),
    ("serve.tools", Neither),
    ("serve.lazy_above", Neither),
    ("serve.pinned", Neither),
    ("serve.tls.cert", Unordered),
    ("serve.tls.key", Unordered),
    ("serve.oauth.issuer", Unordered),
    ("serve.oauth.audience", Unordered),
    ("serve.oauth.jwks_url", Unordered),
    ("serve.oauth.scopes", Unordered),
    ("views.*.tools", Only),
    ("views.*.deny", Removes),
    ("locale", Neither),
];

/// Returns the order of a key's values. A key without one fails a test, and counts as one without order.
pub(super) fn order_of(path: &[&str], key: &'static SettingKey) -> ValueOrder {
    row_of(path)
        .or_else(|| order_for_untrusted(key))
        .unwrap_or(Unordered)
}

fn row_of(path: &[&str]) -> Option<ValueOrder> {
    let fits = |pattern: &str| {
        let parts: Vec<&str> = pattern.split('.').collect();
        let same = |(own, part): (&&str, &&str)| *own == "*" || own == part;
        parts.len() == path.len() && parts.iter().zip(path).all(same)
    };
    let found = ORDERS.iter().find(|(pattern, _)| fits(pattern));
    found.map(|(_, order)| *order)
}

/// Returns the order of a key that an untrusted folder may make stricter: what it may do is the order.
fn order_for_untrusted(key: &SettingKey) -> Option<ValueOrder> {
    match (key.untrusted, key.kind) {
        (
            Untrusted::Stricter,
            SettingType::Whole(_) | SettingType::Seconds | SettingType::Amount,
        ) => Some(More),
        (Untrusted::Stricter, SettingType::Choice(words)) => Some(ValueOrder::Choices(words)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::KEYS;

    #[test]
    fn every_setting_has_one_row_and_every_row_a_setting() {
        for key in KEYS.iter().filter(|key| key.kind != SettingType::Rules) {
            let path: Vec<&str> = key.path.split('.').collect();
            let rows = ORDERS
                .iter()
                .filter(|(pattern, _)| *pattern == key.path || *pattern == wide(key.path));
            let rows = rows.count();
            let derived = order_for_untrusted(key).is_some();
            // A row stands before what follows from the table of keys.
            assert!(
                rows == 1 || rows == 0 && derived,
                "{} has {rows} rows: add one to ORDERS",
                key.path
            );
            assert_eq!(row_of(&path).is_some(), rows == 1, "{}", key.path);
        }
        for (pattern, _) in ORDERS {
            let known = KEYS
                .iter()
                .any(|key| key.path == *pattern || wide(key.path) == *pattern);
            assert!(known, "{pattern} is no setting");
        }
    }

    /// Returns the path with its last name left open, as a row for several keys has it.
    fn wide(path: &str) -> String {
        let (start, _) = path.rsplit_once('.').unwrap_or_default();
        format!("{start}.*")
    }

    #[test]
    fn the_words_of_a_row_are_those_of_its_setting() {
        for key in KEYS {
            let path: Vec<&str> = key.path.split('.').collect();
            let (groups, unset, freer) = match order_of(&path, key) {
                Words(groups, unset) => (groups, unset, &[][..]),
                Confining(groups, freer) => (groups, "", freer),
                _ => continue,
            };
            let SettingType::Choice(words) = key.kind else {
                panic!("{} takes no words", key.path);
            };
            let mut own: Vec<&str> = groups.concat();
            let mut all = words.to_vec();
            own.sort_unstable();
            all.sort_unstable();
            assert_eq!(own, all, "{}", key.path);
            assert!(unset.is_empty() || own.contains(&unset), "{}", key.path);
            assert!(freer.iter().all(|word| own.contains(word)), "{}", key.path);
            // A built-in value holds where none is given.
            let built_in = key.default.trim_matches('"');
            assert!(
                built_in.is_empty() || unset.is_empty() || unset == built_in,
                "{}",
                key.path
            );
        }
    }
}
