// A job over MCP with the TypeScript SDK's client: search, edit, install, test; then a check of what the user undid.
//
//     HAFT_NODE=FOLDER node typescript_job.mjs MCP_URL CALL_TOKEN
//
// The SDK is below FOLDER. Calls wait for the user, who decides elsewhere. Prints a line of JSON for each step, waits for a
// line on stdin before the last, and exits 1 at the first surprise. `python_job.py` does the same.

import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline";

const require = createRequire(path.join(process.env.HAFT_NODE, "x.js"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const [url, token] = process.argv.slice(2);
const EDIT = {
  find: "exports.gross = (net) => net * 1.2;",
  replace: "const { round } = require(\"rounding\");\nexports.gross = (net) => round(net * 1.2);",
};

const say = (step, facts = {}) => console.log(JSON.stringify({ step, ...facts }));

function expect(condition, what) {
  if (condition) return;
  say("surprise", { what: JSON.stringify(what) });
  process.exit(1);
}

const client = new Client({ name: "five-steps", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${token}` } } }));

/** Makes a call; the client waits for as long as a user may take. */
async function call(tool, args) {
  const result = await client.callTool({ name: tool, arguments: args }, undefined, { timeout: 600_000 });
  return { result, data: result.structuredContent ?? {} };
}

const found = await call("grep_files", { pattern: "net \\* 1\\.2" });
expect(!found.result.isError, found.result);
say("search", { paths: found.data.matches.map((match) => match.path) });

const edited = await call("edit_file", { path: "src/price.js", edits: [EDIT] });
expect(!edited.result.isError && edited.data.applied === 1, edited.result);
say("edit");

const installed = await call("run_command", { command: "npm install --no-audit --no-fund rounding", timeout_s: 300 });
expect(!installed.result.isError, installed.result);
const changed = installed.data.changes.map((change) => change.path);
expect(["package.json", "package-lock.json"].every((name) => changed.includes(name)), changed);
say("install");

const tested = await call("run_command", { command: "npm test", timeout_s: 300 });
expect(!tested.result.isError, tested.result);
say("test", { passed: Number(/pass (\d+)/.exec(tested.data.stdout)[1]) });

const lines = readline.createInterface({ input: process.stdin });
await new Promise((resolve) => lines.once("line", resolve));
lines.close();
const read = await call("read_file", { path: "src/price.js" });
expect(!read.result.isError, read.result);
const again = await call("run_command", { command: "npm test", timeout_s: 300 });
expect(again.result.isError && again.data.stdout.includes("fail 1"), again.result);
say("undo", { text: read.result.content.map((part) => part.text ?? "").join("") });
await client.close();
