// Makes calls over MCP with the TypeScript SDK's client.
//
//     HAFT_NODE=FOLDER HAFT_CALLS='[[TOOL, ARGUMENTS, TEXT], …]' node typescript_calls.mjs stdio CMD ARGS... | http URL TOKEN
//
// Each tool must be listed, and its result must contain TEXT and not be an error. Prints a line for each call; exits 1 at the
// first surprise. `python_calls.py` does the same.

import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.env.HAFT_NODE, "x.js"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const [kind, ...rest] = process.argv.slice(2);
const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env })
    : new StreamableHTTPClientTransport(new URL(rest[0]), { requestInit: { headers: { authorization: `Bearer ${rest[1]}` } } });
const client = new Client({ name: "calls", version: "1" });
await client.connect(transport);

const names = new Set();
let cursor;
do {
  const page = await client.listTools({ cursor });
  page.tools.forEach((tool) => names.add(tool.name));
  cursor = page.nextCursor;
} while (cursor);

for (const [tool, args, text] of JSON.parse(process.env.HAFT_CALLS)) {
  const result = await client.callTool({ name: tool, arguments: args });
  const seen = result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
  const fine = names.has(tool) && seen.includes(text) && !result.isError;
  console.log(JSON.stringify({ tool, fine, text: seen.slice(0, 400) }));
  if (!fine) process.exit(1);
}
await client.close();
