"""Shared parts of the attempts in the network's rows."""
import os
import socket
import ssl
import sys
import urllib.request

PROXY = ("127.0.0.1", 3128)


def dial():
    stream = socket.create_connection(PROXY, 20)
    stream.settimeout(20)
    return stream


def rest(stream):
    out = b""
    try:
        while part := stream.recv(65536):
            out += part
    except OSError:
        pass
    return out.decode("latin1")


def raw(text):
    """Sends bytes to the proxy and prints the complete response."""
    stream = dial()
    stream.sendall(text.encode("latin1"))
    print(rest(stream))


def connect(place):
    raw(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n")


def opened(place):
    """Returns a tunnel, just opened."""
    stream = dial()
    stream.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        part = stream.recv(1)
        if not part:
            break
        head += part
    print(head.split(b"\r\n")[0].decode())
    return stream


def tunnel(place, name):
    """Speaks TLS through a tunnel under a name."""
    stream = opened(place)
    context = ssl.create_default_context()
    if name is None:
        context.check_hostname = False
    try:
        with context.wrap_socket(stream, server_hostname=name) as secure:
            secure.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            print("INSIDE", rest(secure))
    except OSError as error:
        print("NO TLS", type(error).__name__)


def through(place, data):
    """Sends bytes that are not TLS through a tunnel."""
    stream = opened(place)
    stream.sendall(data)
    print("GOT", repr(rest(stream)))


def get(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        print("READ", answer.status, answer.read().decode())


def go(url):
    """Gets a page without the proxy, whatever the variables say."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=20) as answer:
            print("READ", answer.status, answer.read().decode())
    except urllib.error.HTTPError as error:
        print("HTTP", error.code, error.read().decode())
    except OSError as error:
        print("NOTHING", error)


def direct(host, port):
    stream = socket.create_connection((host, port), 20)
    stream.settimeout(20)
    return stream


def says(host, port, data=b""):
    """Sends bytes to a host directly and prints what comes."""
    try:
        stream = direct(host, port)
        stream.sendall(data)
        print("GOT", repr(rest(stream)))
    except OSError as error:
        print("GOT ''", error)


def secure(host, name, port=443):
    """Speaks TLS with a host directly under a name."""
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    try:
        with context.wrap_socket(direct(host, port), server_hostname=name) as stream:
            stream.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            print("INSIDE", rest(stream))
    except OSError as error:
        print("NO TLS", error)


def hello(name, extra=b""):
    """Builds a TLS hello with this name and further extensions."""
    counted = lambda data, size: len(data).to_bytes(size, "big") + data
    names = counted(b"\0" + counted(name.encode(), 2), 2)
    extensions = b"\0\0" + counted(names, 2) + extra
    body = b"\3\3" + b"7" * 32 + b"\0" + counted(b"\x13\1", 2) + b"\1\0" + counted(extensions, 2)
    message = b"\1" + counted(body, 3)
    pieces = [message[at:at + 16000] for at in range(0, len(message), 16000)]
    return b"".join(b"\x16\3\1" + counted(piece, 2) for piece in pieces)


def ask(question, place=("127.0.0.1", 53)):
    """Asks for a name by UDP and returns the whole answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.settimeout(20)
        link.connect(place)
        link.send(question)
        return link.recv(4096)


def question(name, kind=1):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return b"\7\7\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0" + bytes([kind]) + b"\0\1"


def fails(what, call):
    try:
        call()
    except OSError as error:
        print("REFUSED", what, type(error).__name__)
    else:
        print("REACHED", what)
