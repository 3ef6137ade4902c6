"""PostgreSQL's protocol by hand, for what client libraries do not let one do: row limits, half messages, garbage."""

import base64
import hashlib
import hmac
import os
import socket
import struct


def message(kind, body):
    return kind + struct.pack("!i", len(body) + 4) + body


class ServerError(Exception):
    def __init__(self, fields):
        super().__init__(f"{fields.get('C')}: {fields.get('M')}")
        self.fields = fields
        self.sqlstate = fields.get("C")


class Connection:
    def __init__(self, pool, password=None, database=None, timeout_s=60, login=True):
        info = pool.ready()
        host, port = info["pg"].rsplit(":", 1)
        self.address = (host, int(port))
        self.socket = socket.create_connection(self.address, timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.key = None
        if login:
            self.login(info["user"], password or info["password"], database or info["catalog"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, kind, body=b""):
        self.socket.sendall(message(kind, body))

    def receive(self):
        """The next message: kind and body. EOFError when the server has closed."""
        while len(self.buffer) < 5 or len(self.buffer) < 1 + struct.unpack("!i", self.buffer[1:5])[0]:
            part = self.socket.recv(1 << 16)
            if not part:
                raise EOFError("the server closed the connection")
            self.buffer += part
        size = 1 + struct.unpack("!i", self.buffer[1:5])[0]
        whole, self.buffer = self.buffer[:size], self.buffer[size:]
        return whole[:1], whole[5:]

    def until_ready(self):
        """Messages up to ReadyForQuery; raises ServerError behind the last one when there was an error."""
        error = None
        while True:
            try:
                kind, body = self.receive()
            except EOFError:
                raise error or EOFError("the server closed the connection") from None
            if kind == b"E":
                error = ServerError(error_fields(body))
            yield kind, body
            if kind == b"Z":
                if error:
                    raise error
                return

    def login(self, user, password, database):
        body = struct.pack("!i", 196608) + f"user\0{user}\0database\0{database}\0\0".encode()
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        kind, body = self.receive()
        raise_error(kind, body)
        assert (kind, struct.unpack("!i", body[:4])[0]) == (b"R", 10)
        nonce = base64.b64encode(os.urandom(18)).decode()
        first = f"n=,r={nonce}"
        self.send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first) + 3) + b"n,," + first.encode())
        kind, body = self.receive()
        raise_error(kind, body)
        server_first = body[4:].decode()
        parts = dict(part.split("=", 1) for part in server_first.split(","))
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(parts["s"]), int(parts["i"]))
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        final = f"c=biws,r={parts['r']}"
        auth = f"{first},{server_first},{final}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), auth, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
        self.send(b"p", f"{final},p={proof}".encode())
        for kind, body in self.until_ready():
            if kind == b"K":
                self.key = struct.unpack("!ii", body)

    def simple(self, sql):
        """Rows (as text) and command tag of the last statement."""
        self.send(b"Q", sql.encode() + b"\0")
        rows, tag = [], None
        for kind, body in self.until_ready():
            if kind == b"T":
                rows = []
            if kind == b"D":
                rows.append(data_row(body))
            if kind == b"C":
                tag = body[:-1].decode()
        return rows, tag

    def bind(self, portal, sql):
        self.send(b"P", b"\0" + sql.encode() + b"\0\0\0")
        self.send(b"B", portal.encode() + b"\0\0\0\0\0\0\0\0")
        self.send(b"S")
        for _ in self.until_ready():
            pass

    def execute_portal(self, portal, limit):
        """Rows of one Execute, and whether the portal is done."""
        execute = message(b"E", portal.encode() + b"\0" + struct.pack("!i", limit))
        self.socket.sendall(execute + message(b"S", b""))
        rows, done = [], True
        for kind, body in self.until_ready():
            if kind == b"D":
                rows.append(data_row(body))
            if kind == b"s":
                done = False
        return rows, done

    def fetch_by(self, sql, limit):
        """All rows, `limit` an Execute, inside a transaction; and the size of each batch."""
        self.simple("BEGIN")
        self.bind("p", sql)
        rows, batches, done = [], [], False
        while not done:
            part, done = self.execute_portal("p", limit)
            rows += part
            batches.append(len(part))
        self.simple("COMMIT")
        return rows, batches

    def cancel(self):
        with socket.create_connection(self.address, 10) as other:
            other.sendall(struct.pack("!iiii", 16, 80877102, *self.key))
            assert other.recv(1) == b""


def data_row(body):
    count, at, row = struct.unpack("!h", body[:2])[0], 2, []
    for _ in range(count):
        size = struct.unpack("!i", body[at:at + 4])[0]
        at += 4
        row.append(None if size < 0 else body[at:at + size].decode())
        at += max(size, 0)
    return row


def error_fields(body):
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def raise_error(kind, body):
    if kind == b"E":
        raise ServerError(error_fields(body))
