//! `Seal`: what a stateless client carries from one question to the next call, closed so that nobody can change it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft::approval::ApprovalId;
use haft::call::Principal;
use haft::clock;
use haft::json::canonical::args_digest;
use haft::text::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The block of SHA-256, in bytes (RFC 2104).
const BLOCK: usize = 64;
/// The longest state that is looked at, in bytes; ours have a few hundred.
const LONGEST: usize = 4096;
/// Most requests that one call's state names.
pub(crate) const MOST_REQUESTS: usize = 16;

/// The key of this server's states.
pub(crate) struct Seal([u8; 32]);

/// What a state says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The requests to a person that the call waits for.
    #[serde(rename = "a")]
    pub(crate) approvals: Vec<ApprovalId>,
    /// The call that runs on meanwhile, and waits for the client.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(crate) parked: Option<Box<str>>,
    /// Until when it holds, in milliseconds since 1970.
    #[serde(rename = "e")]
    pub(crate) expires: i64,
}

/// The call that a state is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) tool: &'a str,
    /// As they came in; the same value in another spelling is the same.
    pub(crate) arguments: &'a str,
}

/// Why a state was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SealError {
    /// Not ours, changed, or another caller's or call's.
    #[error("none that this server gave to this caller for this call")]
    Foreign,
    /// Too old.
    #[error("expired: call again without it")]
    Expired,
}

/// 128 random bits in hex; none where the system gives no random bytes.
pub(crate) fn random_name() -> Option<Box<str>> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex(&bytes).into())
}

impl Seal {
    /// A seal with this key, or with one that ends with the process; none where the system gives no random bytes.
    pub(crate) fn new(key: Option<[u8; 32]>) -> Option<Self> {
        if let Some(key) = key {
            return Some(Self(key));
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).ok()?;
        Some(Self(key))
    }

    /// The state as the client gets it.
    pub(crate) fn close(&self, state: &State, to: &Bound<'_>) -> String {
        // Strings and a number are always JSON.
        let said = serde_json::to_vec(state).unwrap_or_default();
        let mac = self.mac(&said, to);
        let [said, mac] = [&said[..], &mac[..]].map(|part| URL_SAFE_NO_PAD.encode(part));
        format!("{said}.{mac}")
    }

    /// Reads a state that came back.
    pub(crate) fn open(&self, text: &str, to: &Bound<'_>) -> Result<State, SealError> {
        let state = self.genuine(text, to).ok_or(SealError::Foreign)?;
        let now = clock::now() / 1_000_000;
        if i128::from(state.expires) <= now {
            return Err(SealError::Expired);
        }
        Ok(state)
    }

    fn genuine(&self, text: &str, to: &Bound<'_>) -> Option<State> {
        let (said, mac) = text.split_once('.').filter(|_| text.len() <= LONGEST)?;
        let said = URL_SAFE_NO_PAD.decode(said).ok()?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        let genuine: bool = self.mac(&said, to).ct_eq(&mac).into();
        genuine.then(|| serde_json::from_slice(&said).ok())?
    }

    fn mac(&self, said: &[u8], to: &Bound<'_>) -> [u8; 32] {
        let digest = args_digest(to.arguments);
        let parts = [
            said,
            to.principal.tenant.as_bytes(),
            to.principal.subject.as_bytes(),
            to.tool.as_bytes(),
            digest.as_bytes(),
        ];
        let mut message = b"haft requestState 1".to_vec();
        for part in parts {
            message.extend_from_slice(&(part.len() as u64).to_be_bytes());
            message.extend_from_slice(part);
        }
        hmac(&self.0, &message)
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(…)")
    }
}

/// HMAC-SHA-256 (RFC 2104) with a key of at most a block.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let keyed = |pad: u8| {
        let mut block = [pad; BLOCK];
        for (byte, key) in block.iter_mut().zip(key) {
            *byte ^= key;
        }
        block
    };
    let inner = Sha256::new()
        .chain_update(keyed(0x36))
        .chain_update(message)
        .finalize();
    Sha256::new()
        .chain_update(keyed(0x5c))
        .chain_update(inner)
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> Vec<u8> {
        let pairs = text.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        pairs.map(byte).collect()
    }

    /// RFC 4231, cases 1 to 3.
    #[test]
    fn the_mac_is_that_of_the_standard() {
        for (key, message, expect) in [
            (
                &[0x0b; 20][..],
                &b"Hi There"[..],
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 20],
                &[0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
        ] {
            assert_eq!(hmac(key, message)[..], unhex(expect));
        }
    }

    #[test]
    fn a_state_holds_for_its_caller_and_call_and_time() {
        let (ada, bob) = (Principal::local("ada"), Principal::local("bob"));
        let seal = Seal::new(Some([7; 32])).unwrap();
        let later = i64::try_from(clock::now() / 1_000_000).unwrap() + 60_000;
        let state = |expires| State {
            approvals: vec![ApprovalId::new("ap-1")],
            parked: Some("00ff".into()),
            expires,
        };
        let to = |principal, tool, arguments| Bound {
            principal,
            tool,
            arguments,
        };
        let mine = to(&ada, "write_file", r#"{"path": "a", "n": 1}"#);
        let text = seal.close(&state(later), &mine);
        assert_eq!(seal.open(&text, &mine).unwrap(), state(later));
        // The same value spelled otherwise is the same call.
        let spelled = to(&ada, "write_file", r#"{"n":1,"path":"a"}"#);
        assert!(seal.open(&text, &spelled).is_ok());
        let old = seal.close(&state(1), &mine);
        let (said, mac) = text.split_once('.').unwrap();
        let longer = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&state(later + 1)).unwrap());
        let other = Seal::new(Some([8; 32])).unwrap();
        for (text, to, expect) in [
            (old.as_str(), mine, SealError::Expired),
            (
                &text,
                to(&bob, mine.tool, mine.arguments),
                SealError::Foreign,
            ),
            (
                &text,
                to(&ada, "move_file", mine.arguments),
                SealError::Foreign,
            ),
            (
                &text,
                to(&ada, mine.tool, r#"{"path":"b","n":1}"#),
                SealError::Foreign,
            ),
            (&format!("{longer}.{mac}"), mine, SealError::Foreign),
            (&format!("{said}."), mine, SealError::Foreign),
            (&other.close(&state(later), &mine), mine, SealError::Foreign),
            (said, mine, SealError::Foreign),
            ("", mine, SealError::Foreign),
            (&"x.".repeat(LONGEST), mine, SealError::Foreign),
        ] {
            assert_eq!(seal.open(text, &to), Err(expect), "{text}");
        }
    }
}
