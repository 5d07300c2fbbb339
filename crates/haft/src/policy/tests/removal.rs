//! Removals of critical paths need approval even if an allow rule matches (clause 15).

use super::*;

const REMOVALS: Lists<'_> = Lists {
    deny: &[],
    ask: &[],
    allow: &[
        "Bash(rm *)",
        "Bash(rmdir *)",
        "Bash(unlink *)",
        "Bash(cd *)",
    ],
};

fn in_folder(line: &str, cwd: &str) -> Scene {
    let mut scene = run(line);
    scene.arguments = Arguments::new(json!({"command": line, "cwd": cwd}).to_string());
    scene
}

#[test]
fn critical_removals_are_known_by_where_they_lead() {
    // The workspace is /home/dev/app.
    for (line, cwd) in [
        // P14: the forms in the finding.
        ("rm -rf ../app", "."),
        ("rm -rf ../../app", "sub"),
        ("rm -rf /proc/self/cwd/", "."),
        ("rm -rf ${PWD%/}", "."),
        ("rm -rf */", "."),
        ("rm -rf ../*/", "."),
        ("rm -rf [a-z]*", "."),
        ("echo . | xargs rm -rf", "."),
        // The same in other ways.
        ("rm -rf sub/../../app", "."),
        ("rm -rf ../../dev", "."),
        ("rm -rf ../../../home", "."),
        ("rm -rf ../app/", "."),
        ("rm -rf ../app/*", "."),
        ("rm -rf ../app/[!.]*", "."),
        ("rm -rf /home/dev/app", "."),
        ("rm -rf /home/dev/app/sub/..", "."),
        ("rm -rf .", "sub"),
        ("rm -rf ..", "sub"),
        ("cd sub && rm -rf ../../app", "."),
        ("cd sub; cd deep; rm -rf ../../../app", "."),
        ("cd /home && rm -rf dev", "."),
        ("cd \"$X\" && rm -rf ../y", "."),
        ("rm -rf /proc/thread-self/root/x", "."),
        ("rm -rf /proc/1/cwd/x", "."),
        ("rm -rf /dev/fd/../../home", "."),
        ("rm -rf \"$PWD\"", "."),
        ("rm -rf ${PWD}/", "."),
        ("rm -rf ${PWD:?}", "."),
        ("rm -rf ${HOME%/}/*", "."),
        ("rm -rf ${x:-/}", "."),
        ("rm -rf ${x-..}", "."),
        ("rm -rf ${x:+/usr}", "."),
        ("rm -rf ${x}/", "."),
        ("rm -rf $x/*/", "."),
        ("rm -rf ?*", "."),
        ("rm -rf ??", "."),
        ("rm -rf .[!.]*", "."),
        ("rm -rf *.*", "."),
        ("rm -rf ./*/", "."),
        ("rm -rf {*,.*}", "."),
        // AP4: the name is spelled differently.
        ("r\\m -rf ../app", "."),
        ("r\\m -rf \"$PWD\"/../app", "."),
        ("'rm' -rf \"$PWD\"/../app", "."),
        ("r\"m\"dir ../app", "."),
        ("jobs -x rm -rf ../app", "."),
        // AP10: in text that is passed to a shell.
        ("sh -c 'rm -rf ../app'", "."),
        ("sudo bash -ec 'ls; rm -rf /'", "."),
        ("eval rm -rf /", "."),
        ("sh -c 'cd /home; rm -rf dev'", "."),
        ("sh -c 'echo $((x)); rm -rf /'", "."),
        ("timeout 5 sh -c \"sh -c 'rm -rf ..'\"", "."),
        ("rm -rf ~/x", "."),
        ("unlink ../app", "."),
        ("unlink \"$PWD\"/../app", "."),
        ("ls | xargs rm", "."),
        ("ls | xargs -I X rm -rf X", "."),
        ("ls | xargs -n 1 rm", "."),
        ("find . -maxdepth 0 -exec rm -rf {} ';'", "."),
        ("timeout 5 rm -rf ../app", "."),
        ("sudo -u root rm -rf /usr", "."),
    ] {
        for profile in [Profile::Workspace, Profile::Trusted] {
            let scene = in_folder(line, cwd);
            let ruling = policy(profile, REMOVALS).judge(&scene.call());
            assert_eq!(ruling.verdict, ASK, "{profile}: {line} in {cwd}");
            // The risk tells a user who approves by risk how serious it is.
            assert_eq!(ruling.risk, Risk::Critical, "{profile}: {line} in {cwd}");
        }
    }
}

#[test]
fn other_removals_are_what_the_rules_say() {
    for (line, cwd) in [
        ("rm -rf build", "."),
        ("rm -rf ./build/", "."),
        ("rm -f *.o", "."),
        ("rm -f build*", "."),
        ("rm -rf build/*", "."),
        ("rm -rf [a-z]*.tmp", "."),
        ("rm -rf ../other", "sub"),
        ("rm -rf /home/dev/app/build", "."),
        ("rm -rf /tmp/x", "."),
        ("rm \"$x\"", "."),
        ("rm -f \"${f%.c}.o\"", "."),
        ("rm -rf {a,b}", "."),
        ("cd sub && rm -rf x", "."),
        ("rmdir a/b", "."),
        ("unlink a/b", "."),
    ] {
        assert_eq!(
            judge(REMOVALS, &in_folder(line, cwd)).verdict,
            ALLOW,
            "{line} in {cwd}"
        );
    }
}
