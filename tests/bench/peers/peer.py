"""peer: a service that others would build, running on a free port, which it has to say."""
import re
import socket
import subprocess
import threading
import time


def free_port():
    """For a server that cannot say which port it got."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Peer:
    """Started with `command`; ended by its own process id, which ends its workers."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, **options)
        self.lines, self.port, self.told = [], None, threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if not self.told.wait(60) or not self.answers():
            self.stop()
            raise AssertionError(f"{command[0]} did not start:\n{''.join(self.lines[-20:])}")

    def answers(self, seconds=60):
        """Does it take connections? A port may be told before."""
        end = time.monotonic() + seconds
        while self.port and time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), 5).close()
                return True
            except OSError:
                time.sleep(0.1)
        return False

    def read(self):
        for line in self.process.stdout:
            text = line.decode("utf-8", "replace")
            self.lines.append(text)
            found = re.search(r"(?:listening|running) on \S*127\.0\.0\.1:(\d+)", text)
            if found:
                self.port = int(found.group(1))
                self.told.set()
        self.told.set()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
