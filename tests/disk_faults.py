"""Faults of the disk under the cache of a pool's nodes, by a library loaded before theirs (disk_faults.c): errors of reads and
writes, a disk that is slow. It touches files in nodes/N/cache alone.

    with DiskFaults(tmp_path) as disk:
        Pool(tmp_path / "pool", env=disk.env())
        disk.fail(write=errno.ENOSPC)
        disk.heal()
"""

import mmap
import pathlib
import struct
import subprocess

LAYOUT = struct.Struct("=iiiiII")
SOURCE = pathlib.Path(__file__).with_name("disk_faults.c")


class DiskFaults:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.library, self.control = folder / "disk_faults.so", folder / "disk_faults.control"
        subprocess.run(["clang-16", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", self.library, SOURCE, "-ldl"], check=True)
        self.control.write_bytes(bytes(mmap.PAGESIZE))
        self._file = open(self.control, "r+b")
        self._page = mmap.mmap(self._file.fileno(), mmap.PAGESIZE)

    def env(self):
        return {"LD_PRELOAD": str(self.library), "DISK_FAULTS_CONTROL": str(self.control)}

    def fail(self, read=0, write=0, share=1.0, delay_us=0):
        """Error numbers of reads and writes, and the share of calls that get them."""
        _, _, _, _, reads, writes = LAYOUT.unpack_from(self._page)
        LAYOUT.pack_into(self._page, 0, read, write, int(share * 1000), delay_us, reads, writes)

    def heal(self):
        self.fail()

    def count(self):
        """How many reads and writes failed since the start."""
        return LAYOUT.unpack_from(self._page)[4:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.heal()
        self._page.close()
        self._file.close()
