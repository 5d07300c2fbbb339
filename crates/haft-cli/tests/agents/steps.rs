//! The steps of a day's work in a small shop: what the agent does, and what its model must see afterwards.

use serde_json::{Map, Value, json};

/// What an agent does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deed {
    /// It runs a line of its shell.
    Line(&'static str),
    /// It runs a line and goes on while that runs.
    Background(&'static str),
    /// It replaces a text in a file with its own tool.
    Edit {
        file: &'static str,
        find: &'static str,
        replace: &'static str,
    },
}

/// One step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) deed: Deed,
    /// A part of the result; empty if nothing certain is in it.
    pub(crate) sees: &'static str,
}

const fn line(line: &'static str, sees: &'static str) -> Step {
    Step {
        deed: Deed::Line(line),
        sees,
    }
}

/// The files of the shop, as its last commit has them.
pub(crate) const FILES: [(&str, &str); 5] = [
    (
        "package.json",
        "{\n  \"name\": \"shop\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\n    \"test\": \"node --test\"\n  }\n}\n",
    ),
    ("README.md", "# A shop\n\nIt adds prices.\n"),
    ("sum.js", "exports.sum = (a, b) => a - b;\n"),
    (
        "sum.test.js",
        "const assert = require('node:assert');\nconst { test } = require('node:test');\nconst { sum } = require('./sum.js');\n\
         test('adds', () => assert.strictEqual(sum(2, 2), 4));\n",
    ),
    (".gitignore", "node_modules/\n"),
];

/// Writes the server; `/stop` ends it. Gemini CLI runs no line with a backtick or `$(…)`.
const SERVER: &str = "mkdir -p src && cat > src/server.js <<'END'
const http = require('node:http');
const { rate } = require('shop-tax');
const { sum } = require('../sum.js');
http.createServer((request, reply) => {
  if (request.url === '/stop') {
    reply.end('bye', () => process.exit(0));
  } else {
    reply.end('total ' + sum(2, 2) * (1 + rate));
  }
}).listen(Number(process.argv[2]), '127.0.0.1');
END
wc -l src/server.js";

/// Writes another test.
const TEST: &str = "cat > tax.test.js <<'END'
const assert = require('node:assert');
const { test } = require('node:test');
test('has a rate', () => assert.strictEqual(require('shop-tax').rate, 0.2));
END
npm test";

/// Changes a file by a program of its own.
const SCRIPT: &str = "node - <<'END'
const fs = require('node:fs');
fs.appendFileSync('README.md', 'It knows the tax.' + String.fromCharCode(10));
END
tail -1 README.md";

/// The day. `@PORT@` stands for a free port.
pub(crate) const STEPS: [Step; 35] = [
    line(
        "git status --short && git log --oneline -3",
        "Begin the shop",
    ),
    line("ls -la && cat package.json", "node --test"),
    line("grep -rn 'sum(' --include='*.js' .", "sum.test.js"),
    line("cat sum.js sum.test.js", "strictEqual"),
    line("npm test", "0 !== 4"),
    Step {
        deed: Deed::Edit {
            file: "sum.js",
            find: "a - b",
            replace: "a + b",
        },
        sees: "",
    },
    line(
        "node -e \"console.log(require('./sum.js').sum(20, 22))\"",
        "42",
    ),
    line("npm test 2>&1 | tail -12", "pass 1"),
    line(
        "sed -i 's/A shop/Our shop/' README.md && git diff --stat",
        "README.md",
    ),
    line(
        "git add -A && git commit -q -m 'Mend the sum' && git log --oneline -1",
        "Mend the sum",
    ),
    line("git checkout -q -b tax && git branch --show-current", "tax"),
    line("npm install shop-tax", "added 1 package"),
    line(SERVER, "10 src/server.js"),
    line("node --check src/server.js && echo 'no error'", "no error"),
    Step {
        deed: Deed::Background("node src/server.js @PORT@"),
        sees: "",
    },
    line(
        "curl -s --retry 60 --retry-delay 1 --retry-connrefused http://127.0.0.1:@PORT@/",
        "total 4.8",
    ),
    line(TEST, "pass 2"),
    line(SCRIPT, "It knows the tax."),
    line(
        "npm pkg set scripts.start='node src/server.js 8080' && git diff --stat package.json",
        "package.json | 6",
    ),
    line("npm test 2>&1 | grep -E '^# (pass|fail)'", "# pass 2"),
    line(
        "for f in *.js src/*.js; do wc -l \"$f\"; done",
        "src/server.js",
    ),
    line("npm ls --depth 0", "shop-tax@1.0.0"),
    line(
        "mkdir -p docs && cp README.md docs/start.md && mv docs/start.md docs/begin.md && ls docs",
        "begin.md",
    ),
    line("rm -r docs && git status --short", "tax.test.js"),
    line("export DEBUG=1 && node -p process.env.DEBUG", "1"),
    line(
        "curl -s -o /dev/null -w '%{http_code}\\n' http://127.0.0.1:@PORT@/",
        "200",
    ),
    line(
        "git stash -q -u && git stash pop -q && git stash list && echo 'none left'",
        "none left",
    ),
    line("git diff --stat main", "README.md"),
    line(
        "git add -A && git commit -q -m 'Add the tax' && git log --oneline -1",
        "Add the tax",
    ),
    line("git show --stat HEAD", "src/server.js"),
    line(
        "node -e \"console.log(require('./package.json').scripts.start)\"",
        "8080",
    ),
    line("git push -u origin tax", "tax -> tax"),
    line("git log --oneline -3 origin/tax", "Begin the shop"),
    line("git status --short --branch", "origin/tax"),
    line("curl -s http://127.0.0.1:@PORT@/stop", "bye"),
];

/// Returns the day as a scenario. `to_calls` are the calls by which the agent does a deed, one after another.
pub(crate) fn scenario(port: u16, to_calls: fn(Deed) -> Vec<Value>) -> String {
    let mut turns = Vec::new();
    let mut expected: Option<Value> = None;
    for (number, step) in STEPS.iter().enumerate() {
        let calls = to_calls(step.deed);
        let last = calls.len() - 1;
        for (place, mut piece) in calls.into_iter().enumerate() {
            let id = format!("step{number}_{place}");
            for (_, call) in piece.as_object_mut().into_iter().flat_map(Map::iter_mut) {
                call["id"] = json!(id);
            }
            let results: Vec<Value> = expected.take().into_iter().collect();
            turns.push(json!({"expect": {"results": results}, "say": [piece]}));
            let is_checked = place == last && !step.sees.is_empty();
            expected = is_checked.then(|| json!({"call": id, "contains": step.sees}));
        }
    }
    let results: Vec<Value> = expected.into_iter().collect();
    turns.push(json!({"expect": {"results": results}, "say": [{"text": "all done"}]}));
    // Gemini CLI asks this after many calls.
    let fine =
        json!({"unproductive_state_analysis": "It gets on.", "unproductive_state_confidence": 0});
    let asides = json!([{
        "expect": {"user": "stuck in a repetitive, non-productive state"},
        "say": [{"text": fine.to_string()}],
    }]);
    let scenario = json!({"title": "A day", "end": "all done", "turns": turns, "asides": asides});
    scenario.to_string().replace("@PORT@", &port.to_string())
}
