# Part 2: the wire. A frame is one datagram: kind, flags (bit 0: more follows), id (32 bits, little endian), body.

_FRAME = 65536
_BODY = _FRAME - 6
_get_running_loop = asyncio._get_running_loop
_scan_json = json.decoder.JSONDecoder().scan_once


def _encode(value):
    return _PLAIN_JSON.encode(value)


_PLAIN_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


class _Wire:
    """The bridge to the host. Calls may come from several threads and from an event loop."""

    def __init__(self, sock):
        self.sock = sock
        self.send_frame, self.recv_into = sock.send, sock.recv_into
        self.buffer = bytearray(_FRAME)
        self.view = memoryview(self.buffer)
        self.lock = threading.RLock()
        self.sending = False
        self.mutex = threading.Lock()
        self.arrived = threading.Condition(self.mutex)
        self.reading = False
        self.followers = 0
        self.replies = {}
        self.parts = {}
        self.waiters = {}
        self.loop = None
        self.ids = 0
        self.looks = 0
        self.calls = 0
        self.called = set()
        self.seen = 0

    def send(self, kind, number, body):
        head = kind + b"\0" + number.to_bytes(4, "little")
        if len(body) <= _BODY:
            self.send_frame(head + body)
            return
        more = kind + b"\1" + number.to_bytes(4, "little")
        view = memoryview(body)
        last = (len(body) - 1) // _BODY * _BODY
        for at in range(0, last, _BODY):
            self.send_frame(more + view[at:at + _BODY])
        self.send_frame(head + view[last:])

    def request(self, kind, body):
        """Sends a request and gives its id."""
        with self.lock:
            if self.sending:
                raise RuntimeError("the bridge is in use by what was interrupted")
            self.sending = True
            try:
                _flush_output()
                self.ids = number = self.ids + 1
                self.send(kind, number, body)
            finally:
                self.sending = False
            return number

    def call(self, name, arguments):
        with self.lock:
            if self.sending:
                raise RuntimeError("the bridge is in use by what was interrupted")
            self.sending = True
            try:
                _flush_output()
                self.ids = number = self.ids + 1
                self.calls += 1
                noise = b"" if _noise.off else _noise.cut(self.seen, self.calls)
                self.called.add(number)
                if len(arguments) + len(noise) < 32768:
                    self.send_frame(b"c\0%b%b\n%b\n%b" % (number.to_bytes(4, "little"), name, noise, arguments))
                else:
                    self.send(b"c", number, b"%b\n%b\n%b" % (name, noise, arguments))
            finally:
                self.sending = False
            return number

    def stream(self, chunks):
        """Sends one long `put` in pieces, so that it never lies in memory whole."""
        with self.lock:
            self.sending = True
            try:
                self.ids = number = self.ids + 1
                id = number.to_bytes(4, "little")
                before = b""
                for chunk in chunks:
                    if before:
                        self.send_frame(b"p\1" + id + before)
                    before = chunk
                self.send_frame(b"p\0" + id + before)
            finally:
                self.sending = False
            return number

    def _read(self, flags=0):
        """One frame; the id where it ends a message."""
        if not flags:
            # A processor that sleeps is slow to wake: most answers come before it is worth it.
            for _ in range(self.looks):
                try:
                    size = self.recv_into(self.buffer, 0, socket.MSG_DONTWAIT)
                    break
                except BlockingIOError:
                    pass
            else:
                size = self.recv_into(self.buffer)
        else:
            size = self.recv_into(self.buffer, 0, flags)
        if size < 6:
            os._exit(70)  # The host is gone or has ended this script.
        buffer = self.buffer
        number = int.from_bytes(buffer[2:6], "little")
        body = bytes(self.view[6:size])
        if buffer[1] & 1:
            self.parts.setdefault(number, []).append(body)
            return None
        if self.parts and number in self.parts:
            self.parts[number].append(body)
            body = b"".join(self.parts.pop(number))
        self.replies[number] = (buffer[0], body)
        return number

    def _deliver(self, number):
        """With `mutex` held: tells whoever waits in an event loop or in another thread."""
        if number in self.called:
            self.called.discard(number)
            self.seen += 1
        if self.waiters:
            for loop, future in self.waiters.pop(number, ()):
                if loop is _get_running_loop():
                    future.done() or future.set_result(None)
                else:
                    with contextlib.suppress(RuntimeError):
                        loop.call_soon_threadsafe(lambda f=future: f.done() or f.set_result(None))
        if self.followers:
            self.arrived.notify_all()

    def wait(self, number):
        """Blocks until the reply is there. One thread reads for all."""
        mutex, replies = self.mutex, self.replies
        with mutex:
            while True:
                if number in replies:
                    return replies.pop(number)
                if not self.reading:
                    self.reading = True
                    break
                self.followers += 1
                self.arrived.wait()
                self.followers -= 1
        try:
            while True:
                got = self._read()
                if got is not None:
                    with mutex:
                        self._deliver(got)
                        if got == number:
                            return replies.pop(number)
        finally:
            with mutex:
                self.reading = False
                if self.followers:
                    self.arrived.notify_all()

    def future(self, number, loop):
        """A future that completes when the reply is there; none where it is."""
        with self.mutex:
            if number in self.replies:
                return None
            future = loop.create_future()
            self.waiters.setdefault(number, []).append((loop, future))
        if self.loop is not loop:
            self.loop = loop
            loop.add_reader(self.sock.fileno(), self._pump)
        return future

    def _pump(self):
        with self.mutex:
            if self.reading:
                return
            self.reading = True
        try:
            got = self._read(socket.MSG_DONTWAIT)
            if got is not None:
                with self.mutex:
                    self._deliver(got)
        except BlockingIOError:
            pass
        finally:
            with self.mutex:
                self.reading = False
                if self.followers:
                    self.arrived.notify_all()

    def ask(self, kind, body):
        """A request that is answered by raw bytes, or by JSON with an error."""
        kind, body = self.wait(self.request(kind, body))
        return self.answer(kind, body)

    @staticmethod
    def answer(kind, body):
        if kind == 66:  # B
            return body
        reply = _scan_json(body.decode(), 0)[0]
        if "error" in reply:
            raise ToolError._of(reply["error"], None)
        return reply


class _Out(io.TextIOBase):
    """A stream of the script: lines go out as they end, a flood goes out in pieces."""

    def __init__(self, wire, kind, name):
        self.wire, self.kind, self.name = wire, kind, name
        self.pieces, self.size, self.burst, self.last = [], 0, 0, 0.0

    encoding, errors = "utf-8", "backslashreplace"

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if not text:
            return 0
        self.pieces.append(text)
        self.size += len(text)
        if self.size >= 4096:
            self.flush()
        elif text[-1] == "\n":
            now = _raw_time.monotonic()
            if now - self.last >= 0.001:
                self.burst = 0
            self.last = now
            self.burst += 1
            if self.burst <= 32:
                self.flush()
        return len(text)

    def flush(self):
        if self.pieces and not self.wire.sending:
            with self.wire.lock:
                pieces, self.pieces, self.size = self.pieces, [], 0
                body = "".join(pieces).encode("utf-8", "backslashreplace")
                for at in range(0, len(body), _BODY):
                    self.wire.send(self.kind, 0, body[at:at + _BODY])

    @property
    def buffer(self):
        return _Bytes(self)


class _Bytes:
    """`sys.stdout.buffer`."""

    def __init__(self, out):
        self.out = out

    def write(self, data):
        self.out.write(bytes(data).decode("utf-8", "backslashreplace"))
        return len(data)

    def flush(self):
        self.out.flush()


def _flush_output():
    for stream in (sys.stdout, sys.stderr):
        if stream.__class__ is _Out and stream.size:
            pieces, stream.pieces, stream.size = stream.pieces, [], 0
            body = "".join(pieces).encode("utf-8", "backslashreplace")
            for at in range(0, len(body), _BODY):
                stream.wire.send(stream.kind, 0, body[at:at + _BODY])


