"""The runtime of the test's scripts: receives a source, runs it, reports the result."""

import socket
import traceback


def warm():
    pass


def main(bridge, folder):
    link = socket.socket(fileno=bridge)
    source = link.recv(1 << 16)
    try:
        exec(compile(source, "script.py", "exec"), {"FOLDER": folder, "LINK": link})
    except BaseException:
        link.send(b"raised " + traceback.format_exc().encode("utf-8", "replace")[-4000:])
    else:
        link.send(b"done")
