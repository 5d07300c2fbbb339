"""Shared parts of the scripts that record terminal sessions: a fresh home, a real terminal, an asciicast, and its text.

A session runs the real binary in a fresh home, /home/ana, inside a mount namespace that nothing else sees, so that the recording
contains no path of the recording machine. The session defines what the user types; everything else is haft's output. The pauses of
typing and reading are simulated, so that two recordings differ only in what haft prints.
"""

import codecs
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

COLUMNS, ROWS = 110, 30
PATIENCE = 120.0
HOME = "/home/ana"
PROMPT = "\x1b[1;32m~/shop\x1b[0m $ "


class Cast:
    """The recording: output with simulated times."""

    def __init__(self, title):
        self.now, self.events, self.title = 0.5, [], title

    def show(self, text):
        self.events.append([round(self.now, 3), "o", text])

    def type(self, text):
        for char in text:
            self.now += 0.04
            self.show(char)
        self.now += 0.4

    def write(self, file):
        head = {
            "version": 2,
            "width": COLUMNS,
            "height": ROWS,
            "title": self.title,
            "env": {"TERM": "xterm-256color", "SHELL": "/bin/bash"},
        }
        lines = [head, *self.events]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        pathlib.Path(file).write_text(text, encoding="utf-8")

    def text(self):
        """Returns the final text on the screen, without colours and overwritten parts."""
        whole = "".join(text for _, _, text in self.events).replace("\r\n", "\n")
        whole = re.sub(r"[^\n]*\r(?:\x1b\[2K)?", "", whole)
        whole = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", whole)
        return re.sub(r" +$", "", whole, flags=re.M)


def run(cast, command, answers):
    """Runs a command line at a terminal of its own; returns its output and exit code."""
    child, screen = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.execvp("bash", ["bash", "--norc", "-c", command])
    seen, looked, answers = "", 0, list(answers)
    # A character may arrive in two pieces.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    until = time.monotonic() + PATIENCE
    try:
        while True:
            left = until - time.monotonic()
            if left <= 0 or not select.select([screen], [], [], left)[0]:
                os.kill(child, signal.SIGKILL)
                sys.exit(f"`{command}` printed nothing more:\n{seen}")
            try:
                block = os.read(screen, 65536)
            except OSError:
                break
            if not block:
                break
            text = decoder.decode(block)
            seen += text
            cast.now += 0.05
            cast.show(text)
            if answers and answers[0][0] in seen[looked:]:
                _, answer = answers.pop(0)
                looked = len(seen)
                cast.now += 1.5
                # The terminal echoes it.
                os.write(screen, (answer + "\n").encode())
    finally:
        os.close(screen)
        _, status = os.waitpid(child, 0)
    if answers:
        sys.exit(f"`{command}` did not ask {answers[0][0]!r}:\n{seen}")
    return seen, os.waitstatus_to_exitcode(status)


def play(cast, command, answers, expected):
    """Types a command, runs it and expects this exit code; returns its output."""
    cast.show(PROMPT)
    cast.type(command)
    cast.show("\r\n")
    seen, code = run(cast, command, answers)
    if code != expected:
        sys.exit(f"`{command}` ended with {code}:\n{seen}")
    cast.now += 2.0
    return re.sub(r"\x1b\[[0-9;]*m", "", seen)


def project(files):
    """Makes a repository in the home with these files."""
    work = pathlib.Path(HOME, "shop")
    for name, text in files.items():
        work.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        work.joinpath(name).write_text(text)
    os.chdir(work)
    git = ["git", "-c", "user.name=Ana", "-c", "user.email=ana@example.org"]
    subprocess.run(["git", "init", "-q", "-b", "main"], check=True)
    subprocess.run(["git", "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "A shop"], check=True)


def main(session, *files):
    """SCRIPT HAFT FILE: records the session into FILE, and prints its text. `files` of the repository that the session needs are
    copied into the home."""
    if sys.argv[1:2] == ["--inside"]:
        _, _, path, file = sys.argv
        path = f"{path}:{os.environ['PATH']}"
        os.environ.clear()
        os.environ.update(HOME=HOME, USER="ana", PATH=path, TERM="xterm-256color", LANG="C.UTF-8", GIT_PAGER="cat")
        cast = session()
        cast.show(PROMPT)
        cast.write(file)
        print(cast.text().removesuffix("~/shop $"), end="")
        return
    if len(sys.argv) != 3:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name} HAFT FILE")
    haft, target = (pathlib.Path(arg).resolve() for arg in sys.argv[1:])
    if not os.access(haft, os.X_OK):
        sys.exit(f"{haft} is no program: cargo build -p haft-cli makes target/debug/haft")
    script = pathlib.Path(sys.argv[0]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        # Everything is in place before /home is covered: the repository may be below it.
        stage, cast = pathlib.Path(folder, "home"), pathlib.Path(folder, "cast")
        stage.mkdir()
        for file in [script, script.with_name("recording.py")]:
            shutil.copy(file, folder)
        for file in files:
            shutil.copy(script.parent.parent / file, folder)
        bin_ = ".local/bin"
        steps = [
            f"mount -t tmpfs tmpfs '{stage}'",
            f"mkdir -p '{stage}/ana/{bin_}'",
            f"touch '{stage}/ana/{bin_}/haft'",
            f"mount --bind '{haft}' '{stage}/ana/{bin_}/haft'",
            *(f"cp '{folder}/{pathlib.Path(file).name}' '{stage}/ana/'" for file in files),
            f"mount --rbind '{stage}' /home",
            f"cd '{folder}'",
            f"exec '{folder}/{script.name}' --inside {HOME}/{bin_} '{cast}'",
        ]
        space = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
        ended = subprocess.run([*space, "sh", "-c", " && ".join(steps)])
        if ended.returncode:
            sys.exit(ended.returncode)
        shutil.copyfile(cast, target)
