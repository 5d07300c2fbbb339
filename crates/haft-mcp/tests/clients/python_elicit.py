"""A user behind a Python `mcp` client, 1.30 or 2.x: sent to the console for a decision, or asked by a form.

    python python_elicit.py API_URL MCP_URL CALL_TOKEN OPERATOR_TOKEN

The server's profile is `workspace`, and its settings trust the client called `trusted`. The user decides as the console
does, over the API with the operator's token. Prints a line of JSON for each step; exits 1 at the first surprise.
"""

import asyncio
import json
import sys
import urllib.request
from contextlib import asynccontextmanager

try:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client
    import mcp_types as types

    MODES = ["2026-07-28", "legacy"]
except ImportError:
    from mcp import ClientSession, types
    from mcp.client.streamable_http import streamablehttp_client

    MODES = ["1.30"]

API, MCP, CALL, OPERATOR = sys.argv[1:5]


def say(step, **facts):
    print(json.dumps({"step": step, **facts}), flush=True)


def expect(condition, what):
    if not condition:
        say("surprise", what=what)
        sys.exit(1)


def decide(approval, word):
    request = urllib.request.Request(
        f"{API}/approvals/{approval}/{word}",
        data=b"{}",
        headers={"Authorization": f"Bearer {OPERATOR}", "Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=30).read()


class Person:
    """The user of the client: `word` is the decision in the console, `fields` the contents of the form."""

    def __init__(self, word="approve", fields=None):
        self.word, self.fields, self.seen = word, fields, []

    async def __call__(self, context, params):
        self.seen.append(params.mode)
        if params.mode == "url":
            await asyncio.to_thread(decide, params.url.rsplit("/", 1)[1], self.word)
            return types.ElicitResult(action="accept")
        if self.fields is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=self.fields)


@asynccontextmanager
async def connected(mode, person, token=CALL, name="c"):
    headers = {"Authorization": f"Bearer {token}"}
    info = types.Implementation(name=name, version="1")
    if mode == "1.30":
        async with streamablehttp_client(MCP, headers=headers) as (read, write, _):
            async with ClientSession(read, write, elicitation_callback=person, client_info=info) as session:
                await session.initialize()
                yield session
    else:
        transport = streamable_http_client(MCP, http_client=create_mcp_http_client(headers=headers))
        async with Client(transport, mode=mode, elicitation_callback=person, client_info=info) as client:
            yield client


def failed(result):
    return result.isError if hasattr(result, "isError") else result.is_error


def data(result):
    return result.structuredContent if hasattr(result, "structuredContent") else result.structured_content


async def written(mode, person, path, token=CALL, name="c"):
    async with connected(mode, person, token, name) as client:
        return await client.call_tool("write_file", {"path": path, "content": "by a person\n"})


async def drive(mode):
    tag = mode.replace(".", "-")
    person = Person("approve")
    result = await written(mode, person, f"approved-{tag}.txt")
    expect(not failed(result), f"approved in the console, and yet: {result}")
    expect(person.seen[:1] == ["url"], f"the person was not sent to the console: {person.seen}")
    say("approved", mode=mode)

    result = await written(mode, Person("deny"), f"denied-{tag}.txt")
    expect(failed(result), f"denied in the console, and yet: {result}")
    say("denied", mode=mode)

    # A form decides only for a client that settings trust, with the operator's token.
    person = Person(fields={"decision": "approve"})
    result = await written(mode, person, f"form-{tag}.txt", OPERATOR, "trusted")
    expect(not failed(result), f"approved by a trusted client's form, and yet: {result}")
    expect(person.seen == ["form"], f"a trusted client was shown {person.seen}")
    result = await written(mode, Person(fields={"decision": "deny"}), f"no-form-{tag}.txt", OPERATOR, "trusted")
    expect(failed(result), f"denied by a trusted client's form, and yet: {result}")
    say("form", mode=mode)

    question = {"id": "way", "type": "single", "text": "Left or right?", "options": ["left", "right"]}
    person = Person(fields={"way": "right"})
    async with connected(mode, person) as client:
        result = await client.call_tool("ask_user", {"title": f"Which way ({tag})?", "questions": [question]})
    expect(not failed(result) and data(result)["answers"] == {"way": "right"}, f"the question gave {result}")
    expect(person.seen == ["form"], f"a question was shown as {person.seen}")
    say("answered", mode=mode)


async def main():
    for mode in MODES:
        await asyncio.wait_for(drive(mode), 120)
    say("done")


asyncio.run(main())
