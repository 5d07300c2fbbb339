//! `ClientCapabilities`: what a client declares that it can do.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft::caller::RequestKind;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::elicit::Elicitation;
use crate::era::Era;
use crate::wire::RpcError;

/// The name of the tasks extension.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

type Extensions = BTreeMap<String, Box<RawValue>>;

/// Maximum length of the declared capabilities to keep, in bytes.
const MAX_CAPABILITIES: usize = 16 << 10;

/// The capabilities that a client declared; unreadable ones count as absent.
#[derive(Debug, Clone, Default)]
pub struct ClientCapabilities {
    /// How it can ask its user.
    pub elicitation: Elicitation,
    /// Whether it offers its model (sampling).
    pub sampling: bool,
    /// Whether it can list the folders it works in (roots).
    pub roots: bool,
    /// Whether it supports the tasks extension.
    pub tasks: bool,
    raw: Option<Arc<RawValue>>,
}

impl ClientCapabilities {
    /// Reads the capabilities, as far as the client's protocol revision defines them.
    pub(crate) fn of(raw: Option<&RawValue>, era: Era) -> Self {
        #[derive(Deserialize)]
        struct CapabilityMembers<'a> {
            sampling: Option<IgnoredAny>,
            roots: Option<IgnoredAny>,
            #[serde(borrow)]
            extensions: Option<&'a RawValue>,
        }
        let Some(raw) = raw.filter(|raw| raw.get().len() > 2 && raw.get().starts_with('{')) else {
            return Self::default();
        };
        let Ok(declared) = serde_json::from_str::<CapabilityMembers<'_>>(raw.get()) else {
            return Self::default();
        };
        let extensions = || serde_json::from_str::<Extensions>(declared.extensions?.get()).ok();
        Self {
            elicitation: Elicitation::of(Some(raw), era),
            sampling: declared.sampling.is_some(),
            roots: declared.roots.is_some(),
            tasks: era.is_modern() && extensions().is_some_and(|all| all.contains_key(EXTENSION)),
            raw: (raw.get().len() <= MAX_CAPABILITIES).then(|| Arc::from(raw.to_owned())),
        }
    }

    /// Returns whether the client supports this kind of request.
    pub fn can(&self, kind: RequestKind) -> bool {
        match kind {
            RequestKind::Form => self.elicitation.form,
            RequestKind::Url => self.elicitation.url,
            RequestKind::Sampling => self.sampling,
            RequestKind::Roots => self.roots,
        }
    }

    /// Returns whether the client supports any request.
    pub(crate) fn any(&self) -> bool {
        self.elicitation.any() || self.sampling || self.roots
    }

    /// Returns the declared object as received; `None` if there was none, or one over 16 KiB.
    pub fn raw(&self) -> Option<&RawValue> {
        self.raw.as_deref()
    }
}

/// Returns the error for a stateless client that has not declared the tasks extension.
pub(crate) fn undeclared() -> RpcError {
    let message = format!("the client did not declare the extension {EXTENSION}");
    let data = serde_json::json!({"requiredCapabilities": {"extensions": {EXTENSION: {}}}});
    RpcError::new(RpcError::MISSING_CAPABILITY, message).with_data(data.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::era::Revision;

    #[test]
    fn a_client_can_be_asked_what_it_declared_and_its_protocol_has() {
        let (old, new) = (Era::Legacy(Revision::V2025_03_26), Era::Modern);
        for (raw, era, expect) in [
            ("{}", new, [false; 4]),
            (
                r#"{"sampling":{},"roots":{"listChanged":true}}"#,
                old,
                [false, false, true, true],
            ),
            (r#"{"elicitation":{}}"#, old, [false; 4]),
            (r#"{"elicitation":{}}"#, new, [true, false, false, false]),
            (
                r#"{"elicitation":{"url":{}},"sampling":null}"#,
                new,
                [false, true, false, false],
            ),
            ("[1,2]", new, [false; 4]),
        ] {
            let raw = RawValue::from_string(raw.to_owned()).unwrap();
            let can = ClientCapabilities::of(Some(&raw), era);
            let kinds = [
                RequestKind::Form,
                RequestKind::Url,
                RequestKind::Sampling,
                RequestKind::Roots,
            ];
            assert_eq!(kinds.map(|kind| can.can(kind)), expect, "{raw}");
        }
    }
}
