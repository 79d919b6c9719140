"""Network namespaces of a bench script, with what runs in them.

All of it ends with the script, whatever ends that: every process is sent SIGKILL by the kernel (PR_SET_PDEATHSIG).
"""

import pathlib
import shutil
import subprocess
import tempfile

BOUND = ["setpriv", "--pdeathsig", "KILL"]


class Failed(RuntimeError):
    """A command in a namespace has failed."""


class Nodes:
    """A folder, and network namespaces with a /run of their own; removed with this object's processes."""

    def __init__(self, prefix):
        self.holders = {}
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix))

    def __enter__(self):
        try:
            self.build()
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for holder in self.holders.values():
            holder.kill()
            holder.wait()
        shutil.rmtree(self.folder)

    def hold(self, node):
        """Makes a namespace."""
        script = "mount -t tmpfs tmpfs /run; echo up; exec sleep infinity"
        words = [*BOUND, "unshare", "--net", "--mount", "sh", "-c", script]
        holder = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.holders[node] = holder
        if holder.stdout.readline() != "up\n":
            raise Failed(f"no network namespace: {holder.stderr.read().strip()}")
        self.run(node, "ip", "link", "set", "lo", "up")

    def inside(self, node, *words):
        return [*BOUND, "nsenter", "--target", str(self.holders[node].pid), "--net", "--mount", *words]

    def run(self, node, *words, **options):
        done = subprocess.run(self.inside(node, *words), capture_output=True, text=True, **options)
        if done.returncode != 0:
            raise Failed(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def start(self, node, *words, **options):
        words = self.inside(node, *words)
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
