"""A workspace with its own state folder, and a user who answers in the inbox and counts the requests."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

SEED = {".gitignore": "node_modules/\ntarget/\n.venv/\n__pycache__/\ndist/\n.pnpm-store/\n.cargo-home/\n"}

# How long a user waits before they look at the inbox again.
SHORTEST_S, LONGEST_S = 0.1, 1


class Lab:
    """A workspace with its own state folder, and a user who answers in the inbox and counts the requests."""

    def __init__(self, haft, base, work, sandbox, network=None, limits=None):
        self.haft, self.asked, self.seen = haft, [], set()
        self.base, self.work = base, work
        # As users configure it: staging and committing need no approval.
        tables = {"policy": {"allow": ["Bash(git add *)", "Bash(git commit *)"]}, "sandbox": sandbox, "network": network or {}, "limits": limits or {}}
        lines = []
        for table, settings in tables.items():
            plain = {key: value for key, value in settings.items() if not isinstance(value, dict)}
            lines += [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in plain.items())]
            for key in settings.keys() - plain.keys():
                lines += [f"[{table}.{key}]", *(f"{name} = {json.dumps(value)}" for name, value in settings[key].items())]
        self.config = self.base / "config.toml"
        self.config.write_text("\n".join(lines) + "\n")
        self.env = {**os.environ, "HAFT_HOME": str(self.base / "state"), "XDG_CONFIG_HOME": str(self.base / "config"),
                    "HAFT_CONSOLE__START": "never"}
        # The same outside the jail: folders first on PATH, and variables. A home of its own, so that the user's caches stay as they are.
        first = [*map(str, sandbox.get("path", [])), os.environ["PATH"]]
        home = {"HOME": str(base / "home")}
        for name, folder in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")]:
            home[name] = os.environ.get(name, str(Path.home() / folder))
        self.bare = {**os.environ, **home, "PATH": os.pathsep.join(first), **sandbox.get("env", {})}
        if network and "proxy" in network:
            self.bare |= {name: network["proxy"] for name in ["http_proxy", "HTTP_PROXY"]}

    def fill(self, files):
        """Writes the project's files into a new repository."""
        for path, text in {**SEED, **files}.items():
            file = self.work / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            if text.startswith("#!"):
                file.chmod(0o755)
        subprocess.run(["git", "init", "-q", "."], cwd=self.work, check=True)
        for name, value in (("user.name", "u"), ("user.email", "u@example.org")):
            subprocess.run(["git", "config", name, value], cwd=self.work, check=True)

    def run(self, *words):
        return subprocess.run([self.haft, *words, "--config", self.config], cwd=self.work, env=self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def answer(self, stop):
        pause = SHORTEST_S
        while not stop.is_set():
            listed = self.run("approvals", "list", "--json").stdout
            for request in json.loads(listed or "[]"):
                if request["status"] != "pending" or request["id"] in self.seen:
                    continue
                pause = SHORTEST_S
                self.seen.add(request["id"])
                self.asked.append(f"{request['tool']}: {request['fact']['text']}")
                kept = self.run("approvals", "approve", request["id"], "--yes", "--scope", "always")
                if kept.returncode != 0:
                    # No rule could allow exactly this.
                    self.run("approvals", "approve", request["id"], "--yes")
            stop.wait(pause)
            # Looking takes processor time from what is measured.
            pause = min(pause * 2, LONGEST_S)

    def prompts(self):
        """Returns the requests since the last call."""
        asked, self.asked = self.asked, []
        return asked

    def call(self, line, settings=(), wait=120):
        """Runs a line in the jail; returns what failed, if anything did."""
        words = [word for setting in settings for word in ("-c", setting)]
        args = json.dumps({"command": line, "timeout_s": 300})
        ran = self.run("call", "run_command", "--args", args, "--json", f"--wait={wait}", *words)
        if ran.returncode == 0:
            return None
        said = json.loads(ran.stdout or "{}")
        data = said.get("data", {})
        print(f"  {line}: {ran.stderr}{json.dumps(said)[:4000]}", file=sys.stderr)
        return (data.get("stderr") or data.get("stdout") or said.get("summary") or ran.stderr).strip().split("\n")[-1] or "failed"

    def lines(self, lines, settings=()):
        """Runs the lines until one fails, while the user answers; returns what failed, if anything did."""
        stop = threading.Event()
        person = threading.Thread(target=self.answer, args=(stop,))
        person.start()
        try:
            return next((failed for line in lines if (failed := self.call(line, settings))), None)
        finally:
            stop.set()
            person.join()

    def edit(self, line, where=None):
        """Runs a line outside the jail, as an editor would change files."""
        Path(self.bare["HOME"]).mkdir(exist_ok=True)
        subprocess.run(["bash", "-c", line], cwd=where or self.work, env=self.bare, check=True)

    def times(self, lines, rounds, edit):
        """Returns the seconds of the lines outside the jail and in it: the median of alternating rounds; None if one fails outside."""
        copy = self.base / "bare"
        shutil.copytree(self.work, copy, symlinks=True)

        def outside():
            self.edit(edit, copy)
            for line in lines:
                ran = subprocess.run(["bash", "-c", line], cwd=copy, env=self.bare, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if ran.returncode != 0:
                    print(f"  outside: {line}: {ran.stdout[-1500:]}", file=sys.stderr)
                    return False
            return True

        def inside():
            self.edit(edit)
            return all(self.call(line, wait=0) is None for line in lines)

        if not outside():
            return None
        taken = {outside: [], inside: []}
        for _ in range(rounds):
            for run, seconds in taken.items():
                start = time.monotonic()
                if not run():
                    return None
                seconds.append(time.monotonic() - start)
        return [sorted(seconds)[rounds // 2] for seconds in taken.values()]
