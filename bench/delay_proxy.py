"""A TCP proxy on loopback that stands for the distance to a store: each HTTP request waits before it goes on, bytes of answers
pass by splice(2), so that the proxy itself takes next to no time. Counts requests, how many were under way at once, and bytes.

    with DelayProxy(("127.0.0.1", s3.port), delay_s=0.03) as proxy:
        proxy.port
"""

import contextlib
import os
import re
import socket
import threading
import time

REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) ")
PIECE_BYTES = 1 << 20


class DelayProxy:
    def __init__(self, server, delay_s):
        self.server, self.delay_s = server, delay_s
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self._waiting = 0
        self.reset()
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self):
        with self._lock:
            self.requests = self.bytes = self.most_waiting = 0

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
                upstream = socket.create_connection(self.server, 10)
            except OSError:
                return
            for end in (client, upstream):
                end.settimeout(None)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            asked = [0]  # 1 while the connection waits for an answer's first byte
            for carry in (self._ask, self._answer):
                threading.Thread(target=carry, args=(client, upstream, asked), daemon=True).start()

    def _count(self, asked, now):
        with self._lock:
            self._waiting += now - asked[0]
            asked[0] = now
            self.most_waiting = max(self.most_waiting, self._waiting)
            self.requests += now

    def _ask(self, client, upstream, asked):
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if REQUEST.match(data):
                    self._count(asked, 1)
                    time.sleep(self.delay_s)  # the distance, not a wait for something
                upstream.sendall(data)
        self._end(client, upstream)

    def _answer(self, client, upstream, asked):
        inlet, outlet = None, None
        with contextlib.suppress(OSError):
            outlet, inlet = os.pipe()
            while taken := os.splice(upstream.fileno(), inlet, PIECE_BYTES):
                self._count(asked, 0)
                with self._lock:
                    self.bytes += taken
                while taken > 0:
                    taken -= os.splice(outlet, client.fileno(), taken)
        self._count(asked, 0)
        self._end(client, upstream)
        for end in (inlet, outlet):
            if end is not None:
                os.close(end)

    @staticmethod
    def _end(*ends):
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()
