"""test_lines: `attend run --lines`: a request a line, an answer a line, in order, with bounded memory."""
import contextlib
import fcntl
import json
import os
import random
import struct
import subprocess
import tempfile
import termios
import threading
import unittest

from support import BIN, MODE, PATIENCE, TOY, Case, Server, attend, clean_environment, randoms, wait_until

UNDER_WAY = 4  # of server/command/command_lines.c
WORKERS = 3
GOOD = b'{"queries":[[1,0,0,1]]}'
F_GETPIPE_SZ = 1032


def lines(*requests):
    return b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in requests)


def run(data, *words, model="demo", **options):
    """(exit status, the answers' lines, standard error)"""
    status, out, err = attend("run", model, "--lines", f"--workers={WORKERS}", *words, data=data, **options)
    return status, out.splitlines(), err


def popen(*words, model="demo", **options):
    return subprocess.Popen([BIN, "run", model, "--lines", f"--workers={WORKERS}", *words], env=clean_environment(),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


class Lines(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = Server({"max_body_bytes": 1 << 20})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def answered(self, requests, model="demo", what="attention"):
        """What HTTP gives."""
        with contextlib.closing(self.server.connect()) as connection:
            return [self.server.post(f"/v1/models/{model}/{what}", request, connection=connection).body
                    for request in requests]

    def problem(self, body, line, model="demo"):
        """HTTP's problem without the member for OpenAI's clients, and the line's number."""
        problem = self.server.post(f"/v1/models/{model}/attention", body).json
        del problem["error"]
        return dict(problem, line=line)

    def test_in_order_whatever_takes_longer(self):
        """Tiny requests, which the reading thread computes, between those of the workers."""
        rng = random.Random(1)
        requests = [{"queries": randoms(rng, 1, rng.choice((1, 1, 1, 8, 24)), 512)} for _ in range(60)]
        status, out, err = run(lines(*requests), model="base")
        self.assertEqual((status, err.count("refused")), (0, 0))
        self.assertEqual(out, self.answered(requests, "base"))

    def test_ten_thousand_small_ones(self):
        requests = [{"queries": [[1, 0, i % 100, i // 100]], "return_attention": True} for i in range(10_000)]
        status, out, _ = run(lines(*requests))
        self.assertEqual((status, len(out)), (0, 10_000))
        for i in range(0, 10_000, 997):
            self.assertEqual([out[i]], self.answered([requests[i]]), i)
        self.assertEqual(out, [line for block in range(0, 10_000, 2500)
                               for line in run(lines(*requests[block:block + 2500]))[1]])

    def test_refused_ones_between(self):
        """A problem has its place, and the number of its line, blank ones counted."""
        bad = [b'{"queries":[[1,0,0]]}', b"[", b"nonsense", b'{"queries":[[1e38,1e38,1e38,1e38]]}', b"\0",
               b'{"queries":[[1,0,0,1]]} 1']
        data = lines(*(line for request in bad for line in (GOOD, b"", request, b" \t\r")))
        status, out, err = run(data)
        self.assertEqual((status, len(out)), (1, 2 * len(bad)))
        self.assertEqual(err.splitlines()[-1], "attend: 6 of 12 requests were refused")
        self.assertEqual(out[0::2], self.answered([GOOD]) * len(bad))
        for i, request in enumerate(bad):
            self.assertEqual(json.loads(out[2 * i + 1]), self.problem(request, 4 * i + 3))

    def test_blank_lines_and_no_newline_at_the_end(self):
        right = self.answered([GOOD])
        for data, count in ((b"", 0), (b"\n", 0), (b"\n \r\n\t\n", 0), (GOOD, 1), (GOOD + b"\r\n", 1),
                            (b"\n" + GOOD + b"\n\n" + GOOD, 2), (GOOD + b"\n ", 1)):
            with self.subTest(data):
                self.assertEqual(run(data), (0, right * count, ""))

    def test_long_lines(self):
        """One that is just short enough, ones that are not, the last without its end."""
        limit = 1000
        blanks = GOOD + b" " * (limit - len(GOOD))
        for longer in (1, 2, 300_000):
            with self.subTest(longer=longer):
                status, out, _ = run(lines(blanks, blanks + b" " * longer, GOOD) + b"x" * (limit + longer),
                                     f"--max-body-bytes={limit}")
                right, told = self.answered([GOOD])[0], [json.loads(line) for line in out[1::2]]
                self.assertEqual((status, out[0::2]), (1, [right, right]))
                self.assertEqual([(p["status"], p["limit"], p["line"]) for p in told],
                                 [(413, "max_body_bytes", 2), (413, "max_body_bytes", 4)])

    def test_heads(self):
        requests = [TOY, {"queries": TOY["queries"]}]
        self.assertEqual(run(lines(*requests), "--heads"), (0, self.answered(requests, what="heads"), ""))

    def test_a_file_and_what_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "requests")
            with open(path, "wb") as file:
                file.write(lines(GOOD, GOOD))
            self.assertEqual(run(None, path), (0, self.answered([GOOD] * 2), ""))
            self.assertEqual(run(None, folder), (1, [], "attend: cannot read the requests: Is a directory\n"))
        status, out, err = run(GOOD, "--binary")
        self.assertEqual((status, out, len(err.splitlines())), (2, [], 1))
        self.assertIn("--lines are of JSON", err)
        self.assertEqual(run(GOOD, model="none")[0], 2)

    def test_what_is_read_before_a_failure_is_answered(self):
        """Of a line that the failure cuts off nothing is taken."""
        master, slave = os.openpty()  # the reader of the one gets an error when the other is closed
        with subprocess.Popen([BIN, "run", "demo", "--lines"], env=clean_environment(), stdin=master,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            os.close(master)
            os.write(slave, GOOD + b'\n{"queries":')
            first = process.stdout.readline()
            os.close(slave)
            rest, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((first, rest), (self.answered([GOOD])[0] + b"\n", b""))
        self.assertEqual((process.returncode, err), (1, b"attend: cannot read the requests: Input/output error\n"))

    def test_nothing_is_read_when_nothing_can_be_written(self):
        """With SIGPIPE as it is, the program ends by it; where that is ignored, it says why it ends."""
        for ignored in (False, True):
            with self.subTest(ignored=ignored):
                with popen(restore_signals=not ignored) as process:
                    process.stdout.close()
                    try:
                        for _ in range(100_000):
                            process.stdin.write(GOOD + b"\n")
                        self.fail("it reads on")
                    except BrokenPipeError:
                        pass
                    err = process.stderr.read().decode()
                    process.stdin = None  # closing it would flush
                self.assertEqual(process.returncode, 1 if ignored else -13)
                self.assertEqual("attend: cannot write the answer: Broken pipe\n" in err, ignored)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BIN, "run", "demo", "--lines"], input=lines(GOOD, GOOD), stdout=full,
                                  stderr=subprocess.PIPE, env=clean_environment(), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No space left on device", done.stderr)

    def test_line_by_line(self):
        """An answer comes although the next line does not, also where a worker computes it."""
        big = {"queries": randoms(random.Random(2), 1, 24, 512)}
        right = self.answered([big], "base")[0]
        with popen(model="base") as process:
            for _ in range(5):
                process.stdin.write(lines(big)[:-5])
                process.stdin.flush()
                process.stdin.write(lines(big)[-5:])
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), right + b"\n")
            process.stdin.close()
            self.assertEqual((process.stdout.read(), process.wait(PATIENCE)), (b"", 0))

    def test_no_more_is_taken_than_is_under_way(self):
        """While no answer is read, the lines wait in front of the program."""
        line = lines({"queries": randoms(random.Random(3), 1, 24, 512)})
        most = (UNDER_WAY * WORKERS + 2) * len(line) + (1 << 20)  # and what the reader's buffer and the pipe hold
        count = 2 * most // len(line)
        sent = []

        def send(process):
            for _ in range(count):
                process.stdin.write(line)
                process.stdin.flush()
                sent.append(len(line))
            process.stdin.close()

        def is_full(process):
            held = struct.unpack("i", fcntl.ioctl(process.stdout, termios.FIONREAD, b"    "))[0]
            with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
                asleep = file.read().rpartition(")")[2].split()[0] == "S"
            return asleep and held > fcntl.fcntl(process.stdout, F_GETPIPE_SZ) - 4096

        with popen(model="base") as process:
            sender = threading.Thread(target=send, args=[process])
            sender.start()
            self.assertTrue(wait_until(lambda: is_full(process)))
            self.assertLess(sum(sent), most)
            out = process.stdout.read().splitlines()
            sender.join(PATIENCE)
            self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual((len(out), len(set(out))), (count, 1))

    def test_those_that_do_not_fit_together_follow_each_other(self):
        """The memory budget refuses what is too large alone, and nothing else."""
        rng = random.Random(4)
        one = {"queries": randoms(rng, 1, 24, 512)}
        large = {"queries": randoms(rng, 1, 200, 512)}
        right = self.answered([one], "base")[0]
        status, out, err = run(lines(*[one] * 20, large, *[one] * 20), "--memory-budget-bytes=700000", model="base")
        self.assertEqual(out[:20] + out[21:], [right] * 40)
        self.assertEqual((json.loads(out[20])["limit"], json.loads(out[20])["line"]), ("memory_budget_bytes", 21))
        self.assertEqual((status, err), (1, "attend: 1 of 41 requests were refused\n"))

    def test_nor_are_those_refused_whose_check_takes_long(self):
        """They would be a worker's where the thread has other connections; here all memory is taken by one thread."""
        one = {"queries": [[[1, 0, 2, 0.5] * 128] * 480], "mask": [[1] * 480] * 480, "return_attention": True}
        many = 6 if MODE == "release" else 3
        status, out, err = run(lines(*[one] * many), "--memory-budget-bytes=48000000", model="base")
        self.assertEqual((status, err, [b'"outputs"' in line for line in out]), (0, "", [True] * many))
        self.assertEqual(len(set(out)), 1)

    def test_a_short_queue(self):
        requests = [{"queries": randoms(random.Random(5), 1, 24, 512)}] * 20
        self.assertEqual(run(lines(*requests), "--max-queue=1", model="base"),
                         (0, self.answered(requests[:1], "base") * 20, ""))


if __name__ == "__main__":
    unittest.main()
