"""A server on the Python SDK 1.30: `python_server.py sse|streamable-http PORT`; it has one tool, `echo`."""

import sys

from mcp.server.fastmcp import Context, FastMCP

KIND, PORT = sys.argv[1], int(sys.argv[2])
server = FastMCP("python", host="127.0.0.1", port=PORT, log_level="ERROR")


@server.tool()
async def echo(message: str, ctx: Context) -> str:
    """Returns the text, with progress first."""
    await ctx.report_progress(1, 2, "halfway")
    return f"again: {message}"


server.run(transport=KIND)
