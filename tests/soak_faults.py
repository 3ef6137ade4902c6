"""What goes wrong beneath a pool during the soak: its store behind a proxy with bad weather, its nodes' disks, their cache
directories. One fault of the store and one of the disk at a time, drawn by seed, with calm between."""

import contextlib
import errno
import pathlib
import random
import shutil
import threading
import time

from disk_faults import DiskFaults
from fault_proxy import FaultProxy, Refuse, Weather
from pool import Pool
from stores import S3

# What a statement may say that met a fault of the store; 53400: the store of results is not concerned.
STORE_CODES = {"58030"}
CACHE_BYTES = "64MiB"


class Faults:
    """The store, and a pool over it. run() goes on until told to stop; `log` is what was done: (kind, began, ended)."""

    STORE = ("bad weather", "worse weather", "outage", "slow")
    DISK = ("no space", "errors of writes", "errors of reads", "read only", "slow disk", "cache directory removed", "half of all calls fail")

    def __init__(self, folder, seed, phase_s=(2.0, 6.0)):
        self.folder, self.seed, self.phase_s = pathlib.Path(folder), seed, phase_s
        self.random = random.Random(f"faults {seed}")
        self.log, self.weathers = [], []
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        self.s3 = self.stack.enter_context(S3(self.folder / "s3", prefix="lake"))
        self.proxy = self.stack.enter_context(FaultProxy(("127.0.0.1", self.s3.port)))
        self.disk = self.stack.enter_context(DiskFaults(self.folder / "disk"))
        return self

    def __exit__(self, *_):
        self.stack.close()

    def pool(self, **kwargs):
        flags = [*self.s3.flags(port=self.proxy.port), "--cache-max-bytes", CACHE_BYTES, "--routing", "round_robin"]
        env = kwargs.pop("env", {}) | self.s3.env() | self.disk.env()
        return Pool(self.folder / "pool", flags=flags, env=env, **kwargs)

    # --- what befalls

    def run(self, stopping):
        # By two threads: faults of the store and of the disk overlap.
        both = [threading.Thread(target=self._phases, args=(stopping, kinds, begin, end, random.Random(f"{name} {self.seed}")), daemon=True)
                for name, kinds, begin, end in (("store", self.STORE, self._spoil_store, self._heal_store),
                                                ("disk", self.DISK, self._spoil_disk, self.disk.heal))]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()

    def _phases(self, stopping, kinds, begin, end, draw):
        left = []
        while not stopping.wait(draw.uniform(0.5, 2.0)):
            left = left or draw.sample(kinds, len(kinds))  # each kind before any comes again
            kind, began = left.pop(), time.monotonic()
            begin(kind, draw)
            stopping.wait(draw.uniform(*self.phase_s))
            end()
            self.log.append((kind, began, time.monotonic()))

    def _spoil_store(self, kind, draw):
        if kind == "outage":
            self.proxy.fault = Refuse()
            return
        share, kinds, slow_s = {"bad weather": (0.1, Weather.KINDS, 1.0), "worse weather": (0.5, Weather.KINDS, 1.0),
                                "slow": (1.0, ("slow",), 0.6)}[kind]
        self.weathers.append(Weather(draw.random(), share, kinds, slow_s))
        self.proxy.fault = self.weathers[-1]

    def _heal_store(self):
        self.proxy.fault = None

    def _spoil_disk(self, kind, draw):
        match kind:
            case "no space":
                self.disk.fail(write=errno.ENOSPC)
            case "errors of writes":
                self.disk.fail(write=errno.EIO)
            case "errors of reads":
                self.disk.fail(read=errno.EIO)
            case "read only":
                self.disk.fail(write=errno.EROFS)
            case "half of all calls fail":
                self.disk.fail(read=errno.EIO, write=errno.EIO, share=0.5)
            case "slow disk":
                self.disk.fail(delay_us=20_000)
            case "cache directory removed":
                for cache in self.folder.glob("pool/nodes/*/cache"):
                    shutil.rmtree(cache, ignore_errors=True)

    # --- what is judged

    def excused(self, began, ended, code, grace_s):
        """A fault of the store may fail a statement, in its own words. One of the cache's disk fails none."""
        return code in STORE_CODES and any(
            began <= end + grace_s and ended >= start for kind, start, end in self.log if kind in self.STORE)

    def cache_modes(self, pool):
        """Of each node's cache, as the gateway heard: 0 is well."""
        text = pool.request("GET", "/metrics").text
        return [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("roost_cache_disk_mode{")]

    def figures(self):
        befallen = {}
        for weather in self.weathers:
            for kind, count in weather.count.items():
                befallen[kind] = befallen.get(kind, 0) + count
        reads, writes = self.disk.count()
        phases = {kind: sum(1 for entry in self.log if entry[0] == kind) for kind in (*self.STORE, *self.DISK)}
        return ("Faults: " + ", ".join(f"{kind} {count} ×" for kind, count in phases.items()) + ". Requests in bad weather: " +
                ", ".join(f"{kind} {count}" for kind, count in sorted(befallen.items())) +
                f". Calls of the cache that failed: {reads} reads, {writes} writes.")
