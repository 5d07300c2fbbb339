//! The answer to a request whose client has to ask the user first and then repeat it (2026-07-28).

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::client_caller::InputRequest;
use crate::wire::reply;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired<'a, M> {
    result_type: &'static str,
    input_requests: RequestsByName<'a>,
    request_state: &'a str,
    #[serde(rename = "_meta")]
    meta: &'a M,
}

/// Requests by name, in the order in which they were made.
pub(crate) struct RequestsByName<'a>(pub(crate) &'a [InputRequest]);

impl Serialize for RequestsByName<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for request in self.0 {
            map.serialize_entry(&request.name, request)?;
        }
        map.end()
    }
}

/// Writes the answer: what to ask, in the order in which it was requested, and the state to bring back.
pub(crate) fn write<M: Serialize>(
    out: &mut Vec<u8>,
    requests: &[InputRequest],
    state: &str,
    meta: &M,
) {
    let required = InputRequired {
        result_type: "input_required",
        input_requests: RequestsByName(requests),
        request_state: state,
        meta,
    };
    reply::json(out, &required);
}
