// Unit tests that need no browser: marks, diffs, forms, output. `node units.mjs` prints "all hold" or fails.
import assert from "node:assert/strict";
import { build } from "esbuild";

/** A module of the sources, built as the pages are. */
async function load(entry) {
  const built = await build({
    entryPoints: [entry], bundle: true, write: false, format: "esm", platform: "neutral", mainFields: ["module", "main"],
    jsx: "automatic", jsxImportSource: "preact", define: { WITHOUT_APPROVE: "false" },
  });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
}

const { pathText, pieces, spellOut } = await load("src/visible.ts");
for (const [text, lines, expect] of [
  ["plain ü 字 🙂", false, "plain ü 字 🙂"],
  ["a\x1b[2Kb", false, "a⟨\\x1b⟩[2Kb"],
  ["a\nb\tc\r", false, "a⟨\\n⟩b⟨\\t⟩c⟨\\r⟩"],
  ["a\nb\tc\r", true, "a\nb\tc⟨\\r⟩"],
  ["x\u202ey\u200b\u200bz", false, "x⟨\\u{202e}⟩y⟨\\u{200b}\\u{200b}⟩z"],
  ["\u009b31m", false, "⟨\\x9b⟩31m"],
  ["p\u0430ypal.com", false, "p⟨\u0430\\u{430}⟩ypal.com"],
  ["привет world", false, "привет world"],
  ["αβγ", false, "αβγ"],
  ["<img src=x onerror=alert(1)>", false, "<img src=x onerror=alert(1)>"],
  ["", false, ""],
  ["tag\u{e0041}end", false, "tag⟨\\u{e0041}⟩end"],
]) {
  const shown = pieces(text, lines).map((piece) => (piece.mark ? `⟨${piece.text}⟩` : piece.text)).join("");
  assert.equal(shown, expect, JSON.stringify(text));
}
for (const [path, expect] of [
  ["src/app/[id]/page.tsx", "src/app/[id]/page.tsx"],
  ["über/字.md", "über/字.md"],
  ["", "''"],
  ["a.txt (deleted)", "'a.txt (deleted)'"],
  ["it's", "$'it\\'s'"],
  ["nl\nx", "$'nl\\nx'"],
  ["nl\\nx", "$'nl\\\\nx'"],
  ["a\x1b[2J\u009b31m", "$'a\\x1b[2J\\u009b31m'"],
  ["\u202ex\u115f", "$'\\u202ex\\u115f'"],
  ["\u{e0001}1", "$'\\U000e00011'"],
]) {
  assert.equal(pathText(path), expect, JSON.stringify(path));
}
assert.equal(spellOut("a\u202eb"), "a\\u{202e}b");
const long = "\u202e<b>".repeat(300_000);
assert.ok(pieces(long).length >= 300_000, "1 MB of marks");

const { diffLines, diffWords, linesOf, rowsOf } = await load("src/diff.ts");
/** Numbers that look random and are the same every time. */
let seed = 7;
const random = (below) => {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return Math.floor((seed / 2147483648) * below);
};
for (let round = 0; round < 500; round += 1) {
  const lines = (count) => Array.from({ length: count }, () => "abcd"[random(4)]);
  const [a, b] = [lines(random(30)), lines(random(30))];
  const hunks = diffLines(a, b);
  assert.deepEqual(hunks.flatMap((hunk) => hunk.before), a);
  assert.deepEqual(hunks.flatMap((hunk) => hunk.after), b);
  for (const hunk of hunks) if (hunk.kind === "same") assert.deepEqual(hunk.before, hunk.after);
  const [left, right] = diffWords(a.join(" "), b.join(" "));
  assert.equal(left.map((part) => part.text).join(""), a.join(" "));
  assert.equal(right.map((part) => part.text).join(""), b.join(" "));
}
const changes = (before, after) => rowsOf(before, after).filter((row) => row.kind === "change");
assert.equal(changes("a\nb\nc\n", "a\nB\nc\n").length, 1);
assert.equal(changes("a\n", "a").length, 1, "a newline that goes is a change");
assert.equal(changes("same\n", "same\n").length, 0);
assert.deepEqual(linesOf("a\nb\n"), ["a", "b"]);
const many = Array.from({ length: 100 }, (_, index) => `line ${index}\n`);
const edited = [...many];
edited[50] = "line fifty\n";
const rows = rowsOf(many.join(""), edited.join(""));
assert.deepEqual(rows.filter((row) => row.kind === "fold").map((row) => row.folded), [47, 46]);
assert.equal(rows.find((row) => row.kind === "change").after.stretches.filter((part) => part.changed).map((part) => part.text).join(""), "fifty");
const far = rowsOf(Array.from({ length: 20_000 }, (_, i) => `a${i}\n`).join(""), Array.from({ length: 20_000 }, (_, i) => `b${i}\n`).join(""));
assert.equal(far.length, 20_000, "texts with nothing in common are one change");

const { rowsOfUnified } = await load("src/unified.ts");
const drawn = (diff) => rowsOfUnified(diff).map((row) => {
  const side = (of) => (of ? `${of.number}${JSON.stringify(of.stretches.map((part) => part.text).join(""))}` : "-");
  return row.kind === "fold" ? `fold ${row.folded}` : `${row.kind} ${side(row.before)} ${side(row.after)}`;
});
for (const [diff, expect] of [
  ["", []],
  ["--- a/x\n+++ b/x\n@@ -4,3 +4,3 @@\n same\n-two\n+2\n same\n@@ -20 +20,2 @@\n last\n+more\n", [
    "fold 3", 'same 4"same" 4"same"', 'change 5"two" 5"2"', 'same 6"same" 6"same"', "fold 13", 'same 20"last" 20"last"', 'change - 21"more"']],
  ["--- a/x\n+++ b/x\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n", ['change - 1"one"', 'change - 2"two\\n"']],
  ["--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", ['change 1"a\\n" 1"a"']],
  // A lone carriage return also ends a line: text after it cannot hide behind an unchanged line.
  ["--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\r-two\r+2\n", ['same 1"one\\r" 1"one\\r"', 'change 2"two\\r" 2"2"']],
  // Cut in the middle of a hunk.
  ["--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n", ['change 1"a" -']],
]) assert.deepEqual(drawn(diff), expect, JSON.stringify(diff));

const { rowsOfHunks } = await load("src/hunks.ts");
const drawnRow = (row) => {
  const side = (of) => (of ? `${of.number}${JSON.stringify(of.stretches.map((part) => part.text).join(""))}` : "-");
  return row.kind === "fold" ? `fold ${row.folded}` : `${row.kind} ${side(row.before)} ${side(row.after)}`;
};
for (const [hunks, expect] of [
  [[], []],
  [[{ before_line: 4, after_line: 4, before: "same\ntwo\n", after: "same\n2\n" }, { before_line: 20, after_line: 20, before: "last\n", after: "last\nmore\n" }],
    ["fold 3", 'same 4"same" 4"same"', 'change 5"two" 5"2"', "fold 14", 'same 20"last" 20"last"', 'change - 21"more"']],
  [[{ before_line: 0, after_line: 1, before: "", after: "new\n" }], ['change - 1"new"']],
  [[{ before_line: 1, after_line: 0, before: "old\n", after: "" }], ['change 1"old" -']],
]) assert.deepEqual(rowsOfHunks(hunks).map(drawnRow), expect, JSON.stringify(hunks));

const { commandInText } = await load("src/result.ts");
for (const [text, expect] of [
  ['{"exit_code":1,"stdout":"a\\n","stderr":"b","stdout_bytes":2,"truncated":false,"changes":[]}', { exit: 1, stdout: "a\n", stderr: "b", rest: { changes: [] }, cut: false }],
  ['{"exit_code":-1,"stdout":"a\\nb…', { exit: -1, stdout: "a\nb", stderr: "", rest: {}, cut: true }],
  ['{"exit_code":0,"stdout":"a\\…', { exit: 0, stdout: "a", stderr: "", rest: {}, cut: true }],
  ['{"stdout":"say \\"hi\\"","stderr":"un\\u00…', { stdout: 'say "hi"', stderr: "un", rest: {}, cut: true }],
  ["plain text", undefined],
  ['{"path":"a.txt"}', undefined],
  ["[1]", undefined],
]) assert.deepEqual(commandInText(text), expect, text);

const { fault, faultsOf } = await load("src/parts/form.tsx");
const { fieldsOf } = await load("src/schema.ts");
for (const [schema, value, required, expect] of [
  [{ type: "string" }, undefined, true, /required/],
  [{ type: "string" }, undefined, false, /^$/],
  [{ type: "integer" }, 1.5, true, /whole/],
  [{ type: "integer", minimum: 1 }, 0, true, /at least 1/],
  [{ type: "number", maximum: 9 }, 10, true, /at most 9/],
  [{ type: "string", maxLength: 2 }, "abc", true, /at most 2/],
  [{ type: "string", enum: ["a", "b"] }, "c", true, /one of a, b/],
  [{ type: "array" }, {}, true, /list/],
  [{ type: "object" }, [], true, /object/],
  [{ type: "integer", minimum: 1 }, 3, true, /^$/],
]) assert.match(fault(schema, value, required), expect);
const schema = { properties: { path: { type: "string" }, mode: { enum: ["x"] } }, required: ["path"] };
assert.equal(faultsOf(schema, {}), 1);
assert.deepEqual(fieldsOf(schema, { extra: 1 }).map((field) => field.name), ["path", "mode", "extra"]);
const hard = { $defs: { M: { oneOf: [{ const: "a" }, { const: "b" }] } }, required: ["z"], properties: { m: { $ref: "#/$defs/M", description: "d" }, n: { anyOf: [{ type: "integer" }, { type: "null" }] }, z: { type: "string" } } };
assert.deepEqual(fieldsOf(hard, {}).map((field) => [field.name, field.schema.enum ?? field.schema.type]), [["z", "string"], ["m", ["a", "b"]], ["n", "integer"]]);

const output = await load("src/output.ts").then((module) => { globalThis.requestAnimationFrame = (run) => run(); return module; });
const tell = (text, more = {}) => output.addOutput({ run: "r", tool_call_id: "c", text, stream: "stdout", closed: false, ts: "", ...more });
tell("one\ntw", { offset: 0 });
tell("o\n", { offset: 6 });
tell("o\n", { offset: 6 });
tell("\x1b[31mred\x1b[0m\n10%\r20%\r\n", { offset: 8, stream: "stdout" });
tell("oops\n", { stream: "stderr", offset: 0, closed: true });
const said = output.linesOf(output.outputOf("r", "c"));
assert.deepEqual(said.map((line) => line.text), ["one", "two", "red", "20%", "oops"]);
assert.deepEqual(said.map((line) => line.stream).slice(-2), ["stdout", "stderr"]);
for (let i = 0; i < 40; i += 1) tell("x".repeat(65_536));
assert.ok(output.outputOf("r", "c").size <= 2_000_000 + 65_536 && output.outputOf("r", "c").dropped > 0);
const { EventParser } = await load("src/events.ts");
const stream = ": keep-alive\n\nevent: hello\nid: 1\ndata: {\"a\":1}\n\ndata: x\r\ndata: y\r\n\r\nevent: none\n\nevent: progress\ndata:z\n\nevent: cut";
for (const size of [1, 2, 7, 1000]) {
  const heard = [];
  const parser = new EventParser((name, data) => heard.push([name, data]));
  for (let at = 0; at < stream.length; at += size) parser.push(stream.slice(at, at + size));
  assert.deepEqual(heard, [["hello", '{"a":1}'], ["message", "x\ny"], ["progress", "z"]], `in pieces of ${size}`);
}

const { partsOf, piecesOf } = await load("src/parts/markdown.tsx");
const outline = (parts) => parts.map((part) => {
  switch (part.kind) {
    case "heading": return `h${part.level} ${part.text}`;
    case "list": return `${part.ordered ? "ol" : "ul"}(${part.items.map((item) => outline(item).join(" / ")).join(" | ")})`;
    case "quote": return `quote(${outline(part.parts).join(" / ")})`;
    case "table": return `table(${part.rows.map((row) => row.join(",")).join(";")})`;
    case "rule": return "rule";
    default: return `${part.kind} ${JSON.stringify(part.text)}`;
  }
});
for (const [text, expect] of [
  ["# One\n\ntwo\nthree\n\n## Four ##", ["h1 One", 'text "two\\nthree"', "h2 Four"]],
  ["```sh\nmake # not a heading\n```\nafter", ['code "make # not a heading"', 'text "after"']],
  ["```\nnever closed", ['code "never closed"']],
  ["- a\n- b\n  - c\n\n1. x\n2. y", ['ul(text "a" | text "b" / ul(text "c"))', 'ol(text "x" | text "y")']],
  ["> quoted\n> > twice", ['quote(text "quoted" / quote(text "twice"))']],
  ["| a | b |\n|---|---|\n| 1 | 2 |\nafter", ["table(a,b;1,2)", 'text "after"']],
  ["---\n***", ["rule", "rule"]],
  ["<script>alert(1)</script>\n<b>x</b>", ['text "<script>alert(1)</script>\\n<b>x</b>"']],
  ["in 2026 it was\n2026. not a list", ['text "in 2026 it was\\n2026. not a list"']],
  ["", []],
]) assert.deepEqual(outline(partsOf(text)), expect, text);
assert.ok(partsOf(`${">".repeat(50_000)} deep`).length === 1, "quotes nest to a bound");
assert.ok(partsOf("- x\n".repeat(20_000))[0].items.length === 20_000);
const pieces2 = (text) => piecesOf(text).map((piece) => `${piece.kind}:${piece.text}${piece.to === undefined ? "" : `>${piece.to}`}`);
for (const [text, expect] of [
  ["plain", ["plain:plain"]],
  ["a `b*c*` d", ["plain:a ", "code:b*c*", "plain: d"]],
  ["**bold** and *thin* and snake_case_name", ["strong:bold", "plain: and ", "em:thin", "plain: and snake_case_name"]],
  ["[words](https://example.com/x) ![alt](pic.png)", ["link:words>https://example.com/x", "plain: ", "link:alt>pic.png"]],
  ["[bad](javascript:alert)", ["link:bad>javascript:alert"]],
  ["2 * 3 * 4, \\*kept\\*", ["plain:2 * 3 * 4, *kept*"]],
  ["`open", ["plain:`open"]],
]) assert.deepEqual(pieces2(text), expect, text);

const { coloursOf } = await load("src/code.ts");
const tones = (text, path) => (coloursOf(text, path) ?? []).map((spans, line) => spans.map((span) => `${span.tone} ${text.split("\n")[line].slice(span.from, span.to)}`).join(", "));
for (const [path, text, expect] of [
  ["a.rs", "let x = 1; // two\n'a' &'a str \"s\\\"t\"", ["word let, number 1, comment // two", "string 'a', string \"s\\\"t\""]],
  ["a.rs", "/* one\ntwo */ fn", ["comment /* one", "comment two */, word fn"]],
  ["a.py", "x = '''a\nb''' # c\nfor_each(a)", ["string '''a", "string b''', comment # c", ""]],
  ["a.ts", "const a = `x\ny`;", ["word const, string `x", "string y`"]],
  ["a.sh", "echo $# a#b # c", ["comment # c"]],
  ["Makefile", "# all", ["comment # all"]],
  ["a.json", '{"a": [true, 1.5e3]}', ['string "a", word true, number 1.5e3']],
  ["a.js", "'open\nnext", ["string 'open", ""]],
  ["a.html", "<!-- a\n--> it's <b>", ["comment <!-- a", "comment -->"]],
  ["a.txt", "let x", []],
  ["a.rs", "", [""]],
]) assert.deepEqual(tones(text, path), expect, `${path}: ${text}`);
// One pass, whatever the text contains.
for (const text of ["/*".repeat(90_000), "\"\\".repeat(90_000), "'".repeat(180_000), "a.".repeat(90_000)]) assert.ok(coloursOf(text, "a.rs"));
assert.equal(coloursOf("x".repeat(200_001), "a.rs"), undefined);

const { distance } = await load("src/near.ts");
assert.equal(distance("Runs page", "runs"), 0);
assert.equal(distance("anything", " "), 0);
assert.ok(distance("the read_file tool", "file") < distance("the read_file tool", "rdfl"));
assert.ok(distance("profile", "file") > distance("a file", "file"), "the beginning of a word fits better");
assert.equal(distance("read_file", "xyz"), undefined);
console.log("all hold");
