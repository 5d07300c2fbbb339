//! Wrong usage: exit 2, what happened, what to do.

use crate::harness::Lab;

#[test]
fn wrong_usage_ends_with_two_and_says_what_to_do() {
    let lab = Lab::new();
    let rows: [(&[&str], &str); 17] = [
        (&["chain", "x.py"], "haft chain"),
        (&["run", "hello", "--model", "x:y"], "PROVIDER:MODEL"),
        (&["approvals", "show", "ap-none"], "haft approvals list"),
        (&["approvals", "approve", "ap-none"], "haft approvals list"),
        (&["approvals", "deny", "ap-"], "haft approvals list"),
        (&["skills", "show", "x"], "haft skills list"),
        (
            &["mcp", "import", "x"],
            "name a client's settings file, or the folder of a plugin",
        ),
        (&["mcp", "add", "x"], "Usage: haft mcp add"),
        (&["mcp", "remove", "x"], "haft mcp list"),
        (
            &["mcp", "snipet", "cursor"],
            "did you mean `haft mcp snippet`?",
        ),
        (&["mcp", "zzz"], "there are list, add, remove, import"),
        (&["mcp", "snippet", "curser"], "did you mean `cursor`?"),
        (&["cal", "read_file"], "did you mean `haft call`?"),
        (&["zzz"], "haft --help"),
        (&["call"], "Usage: haft call"),
        (
            &["--workspace", "/nowhere/at/all", "config"],
            "--workspace takes an existing folder",
        ),
        (
            &["config", "explain", "policy.profil"],
            "did you mean `policy.profile`?",
        ),
    ];
    for (args, advice) in rows {
        let ran = lab.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(advice), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{args:?}");
    }
}
