//! `Seal`: encrypts the state that a stateless client carries from a question to the next call, so that it can neither read nor change it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft::approval::ApprovalId;
use haft::call::Principal;
use haft::clock;
use haft::json::canonical::args_digest;
use haft::text::hex;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};

/// Maximum length of a state to look at, in bytes; ours have a few hundred.
const MAX_STATE: usize = 4096;
/// Maximum number of requests in one call's state.
pub(crate) const MAX_REQUESTS: usize = 16;

/// The key for this server's states.
pub(crate) struct Seal(LessSafeKey);

/// The content of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestState {
    /// The approval requests that the call waits for.
    #[serde(rename = "a")]
    pub(crate) approvals: Vec<ApprovalId>,
    /// The call that continues meanwhile and waits for the client.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(crate) parked: Option<Box<str>>,
    /// Its expiry, in milliseconds since 1970.
    #[serde(rename = "e")]
    pub(crate) expires: i64,
}

/// The call that a state is bound to: it opens for no other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallBinding<'a> {
    pub(crate) principal: &'a Principal,
    /// The caller's view; empty if it has all tools, since no view has an empty name.
    pub(crate) view: &'a str,
    pub(crate) tool: &'a str,
    /// As received; the same value in another spelling is equal.
    pub(crate) arguments: &'a str,
}

/// Why a state was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SealError {
    /// It is not ours, was changed, or belongs to another caller or call.
    #[error("none that this server gave to this caller for this call")]
    Foreign,
    /// It is too old.
    #[error("expired: call again without it")]
    Expired,
}

/// Returns 128 random bits in hex; `None` if the system provides no random bytes.
pub(crate) fn random_name() -> Option<Box<str>> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex(&bytes).into())
}

impl Seal {
    /// Creates a seal with this key, or with one that ends with the process; `None` if the system provides no random bytes.
    pub(crate) fn new(key: Option<[u8; 32]>) -> Option<Self> {
        let mut made = [0; 32];
        if key.is_none() {
            getrandom::fill(&mut made).ok()?;
        }
        let key = key.unwrap_or(made);
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// Encrypts the state for the client; `None` if the system provides no random bytes.
    pub(crate) fn close(&self, state: &RequestState, to: &CallBinding<'_>) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).ok()?;
        let mut plain = serde_json::to_vec(state).ok()?;
        let used = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_in_place_append_tag(used, Aad::from(to.data()), &mut plain)
            .ok()?;
        Some(URL_SAFE_NO_PAD.encode([&nonce[..], &plain].concat()))
    }

    /// Decrypts a state that the client brought back.
    pub(crate) fn open(&self, text: &str, to: &CallBinding<'_>) -> Result<RequestState, SealError> {
        let state = self.unseal(text, to).ok_or(SealError::Foreign)?;
        let now = clock::now() / 1_000_000;
        if i128::from(state.expires) <= now {
            return Err(SealError::Expired);
        }
        Ok(state)
    }

    fn unseal(&self, text: &str, to: &CallBinding<'_>) -> Option<RequestState> {
        let text = Some(text).filter(|text| text.len() <= MAX_STATE)?;
        let mut bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let aad = Aad::from(to.data());
        let plain = self.0.open_in_place(nonce, aad, sealed).ok()?;
        serde_json::from_slice(plain).ok()
    }
}

impl CallBinding<'_> {
    /// Returns what a state is bound to, each part preceded by its length.
    fn data(&self) -> Vec<u8> {
        let digest = args_digest(self.arguments);
        let parts = [
            self.principal.tenant.as_bytes(),
            self.principal.subject.as_bytes(),
            self.view.as_bytes(),
            self.tool.as_bytes(),
            digest.as_bytes(),
        ];
        let mut data = b"haft requestState 2".to_vec();
        for part in parts {
            data.extend_from_slice(&(part.len() as u64).to_be_bytes());
            data.extend_from_slice(part);
        }
        data
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_a_minute() -> i64 {
        i64::try_from(clock::now() / 1_000_000).unwrap() + 60_000
    }

    fn state(expires: i64) -> RequestState {
        RequestState {
            approvals: vec![ApprovalId::new("ap-1")],
            parked: Some("00ff".into()),
            expires,
        }
    }

    #[test]
    fn a_state_says_nothing_to_who_carries_it_and_no_two_are_alike() {
        let seal = Seal::new(Some([7; 32])).unwrap();
        let ada = Principal::local("ada");
        let to = CallBinding {
            principal: &ada,
            view: "",
            tool: "write_file",
            arguments: "{}",
        };
        let state = state(in_a_minute());
        let [one, two] = [(); 2].map(|()| seal.close(&state, &to).unwrap());
        assert_ne!(one, two);
        let bytes = URL_SAFE_NO_PAD.decode(&one).unwrap();
        let holds = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
        for word in ["ap-1", "00ff", "\"e\""] {
            assert!(!holds(word.as_bytes()), "{word} can be read");
        }
        for at in [0, NONCE_LEN, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let changed = URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(seal.open(&changed, &to), Err(SealError::Foreign), "{at}");
        }
    }

    #[test]
    fn a_state_holds_for_its_caller_and_call_and_time() {
        let (ada, bob) = (Principal::local("ada"), Principal::local("bob"));
        let seal = Seal::new(Some([7; 32])).unwrap();
        let later = in_a_minute();
        let mine = CallBinding {
            principal: &ada,
            view: "",
            tool: "write_file",
            arguments: r#"{"path": "a", "n": 1}"#,
        };
        let close = |seal: &Seal, expires| seal.close(&state(expires), &mine).unwrap();
        let text = close(&seal, later);
        assert_eq!(seal.open(&text, &mine).unwrap(), state(later));
        // The same value in another spelling is the same call.
        let spelled = CallBinding {
            arguments: r#"{"n":1,"path":"a"}"#,
            ..mine
        };
        assert!(seal.open(&text, &spelled).is_ok());
        let others = [
            CallBinding {
                principal: &bob,
                ..mine
            },
            CallBinding {
                view: "readers",
                ..mine
            },
            CallBinding {
                tool: "move_file",
                ..mine
            },
            CallBinding {
                arguments: r#"{"path":"b","n":1}"#,
                ..mine
            },
        ];
        for other in &others {
            assert_eq!(
                seal.open(&text, other),
                Err(SealError::Foreign),
                "{other:?}"
            );
        }
        let other = Seal::new(Some([8; 32])).unwrap();
        for (text, expect) in [
            (close(&seal, 1).as_str(), SealError::Expired),
            (&close(&other, later), SealError::Foreign),
            (&text[..20], SealError::Foreign),
            (&text[..8], SealError::Foreign),
            ("", SealError::Foreign),
            (&"x".repeat(MAX_STATE), SealError::Foreign),
            (&"x".repeat(MAX_STATE + 4), SealError::Foreign),
        ] {
            assert_eq!(seal.open(text, &mine), Err(expect), "{text}");
        }
    }
}
