//! Command lines of about 200 characters, parsed, and judged under 20 rules: the CPU time of each, in microseconds. And two policies of
//! 200 rules each, compared.

use std::hint::black_box;

use haft::permission::Verdict;
use haft::policy::{Policy, Profile, RuleSet, RuleText};
use haft::testing::line_verdict;
use haft_shell::{direct_words, fragments, parse};
use measure::{Row, Step, cpu_ms, interleave, rounds};

/// Number of verdicts per round.
const EACH: usize = 2_000;

/// name, line, its verdict
const LINES: &[(&str, &str, Verdict)] = &[
    (
        "one command",
        "cargo test --workspace --all-features --locked --no-fail-fast -- --nocapture --test-threads=4 policy::tests::lines executor::tests::clear session::tests::grants toolset::registry::tests::views and_more",
        Verdict::Allow,
    ),
    (
        "six parts",
        "cargo build -p haft --locked 2>&1 | tail -20; git status --short | grep -v node_modules | head -5 && cargo test -p haft --test it -- --nocapture policy && echo done || echo failed; ls -la crates | wc -l; du -sh .",
        Verdict::Allow,
    ),
    (
        "loops and substitutions",
        "for f in src/*.rs tests/*.rs; do if grep -q TODO \"$f\"; then echo \"$f: $(grep -c TODO \"$f\")\"; fi; done; cargo fmt --check && git diff --stat | tail -1; (cargo clippy -p haft --all-targets) 2>&1 | head -50; echo ok",
        // The file that grep reads is unknown, and a rule denies reading one.
        Verdict::Ask,
    ),
];

fn policy() -> Policy {
    let texts = |rules: &[&str]| rules.iter().map(|rule| RuleText::new(*rule)).collect();
    let rules = RuleSet {
        deny: texts(&[
            "Bash(sudo *)",
            "Bash(rm -rf *)",
            "Bash(git push *)",
            "Read(.env)",
            "Edit(secrets/**)",
            "Bash(curl *)",
        ]),
        ask: texts(&[
            "Bash(npm publish *)",
            "Bash(docker *)",
            "Bash(terraform *)",
            "Edit(/migrations/**)",
        ]),
        allow: texts(&[
            "Bash(cargo build *)",
            "Bash(cargo test *)",
            "Bash(cargo fmt *)",
            "Bash(cargo clippy *)",
            "Bash(npm run *)",
            "Bash(make *)",
            "Edit(/src/**)",
            "Bash(git add *)",
            "Bash(git commit *)",
            "Bash(* --version)",
        ]),
    };
    let built = Policy::builder(Profile::Workspace).rules(rules).build();
    built.expect("the rules are fine")
}

/// Returns a policy of 200 rules of every kind. Those of another `seed` differ.
fn large_policy(seed: usize) -> Policy {
    let rule = |at: usize| {
        let own = at + seed;
        RuleText::new(match at % 6 {
            0 => format!("Bash(git sub{own} --flag *)"),
            1 => format!("Bash(npm run task{own} *)"),
            2 => format!("Bash(cargo * -p crate{own})"),
            3 => format!("Edit(/src/m{own}/**/*.rs)"),
            4 => format!("Network(*.h{own}.example.com:443)"),
            _ => format!("server{}.tool{own}(name:v{own}*)", at % 7),
        })
    };
    let rules = RuleSet {
        allow: (0..120).map(rule).collect(),
        ask: (120..160).map(rule).collect(),
        deny: (160..200).map(rule).collect(),
    };
    let built = Policy::builder(Profile::Workspace).rules(rules).build();
    built.expect("the rules are fine")
}

/// Measures how long it takes to say what the rules of one policy let through that those of another do not.
fn compared<'a>(name: &str, old: &'a Policy, new: &'a Policy) -> Step<'a> {
    let measured = move || cpu_ms(|| drop(black_box(old.looser_rules(new)))).0;
    (
        Row::new(format!("haft/diff/{name}"), "ms"),
        Box::new(measured),
    )
}

/// Measures the reader alone.
fn alone<'a>(name: String, read: impl Fn() + 'a) -> Step<'a> {
    let measured = move || {
        let (milliseconds, ()) = cpu_ms(|| (0..EACH).for_each(|_| read()));
        milliseconds * 1e3 / EACH as f64
    };
    (Row::new(name, "us"), Box::new(measured))
}

fn main() {
    let (policy, rounds) = (policy(), rounds(9));
    let policy = &policy;
    let (large, shifted, other) = (large_policy(0), large_policy(6), large_policy(1_000));
    let mut steps: Vec<Step<'_>> = Vec::new();
    for (name, line, expect) in LINES {
        assert_eq!(line_verdict(policy, line), *expect, "{name}");
        assert!((190..260).contains(&line.len()), "{name}: {}", line.len());
        let judge = move || {
            let (milliseconds, ()) = cpu_ms(|| {
                for _ in 0..EACH {
                    black_box(line_verdict(policy, black_box(line)));
                }
            });
            milliseconds * 1e3 / EACH as f64
        };
        steps.push((
            Row::new(format!("haft/judge/{name}"), "us"),
            Box::new(judge),
        ));
        steps.push(alone(format!("haft-shell/parse/{name}"), move || {
            black_box(parse(black_box(line))).expect("the line is read");
        }));
        steps.push(alone(format!("haft-shell/fragments/{name}"), move || {
            black_box(fragments(black_box(line)));
        }));
        steps.push(alone(
            format!("haft-shell/direct words/{name}"),
            move || {
                black_box(direct_words(black_box(line)));
            },
        ));
    }
    steps.push(compared("200 rules, a few differ", &large, &shifted));
    steps.push(compared("200 rules, all differ", &large, &other));
    interleave(rounds, steps);
}
