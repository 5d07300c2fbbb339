//! Three small projects without dependencies, each with one failing test, and the day's work on one as a scenario.

use haft_scripted::Scenario;

/// A project with one failing test.
pub(crate) struct Project {
    pub(crate) name: &'static str,
    /// The program that must be on this machine.
    pub(crate) needs: &'static str,
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// The file with the fault, and what to replace in it.
    pub(crate) fault: (&'static str, &'static str, &'static str),
    pub(crate) test: &'static str,
    /// What the model must read of the failing assertion.
    pub(crate) assertion: &'static [&'static str],
    /// What it must read when the test passes.
    pub(crate) passes: &'static str,
}

pub(crate) const PROJECTS: [Project; 3] = [
    Project {
        name: "node",
        needs: "node",
        files: &[
            ("sum.js", "exports.sum = (a, b) => a - b;\n"),
            (
                "sum.test.js",
                "const assert = require('node:assert');\nconst { test } = require('node:test');\nconst { sum } = require('./sum.js');\n\
                 test('adds', () => assert.strictEqual(sum(2, 2), 4));\n",
            ),
        ],
        fault: ("sum.js", "a - b", "a + b"),
        test: "node --test",
        assertion: &["0 !== 4"],
        passes: "pass 1",
    },
    Project {
        name: "python",
        needs: "python3",
        files: &[
            ("total.py", "def total(a, b):\n    return a - b\n"),
            (
                "test_total.py",
                "import unittest\nfrom total import total\n\nclass Total(unittest.TestCase):\n    def test_adds(self):\n        \
                 self.assertEqual(total(2, 2), 4)\n",
            ),
        ],
        fault: ("total.py", "a - b", "a + b"),
        test: "python3 -B -m unittest",
        assertion: &["AssertionError: 0 != 4"],
        passes: "OK",
    },
    Project {
        name: "rust",
        needs: "cargo",
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"total\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            (
                "src/lib.rs",
                "pub fn total(a: i32, b: i32) -> i32 {\n    a - b\n}\n\n#[test]\nfn adds() {\n    assert_eq!(total(2, 2), 4);\n}\n",
            ),
        ],
        fault: ("src/lib.rs", "a - b", "a + b"),
        test: "cargo test --offline --lib",
        assertion: &["left: 0", "right: 4"],
        passes: "1 passed",
    },
];

/// Returns what the model says: it tests by this tool, makes the call that fixes the fault, tests again, and is done.
pub(crate) fn scenario(project: &Project, tool: &str, fix: &str) -> Scenario {
    let result =
        |call: &str, contains: &str| format!("{{ call = \"{call}\", contains = {contains:?} }}");
    let assertion = project.assertion.iter().map(|part| result("t1", part));
    let assertion: Vec<String> = assertion.collect();
    let test = |id: &str| {
        let arguments = format!(
            "{{ command = {:?}, description = \"Run the tests\" }}",
            project.test
        );
        // haft's own tool takes no description.
        let arguments = match tool {
            "Bash" => arguments,
            _ => format!("{{ command = {:?}, timeout_s = 300 }}", project.test),
        };
        format!(
            "[[turns]]\nsay = [{{ call = {{ id = \"{id}\", tool = \"{tool}\", arguments = {arguments} }} }}]\n"
        )
    };
    let turns = format!(
        "title = \"A day\"\n{}[[turns]]\nexpect.results = [{}]\nsay = [{{ call = {fix} }}]\n{}\
         [[turns]]\nexpect.results = [{}]\nsay = [{{ text = \"Fixed.\" }}]\n",
        test("t1"),
        assertion.join(", "),
        test("t2"),
        result("t2", project.passes),
    );
    Scenario::from_toml(&turns).unwrap_or_else(|error| panic!("{error}: {turns}"))
}
