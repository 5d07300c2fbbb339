"""Drives an MCP server with the Python `mcp` 1.30 client: the handshake era.

    python python_mcp1.py stdio CMD ARGS...
    python python_mcp1.py http URL [TOKEN]

Environment: HAFT_EXPECT_WRITE=denied|ok (default ok), HAFT_FILE (default hello.txt), HAFT_NEEDLE (default needle).
Prints a line of JSON for each step; exits 1 at the first surprise.
"""

import asyncio
import json
import os
import sys
import uuid
from contextlib import asynccontextmanager
from datetime import timedelta

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.exceptions import McpError

WRITE = os.environ.get("HAFT_EXPECT_WRITE", "ok")
FILE = os.environ.get("HAFT_FILE", "hello.txt")
NEEDLE = os.environ.get("HAFT_NEEDLE", "needle")


def say(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


def expect(condition, what):
    if not condition:
        say("surprise", what=what)
        sys.exit(1)


def texts(result):
    return "\n".join(c.text for c in result.content if c.type == "text")


@asynccontextmanager
async def streams():
    kind, rest = sys.argv[1], sys.argv[2:]
    if kind == "stdio":
        server = StdioServerParameters(command=rest[0], args=rest[1:], env=dict(os.environ))
        async with stdio_client(server) as (read, write):
            yield read, write
    else:
        headers = {"Authorization": f"Bearer {rest[1]}"} if len(rest) > 1 else {}
        async with streamablehttp_client(rest[0], headers=headers) as (read, write, _):
            yield read, write


async def main():
    async with streams() as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        expect(hello.protocolVersion == "2025-11-25", f"negotiated {hello.protocolVersion}")
        say("connected", version=hello.protocolVersion, server=hello.serverInfo.name)
        await session.send_ping()

        names, cursor = [], None
        while True:
            page = await session.list_tools(cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.nextCursor
            if cursor is None:
                break
        for name in ("read_file", "grep_files", "write_file"):
            expect(name in names, f"{name} is not listed")
        say("list", tools=len(names))

        result = await session.call_tool("read_file", {"path": FILE})
        expect(not result.isError and NEEDLE in texts(result), f"read gave {texts(result)!r}")
        expect(result.structuredContent["path"] == FILE, "structured content names the file")
        say("read")

        result = await session.call_tool("grep_files", {"pattern": NEEDLE})
        expect(not result.isError, f"grep failed: {texts(result)}")
        paths = [match["path"] for match in result.structuredContent["matches"]]
        expect(FILE in paths, f"grep found {paths}")
        say("grep", matches=len(paths))

        path = f"written-{uuid.uuid4().hex}.txt"
        result = await session.call_tool("write_file", {"path": path, "content": "new\n"})
        if WRITE == "denied":
            expect(result.isError, "a write under read-only was not denied")
            say("write denied", text=texts(result))
        else:
            expect(not result.isError, f"write failed: {texts(result)}")
            back = await session.call_tool("read_file", {"path": path})
            expect("new" in texts(back), "the written file cannot be read")
            say("write")

        result = await session.call_tool("read_fil", {"path": FILE})
        expect(result.isError, "an unknown tool is no error")
        say("unknown tool", text=texts(result))

        many = await asyncio.gather(*(session.call_tool("read_file", {"path": FILE}) for _ in range(50)))
        expect(all(not r.isError for r in many), "one of many calls at once failed")
        say("many", calls=len(many))

        await session.list_resources()
        if "slow" in names:
            said = []

            async def progress(value, total, message):
                said.append(value)

            result = await session.call_tool("slow", {"milliseconds": 80}, progress_callback=progress)
            expect(not result.isError, f"slow failed: {texts(result)}")
            expect(len(said) >= 3 and said == sorted(set(said)), f"progress was {said}")
            say("progress", steps=len(said))
            try:
                await session.call_tool(
                    "slow", {"milliseconds": 60000}, read_timeout_seconds=timedelta(seconds=0.3)
                )
                expect(False, "a call of a minute ended at once")
            except McpError:
                say("gave up")
            result = await session.call_tool("read_file", {"path": FILE})
            expect(not result.isError, "the connection did not outlive a call given up")
        if "big" in names:
            result = await session.call_tool("big", {})
            links = [c for c in result.content if c.type == "resource_link"]
            expect(len(links) == 1, "no resource link")
            read = await session.read_resource(links[0].uri)
            expect(read.contents[0].text.startswith("a large result\n"), "the artifact reads otherwise")
            say("resource")
    say("done")


asyncio.run(asyncio.wait_for(main(), 60))
