"""Makes calls over MCP with the installed Python client: `fastmcp`, `mcp` 2.x (both the stateless era), or `mcp` 1.30 (the handshake era).

    HAFT_CALLS='[[TOOL, ARGUMENTS, TEXT], …]' python python_calls.py stdio CMD ARGS... | http URL TOKEN

Each tool must be listed, and its result must contain TEXT and not be an error. Prints a line for each call; exits 1 at the first surprise.
"""

import asyncio
import importlib.util
import json
import os
import sys
from contextlib import asynccontextmanager

from mcp.client.stdio import StdioServerParameters, stdio_client

CALLS = json.loads(os.environ["HAFT_CALLS"])
KIND, REST = sys.argv[1], sys.argv[2:]
HEADERS = {"Authorization": f"Bearer {REST[-1]}"}


def stdio():
    return stdio_client(StdioServerParameters(command=REST[0], args=REST[1:], env=dict(os.environ)))


def fastmcp():
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    if KIND == "stdio":
        return Client(StdioTransport(REST[0], REST[1:], env=dict(os.environ), keep_alive=False))
    return Client(StreamableHttpTransport(REST[0], headers=HEADERS))


def mcp2():
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    return Client(stdio() if KIND == "stdio" else streamable_http_client(REST[0], http_client=create_mcp_http_client(headers=HEADERS)))


@asynccontextmanager
async def mcp1():
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    way = stdio() if KIND == "stdio" else streamablehttp_client(REST[0], headers=HEADERS)
    async with way as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        yield session


def client():
    if importlib.util.find_spec("fastmcp"):
        return fastmcp()
    import mcp

    return mcp2() if hasattr(mcp, "Client") else mcp1()


async def listed(one):
    pages = getattr(one, "list_tools_mcp", one.list_tools)
    names, cursor = set(), None
    while True:
        page = await pages(cursor=cursor)
        names |= {tool.name for tool in page.tools}
        cursor = getattr(page, "next_cursor", None) or getattr(page, "nextCursor", None)
        if cursor is None:
            return names


async def main():
    async with client() as one:
        names = await listed(one)
        for tool, arguments, text in CALLS:
            result = await one.call_tool(tool, arguments)
            seen = "\n".join(block.text for block in result.content if block.type == "text")
            failed = getattr(result, "is_error", False) or getattr(result, "isError", False)
            fine = tool in names and text in seen and not failed
            print(json.dumps({"tool": tool, "fine": fine, "text": seen[:400]}), flush=True)
            if not fine:
                sys.exit(1)


asyncio.run(main())
