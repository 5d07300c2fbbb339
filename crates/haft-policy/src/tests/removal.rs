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
        "Bash(ls)",
        "Bash(sh -c 'cd sub; rm -rf x')",
    ],
};

fn in_folder(line: &str, cwd: &str) -> Scene {
    let mut scene = run(line);
    scene.arguments = json!({"command": line, "cwd": cwd}).to_string();
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
        // The paths that a loop's variable holds.
        ("for d in /home/dev/app; do rm -rf \"$d\"; done", "."),
        ("for d in *; do rm -rf \"$d\"; done", "."),
        ("for d in / ~; do rm -rf \"$d\"; done", "."),
        ("for d in a ..; do rm -rf $d; done", "."),
        ("for d in a; do rm -rf \"$d/..\"; done", "."),
        ("for d in ..; do rm -rf \"${d}/app\"; done", "."),
        (
            "for a in / b; do for d in \"$a\"; do rm -rf \"$d\"; done; done",
            ".",
        ),
        ("for d in a /; do for e in b; do rm -rf $d; done; done", "."),
        ("for d in /; do rm -rf \"$(rm -rf $d)x\"; done", "."),
        ("for d in a; do rm $d; done; for d in /; do ls; done", "."),
        ("for d in a '*'; do rm -rf $d; done", "."),
        ("for d in '/ a'; do rm -rf $d; done", "."),
        ("for d in $(ls); do rm -rf \"$d\"; done", "."),
        ("for d in {a,/}; do rm -rf $d; done", "."),
        ("for d; do rm -rf \"$d\"; done", "."),
        ("for d in \"$@\"; do rm -rf \"$d\"; done", "."),
        ("for d in ls; do :; done; rm -rf \"$d\"", "."),
        ("for d in ls; do f() { rm -rf \"$d\"; }; done", "."),
        ("for d in ..; do sh -c 'cd \"$d\"; rm -rf app'; done", "."),
        ("for ((i = 0; i < 3; i++)); do rm -rf $i; done", "."),
        // Variables that anything else sets, or that nothing on the line sets.
        ("rm \"$x\"", "."),
        ("rm -rf a/$x", "."),
        ("rm -rf a/\"$x\"/..", "."),
        ("rm -rf \"$x\"/app", "."),
        ("rm -rf \"$x\"/dev/app", "."),
        ("rm -rf \"$GITHUB_WORKSPACE\"", "."),
        ("rm -rf \"$OLDPWD\"", "."),
        ("d=/; rm -rf \"$d\"", "."),
        ("d=a; d=..; rm -rf \"$d\"", "."),
        ("d=a; rm -rf \"$d\"/b", "."),
        ("d=a; rm -rf $d/../..", "."),
        ("d='*'; rm -rf $d", "."),
        ("d=a; f() { d=/; }; f; rm -rf $d", "."),
        ("d=/; d=a rm -rf \"$d\"", "."),
        ("D=a; rm -rf \"$D\"", "."),
        ("d=$(pwd); rm -rf \"$d\"", "."),
        ("d=$(mktemp -d); rm -rf \"$d\"/..", "."),
        ("d=$(mktemp -d)/..; rm -rf \"$d\"", "."),
        ("mktemp() { echo /; }; d=$(mktemp -d); rm -rf \"$d\"", "."),
        ("PATH=.; d=$(mktemp -d); rm -rf \"$d\"", "."),
        ("d=$(mktemp -u); rm -rf \"$d\"", "."),
        ("d=a; sh -c 'rm -rf \"$d\"'", "."),
        ("sh -c 'd=a; rm -rf \"$d\"'", "."),
        ("d=/ && rm -rf ${d}", "."),
        ("while read d; do rm -rf \"$d\"; done", "."),
        ("read d; rm -rf \"$d\"", "."),
        ("for d in a; do read d; rm -rf \"$d\"; done", "."),
        ("printf -v d /; rm -rf \"$d\"", "."),
        ("mapfile d; rm -rf \"${d[0]}\"", "."),
        ("set -- /; rm -rf \"$@\"", "."),
        ("set -- /; rm -rf $1", "."),
        ("f() { rm -rf \"$1\"; }; f /", "."),
        ("sh -c 'rm -rf \"$0\"' /", "."),
        ("sh -c 'rm -rf \"$@\"' _ /", "."),
        ("select d in /; do rm -rf \"$d\"; done", "."),
        ("d=(/); rm -rf \"${d[@]}\"", "."),
        ("HOME=/; rm -rf \"$HOME/home\"", "."),
        // What a text holds that is not shown.
        ("rm -rf ${x:-\"/\"}", "."),
        ("rm -rf ${x:-$HOME}", "."),
        ("rm -rf ${x:=..}", "."),
        ("rm -rf ${x:+/}", "."),
        ("rm -rf ${x:-'..'}", "."),
        ("for x in a; do rm -rf ${x:+\"/\"}; done", "."),
        ("for x in a; do rm -rf ${x/a/..}; done", "."),
        ("for x in a..; do rm -rf ${x#a}; done", "."),
        // Patterns that match nearly every name, or the name of the folder.
        ("rm -rf [[:alpha:]]*", "."),
        ("rm -rf [!x]*", "."),
        ("rm -rf [^.]*", "."),
        ("rm -rf []x]*", "."),
        ("rm -rf [!]]*", "."),
        ("rm -rf *e*", "."),
        ("rm -rf ./[[:alnum:]_]*/", "."),
        ("rm -rf sub/../?*", "."),
        ("rm -rf !(x)", "."),
        ("bash -O extglob -c 'rm -rf !(x)'", "."),
        ("rm -rf ../a*", "."),
        ("rm -rf ../?pp", "."),
        ("rm -rf ../[a-b]pp", "."),
        ("rm -rf ../*/", "sub"),
        ("rm -rf /home/d*/app", "."),
        ("rm -rf /h*", "."),
        ("rm -rf /*/dev", "."),
        ("rm -rf /home/*", "."),
        ("rm -rf /pro?/self/cwd", "."),
        ("rm -rf ../{x,app}", "."),
        ("rm -rf {.,}./app", "."),
        ("rm -rf {a..z}*", "."),
        // The folder where it runs.
        ("cd -- ..; rm -rf app", "."),
        ("cd -P ..; rm -rf app", "."),
        ("cd -L -- ..; rm -rf app", "."),
        ("pushd ..; rm -rf app", "."),
        ("pushd -n ..; popd; rm -rf app", "."),
        ("builtin cd ..; rm -rf app", "."),
        ("command cd -- ..; rm -rf app", "."),
        ("cd a; cd ..; cd ..; rm -rf app", "."),
        ("cd ..; cd ..; rm -rf dev", "."),
        ("cd ..; cd ..; cd ..; rm -rf home", "."),
        ("(cd a); cd ..; rm -rf app", "."),
        ("(cd a; ls); cd ..; rm -rf app", "."),
        ("for i in 1 2; do cd ..; done; rm -rf dev", "."),
        ("cd \"$x\"; rm -rf app", "."),
        ("cd; rm -rf app", "."),
        ("cd -; rm -rf app", "."),
        ("cd *; rm -rf app", "."),
        ("cd $(pwd)/..; rm -rf app", "."),
        ("eval 'cd ..'; rm -rf app", "."),
        ("eval cd ..; rm -rf app", "."),
        ("eval \"$x\"; rm -rf app", "."),
        (". ./x; rm -rf app", "."),
        ("env -C .. rm -rf app", "."),
        ("env --chdir=.. rm -rf app", "."),
        ("env --chdir .. rm -rf app", "."),
        ("env -iC.. rm -rf app", "."),
        ("env -C .. env -C . rm -rf app", "."),
        ("env -C \"$x\" rm -rf app", "."),
        ("env -S 'rm -rf app' -C ..", "."),
        ("sudo -D .. rm -rf app", "."),
        ("sudo -D.. rm -rf app", "."),
        ("sudo --chdir=.. rm -rf app", "."),
        ("sudo -i rm -rf app", "."),
        ("su dev -c 'rm -rf app'", "."),
        ("chroot / rm -rf usr", "."),
        ("unshare --wd=.. rm -rf app", "."),
        ("bash -c 'cd -- ..; rm -rf app'", "."),
        ("bash -c 'pushd ..; rm -rf app'", "."),
        ("env -C .. bash -c 'rm -rf app'", "."),
        ("cd ..; bash -c 'rm -rf app'", "."),
        ("sh -c 'cd ..; sh -c \"rm -rf app\"'", "."),
        ("eval 'cd ..; rm -rf app'", "."),
        ("find . -execdir rm -rf ../app ';'", "."),
        ("CDPATH=/home; cd dev; rm -rf app", "."),
        ("rm -rf ../APP", "."),
        ("rm -rf */.", "."),
        ("command -p cd ..; rm -rf app", "."),
        ("rm -rf /Home/dev/App", "."),
        ("rm -rf ../../..$PWD", "."),
        ("export CDPATH=/home; cd dev; rm -rf app", "."),
        ("sh -c 'CDPATH=/home; cd dev; rm -rf app'", "."),
        ("alias x='rm -rf ..'; x", "."),
        ("env -S '-C .. rm -rf app'", "."),
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
        ("rm -f \"${f%.c}.o\"", "."),
        ("for f in *.c; do rm -f \"${f%.c}.o\"; done", "."),
        ("for f in a 'b c' *.o; do rm -f \"$f\"; done", "."),
        ("for f in a b; do rm -rf $f/x; done", "."),
        (
            "for f in a b; do for g in c d; do rm -rf \"$f/$g\"; done; done",
            ".",
        ),
        ("for i in 1 2; do rm -rf out$i.d; done", "."),
        ("for i in {1..3} {a,b}x; do rm -rf out$i; done", "."),
        ("for f in a b; do timeout 5 rm \"$f\"; done", "."),
        ("rm -rf {a,b}", "."),
        ("rm -rf build/{a,b}.o", "."),
        ("rm -rf [a-c]x*.o", "."),
        ("rm -rf ../w*", "."),
        ("rm -rf /tmp/at?/w", "."),
        ("rm -rf \"$x\"/a/b", "."),
        ("rm -rf \"$HOME/x\"", "."),
        ("cd -- sub && rm -rf x", "."),
        ("cd sub && ls && cd .. && rm -rf build", "."),
        ("cd \"$x\" && rm -rf build", "."),
        ("cd sub && rm -rf sub/x", "."),
        ("sh -c 'cd sub; rm -rf x' || rm -rf y", "."),
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

#[test]
fn a_value_that_the_line_gives_a_variable_is_known() {
    for line in [
        "d=build; rm -rf \"$d\"",
        "d=build && rm -rf $d",
        "d=build; rm -rf \"${d}\"",
        "d=/tmp/x; ls; rm -rf \"$d\"",
        "tmp=$(mktemp -d); ls > \"$tmp\"/a; rm -rf \"$tmp\"",
        "tmp=\"$(mktemp -d -t x.XXX)\"; rm -rf \"$tmp\"",
    ] {
        let mut scene = run(line);
        scene.permissions.retain(|one| one.effect.kind() == "run");
        let trusted = policy(Profile::Trusted, REMOVALS);
        assert_eq!(trusted.judge(&scene.call()).verdict, ALLOW, "{line}");
        // No rule covers an assignment.
        assert_eq!(judge(REMOVALS, &scene).verdict, ASK, "{line}");
        // A shell that is not haft's own may have set it before.
        scene.permissions = CommandLine::new(line).runs(false, false).collect();
        let outside = trusted.judge(&scene.call());
        assert_eq!(
            (outside.verdict, outside.risk),
            (ASK, Risk::Critical),
            "{line}"
        );
    }
}

#[test]
fn variables_of_the_call_change_where_a_removal_leads() {
    for (line, env) in [
        ("rm -rf \"$HOME/home\"", json!({"HOME": "/"})),
        ("cd dev; rm -rf app", json!({"CDPATH": "/home"})),
    ] {
        let mut scene = run(line);
        let trusted = policy(Profile::Trusted, REMOVALS);
        assert_eq!(trusted.judge(&scene.call()).verdict, ALLOW, "{line}");
        scene.arguments = json!({"command": line, "env": env}).to_string();
        assert_eq!(trusted.judge(&scene.call()).verdict, ASK, "{line}");
    }
}
