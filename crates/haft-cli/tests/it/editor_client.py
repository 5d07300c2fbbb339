"""A session in haft with the Python client of the Agent Client Protocol. The arguments are haft and its own arguments."""

import asyncio
import json
import sys

import acp
from acp import schema


class Client:
    def __init__(self):
        self.updates = []
        self.options = []
        self.chunk = asyncio.Event()

    def on_connect(self, connection):
        pass

    async def request_permission(self, session_id, tool_call, options, **_):
        self.options.append([option.kind for option in options])
        once = next(option for option in options if option.kind == "allow_once")
        outcome = schema.AllowedOutcome(outcome="selected", option_id=once.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        for part in getattr(update, "content", None) or []:
            if "started" in str(part):
                self.chunk.set()

    async def ext_notification(self, method, params):
        pass


async def main():
    client = Client()
    async with acp.spawn_agent_process(client, *sys.argv[2:], cwd=sys.argv[1]) as (haft, process):
        said = await haft.initialize(protocol_version=1)
        session = await haft.new_session(cwd=sys.argv[1], mcp_servers=[])
        first = await haft.prompt(session_id=session.session_id, prompt=[acp.text_block("write")])
        second = asyncio.ensure_future(
            haft.prompt(session_id=session.session_id, prompt=[acp.text_block("run")])
        )
        await client.chunk.wait()
        await haft.cancel(session_id=session.session_id)
        second = await second
        diffs = [
            part.model_dump(by_alias=True, mode="json")
            for update in client.updates
            for part in (getattr(update, "content", None) or [])
            if getattr(part, "type", None) == "diff"
        ]
        print(json.dumps({
            "agent": said.agent_info.name,
            "modes": [mode.id for mode in session.modes.available_modes],
            "reasons": [first.stop_reason, second.stop_reason],
            "options": client.options,
            "diffs": [[diff["oldText"], diff["newText"]] for diff in diffs],
            "kinds": sorted({type(update).__name__ for update in client.updates}),
        }))


asyncio.run(main())
