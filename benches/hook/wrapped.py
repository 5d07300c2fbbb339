"""Measures a wrapped command of Claude Code: python3 benches/hook/wrapped.py N LINE HAFT...

For each haft, starts `haft serve` in a temporary workspace whose hook wraps commands into the jail. Then, N times in turns, runs the line
bare, and with each haft the hook's event and the line that the hook answers. Prints wall time and processor time in milliseconds. Needs a
full jail and git. On a busy machine, run it under `chrt -f 1`.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

SETTINGS = 'console.start = "never"\n[hook]\nwrap = "jail"\n[policy]\nallow = ["Edit(/**)"]\n'
COMMIT = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"


class Side:
    """One haft with its server, workspace and figures."""

    def __init__(self, haft, line):
        self.haft, self.line = os.path.realpath(haft), line
        self.folder = tempfile.TemporaryDirectory(prefix="haft-wrapped-")
        home = self.folder.name + "/home"
        self.work = self.folder.name + "/work"
        os.makedirs(self.work)
        os.makedirs(home + "/.config/haft")
        self.env = {"PATH": os.environ["PATH"], "HOME": home, "CI": "1"}
        with open(home + "/.config/haft/config.toml", "w") as settings:
            settings.write(SETTINGS)
        subprocess.run(COMMIT, shell=True, cwd=self.work, env=self.env, check=True)
        serve = [self.haft, "serve", "--http", "127.0.0.1:0", "--json"]
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.server = subprocess.Popen(serve, cwd=self.work, env=self.env, **quiet)
        self.server.stdout.readline()
        self.hook, self.command = [], []

    def event(self, name, number):
        call = {"command": self.line, "description": "d"}
        return json.dumps({
            "session_id": "s-1", "transcript_path": "/x", "cwd": self.work,
            "hook_event_name": name, "tool_name": "Bash", "tool_input": call,
            "tool_use_id": f"t{number}", "permission_mode": "default",
            "tool_response": {"stdout": "", "stderr": ""},
        })

    def call(self, number):
        hook, said = measure([self.haft, "hook", "claude"], self, self.event("PreToolUse", number))
        line = json.loads(said)["hookSpecificOutput"]["updatedInput"]["command"]
        command, _ = measure(["bash", "-c", line], self)
        measure([self.haft, "hook", "claude"], self, self.event("PostToolUse", number))
        self.hook.append(hook)
        self.command.append(command)

    def end(self):
        self.server.terminate()
        self.server.wait()
        self.folder.cleanup()


def measure(words, side, text=""):
    """Returns wall and processor time, and what the program printed."""
    started = time.perf_counter()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    program = subprocess.Popen(words, cwd=side.work, env=side.env, **pipes)
    program.stdin.write(text.encode())
    program.stdin.close()
    said = program.stdout.read()
    _, status, used = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    assert program.returncode == 0, words
    wall = time.perf_counter() - started
    return (wall * 1e3, (used.ru_utime + used.ru_stime) * 1e3), said


def show(what, figures):
    wall, used = zip(*figures)
    middle = statistics.median
    print(f"{what}: wall {middle(wall):.1f} (best {min(wall):.1f}) ms, processor {middle(used):.1f} ms")


def main():
    rounds, line = int(sys.argv[1]), sys.argv[2]
    sides = [Side(haft, line) for haft in sys.argv[3:]]
    bare = []
    try:
        for number in range(rounds + 3):
            bare.append(measure(["bash", "-c", line], sides[0])[0])
            for side in sides:
                side.call(number)
        # The first ones find what works here.
        show("bare", bare[3:])
        for side in sides:
            show(f"{side.haft}: hook", side.hook[3:])
            show(f"{side.haft}: wrapped command", side.command[3:])
    finally:
        for side in sides:
            side.end()


main()
