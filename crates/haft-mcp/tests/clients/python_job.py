"""A job over MCP with the Python `mcp` 2.x client: search, edit, install, test; then a check of what the user undid.

    python python_job.py MCP_URL CALL_TOKEN

Calls wait for the user, who decides elsewhere. Prints a line of JSON for each step, waits for a line on stdin before
the last, and exits 1 at the first surprise. `typescript_job.mjs` does the same.
"""

import asyncio
import json
import re
import sys

import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

URL, TOKEN = sys.argv[1:3]
EDIT = {
    "find": "exports.gross = (net) => net * 1.2;",
    "replace": 'const { round } = require("rounding");\nexports.gross = (net) => round(net * 1.2);',
}


def say(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


def expect(condition, what):
    if not condition:
        say("surprise", what=str(what))
        sys.exit(1)


async def job(client):
    async def call(tool, **arguments):
        result = await client.call_tool(tool, arguments)
        return result, result.structured_content or {}

    found, data = await call("grep_files", pattern="net \\* 1\\.2")
    expect(not found.is_error, found)
    say("search", paths=[match["path"] for match in data["matches"]])

    edited, data = await call("edit_file", path="src/price.js", edits=[EDIT])
    expect(not edited.is_error and data["applied"] == 1, edited)
    say("edit")

    installed, data = await call("run_command", command="npm install --no-audit --no-fund rounding", timeout_s=300)
    expect(not installed.is_error, installed)
    changed = {change["path"] for change in data["changes"]}
    expect({"package.json", "package-lock.json"} <= changed, changed)
    say("install")

    tested, data = await call("run_command", command="npm test", timeout_s=300)
    expect(not tested.is_error, tested)
    say("test", passed=int(re.search(r"pass (\d+)", data["stdout"])[1]))

    await asyncio.to_thread(sys.stdin.readline)
    read, _ = await call("read_file", path="src/price.js")
    expect(not read.is_error, read)
    tested, data = await call("run_command", command="npm test", timeout_s=300)
    expect(tested.is_error and "fail 1" in data["stdout"], tested)
    say("undo", text="".join(part.text for part in read.content if part.type == "text"))


async def main():
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {TOKEN}"})
    info = types.Implementation(name="five-steps", version="1")
    async with Client(streamable_http_client(URL, http_client=http), client_info=info) as client:
        await job(client)


asyncio.run(main())
