//! The MCP conformance suite against tools that the executor runs, in both revisions.
//!
//! `make needs` installs it below `HAFT_NEEDS`; without it the test is skipped and says so.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests start real programs, say what they skip, and stop where they cannot go on"
)]

mod gateway;
mod report;
#[path = "../../examples/conformance_server/suite.rs"]
mod suite;

/// The revisions and their minimum numbers of passed checks, so that a suite that checks nothing fails.
const REVISIONS: [(&str, usize); 2] = [("2025-11-25", 80), ("2026-07-28", 190)];

#[test]
fn no_check_of_the_conformance_suite_fails() {
    if report::installed().is_none() {
        eprintln!(
            "SKIPPED: the conformance suite is not below HAFT_NEEDS; `make needs` installs it"
        );
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
    let listener = listener.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    runtime.spawn(suite::serve(listener));
    for (revision, least) in REVISIONS {
        let folder = tempfile::tempdir().unwrap();
        let report = report::run(&url, revision, folder.path()).unwrap();
        let (passed, scenarios) = (report.passed, report.scenarios.len());
        eprintln!("{revision}: {passed} checks passed in {scenarios} scenarios");
        let wrong: Vec<_> = report.failed.iter().chain(&report.warned).collect();
        assert!(wrong.is_empty(), "{revision}: {wrong:#?}");
        assert!(passed >= least, "{revision}: {passed} checks passed");
    }
}

/// What a server of the handshake era cannot provide to a client of the stateless one, with the reason. From a server of the same era
/// everything passes.
const NOT_FROM_OLDER: [(&str, &str); 4] = [
    (
        "input-required-result-basic-elicitation",
        "its requests have no names of their own",
    ),
    (
        "server-stateless",
        "it hears at the beginning what it may ask, and answers as it likes where it needs more",
    ),
    (
        "tasks-lifecycle",
        "it has no tasks, so no error of the protocol ends one: what fails is a result that says so",
    ),
    (
        "tasks-required-task-error",
        "it has no tasks, so no tool of it runs as one alone",
    ),
];

#[test]
fn the_suite_through_haft_in_front_of_its_server() {
    if report::installed().is_none() {
        eprintln!(
            "SKIPPED: the conformance suite is not below HAFT_NEEDS; `make needs` installs it"
        );
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut wrong = Vec::new();
    for legacy in [false, true] {
        let server = suite::server().unwrap();
        let url = runtime.block_on(async {
            let behind = gateway::serve(&server, legacy).await;
            let front = gateway::front(behind).await;
            format!("http://{}/mcp", gateway::serve(&front, false).await)
        });
        for (revision, least) in REVISIONS {
            let folder = tempfile::tempdir().unwrap();
            let report = report::run(&url, revision, folder.path()).unwrap();
            let (passed, failed) = (report.passed, report.failed.len());
            eprintln!(
                "server of the handshake era {legacy}, {revision}: {passed} passed, {failed} failed"
            );
            let older = NOT_FROM_OLDER.iter().filter(|_| legacy);
            let expected = older.map(|(name, _)| *name);
            // Failures are listed; the count shows that the rest was checked at all.
            let least = if legacy { least - 10 } else { least };
            assert!(passed >= least, "{revision}: {passed} checks passed");
            for row in &report.warned {
                eprintln!("  warned: {row:?}");
            }
            for row in report.failed {
                eprintln!("  {row:?}");
                if !expected.clone().any(|name| name == row.0) {
                    wrong.push((legacy, revision, row));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
