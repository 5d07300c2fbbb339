//! The `OpenAPI` 3.1 description of the HTTP API, generated from one table of its routes.

use axum::response::Response;
use serde_json::{Map, Value, json};

use crate::reply;

/// A route of the description.
struct Route {
    method: &'static str,
    path: &'static str,
    does: &'static str,
    /// Who may use it: `all` callers, the `operator` only, or a `signature`.
    who: &'static str,
    /// Query parameters and their meanings.
    query: &'static [(&'static str, &'static str)],
    /// The name of the body's schema; empty if there is no body.
    body: &'static str,
}

const fn read(path: &'static str, does: &'static str) -> Route {
    Route {
        method: "get",
        path,
        does,
        who: "all",
        query: &[],
        body: "",
    }
}

const fn change(path: &'static str, does: &'static str, body: &'static str) -> Route {
    Route {
        method: "post",
        path,
        does,
        who: "operator",
        query: &[],
        body,
    }
}

/// Every route below `/api/v1`, in the order of the pages that use them.
#[rustfmt::skip]
const ROUTES: &[Route] = &[
    Route { query: &[("status", "waiting (default), all, or one status"), ("run", "of this run alone"), ("after", "those after this id"), ("limit", "at most so many"), ("newest", "so many of the newest instead, the newest first")],
        ..read("/approvals", "pending approval requests, oldest first; callers see their own runs'") },
    read("/approvals/{id}", "one request, whole: arguments, effects, preview, decision, outcome"),
    Route { query: &[("rule", "the rule; the first suggested one where none is named")], ..read("/approvals/{id}/rule", "what a rule would have allowed among recent calls") },
    change("/approvals/{id}/{decision}", "decides: approve, deny or answer; the first decision stands (409 after it, 410 when it is over)", "Decision"),
    change("/approvals/batch", "decides about several, each by its own choice", "Batch"),
    Route { who: "all", query: &[("folder", "the folder that the hook was started for"), ("headless", "true if the agent runs without a user"), ("process", "the agent's process, which identifies a session without an id")],
        ..change("/hooks/{agent}", "answers an event of a coding agent's hook with the hook's output and exit code; waits if a person is asked", "Event") },
    Route { who: "signature", ..change("/webhook/{id}", "takes the webhook's signed reply about one request", "Reply") },
    Route { query: &[("run", "of this run alone")], ..read("/events", "server-sent events: approval, run, call, progress") },
    Route { query: &[("q", "rank by these words")], ..read("/tools", "the tools that callers see") },
    read("/tools/{name}", "one tool, with its verdict under the policy"),
    Route { who: "operator", ..read("/tools/{name}/ui", "whether a tool gives the page that it names") },
    Route { who: "operator", ..read("/tools/{name}/ui/page", "that page, as HTML for a sandboxed frame") },
    read("/calls", "the calls of this API's own run"),
    Route { who: "all", ..change("/calls", "one call through the executor; waits where it needs approval", "Call") },
    Route { who: "all", ..change("/chains", "a script whose calls go the same way", "Chain") },
    Route { query: &[("tool", "with a call of this tool"), ("status", "with a call that ended like this, or failed: error, denied or timeout"), ("state", "open, suspended or closed"), ("workspace", "of this folder"), ("since", "started at this time or later, RFC 3339"), ("until", "started before this time"), ("after", "those after this run: the last of the page before"), ("limit", "at most so many: 100, up to 1000")],
        ..read("/runs", "runs, newest first; a client's token lists its own and takes no filter") },
    read("/runs/{run}/about", "one run, as it is listed"),
    read("/runs/{run}", "a run's calls, as they lie in time"),
    read("/runs/{run}/verify", "whether a run's record is whole and as it was written"),
    Route { who: "operator", query: &[("call", "of this call and those made within it; of the whole run where none is named")],
        ..read("/runs/{run}/changes", "what a run changed in the workspace: at most 1,000 files (`more_changes` are left out), each text file with its diff (at most 128 KiB, all together 4 MiB; `note` says what is left out)") },
    change("/runs/{run}/undo", "undoes what a run, or one call of it, changed, in a run of its own whose outcome it gives; with `preview` it gives the plan and touches nothing; 409 with the `conflicts` where something was changed since, and then nothing is touched", "Undo"),
    Route { who: "operator", query: &[("q", "words that a call's line holds"), ("status", "its status"), ("tool", "its tool"), ("limit", "at most so many")],
        ..read("/audit", "calls of all runs that hold some words") },
    read("/artifacts", "large results kept aside"),
    Route { query: &[("run", "whose; this API's own run where none is named")], ..read("/artifacts/{reference}", "an artifact's bytes") },
    read("/skills", "the skills found"),
    read("/skills/{name}", "one skill, whole"),
    read("/memory", "what is remembered, and what waits to be"),
    change("/memory", "adds a memory of the user's own, accepted at once", "Memory"),
    change("/memory/{id}/edit", "changes a memory's text or tags; 409 where it is not at `revision` any more", "Memory"),
    change("/memory/{id}/remove", "removes a memory with its history", "Memory"),
    change("/memory/{id}/{decision}", "accepts or rejects what an agent wants remembered", ""),
    read("/policy", "the policy in force; for the operator with how many recent calls each rule decided"),
    Route { who: "operator", ..read("/policy/rules", "the rules kept with approvals in this workspace, oldest first") },
    Route { method: "put", ..change("/policy/rules/{id}", "makes one of them say something else; it gives what it said before", "RuleEdit") },
    Route { method: "delete", ..change("/policy/rules/{id}", "removes one of them: calls that it covered are asked about again", "") },
    change("/policy/explain", "why a call would be allowed, asked about or denied; nothing runs", "Call"),
    read("/health", "what works here, found by trying; the version, sizes, and for the operator the clients"),
    Route { who: "operator", query: &[("since", "when the reader's day began, RFC 3339")], ..read("/overview", "calls by hour, failed runs, waits, connected clients, disk use") },
    Route { who: "operator", ..read("/servers", "the MCP servers behind haft: how far each has come, and why it is left alone") },
    read("/openapi.json", "this document"),
];

/// Responds with the document.
pub(crate) async fn document() -> Response {
    reply::document(&describe_paths())
}

fn describe_paths() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = format!("/api/v1{}", route.path);
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        entry[route.method] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "haft", "version": env!("CARGO_PKG_VERSION"),
            "description": "The governed tools of one workspace, pending requests, and the records."},
        "paths": paths,
        "components": {"schemas": schemas(), "securitySchemes": {
            "token": {"type": "http", "scheme": "bearer", "description": "the call token or the operator's"},
            "console_cookie": {"type": "apiKey", "in": "cookie", "name": "haft_session_PORT",
                "description": "one half of a console session"},
            "console_secret": {"type": "apiKey", "in": "header", "name": "X-Haft-Console",
                "description": "the other half, given by the login"},
        }},
        "security": [{"token": []}, {"console_cookie": [], "console_secret": []}],
    })
}

fn operation(route: &Route) -> Value {
    let in_path = route.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        Some(json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
    });
    let in_query = route.query.iter().map(|(name, meaning)| {
        json!({"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}})
    });
    let failed = |text: &str| json!({"description": text, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}});
    let mut operation = json!({
        "summary": route.does,
        "description": format!("for: {}", route.who),
        "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
        "responses": {"200": {"description": "as asked"}, "default": failed("why not, with kind and message")},
    });
    if !route.body.is_empty() {
        let schema = format!("#/components/schemas/{}", route.body);
        operation["requestBody"] =
            json!({"content": {"application/json": {"schema": {"$ref": schema}}}});
    }
    operation
}

fn schemas() -> Value {
    let text = || json!({"type": "string"});
    let object = || json!({"type": "object"});
    let decision = json!({
        "scope": {"enum": ["once", "session", "always"]}, "edit": object(), "rule": text(),
        "message": text(), "stop": {"type": "boolean"}, "answers": object(), "text": text(),
    });
    let mut one = decision.clone();
    one["id"] = text();
    one["decision"] = json!({"enum": ["approve", "deny", "answer"]});
    json!({
        "Decision": {"type": "object", "properties": decision, "additionalProperties": false},
        "Batch": {"type": "object", "required": ["decisions"], "properties": {
            "decisions": {"type": "array", "maxItems": 200,
                "items": {"type": "object", "required": ["id", "decision"], "properties": one}},
        }},
        "RuleEdit": {"type": "object", "required": ["rule"], "additionalProperties": false, "properties": {
            "rule": text(), "any_call": {"type": "boolean", "description": "cover all that the rule says, not only calls like the one that was approved"},
        }},
        "Event": {"type": "object"},
        "Reply": {"type": "object", "required": ["decision"], "properties": {
            "decision": {"enum": ["approve", "deny"]}, "message": text(), "by": text(),
        }},
        "Call": {"type": "object", "required": ["tool"], "properties": {"tool": text(), "arguments": object()}},
        "Chain": {"type": "object", "required": ["code"], "properties": {
            "code": text(), "timeout_s": {"type": "integer", "minimum": 1},
        }},
        "Undo": {"type": "object", "additionalProperties": false, "properties": {
            "call": {"type": "string", "description": "this call and those made within it; the whole run where none is named"},
            "preview": {"type": "boolean", "description": "only say what would be done"},
            "plan": {"type": "string", "description": "`plan` of a preview: where the undo would do anything else by now, it is refused (409)"},
        }},
        "Memory": {"type": "object", "additionalProperties": false, "properties": {
            "content": text(), "tags": {"type": "array", "items": text()},
            "scope": {"enum": ["user", "project"], "description": "of a new one; user where it is not said"},
            "revision": {"type": "integer", "description": "the revision that was seen; the present one where it is not said"},
        }},
        "Error": {"type": "object", "properties": {"error": {"type": "object", "properties": {
            "kind": text(), "message": text(), "advice": text(),
            "conflicts": {"type": "array", "description": "of an undo: what prevents it",
                "items": {"type": "object", "properties": {"path": text(), "why": text()}}},
        }}}},
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ROUTES, describe_paths};

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let source = include_str!("../api.rs");
        let routed = source.split(".route(\"").skip(1);
        let routed: BTreeSet<&str> = routed.filter_map(|rest| rest.split('"').next()).collect();
        let documented: BTreeSet<&str> = ROUTES.iter().map(|route| route.path).collect();
        assert_eq!(routed, documented);
    }

    #[test]
    fn every_schema_that_is_named_is_there() {
        let document = describe_paths();
        let text = document.to_string();
        for rest in text.split("#/components/schemas/").skip(1) {
            let name = rest.split('"').next().unwrap();
            assert!(
                document["components"]["schemas"][name].is_object(),
                "{name}"
            );
        }
        assert_eq!(document["openapi"], "3.1.0");
    }
}
