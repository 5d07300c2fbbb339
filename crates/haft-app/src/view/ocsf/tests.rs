//! The events of a record, checked against the attributes that the schema requires.

use super::*;

/// What OCSF 1.8.0 requires: `events/base_event.json`, `events/application/api_activity.json` and `application_lifecycle.json`, and of
/// objects `metadata`, `api`, `request`; a path and its type. Of `actor`, `product`, `network_endpoint` and `user` at least one of some
/// members is required, which stand here as `a|b`.
const REQUIRED: &[(u64, &str, Kind)] = &[
    (0, "activity_id", Kind::Integer),
    (0, "category_uid", Kind::Integer),
    (0, "class_uid", Kind::Integer),
    (0, "metadata", Kind::Object),
    (0, "metadata.product", Kind::Object),
    (0, "metadata.product.name|uid", Kind::Text),
    (0, "metadata.version", Kind::Text),
    (0, "severity_id", Kind::Integer),
    (0, "time", Kind::Integer),
    (0, "type_uid", Kind::Integer),
    (6003, "actor", Kind::Object),
    (
        6003,
        "actor.process|user|invoked_by|session|app_name|app_uid",
        Kind::Object,
    ),
    (6003, "actor.user.account|name|uid", Kind::Text),
    (6003, "api", Kind::Object),
    (6003, "api.operation", Kind::Text),
    (6003, "api.request.uid", Kind::Text),
    (6003, "src_endpoint", Kind::Object),
    (
        6003,
        "src_endpoint.ip|uid|name|hostname|svc_name",
        Kind::Text,
    ),
    (6002, "app", Kind::Object),
    (6002, "app.name|uid", Kind::Text),
];

/// The values of the enumerations that are used.
const ENUMS: &[(u64, &str, &[i64])] = &[
    (6002, "activity_id", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 99]),
    (6003, "activity_id", &[0, 1, 2, 3, 4, 99]),
    (0, "severity_id", &[0, 1, 2, 3, 4, 5, 6, 99]),
    (0, "status_id", &[0, 1, 2, 99]),
    (6003, "action_id", &[0, 1, 2, 3, 4, 99]),
    (0, "category_uid", &[6]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Text,
    Object,
}

impl Kind {
    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::Integer => value.is_i64(),
            Self::Text => value.as_str().is_some_and(|text| !text.is_empty()),
            Self::Object => value.is_object(),
        }
    }
}

/// Checks an event against the tables.
fn check(event: &Value) {
    let class = event["class_uid"].as_u64().unwrap();
    let applies = |of: u64| of == 0 || of == class;
    for (_, path, kind) in REQUIRED.iter().filter(|(of, ..)| applies(*of)) {
        let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
        let parents = parents.split('.').filter(|name| !name.is_empty());
        let parent = parents.fold(event, |value, name| &value[name]);
        let found = last.split('|').find_map(|name| parent.get(name));
        assert!(
            found.is_some_and(|value| kind.is_of(value)),
            "{path}: {event:#}"
        );
    }
    for (_, name, values) in ENUMS.iter().filter(|(of, ..)| applies(*of)) {
        let value = event[*name].as_i64().unwrap();
        assert!(values.contains(&value), "{name} = {value}");
    }
    let activity = event["activity_id"].as_u64().unwrap();
    assert_eq!(event["type_uid"], class * 100 + activity);
    assert_eq!(event["metadata"]["version"], VERSION);
    assert_eq!(event["category_uid"], class / 1000);
    // Where the schema has no value, the name beside it says what it is.
    assert!(
        event["activity_name"]
            .as_str()
            .is_some_and(|name| !name.is_empty())
    );
}

fn line(members: &Value) -> Value {
    let mut line =
        json!({"v": 1, "seq": 2, "ts": "2026-11-28T19:31:45.001Z", "run": "r-1", "prev": "00"});
    for (name, value) in members.as_object().unwrap() {
        line[name] = value.clone();
    }
    line
}

fn started() -> Value {
    line(
        &json!({"type": "run_started", "seq": 1, "principal": "acme/ada", "door": "mcp http", "haft": "0.1.0", "profile": "workspace"}),
    )
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn each_line_becomes_an_event_that_has_what_the_schema_requires() {
    let ended = |tool: &str, members: Value| {
        let mut ended = line(
            &json!({"type": "call_ended", "call": "call-1", "tool": tool, "principal": "acme/ada",
            "arguments": "{\"path\":\"a.txt\"}", "duration_ms": 12.5, "verdict": "allow", "rule": "Read"}),
        );
        for (name, value) in members.as_object().unwrap() {
            ended[name] = value.clone();
        }
        ended
    };
    let failed = |status| json!({"status": status, "error": {"kind": "denied", "message": "no"}});
    let rows = [
        ("a start", started(), json!({"type_uid": 600_203})),
        (
            "a resume",
            line(&json!({"type": "run_resumed"})),
            json!({"type_uid": 600_205}),
        ),
        (
            "an end",
            line(&json!({"type": "closed", "calls": 3})),
            json!({"type_uid": 600_204, "unmapped": {"calls": 3, "prev": "00"}}),
        ),
        (
            "a read",
            ended("read_file", json!({"status": "ok"})),
            json!({"type_uid": 600_302, "status": "Success", "status_id": 1, "severity_id": 1, "action_id": 1}),
        ),
        (
            "a write",
            ended("write_file", json!({"status": "ok"})),
            json!({"type_uid": 600_303}),
        ),
        (
            "a removal",
            ended("delete_file", json!({"status": "ok"})),
            json!({"type_uid": 600_304}),
        ),
        (
            "a command",
            ended("run_command", json!({"status": "error"})),
            json!({"type_uid": 600_399, "activity_name": "Command", "status_id": 2, "status_code": "error"}),
        ),
        (
            "a server's tool",
            ended("docs.search", json!({"status": "timeout"})),
            json!({"type_uid": 600_399, "status_id": 2}),
        ),
        (
            "a denied call",
            ended("write_file", failed("denied")),
            json!({"status_id": 2, "severity_id": 3, "action_id": 2, "status_detail": "no"}),
        ),
        (
            "a pending call",
            ended(
                "write_file",
                json!({"status": "suspended", "verdict": "ask"}),
            ),
            json!({"status_id": 99, "status": "suspended", "action_id": 99, "action": "Pending"}),
        ),
        (
            "arguments that are cut",
            ended(
                "read_file",
                json!({"status": "ok", "arguments": "{\"path\":\"a"}),
            ),
            json!({"type_uid": 600_302}),
        ),
        (
            "no arguments and no verdict",
            ended(
                "nothing",
                json!({"status": "error", "arguments": null, "verdict": null}),
            ),
            json!({"action_id": 0}),
        ),
    ];
    for (name, line, expect) in rows {
        let mut exporter = OcsfExporter::new(class);
        let _ = exporter.event(&started());
        let event = exporter.event(&line).unwrap_or_else(|| panic!("{name}"));
        check(&event);
        for (member, value) in expect.as_object().unwrap() {
            assert_eq!(&event[member], value, "{name}: {member}");
        }
        assert_eq!(event["time"], 1_795_894_305_001_i64, "{name}");
    }
}

fn class(tool: &str) -> Option<ToolClass> {
    match tool {
        "read_file" => Some(ToolClass::Read),
        "write_file" => Some(ToolClass::Edit),
        "run_command" => Some(ToolClass::Bash),
        _ => None,
    }
}

#[test]
fn a_call_without_an_end_is_exported_as_unknown() {
    let mut exporter = OcsfExporter::new(class);
    for line in [
        started(),
        line(&json!({"type": "call_started", "seq": 2, "call": "call-1", "tool": "read_file"})),
        line(&json!({"type": "call_started", "seq": 3, "call": "call-2", "tool": "run_command"})),
        line(
            &json!({"type": "call_ended", "seq": 4, "call": "call-1", "tool": "read_file", "status": "ok"}),
        ),
        line(&json!({"type": "something new"})),
        Value::Null,
    ] {
        let _ = exporter.event(&line);
    }
    let rest = exporter.in_doubt();
    assert_eq!(rest.len(), 1);
    check(&rest[0]);
    assert_eq!(
        (&rest[0]["status_id"], &rest[0]["api"]["request"]["uid"]),
        (&json!(0), &json!("call-2"))
    );
    assert_eq!(
        rest[0]["actor"]["user"],
        json!({"name": "ada", "uid": "acme/ada"})
    );
    assert_eq!(rest[0]["metadata"]["tenant_uid"], "acme");
}
