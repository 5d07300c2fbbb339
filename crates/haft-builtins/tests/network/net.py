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


def fails(what, call):
    try:
        call()
    except OSError as error:
        print("REFUSED", what, type(error).__name__)
    else:
        print("REACHED", what)
