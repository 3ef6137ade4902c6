"""A TCP proxy on loopback that breaks what passes through it, for tests of a store or a database that fails.

    with FaultProxy(("127.0.0.1", s3.port)) as proxy:
        proxy.fault = Refuse()      # from now on, for connections there are too
        proxy.fault = None          # whole again
"""

import collections
import contextlib
import random
import re
import socket
import struct
import threading
import time

REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) ")


class Fault:
    """What befalls a connection; the methods run on threads of the proxy."""

    accepts = True  # connections at all

    def request(self, proxy, client, data):
        """Bytes of the client: what goes on to the server, or None when they are lost."""
        return data

    def response(self, proxy, client, data):
        return data


class Refuse(Fault):
    """Nobody listens, and what was open is reset."""

    accepts = False


class Hang(Fault):
    """Takes connections and requests, and never answers."""

    def request(self, proxy, client, data):
        return None

    def response(self, proxy, client, data):
        return None


class Cut(Fault):
    """Ends a connection after so many bytes of its answers."""

    def __init__(self, after_bytes):
        self.after_bytes = after_bytes
        self.passed = {}

    def response(self, proxy, client, data):
        passed = self.passed.get(client, 0)
        if passed + len(data) <= self.after_bytes:
            self.passed[client] = passed + len(data)
            return data
        client.sendall(data[:self.after_bytes - passed])
        proxy.drop(client)
        return None


class Answer(Fault):
    """An HTTP answer of its own to each request; methods: those that get it, the others pass."""

    def __init__(self, status, reason="Fault", body=b"<Error><Code>Fault</Code></Error>", methods=None):
        self.status, self.reason, self.body, self.methods = status, reason, body, methods
        self.count = 0

    def request(self, proxy, client, data):
        method = data.split(b" ", 1)[0].decode("latin-1")
        if method not in ("GET", "HEAD", "PUT", "POST", "DELETE"):
            return None if self.methods is None else data  # the rest of a body
        if self.methods is not None and method not in self.methods:
            return data
        self.count += 1
        body = b"" if method == "HEAD" else self.body
        client.sendall(f"HTTP/1.1 {self.status} {self.reason}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        proxy.drop(client, gently=True)
        return None


class Weather(Fault):
    """An S3 store on a bad day: of all requests a share fails, each in a way that is drawn by seed. Counts what befell."""

    ANSWERS = {"503": "503 Slow Down", "429": "429 Too Many Requests", "500": "500 Internal Server Error"}
    KINDS = (*ANSWERS, "reset", "slow", "truncated")

    def __init__(self, seed, share=0.1, kinds=KINDS, slow_s=1.0):
        self.share, self.kinds, self.slow_s = share, kinds, slow_s
        self.count = collections.Counter()
        self._random, self._lock = random.Random(seed), threading.Lock()
        self._lost, self._left = set(), {}  # connections: the rest of a request is lost; bytes of an answer that pass

    def _draw(self):
        with self._lock:
            kind = self._random.choice(self.kinds) if self._random.random() < self.share else "well"
            self.count[kind] += 1
            return kind, self._random.random()

    def request(self, proxy, client, data):
        if not REQUEST.match(data):
            return None if client in self._lost else data
        kind, how_much = self._draw()
        if kind == "slow":
            time.sleep(how_much * self.slow_s)  # the fault itself, not a wait for something
        elif kind == "reset":
            proxy.drop(client)
            return None
        elif kind == "truncated":
            # Mostly within the body of a block, sometimes within the answer's head.
            self._left[client] = int(how_much ** 4 * 2_000_000) + 1
        elif kind in self.ANSWERS:
            self._lost.add(client)
            body = b"" if data.startswith(b"HEAD") else b"<Error><Code>Fault</Code></Error>"
            client.sendall(f"HTTP/1.1 {self.ANSWERS[kind]}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            proxy.drop(client, gently=True)
            return None
        return data

    def response(self, proxy, client, data):
        left = self._left.get(client)
        if left is None:
            return data
        if len(data) <= left:
            self._left[client] = left - len(data)
            return data
        client.sendall(data[:left])
        proxy.drop(client)
        return None


class Hold(Fault):
    """Lets requests pass until one is the nth whose first line holds `what`: that one and all later ones wait for release().
    `held` is set when the first waits."""

    def __init__(self, what, nth):
        self.what, self.nth = what, nth
        self.seen = 0
        self.held, self._released, self._lock = threading.Event(), threading.Event(), threading.Lock()

    def request(self, proxy, client, data):
        if REQUEST.match(data) and self.what in data.split(b"\r\n", 1)[0]:
            with self._lock:
                self.seen += 1
                held = self.seen >= self.nth
            if held:
                self.held.set()
                self._released.wait(60)
        return data

    def release(self):
        self._released.set()


class LoseCommit(Fault):
    """Ends the connection over which DuckLake commits: before the server has the COMMIT, or before the client has the answer."""

    def __init__(self, forward):
        self.forward = forward
        self.writers, self.committing = set(), set()
        self.lost = 0

    def request(self, proxy, client, data):
        if b"INTO" in data and b"ducklake_snapshot_changes" in data:
            self.writers.add(client)
        if b"COMMIT" in data and client in self.writers and not self.lost:
            self.lost += 1
            if not self.forward:
                proxy.drop(client)
                return None
            self.committing.add(client)
        return data

    def response(self, proxy, client, data):
        if client in self.committing:
            proxy.drop(client)
            return None
        return data


class FaultProxy:
    def __init__(self, server):
        self.server = server
        self.fault = None
        self._lock = threading.Lock()
        self._pairs = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def fault(self):
        return self._fault

    @fault.setter
    def fault(self, fault):
        self._fault = fault
        if fault is not None and not fault.accepts:
            self.drop_all()

    def drop_all(self):
        """Resets every connection there is."""
        with self._lock:
            clients = list(self._pairs)
        for client in clients:
            self.drop(client)

    def drop(self, client, gently=False):
        with self._lock:
            upstream = self._pairs.pop(client, None)
        if not gently:
            with contextlib.suppress(OSError):
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for end in (client, upstream):
            if end is not None:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR if gently else socket.SHUT_RD)
                with contextlib.suppress(OSError):
                    end.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            fault = self._fault
            if fault is not None and not fault.accepts:
                with self._lock:
                    self._pairs[client] = None
                self.drop(client)
                continue
            try:
                upstream = socket.create_connection(self.server, 10)
                upstream.settimeout(None)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs[client] = upstream
            for source, target, judge in ((client, upstream, "request"), (upstream, client, "response")):
                threading.Thread(target=self._carry, args=(client, source, target, judge), daemon=True).start()

    def _carry(self, client, source, target, judge):
        while True:
            try:
                data = source.recv(1 << 16)
                if not data:
                    break
                fault = self._fault
                if fault is not None:
                    data = getattr(fault, judge)(self, client, data)
                if data:
                    target.sendall(data)
            except OSError:
                break
        self.drop(client, gently=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()
        self.drop_all()
