"""Drives an MCP server with the Python `mcp` 2.x client, in the stateless and in the handshake era.

    python python_mcp2.py stdio CMD ARGS...
    python python_mcp2.py http URL [TOKEN]

Environment: HAFT_EXPECT_WRITE=denied|ok (default ok), HAFT_FILE (default hello.txt), HAFT_NEEDLE (default needle).
Prints a line of JSON for each step; exits 1 at the first surprise.
"""

import asyncio
import json
import os
import sys
import uuid

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

WRITE = os.environ.get("HAFT_EXPECT_WRITE", "ok")
FILE = os.environ.get("HAFT_FILE", "hello.txt")
NEEDLE = os.environ.get("HAFT_NEEDLE", "needle")
VERSIONS = {"auto": "2026-07-28", "2026-07-28": "2026-07-28", "legacy": "2025-11-25"}


def say(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


def expect(condition, what):
    if not condition:
        say("surprise", what=what)
        sys.exit(1)


def texts(result):
    return "\n".join(c.text for c in result.content if c.type == "text")


def transport(stack_args):
    kind, rest = stack_args[0], stack_args[1:]
    if kind == "stdio":
        return stdio_client(StdioServerParameters(command=rest[0], args=rest[1:], env=dict(os.environ)))
    headers = {"Authorization": f"Bearer {rest[1]}"} if len(rest) > 1 else {}
    return streamable_http_client(rest[0], http_client=create_mcp_http_client(headers=headers))


async def drive(mode):
    async with Client(transport(sys.argv[1:]), mode=mode) as client:
        expect(client.protocol_version == VERSIONS[mode], f"{mode} negotiated {client.protocol_version}")
        say("connected", mode=mode, version=client.protocol_version)

        names, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        for name in ("read_file", "grep_files", "write_file"):
            expect(name in names, f"{name} is not listed")
        say("list", mode=mode, tools=len(names))

        result = await client.call_tool("read_file", {"path": FILE})
        expect(not result.is_error, f"read failed: {texts(result)}")
        expect(NEEDLE in texts(result), f"read gave {texts(result)!r}")
        expect(result.structured_content["path"] == FILE, "structured content names the file")
        say("read", mode=mode)

        result = await client.call_tool("grep_files", {"pattern": NEEDLE})
        expect(not result.is_error, f"grep failed: {texts(result)}")
        paths = [match["path"] for match in result.structured_content["matches"]]
        expect(FILE in paths, f"grep found {paths}")
        say("grep", mode=mode, matches=len(paths))

        path = f"written-{uuid.uuid4().hex}.txt"
        result = await client.call_tool("write_file", {"path": path, "content": "new\n"})
        if WRITE == "denied":
            expect(result.is_error, "a write under read-only was not denied")
            say("write denied", mode=mode, text=texts(result))
        else:
            expect(not result.is_error, f"write failed: {texts(result)}")
            back = await client.call_tool("read_file", {"path": path})
            expect("new" in texts(back), "the written file cannot be read")
            say("write", mode=mode)

        result = await client.call_tool("read_fil", {"path": FILE})
        expect(result.is_error, "an unknown tool is no error")
        say("unknown tool", mode=mode, text=texts(result))
        result = await client.call_tool("read_file", {"path": "no-such-file"})
        expect(result.is_error, "a missing file is no error")
        say("missing file", mode=mode, text=texts(result))

        said = []

        async def progress(value, total, message):
            said.append((value, message))

        if "slow" in names:
            result = await client.call_tool("slow", {"milliseconds": 80}, progress_callback=progress)
            expect(not result.is_error, f"slow failed: {texts(result)}")
            values = [value for value, _ in said]
            expect(len(values) >= 3 and values == sorted(set(values)), f"progress was {said}")
            say("progress", mode=mode, steps=len(said))
            try:
                await asyncio.wait_for(client.call_tool("slow", {"milliseconds": 60000}), 0.3)
                expect(False, "a call of a minute ended at once")
            except (TimeoutError, asyncio.TimeoutError):
                say("cancelled", mode=mode)
            result = await client.call_tool("read_file", {"path": FILE})
            expect(not result.is_error, "the connection did not outlive a cancelled call")

        many = await asyncio.gather(*(client.call_tool("read_file", {"path": FILE}) for _ in range(50)))
        expect(all(not r.is_error for r in many), "one of many calls at once failed")
        say("many", mode=mode, calls=len(many))

        listed = await client.list_resources()
        if "big" in names:
            result = await client.call_tool("big", {})
            links = [c for c in result.content if c.type == "resource_link"]
            expect(len(links) == 1, "no resource link")
            read = await client.read_resource(str(links[0].uri))
            expect(read.contents[0].text.startswith("a large result\n"), "the artifact reads otherwise")
            say("resource", mode=mode, listed=len(listed.resources))

        if mode != "legacy":
            async with client.listen(tools_list_changed=True) as subscription:
                expect(subscription.honored.tools_list_changed is True, "the subscription was not honoured")
                say("listen", mode=mode)


async def main():
    for mode in ("auto", "2026-07-28", "legacy"):
        await asyncio.wait_for(drive(mode), 60)
    say("done")


asyncio.run(main())
