"""Where a row's dependencies come from: the registry that this machine's settings name, or a server of this script on loopback."""

import http.server
import os
import socket
import subprocess
import threading
import urllib.parse
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python 3.10 and older
    tomllib = None


def first_line(*words):
    """Returns the first line of a program's output, or an empty text."""
    try:
        said = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    except OSError:
        return ""
    return said.stdout.strip().split("\n")[0]


def cargo_source():
    """Returns the URL that this machine's settings put in place of crates.io, if any."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    for name in ["config.toml", "config"] if tomllib else []:
        try:
            sources = tomllib.loads((home / name).read_text()).get("source", {})
        except (OSError, tomllib.TOMLDecodeError):
            continue
        other = sources.get("crates-io", {}).get("replace-with")
        return sources.get(other, {}).get("registry", "")
    return ""


class Registry:
    """The registry of one kind (npm, pypi, crates) on this machine, or none."""

    DEFAULTS = {"npm": "https://registry.npmjs.org/", "pypi": "https://pypi.org/simple", "crates": "sparse+https://index.crates.io/"}

    def __init__(self, kind):
        self.env, self.files, self.settings = {}, {}, {}
        self.url = self.DEFAULTS.get(kind, "")
        own = {"npm": lambda: first_line("npm", "config", "get", "registry"),
               "pypi": lambda: os.environ.get("PIP_INDEX_URL") or first_line("pip", "config", "get", "global.index-url"),
               "crates": cargo_source}.get(kind, str)()
        if not own or own.rstrip("/") == self.url.rstrip("/"):
            return
        self.url = own
        # Settings in the home folder may hold tokens, and no command sees them: only the URL is passed on.
        if kind == "npm":
            self.env = {name: own for name in ["NPM_CONFIG_REGISTRY", "YARN_REGISTRY", "YARN_NPM_REGISTRY_SERVER"]}
        if kind == "pypi":
            self.env = {"PIP_INDEX_URL": own, "UV_DEFAULT_INDEX": own}
        if kind == "crates":
            mirror = f'[source.crates-io]\nreplace-with = "mirror"\n[source.mirror]\nregistry = "{own}"\n'
            self.files = {".cargo/config.toml": mirror}

    def serve(self, hosts):
        """Serves folders under the names of public hosts, behind a proxy on loopback, until the script ends."""
        handler = type("Served", (Hosts,), {"folders": hosts})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.settings = {"proxy": f"http://127.0.0.1:{server.server_port}"}

    def unusable(self):
        """Returns why it cannot be used from here, or None."""
        if not self.url:
            return None
        url = urllib.parse.urlsplit(self.url.removeprefix("sparse+"))
        if url.username or url.password:
            return "the registry that settings name takes a password"
        try:
            socket.create_connection((url.hostname, url.port or {"http": 80}.get(url.scheme, 443)), 10).close()
        except OSError as error:
            return f"the registry does not answer here: {error.strerror or error}"
        return None


class Hosts(http.server.BaseHTTPRequestHandler):
    """An HTTP proxy that answers from folders on this machine, one per host."""

    folders = {}

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        host = url.hostname or self.headers.get("Host", "").split(":")[0]
        folder = self.folders.get(host)
        found = None
        if folder is not None:
            file = Path(folder) / urllib.parse.unquote(url.path).lstrip("/")
            # Debian's Maven repository consists of links, so the text of the path is what must stay inside.
            if ".." not in file.parts and file.is_file():
                found = file.read_bytes()
        self.send_response(200 if found is not None else 404)
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(found or b"")

    do_HEAD = do_GET

    def log_message(self, *_):
        pass
