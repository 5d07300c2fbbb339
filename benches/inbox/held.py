"""Measures how long it takes to show a held connection: python3 benches/inbox/held.py 127.0.0.1:7420 "$HAFT_HOME"

The address is that of a running `haft serve` whose workspace has the profile `workspace`; commands need python3 in the jail. A
command notes the time, asks the proxy of its jail for a host, and is denied; the script prints the time from there until the live
stream reports the request. It makes no connection.
"""

import http.client
import json
import statistics
import sys
import threading
import time

ADDRESS, HOME = sys.argv[1], sys.argv[2]
ROUNDS = 60
CALL, OPERATOR = (open(f"{HOME}/{name}").read().strip() for name in ("token", "operator-token"))
SCRIPT = """
import socket, time
stream = socket.create_connection(("127.0.0.1", 3128))
began = time.time()
stream.sendall(b"CONNECT PLACE HTTP/1.1\\r\\nHost: PLACE\\r\\n\\r\\n")
stream.recv(100)
print(began)
"""
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
            seen.setdefault(item["id"], time.time())


def measure(place, number):
    """Returns the seconds from a connection to its request."""
    known, told = set(seen), []

    def call():
        # Each time another line, because a denial of one does not affect the next.
        script = f"{SCRIPT.replace('PLACE', place)}# {number}"
        body = {"tool": "run_command", "arguments": {"argv": ["python3", "-c", script]}}
        told.append(json.loads(ask("POST", "/api/v1/calls", CALL, json.dumps(body)).read()))

    caller = threading.Thread(target=call)
    caller.start()
    while not (new := set(seen) - known):
        if told:
            sys.exit(f"nothing was asked about: {told}")
        time.sleep(0.0005)
    (request,) = new
    ask("POST", f"/api/v1/approvals/{request}/deny", OPERATOR, "{}").read()
    caller.join()
    return seen[request] - float(told[0]["data"]["stdout"])


threading.Thread(target=listen, daemon=True).start()
time.sleep(0.5)
for place in ("example.com:443", "10.0.0.1:443"):
    times = [measure(place, number) for number in range(ROUNDS)]
    print(f"{place}: shown after p50 {statistics.median(times) * 1000:.1f} ms, max {max(times) * 1000:.1f} ms")
