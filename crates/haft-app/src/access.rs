//! Access tokens that an operator issues to others: each is known by name, sees one view of the tools and can be revoked on its own. haft
//! stores only the hash of a token, in a file of the state folder.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use haft::call::Principal;
use haft::text::hex;
use jiff::{Timestamp, ToSpan as _};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use crate::config::{Settings, views};
use crate::home::Home;
use crate::nearest::nearest;
use crate::plain_file::{self, Stamp, stamp};
use crate::problem::{Problem, SourceLocation};

/// The file's name in the state folder.
const FILE_NAME: &str = "access-tokens.json";
const MAX_BYTES: u64 = 4 << 20;
/// Maximum number of tokens.
const MAX_TOKENS: usize = 10_000;
/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 64;
/// The prefix of every token, by which secret scanners recognize it.
pub const PREFIX: &str = "haft_";
/// Random bytes in a token.
const RANDOM_BYTES: usize = 32;
/// Maximum lifetime of a token, in days.
pub const MAX_DAYS: u32 = 3650;

/// What the subject of a token's principal begins with.
const SUBJECT_PREFIX: &str = "token:";
const NANOS: i128 = 1_000_000_000;

/// A token that no longer counts, by name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the access token `{0}` that made this call was removed or has expired")]
pub struct TokenLapse(String);

/// A caller identified by something other than one of the server's own two tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentifiedCaller {
    /// The principal that its calls are made for.
    pub principal: Principal,
    /// Its view; `None` for all tools.
    pub view: Option<String>,
}

/// A token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessToken {
    /// The name of the person or program that it was issued to.
    pub name: String,
    /// The SHA-256 of the token, in hex.
    sha256: String,
    /// Its view; `None` for all tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// The time of creation.
    #[serde(with = "written")]
    pub created: Timestamp,
    /// The time of expiry.
    #[serde(with = "written")]
    pub expires: Timestamp,
}

/// Serializes times for the file, as RFC 3339.
mod written {
    use jiff::Timestamp;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(time)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Returns the current time in whole seconds, as files and lists have it; if the clock cannot be read, a time at which
/// every token has expired.
fn now() -> Timestamp {
    let seconds = i64::try_from(haft::clock::now() / 1_000_000_000);
    let time = seconds
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.unwrap_or(Timestamp::MAX)
}

impl AccessToken {
    /// Returns whether the token has expired.
    pub fn has_expired(&self) -> bool {
        self.expires <= now()
    }

    /// Returns the principal of calls made with the token. It belongs to the operator's own tenant, so that the operator sees its approval
    /// requests; no login name on this machine contains a colon.
    fn person(&self, tenant: &str) -> IdentifiedCaller {
        IdentifiedCaller {
            principal: Principal::new(tenant, format!("{SUBJECT_PREFIX}{}", self.name)),
            view: self.view.clone(),
        }
    }
}

/// All tokens, as the state folder holds them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessTokens {
    v: u32,
    tokens: Vec<AccessToken>,
}

/// The properties of a new token.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// The name of the person or program that it is for.
    pub name: String,
    /// Its view; `None` for all tools.
    pub view: Option<String>,
    /// Its lifetime in days.
    pub days: u32,
}

impl AccessTokens {
    /// Reads the tokens; an absent file means no tokens.
    ///
    /// # Errors
    /// A [`Problem`] if the file is damaged or cannot be read.
    pub fn load(home: &Home) -> Result<Self, Problem> {
        let path = home.join(FILE_NAME);
        let failed = |what: String| {
            Problem::settings(format!("cannot read the access tokens: {what}"))
                .at(SourceLocation::file(&path))
                .advise("move the file away and create the tokens again: haft token add NAME")
        };
        match plain_file::read(&path, MAX_BYTES) {
            Ok(text) => serde_json::from_str(&text).map_err(|e| failed(e.to_string())),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(Self::default())
            }
            Err(e) => Err(failed(e.to_string())),
        }
    }

    /// Returns all tokens, sorted by name.
    pub fn all(&self) -> &[AccessToken] {
        &self.tokens
    }

    /// Creates a token and stores its hash. The token itself is in the returned value and nowhere else.
    ///
    /// # Errors
    /// A [`Problem`] if the name or the number of days is invalid, the name is taken, or the file cannot be read or written.
    pub fn add(home: &Home, new: &NewToken) -> Result<(String, AccessToken), Problem> {
        check(new)?;
        let secret = plain_file::random_hex(RANDOM_BYTES)
            .map_err(|e| Problem::failed(format!("cannot create a token: {e}")))?;
        let secret = format!("{PREFIX}{secret}");
        let created = now();
        let days = i64::from(new.days) * 24;
        let expires = created.checked_add(days.hours());
        let expires = expires.map_err(|e| Problem::usage(format!("{} days: {e}", new.days)))?;
        let token = AccessToken {
            name: new.name.clone(),
            sha256: digest(&secret),
            view: new.view.clone(),
            created,
            expires,
        };
        Self::change(home, |tokens| {
            if tokens.iter().any(|known| known.name == token.name) {
                let what = format!("a token `{}` already exists", token.name);
                return Err(Problem::usage(what)
                    .advise(format!("revoke it first: haft token remove {}", token.name)));
            }
            if tokens.len() >= MAX_TOKENS {
                let what = format!("there are already {MAX_TOKENS} tokens");
                return Err(Problem::usage(what).advise("remove those that have expired"));
            }
            tokens.push(token.clone());
            tokens.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(())
        })?;
        Ok((secret, token))
    }

    /// Revokes a token: requests with it are refused from now on.
    ///
    /// # Errors
    /// A [`Problem`] if there is no such token, or the file cannot be read or written.
    pub fn remove(home: &Home, name: &str) -> Result<(), Problem> {
        Self::change(home, |tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.name != name);
            if tokens.len() < before {
                return Ok(());
            }
            let names: Vec<&str> = tokens.iter().map(|token| token.name.as_str()).collect();
            let unknown = Problem::usage(format!("there is no token `{name}`"));
            Err(match nearest(name, &names) {
                Some(near) => unknown.advise(format!("did you mean `{near}`?")),
                None => unknown.advise("haft token list shows the tokens"),
            })
        })
    }

    /// Reads, changes and writes the tokens under a lock.
    fn change(
        home: &Home,
        change: impl FnOnce(&mut Vec<AccessToken>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        home.create()?;
        let _lock = plain_file::lock_folder(home.path()).map_err(|e| {
            Problem::failed(format!("cannot lock the access tokens: {e}"))
                .at(SourceLocation::file(home.path()))
        })?;
        let mut all = Self::load(home)?;
        change(&mut all.tokens)?;
        all.v = 1;
        let path = home.join(FILE_NAME);
        let failed = |what: String| {
            Problem::failed(format!("cannot write the access tokens: {what}"))
                .at(SourceLocation::file(&path))
        };
        let text = serde_json::to_string_pretty(&all).map_err(|e| failed(e.to_string()))?;
        plain_file::write_private(&path, &text).map_err(|e| failed(e.to_string()))
    }

    /// Returns why calls that this principal made at `made` (nanoseconds since 1970) no longer count: the token that it made them with
    /// was removed, also if another of the same name was created since, or has expired. `None` for other principals.
    pub fn lapse(&self, principal: &Principal, made: i128) -> Option<TokenLapse> {
        let name = principal.subject.strip_prefix(SUBJECT_PREFIX)?;
        let token = self.tokens.iter().find(|token| token.name == name);
        let lapsed = match token {
            // Times in the file are whole seconds.
            Some(token) if token.created.as_nanosecond() / NANOS > made / NANOS => true,
            Some(token) => token.has_expired(),
            None => true,
        };
        lapsed.then(|| TokenLapse(name.to_owned()))
    }

    /// Returns the unexpired token that matches `secret`.
    fn find(&self, secret: &str) -> Option<&AccessToken> {
        let given = digest(secret);
        // Hashes are compared in constant time, so that timing reveals nothing about a token.
        let same =
            |token: &&AccessToken| bool::from(token.sha256.as_bytes().ct_eq(given.as_bytes()));
        self.tokens
            .iter()
            .find(same)
            .filter(|token| !token.has_expired())
    }
}

fn digest(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

fn check(new: &NewToken) -> Result<(), Problem> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'@');
    let name = &new.name;
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
        let what = format!("`{name}` cannot be a token's name");
        return Err(Problem::usage(what).advise(format!(
            "use 1 to {MAX_NAME} of letters, digits, `_`, `-`, `.` and `@`"
        )));
    }
    if new.days == 0 || new.days > MAX_DAYS {
        let what = format!("a token cannot be valid for {} days", new.days);
        return Err(Problem::usage(what).advise(format!("choose 1 to {MAX_DAYS} days")));
    }
    Ok(())
}

/// Checks that the settings define a view of this name.
///
/// # Errors
/// A [`Problem`] if they don't, or if the name of a view is invalid.
pub fn check_view(settings: &Settings, name: &str) -> Result<(), Problem> {
    let names: BTreeSet<String> = views::names(settings)?;
    if names.contains(name) {
        return Ok(());
    }
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let unknown = Problem::usage(format!("settings have no view `{name}`"));
    Err(match nearest(name, &known) {
        Some(near) => unknown.advise(format!("did you mean `{near}`?")),
        None => unknown.advise(format!(
            "name its tools first: views.{name}.tools = [\"read_file\"]"
        )),
    })
}

/// The current tokens: a token that is created or revoked takes effect with the next request.
#[derive(Debug)]
pub struct LiveTokens {
    home: Home,
    path: PathBuf,
    tenant: Arc<str>,
    read: Mutex<Option<(TokenFileStamp, Arc<AccessTokens>)>>,
}

/// A value that changes whenever the file does; `None` if there is no file.
type TokenFileStamp = Option<Stamp>;

impl LiveTokens {
    /// Returns the tokens of this state folder, for principals of this tenant.
    pub fn new(home: &Home, tenant: Arc<str>) -> Self {
        Self {
            path: home.join(FILE_NAME),
            home: home.clone(),
            tenant,
            read: Mutex::new(None),
        }
    }

    /// Returns the tokens that count now, by name and time of creation: a change means that one was created, removed or has expired.
    /// `None` if they cannot be read.
    pub fn counting(&self) -> Option<Vec<(String, Timestamp)>> {
        let tokens = self.current()?;
        let counting = tokens.all().iter().filter(|token| !token.has_expired());
        let each = counting.map(|token| (token.name.clone(), token.created));
        Some(each.collect())
    }

    /// Returns why calls that this principal made then no longer count; `None` if they do, or the principal has no such token.
    ///
    /// If the tokens cannot be read, none counts.
    pub fn lapse(&self, principal: &Principal, made: i128) -> Option<TokenLapse> {
        principal.subject.strip_prefix(SUBJECT_PREFIX)?;
        self.current().unwrap_or_default().lapse(principal, made)
    }

    /// Returns the person that this token was issued to; `None` if the token is unknown or expired, or the tokens cannot be read.
    pub fn person(&self, secret: &str) -> Option<IdentifiedCaller> {
        if !secret.starts_with(PREFIX) {
            return None;
        }
        Some(self.current()?.find(secret)?.person(&self.tenant))
    }

    fn current(&self) -> Option<Arc<AccessTokens>> {
        let now = stamp(&self.path);
        let mut read = self.read.lock();
        if let Some((known, tokens)) = &*read
            && *known == now
        {
            return Some(Arc::clone(tokens));
        }
        match AccessTokens::load(&self.home) {
            Ok(tokens) => {
                let tokens = Arc::new(tokens);
                *read = Some((now, Arc::clone(&tokens)));
                Some(tokens)
            }
            Err(problem) => {
                *read = None;
                tracing::error!(%problem, "no access token is accepted");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{AccessTokens, FILE_NAME, LiveTokens, NewToken};
    use crate::environment::Environment;
    use crate::home::Home;

    fn new(name: &str, days: u32) -> NewToken {
        NewToken {
            name: name.to_owned(),
            view: Some("readers".to_owned()),
            days,
        }
    }

    #[test]
    fn a_token_counts_from_when_it_is_made_until_it_is_taken_back_or_ends() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        let home = Home::locate(Some(&home), &Environment::default()).unwrap();
        let live = LiveTokens::new(&home, Arc::from("local"));
        assert_eq!(live.person("haft_0"), None);
        let (ann, _) = AccessTokens::add(&home, &new("ann", 1)).unwrap();
        let (bob, _) = AccessTokens::add(&home, &new("bob", 1)).unwrap();
        let person = live.person(&ann).unwrap();
        assert_eq!(person.principal.to_string(), "local/token:ann");
        assert_eq!(person.view.as_deref(), Some("readers"));
        let text = std::fs::read_to_string(home.join(FILE_NAME)).unwrap();
        assert!(!text.contains(&ann) && !text.contains(ann.trim_start_matches("haft_")));
        for wrong in [
            "",
            "haft_",
            &ann[..ann.len() - 1],
            &format!("{ann}0"),
            "ann",
        ] {
            assert_eq!(live.person(wrong), None, "{wrong:?}");
        }
        let (then, who) = (haft::clock::now(), person.principal);
        assert_eq!(live.lapse(&who, then), None);
        AccessTokens::remove(&home, "ann").unwrap();
        assert_eq!(live.person(&ann), None);
        assert!(live.lapse(&who, then).is_some());
        let other = haft::call::Principal::local("ann");
        assert_eq!(live.lapse(&other, then), None, "no token made it");
        AccessTokens::add(&home, &new("ann", 1)).unwrap();
        let before = then - 2_000_000_000;
        assert!(
            live.lapse(&who, before).is_some(),
            "another token of this name"
        );
        assert_eq!(live.lapse(&who, haft::clock::now()), None);
        AccessTokens::remove(&home, "ann").unwrap();
        assert!(live.person(&bob).is_some());
        let past = text.replace(|_: char| false, "");
        let expires = AccessTokens::load(&home).unwrap().all()[0]
            .expires
            .to_string();
        std::fs::write(
            home.join(FILE_NAME),
            past.replace(&expires, "2020-01-01T00:00:00Z"),
        )
        .unwrap();
        assert_eq!(live.person(&bob), None, "it has expired");
        std::fs::write(home.join(FILE_NAME), "{").unwrap();
        assert_eq!(live.person(&bob), None, "the file is damaged");
    }

    #[test]
    fn names_and_days_that_cannot_be_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        let home = Home::locate(Some(&home), &Environment::default()).unwrap();
        AccessTokens::add(&home, &new("ann", 1)).unwrap();
        for (name, days, says) in [
            ("", 1, "cannot be a token's name"),
            ("a b", 1, "cannot be a token's name"),
            ("a:b", 1, "cannot be a token's name"),
            ("bob", 0, "cannot be valid for 0 days"),
            ("bob", 3651, "cannot be valid for 3651 days"),
            ("ann", 1, "a token `ann` already"),
        ] {
            let problem = AccessTokens::add(&home, &new(name, days)).unwrap_err();
            assert!(problem.to_string().contains(says), "{name}: {problem}");
        }
        let problem = AccessTokens::remove(&home, "anne").unwrap_err();
        assert!(problem.advice().unwrap().contains("`ann`"));
    }
}
