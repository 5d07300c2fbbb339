# The runtime of a chained script. Loaded once, before a child is forked; `main` runs one script and never returns.
#
# Part 1: noise. What a script reads from clocks and random sources is noted, so that a script that runs again after a
# crash reads the same.
import ast
import asyncio
import atexit
import base64
import bisect
import builtins
import calendar
import codecs
import collections
import concurrent.futures
import contextlib
import copy
import copyreg
import csv
import dataclasses
import datetime
import decimal
import difflib
import enum
import fractions
import functools
import hashlib
import heapq
import html
import io
import itertools
import json
import keyword
import linecache
import math
import mimetypes
import operator
import os
import pathlib
import random
import re
import secrets
import socket
import statistics
import string
import sys
import textwrap
import threading
import time
import traceback
import types
import typing
import urllib.parse
import uuid
import warnings

_raw_time = types.SimpleNamespace(**{name: getattr(time, name) for name in dir(time)})
_raw_urandom = os.urandom


# Bytes of noise before one call; the host bounds those of all calls.
_MOST_NOISE = 8 << 20


class _Noise:
    """What was read since the last call, and what is to be read again."""

    def __init__(self):
        self.off = True
        self.spent = False
        self.log = None
        self.groups = ()
        self.group = collections.deque()
        self.key = None
        self.drawn = itertools.count()

    def start(self, record, groups):
        self.log = [] if record else None
        self.groups = groups or ()
        self.group = collections.deque(self.groups[0] if self.groups else ())
        self.off = self.log is None and not self.groups

    def reset(self):
        self.__init__()

    def take(self, kind, read):
        if self.group:
            known, value = self.group[0]
            if known == kind:
                self.group.popleft()
            else:
                # The script goes another way than it did: what it calls next will show that.
                self.group.clear()
                value = read()
        else:
            value = read()
        if self.log is not None:
            self.log.append((kind, value))
        return value

    def cut(self, seen, number):
        """The noise before call `number`, which follows."""
        if self.groups:
            self.group = collections.deque(self.groups[number] if number < len(self.groups) else ())
        if self.log is None:
            return b""
        log, self.log = self.log, []
        # Once too much was read there is no record of it: no later call can be replayed, and so none is made.
        noise = b"" if self.spent else _encode([seen, log]).encode()
        if self.spent or len(noise) > _MOST_NOISE:
            self.spent = True
            raise RuntimeError("clocks were read too often since the call before: wait with time.sleep, not by reading a clock in a loop")
        return noise


_noise = _Noise()


def _clock(name):
    real = getattr(_raw_time, name)

    def read():
        return real() if _noise.off else _noise.take(name, real)

    read.__name__ = read.__qualname__ = name
    read.__doc__ = real.__doc__
    return read


def _urandom(size):
    """Random bytes: the system's, or, where they are noted, a stream under a key from the system. The key is all there is to note."""
    if _noise.off:
        return _raw_urandom(size)
    if _noise.key is None:
        _noise.key = bytes.fromhex(_noise.take("key", lambda: _raw_urandom(32).hex()))
    if size < 0:
        raise ValueError("negative argument not allowed")
    return hashlib.shake_256(_noise.key + next(_noise.drawn).to_bytes(8, "little")).digest(size)


def _of_now(name):
    real = getattr(_raw_time, name)

    def read(seconds=None):
        return real(time.time() if seconds is None else seconds)

    read.__name__ = read.__qualname__ = name
    return read


def _strftime(form, moment=None):
    return _raw_time.strftime(form, time.localtime() if moment is None else moment)


def _asctime(moment=None):
    return _raw_time.asctime(time.localtime() if moment is None else moment)


def _sleep(seconds):
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, _Out):
            stream.flush()
    return _raw_time.sleep(seconds)


_RealDate, _RealDateTime = datetime.date, datetime.datetime


class _Dates(type):
    """Makes every real date an instance of the class that replaces it."""

    def __instancecheck__(cls, value):
        real = cls.__dict__.get("_real")
        return isinstance(value, real) if real else type.__instancecheck__(cls, value)

    def __subclasscheck__(cls, other):
        real = cls.__dict__.get("_real")
        return issubclass(other, real) if real else type.__subclasscheck__(cls, other)


class _Date(_RealDate, metaclass=_Dates):
    _real = _RealDate

    @classmethod
    def today(cls):
        return cls.fromtimestamp(time.time())

    def __repr__(self):
        real = _RealDate.__repr__(self)
        return "datetime." + real if type(self) is _Date else real


class _DateTime(_RealDateTime, metaclass=_Dates):
    _real = _RealDateTime

    @classmethod
    def now(cls, tz=None):
        seconds, rest = divmod(time.time_ns(), 1_000_000_000)
        return cls.fromtimestamp(seconds, tz).replace(microsecond=rest // 1000)

    @classmethod
    def utcnow(cls):
        seconds, rest = divmod(time.time_ns(), 1_000_000_000)
        moment = _RealDateTime.fromtimestamp(seconds, datetime.timezone.utc)
        return cls(*moment.timetuple()[:6], rest // 1000)

    @classmethod
    def today(cls):
        return cls.now()

    def __repr__(self):
        real = _RealDateTime.__repr__(self)
        return "datetime." + real if type(self) is _DateTime else real


def _named(cls, name):
    cls.__module__, cls.__name__, cls.__qualname__ = "datetime", name, name
    return cls


def _install_noise():
    for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns",
                 "process_time", "process_time_ns", "thread_time", "thread_time_ns"):
        setattr(time, name, _clock(name))
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, _of_now(name))
    time.strftime, time.asctime, time.sleep = _strftime, _asctime, _sleep
    # The event loop and the pools read clocks as often as they wake: that is no part of what a script computes.
    asyncio.base_events.time = concurrent.futures._base.time = _raw_time
    datetime.date = _named(_Date, "date")
    datetime.datetime = _named(_DateTime, "datetime")
    copyreg.pickle(_RealDate, lambda d: (_Date, (d.year, d.month, d.day)))
    copyreg.pickle(_RealDateTime, lambda d: (_DateTime, (
        d.year, d.month, d.day, d.hour, d.minute, d.second, d.microsecond, d.tzinfo)))
    os.urandom = random._urandom = _urandom
    if hasattr(secrets, "_urandom"):
        secrets._urandom = _urandom
    uuid._generate_time_safe = uuid._UuidCreate = None
    plain = random.Random.seed

    def seed(self, a=None, version=2):
        plain(self, int.from_bytes(_urandom(32), "big") if a is None else a, version)

    random.Random.seed = seed
    random.seed = random._inst.seed


_install_noise()


def _seed(seed):
    random.seed(seed)
    uuid._node = seed * 0x9E3779B97F4A7C15 >> 16 & (1 << 48) - 1 | 1 << 40
    uuid._last_timestamp = None
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(seed & 0xFFFFFFFF)


