"""Measures very large change sets: python3 benches/changes/large.py target/release/haft [ROW...]

Starts `haft serve` in a temporary folder for each row, lets a command change the files, approves the request, and prints the highest
resident memory of the server while it asks and while it applies, above its memory after a first small change, and the seconds of both.
Commands need python3 in the jail. Reads /proc, so it needs Linux.
"""

import datetime
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

FILES = int(os.environ.get("FILES", 199_000))
NEW = """
import os, time
for at in range(FILES):
    folder = f"out/{at // 1000:03}"
    if at % 1000 == 0:
        os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/file-{at:06}.txt", "w") as file:
        file.write(f"WORD {at}\\n")
"""
DELETE = 'import os, time\nos.system("rm -r out")\n'
LOCKFILE = """
import json, time
packages = {f"node_modules/package-{at}": {
    "version": f"1.0.VERSION", "resolved": f"https://registry.npmjs.org/package-{at}/-/package-{at}-1.0.VERSION.tgz",
    "integrity": f"sha512-{at:086}VERSION=="} for at in range(71_000)}
with open("package-lock.json", "w") as file:
    json.dump({"name": "a", "lockfileVersion": 3, "packages": packages}, file, indent=2)
"""
# The script that prepares the workspace, and the command.
ROWS = {
    "new": (None, NEW.replace("WORD", "new")),
    "modified": (NEW.replace("WORD", "old"), NEW.replace("WORD", "new")),
    "deleted": (NEW.replace("WORD", "old"), DELETE),
    "lockfile": (LOCKFILE.replace("VERSION", "1"), LOCKFILE.replace("VERSION", "2")),
}


def memory(process, name):
    """Returns a figure of a process in MiB."""
    lines = pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(name + ":"))
    return int(line.split()[1]) / 1024


def forget_peak(process):
    pathlib.Path(f"/proc/{process.pid}/clear_refs").write_text("5")


class Server:
    def __init__(self, haft, folder):
        self.home, self.workspace = f"{folder}/home", f"{folder}/workspace"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % free.getsockname()[1]
        options = ["serve", "--http", self.address, "--workspace", self.workspace]
        wrapper = os.environ.get("WRAPPER", "").split()
        environment = {**os.environ, "HAFT_HOME": self.home}
        with open(f"{folder}/log", "w") as log:
            self.process = subprocess.Popen([*wrapper, haft, *options], env=environment, stdout=log, stderr=log)
        self.tokens = {}

    def token(self, name):
        return pathlib.Path(f"{self.home}/{name}").read_text().strip()

    def ask(self, method, path, token, body=None):
        connection = http.client.HTTPConnection(self.address)
        connection.request(method, path, body, {"Authorization": "Bearer " + self.token(token)})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {text[:500]}")
        return json.loads(text or "null")

    def wait(self):
        for _ in range(300):
            try:
                return self.ask("GET", "/api/v1/approvals", "operator-token")
            except OSError:
                time.sleep(0.1)
        sys.exit("haft serve does not answer")


def measure(haft, name, folder):
    prepare, command = ROWS[name]
    (pathlib.Path(folder) / "workspace").mkdir()
    if prepare:
        script = prepare.replace("FILES", str(FILES))
        subprocess.run([sys.executable, "-c", script], cwd=f"{folder}/workspace", check=True)
    server = Server(haft, folder)
    try:
        drive(server, name, command)
    finally:
        server.process.terminate()
        server.process.wait()


def change(server, script):
    """Lets a command change files and approves that. Returns the peaks of both halves in MiB, and the seconds that they took."""
    answers = []

    def call():
        body = {"tool": "run_command", "arguments": {"argv": ["python3", "-c", script], "timeout_s": 300}}
        answers.append(server.ask("POST", "/api/v1/calls", "token", json.dumps(body)))

    forget_peak(server.process)
    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    while not (waiting := server.ask("GET", "/api/v1/approvals", "operator-token")):
        if answers:
            sys.exit(f"nothing was asked about: {json.dumps(answers)[:2000]}")
        time.sleep(0.2)
    asking = memory(server.process, "VmHWM")
    forget_peak(server.process)
    began = time.time()
    server.ask("POST", f"/api/v1/approvals/{waiting[0]['id']}/approve", "operator-token", "{}")
    caller.join()
    applied = time.time() - began
    applying = memory(server.process, "VmHWM")
    (answer,) = answers
    if answer["status"] != "ok":
        sys.exit(json.dumps(answer)[:2000])
    ended = float(answer["data"]["stdout"])
    created = datetime.datetime.fromisoformat(waiting[0]["created"].replace("Z", "+00:00")).timestamp()
    return asking, applying, created - ended, applied


def drive(server, name, command):
    server.wait()
    time.sleep(6)
    idle = memory(server.process, "VmRSS")
    # What the first call of any kind loads, such as the tables of tokens, is not the set's.
    change(server, 'import time\nopen("first.txt", "w").write("first")\nprint(time.time())\n')
    time.sleep(1)
    used = memory(server.process, "VmRSS")
    asking, applying, asked, applied = change(server, command.replace("FILES", str(FILES)) + "print(time.time())\n")
    print(
        f"{name}: {idle:.1f} MiB idle, {used:.1f} MiB after one file; "
        f"asking {asking - used:.1f} MiB above that ({asking - idle:.1f} above idle), {asked:.1f} s; "
        f"applying {applying - used:.1f} MiB above that ({applying - idle:.1f} above idle), {applied:.1f} s",
        flush=True,
    )


for row in sys.argv[2:] or ROWS:
    place = tempfile.mkdtemp(prefix="haft-large-")
    try:
        measure(os.path.abspath(sys.argv[1]), row, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
