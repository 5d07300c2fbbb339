"""Decides requests of a running `haft serve` and measures the times: python3 benches/inbox/live.py 127.0.0.1:7420 "$HAFT_HOME"

Prints how long after a request was written the live stream reports it, and how long after the response to a decision the
call is answered. It writes live-0.txt to live-59.txt in the workspace of the server.
"""

import datetime
import http.client
import json
import statistics
import sys
import threading
import time

ADDRESS, HOME = sys.argv[1], sys.argv[2]
ROUNDS = 60
CALL, OPERATOR = (open(f"{HOME}/{name}").read().strip() for name in ("token", "operator-token"))
seen = {}


def ask(method, path, token, body=None):
    connection = http.client.HTTPConnection(ADDRESS)
    connection.request(method, path, body, {"Authorization": "Bearer " + token})
    return connection.getresponse()


def listen():
    stream, kind = ask("GET", "/api/v1/events", OPERATOR), None
    while line := stream.fp.readline().decode():
        if line.startswith("event:"):
            kind = line[6:].strip()
        elif line.startswith("data:") and kind == "approval":
            item = json.loads(line[5:])
            seen.setdefault(item["id"], (time.time(), item["created"]))


threading.Thread(target=listen, daemon=True).start()
time.sleep(0.5)
told, answered = [], []
for number in range(ROUNDS):
    known, ended = set(seen), []

    def call():
        arguments = {"path": f"live-{number}.txt", "content": "x"}
        ask("POST", "/api/v1/calls", CALL, json.dumps({"tool": "write_file", "arguments": arguments})).read()
        ended.append(time.time())

    caller = threading.Thread(target=call)
    caller.start()
    while not (new := set(seen) - known):
        time.sleep(0.0005)
    (request,) = new
    heard, created = seen[request]
    told.append(heard - datetime.datetime.fromisoformat(created.replace("Z", "+00:00")).timestamp())
    ask("POST", f"/api/v1/approvals/{request}/approve", OPERATOR, "{}").read()
    decided = time.time()
    caller.join()
    answered.append(ended[0] - decided)
for name, times in (("told after it was written", told), ("answered after the decision", answered)):
    print(f"{name}: p50 {statistics.median(times) * 1000:.1f} ms, max {max(times) * 1000:.1f} ms")
