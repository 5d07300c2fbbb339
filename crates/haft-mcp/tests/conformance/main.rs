//! The MCP conformance suite against tools that the executor runs, in both revisions.
//!
//! `make needs` installs it below `HAFT_NEEDS`; without it the test is skipped and says so.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests start real programs, say what they skip, and stop where they cannot go on"
)]

mod report;
#[path = "../../examples/conformance_server/suite.rs"]
mod suite;

/// The revisions, and the least number of checks that must pass, so that a suite that checks nothing fails.
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
