"""Makes calls over MCP with the Python client that is installed: `mcp` 1.30 (the handshake era) or 2.x (the stateless one).

    HAFT_CALLS='[[TOOL, ARGUMENTS, TEXT], …]' python python_calls.py stdio CMD ARGS... | http URL TOKEN

Each tool must be listed, and the text of its result must hold TEXT. Prints a line for each call; exits 1 at the first surprise.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

from mcp.client.stdio import StdioServerParameters, stdio_client

CALLS = json.loads(os.environ["HAFT_CALLS"])
KIND, REST = sys.argv[1], sys.argv[2:]


def stdio():
    return stdio_client(StdioServerParameters(command=REST[0], args=REST[1:], env=dict(os.environ)))


@asynccontextmanager
async def client():
    try:
        from mcp import Client
    except ImportError:
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        headers = {"Authorization": f"Bearer {REST[-1]}"}
        way = stdio() if KIND == "stdio" else streamablehttp_client(REST[0], headers=headers)
        async with way as streams, ClientSession(*streams[:2]) as session:
            await session.initialize()
            yield session
        return
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    headers = {"Authorization": f"Bearer {REST[-1]}"}
    way = stdio() if KIND == "stdio" else streamable_http_client(REST[0], http_client=create_mcp_http_client(headers=headers))
    async with Client(way) as one:
        yield one


async def listed(one):
    names, cursor = set(), None
    while True:
        page = await one.list_tools(cursor=cursor)
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
            fine = tool in names and text in seen
            print(json.dumps({"tool": tool, "fine": fine, "text": seen[:400]}), flush=True)
            if not fine:
                sys.exit(1)


asyncio.run(main())
