"""What the test's scripts run on: takes a source, runs it, says how that went."""

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
