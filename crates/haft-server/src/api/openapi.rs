//! The `OpenAPI` 3.1 description of the HTTP API, generated from one table of its routes.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::response::Response;
use serde_json::{Map, Value, json};

use crate::reply;

/// A route of the description.
struct RouteDescription {
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

const fn read(path: &'static str, does: &'static str) -> RouteDescription {
    RouteDescription {
        method: "get",
        path,
        does,
        who: "all",
        query: &[],
        body: "",
    }
}

const fn change(path: &'static str, does: &'static str, body: &'static str) -> RouteDescription {
    RouteDescription {
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
const ROUTES: &[RouteDescription] = &[
    RouteDescription { query: &[("status", "waiting (default), all, or one status"), ("run", "only requests of this run"), ("after", "only requests after this id"), ("limit", "the most requests to return"), ("newest", "return this many of the newest instead, newest first")],
        ..read("/approvals", "list approval requests, oldest first; callers see only those of their own runs") },
    read("/approvals/{id}", "get one request: arguments, effects, preview, decision, outcome"),
    RouteDescription { query: &[("rule", "the rule; default: the first suggested rule")], ..read("/approvals/{id}/rule", "list the recent calls that a rule would have allowed") },
    RouteDescription { query: &[("path", "the file, as the request names it"), ("offset", "where to begin, in bytes; default 0"), ("length", "the most bytes of each side; default and maximum 4 MiB")],
        ..read("/approvals/{id}/file", "get a part of one file that a request would change, before and after: what the request itself does not show") },
    change("/approvals/{id}/{decision}", "approve, deny or answer a request; the first decision wins (later ones get 409, requests that are over 410)", "Decision"),
    change("/approvals/batch", "decide several requests, each with its own decision", "Batch"),
    RouteDescription { who: "all", query: &[("folder", "the folder that the hook was started for"), ("headless", "true if no user is present at the agent"), ("process", "the agent's process, which identifies a session that has no name")],
        ..change("/hooks/{agent}", "handle a hook event of a coding agent: returns what the hook writes and its exit code; waits while an approval is pending", "Event") },
    RouteDescription { who: "signature", ..change("/webhook/{id}", "accept the webhook's signed reply to one request", "Reply") },
    RouteDescription { query: &[("run", "only events of this run")], ..read("/events", "stream server-sent events: approval, run, call, progress") },
    RouteDescription { query: &[("q", "search words; ranks the tools by relevance")], ..read("/tools", "list the tools that callers see") },
    read("/tools/{name}", "get one tool, with its verdict under the policy"),
    RouteDescription { who: "operator", ..read("/tools/{name}/ui", "check whether a tool provides the page that it declares") },
    RouteDescription { who: "operator", ..read("/tools/{name}/ui/page", "get that page, as HTML for a sandboxed frame") },
    read("/calls", "list the calls of this API's own run"),
    RouteDescription { who: "all", ..change("/calls", "run one call through the executor; waits while an approval is pending", "Call") },
    RouteDescription { who: "all", ..change("/chains", "run a script whose calls go through the executor", "Chain") },
    RouteDescription { query: &[("tool", "only runs with a call of this tool"), ("status", "only runs with a call of this status, or `failed`: error, denied or timeout"), ("state", "open, suspended or closed"), ("workspace", "only runs of this folder"), ("since", "only runs started at this time or later, RFC 3339"), ("until", "only runs started before this time"), ("after", "only runs after this one: the last of the previous page"), ("limit", "the most runs to return: default 100, at most 1000")],
        ..read("/runs", "list runs, newest first; a client's token lists only its own runs and accepts no filter") },
    read("/runs/{run}/about", "get one run, as in the list"),
    read("/runs/{run}", "list the calls of a run in order of time"),
    read("/runs/{run}/verify", "verify that a run's record is complete and unchanged"),
    read("/runs/{run}/services", "list the commands of a run that serve or work in the background, with the ports that its other commands reach at 127.0.0.1"),
    read("/runs/{run}/exposed", "list the ports of a run that are open to this machine's browsers, and where"),
    change("/runs/{run}/services/{name}/stop", "end one of these commands, by its name or task; 404 if it is over", ""),
    RouteDescription { who: "operator", query: &[("call", "only this call and the calls made within it; default: the whole run")],
        ..read("/runs/{run}/changes", "list what a run changed in the workspace: at most 1,000 files (`more_changes` counts the rest), each text file with its diff (at most 128 KiB each and 4 MiB in total; `note` says what is omitted)") },
    change("/runs/{run}/undo", "undo the changes of a run or of one of its calls, in a new run, and return its outcome; with `preview` return only the plan; 409 with `conflicts`, and nothing undone, if something has changed since", "Undo"),
    RouteDescription { who: "operator", query: &[("q", "words to find in the record of a call"), ("status", "only calls with this status"), ("tool", "only calls of this tool"), ("limit", "the most calls to return")],
        ..read("/audit", "search the calls of all runs") },
    read("/artifacts", "list artifacts: large results stored whole"),
    RouteDescription { query: &[("run", "the run that it belongs to; default: this API's own run")], ..read("/artifacts/{reference}", "get the bytes of an artifact") },
    read("/skills", "list the skills"),
    read("/skills/{name}", "get one skill"),
    read("/memory", "list memories and the candidates that wait for review"),
    change("/memory", "add a memory of the user, accepted at once", "Memory"),
    change("/memory/{id}/edit", "change the text or tags of a memory; 409 if it is no longer at `revision`", "Memory"),
    change("/memory/{id}/remove", "remove a memory and its history", "Memory"),
    change("/memory/{id}/{decision}", "accept or reject a memory candidate", ""),
    read("/policy", "get the effective policy; for the operator also how many recent calls each rule decided"),
    RouteDescription { who: "operator", ..read("/policy/rules", "list the rules that approvals added in this workspace, oldest first") },
    RouteDescription { method: "put", ..change("/policy/rules/{id}", "replace one of these rules; returns the previous one", "RuleEdit") },
    RouteDescription { method: "delete", ..change("/policy/rules/{id}", "remove one of these rules; haft asks again about the calls that it covered", "") },
    change("/policy/explain", "explain why a call would be allowed, asked about or denied; nothing runs", "Call"),
    read("/health", "check the setup: what works, the version, sizes, and for the operator the clients"),
    RouteDescription { who: "operator", query: &[("since", "the start of the day in the reader's time zone, RFC 3339")], ..read("/overview", "get calls by hour, failed runs, pending requests, connected clients, disk use") },
    RouteDescription { who: "operator", ..read("/servers", "list the MCP servers behind haft: the state of each, and why one is not used") },
    read("/openapi.json", "get this document"),
];

/// Responds with the document, which is the same for every request and is written once.
pub(crate) async fn document() -> Response {
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| describe_paths().to_string().into());
    reply::written(&DOCUMENT)
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
            "description": "The governed tools of one workspace, the approval requests, and the records of runs."},
        "paths": paths,
        "components": {"schemas": schemas(), "securitySchemes": {
            "token": {"type": "http", "scheme": "bearer", "description": "the call token or the operator token"},
            "console_cookie": {"type": "apiKey", "in": "cookie", "name": "haft_session_PORT",
                "description": "the cookie of a console session; needs X-Haft-Console, too"},
            "console_secret": {"type": "apiKey", "in": "header", "name": "X-Haft-Console",
                "description": "the secret of a console session, returned by the login"},
        }},
        "security": [{"token": []}, {"console_cookie": [], "console_secret": []}],
    })
}

fn operation(route: &RouteDescription) -> Value {
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
        "responses": {"200": {"description": "success"}, "default": failed("an error with kind and message")},
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
            "rule": text(), "any_call": {"type": "boolean", "description": "apply the rule to every call that it matches, not only to calls like the approved one"},
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
            "call": {"type": "string", "description": "this call and the calls made within it; default: the whole run"},
            "preview": {"type": "boolean", "description": "return the plan without undoing anything"},
            "plan": {"type": "string", "description": "`plan` of a preview: the undo is refused (409) if it would now do anything else"},
        }},
        "Memory": {"type": "object", "additionalProperties": false, "properties": {
            "content": text(), "tags": {"type": "array", "items": text()},
            "scope": {"enum": ["user", "project"], "description": "the scope of a new memory; default: user"},
            "revision": {"type": "integer", "description": "the revision that the edit is based on; default: the current one"},
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
