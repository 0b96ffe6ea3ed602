"""test_conformance: where answers differ from what a stricter reader of HTTP/1.1 would say, exactly.

Each row of the table in tests/conformance/README.md has its case here. Before its release 1.0
libmicrohttpd reads chunks by itself, and shows no byte of their framing: what it lets pass is
checked as it is, so that a change of it is noticed. From 1.0 on it may refuse that.
"""
import ctypes
import json
import os
import re
import subprocess
import sys
import time
import unittest

from support import PATIENCE, ROOT, TOY, Raw, Server, ServerCase, chunked, head_of
from test_process import Folder

BODY = json.dumps(TOY).encode()
PATH = "/v1/attention"
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = head_of(PATH, None, "Transfer-Encoding: chunked")
SIZE = b"%x" % len(BODY)
END = b"\r\n0\r\n\r\n"


def is_old():
    """Is the linked libmicrohttpd one from before 1.0?"""
    try:
        version = ctypes.CDLL("libmicrohttpd.so.12").MHD_get_version
    except OSError:
        return True
    version.restype = ctypes.c_char_p
    return version().startswith(b"0")


OLD = is_old()


class Conformance(ServerCase):
    def tearDown(self):
        self.alive()
        self.settled()

    def answers(self, data):
        """The statuses of the answers to these bytes and to a good request behind them, and whether
        the connection stays open."""
        with Raw(self.server) as raw:
            raw.send(data + GET)
            statuses = []
            while len(statuses) < 2 and (answer := raw.answer()):
                statuses.append(answer.status)
            return statuses

    def passes(self, body):
        """A chunked body that is read as if it were well-formed."""
        with self.subTest(body=body[:60]):
            statuses = self.answers(CHUNKED + body)
            self.assertIn(statuses, [[200, 200]] if OLD else [[200, 200], [400]])

    def refused(self, data, statuses):
        """One answer, then the end of the connection."""
        with self.subTest(data=data[:100]), Raw(self.server) as raw:
            answer = raw.send(data).answer()
            self.assertIn(answer.status, statuses, answer)
            self.assertTrue(raw.closed())
            self.assertNotIn(b" 200 ", raw.data)

    # --- chunks ---

    def test_ends_of_chunk_lines(self):
        for size, data, last in ((b"\n", b"\r\n", b"\r\n"), (b"\r\n", b"\n", b"\r\n"),
                                 (b"\r\n", b"\r\n", b"\n"), (b"\n", b"\n", b"\n")):
            self.passes(SIZE + size + BODY + data + b"0" + last + b"\r\n")
        self.passes(SIZE + b"\r\n" + BODY + b"\r\n0\r\n\n")
        self.refused(CHUNKED + SIZE + b"\r" + BODY + END, (400,))
        self.refused(CHUNKED + SIZE + b"\r\n" + BODY + b"\r0\r\n\r\n", (400,))
        self.refused(CHUNKED + SIZE + b"\r\n" + BODY + b"xx0\r\n\r\n", (400,))

    def test_chunk_extensions(self):
        for extension in (b";", b";;", b";a=b;c", b"; =b", b";\0", b";a\0b", b";a\rb", b";\x01\x7f",
                          b";caf\xc3\xa9", b';a="b'):
            self.passes(SIZE + extension + b"\r\n" + BODY + END)
        self.passes(SIZE + b";" + b"a" * 30000 + b"\r\n" + BODY + END)
        self.refused(CHUNKED + SIZE + b";a\nb\r\n" + BODY + END, (400,))

    def test_chunk_sizes_that_are_none(self):
        for size in (b"", b"-1", b"+1", b"0x1", b"1_0", b" 1", b"1 ", b"1\t", b"1\0", b"\0", b"g", b",",
                     b"1,2"):
            self.refused(CHUNKED + size + b"\r\n" + BODY + END, (400,))

    def test_zeros_before_a_chunk_size(self):
        for zeros in (1, 20, 5000):
            self.passes(b"0" * zeros + SIZE + b"\r\n" + BODY + END)
        self.refused(CHUNKED + b"0" * 5000 + b"g", (400,))

    def test_a_chunk_beyond_64_bits(self):
        for size in (b"1" + b"0" * 16, b"f" * 17, b"f" * 1000):
            self.refused(CHUNKED + size + b"\r\n" + BODY + END, (400, 413))

    def test_a_chunk_that_never_ends(self):
        """No size below 2^64 is refused for itself: what counts is what comes, and what does not."""
        server = Server(None, "--body-timeout-ms", "300", "--max-body-bytes", "20000")
        self.addCleanup(server.stop)
        for size in (b"8" + b"0" * 15, b"f" * 16, b"0" * 5000):
            with self.subTest(size=size[:20]), Raw(server) as raw:
                line = size + (b"\r\n" if size[0] != 48 else b"")
                self.problem(raw.send(CHUNKED + line + BODY[:-1] * (size[0] != 48)).answer(),
                             408, "too-slow")
                self.assertTrue(raw.closed())
        server = Server(None, "--body-timeout-ms", str(2000 * PATIENCE), "--max-body-bytes", "20000")
        self.addCleanup(server.stop)
        with Raw(server) as raw:
            raw.send(CHUNKED + b"8" + b"0" * 15 + b"\r\n" + b" " * 50000)
            self.problem(raw.answer(), 413, "too-large", limit="max_body_bytes")

    def test_a_chunk_line_that_never_ends(self):
        """One that is larger than libmicrohttpd's buffer, which it asks to be called for again and
        again: the thread sleeps in between, and serves others."""
        server = Server(None, "--body-timeout-ms", "3000", "--io-threads", "1")
        self.addCleanup(server.stop)
        for line in (b"0" * 300000, b"1;" + b"a" * 300000):
            with self.subTest(line=line[:2]), Raw(server) as raw:
                raw.send(CHUNKED + line)
                before, begun = server.computed(), time.monotonic()
                self.assertEqual(server.attend(TOY).status, 200)
                self.problem(raw.answer(), 408, "too-slow")
                share = (server.computed() - before) / (time.monotonic() - begun)
                self.assertLess(share, 0.2)

    # --- lengths ---

    def test_lengths_that_are_none(self):
        """libmicrohttpd refuses them itself, and says the header of its answer twice."""
        for length, status in ((b"x", 400), (b"-1", 400), (b"+5", 400), (b"", 400), (b"5 5", 400),
                               (b"0x5", 400), (b"18446744073709551616", 413), (b"9" * 30, 413)):
            data = b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: " + length
            with self.subTest(length=length), Raw(self.server) as raw:
                raw.send(data + b"\r\n\r\n" + GET)
                self.assertTrue(raw.closed())
                heads = re.findall(rb"HTTP/1\.1 (\d+)", raw.data)
                self.assertIn(heads, [[b"%d" % status] * 2] if OLD else [[b"400"], [b"413"]])

    def test_a_length_that_is_too_much(self):
        self.refused(head_of(PATH, 2 ** 64 - 1), (413,))
        self.refused(head_of(PATH, 999999999), (413,))

    # --- headers ---

    def test_an_empty_host(self):
        self.assertEqual(self.answers(b"GET /healthz HTTP/1.1\r\nHost:\r\n\r\n"), [200, 200])

    def test_two_types(self):
        more = ("Content-Type: text/plain",)
        self.refused(head_of(PATH, len(BODY), *more) + BODY, (415,))

    def test_options_of_a_path(self):
        answer = self.server.request("OPTIONS", "/")
        self.assertEqual((answer.status, answer.headers["allow"]), (405, "GET, HEAD"))
        self.refused(head_of("/", 5, method="OPTIONS") + b"hello", (405,))

    def test_a_long_method(self):
        """414, unless the reset that follows what was not read comes first."""
        with Raw(self.server) as raw:
            try:
                raw.send(b"A" * 100000 + b" / HTTP/1.1\r\nHost: x\r\n\r\n")
            except (ConnectionResetError, BrokenPipeError):
                pass
            answer = raw.answer()
            self.assertTrue(answer is None or answer.status in (400, 414), answer)
            self.assertTrue(raw.closed())

    def test_chunks_that_are_well_formed(self):
        for sizes in ([1], [7, 30], [len(BODY)]):
            self.assertEqual(self.answers(CHUNKED + chunked(BODY, sizes)), [200, 200])


SUITE = r"""
public static class OwnSuite {
    // None of this is C# that was written by others.
    private static byte[] MakeRequest(string text) => Encoding.ASCII.GetBytes(text);

    private static int Sum(string what) { var n = 0; for (var i = 0; i < 3; i++) n = n; return what.Length; }

    public static IEnumerable<TestCase> GetTestCases() {
        yield return new TestCase {
            Id = "OWN-GOOD",
            PayloadFactory = ctx => MakeRequest($"GET /healthz HTTP/1.1\r\nHost: {ctx.HostHeader}\r\n\r\n"),
            Expected = new ExpectedBehavior { ExpectedStatus = StatusCodeRange.Range2xx }
        };
        yield return new TestCase {
            Id = "OWN-UNDERSTOOD",
            PayloadFactory = _ => {
                var body = new string('a', 1_0);
                return MakeRequest($"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {body.Length}\r\n\r\n{body}");
            },
            Expected = new ExpectedBehavior {
                CustomValidator = (response, state) => {
                    if (response is null || response.StatusCode is < 200 or >= 300) return TestVerdict.Fail;
                    return state == ConnectionState.Open && response.Body == "OK" ? TestVerdict.Pass : TestVerdict.Fail;
                }
            }
        };
        yield return new TestCase {
            Id = "OWN-NEW",
            PayloadFactory = ctx => MakeRequest("GET /\x20 HTTP/1.1\r\nHost: x\r\n\r\n"),
            Expected = new ExpectedBehavior { ExpectedStatus = StatusCodeRange.Exact(200) }
        };
        yield return new TestCase { Id = "OWN-UNREAD", PayloadFactory = ctx => [] with { } };
    }

    public static IEnumerable<SequenceTestCase> GetSequenceTestCases() {
        yield return new SequenceTestCase {
            Id = "OWN-STEPS",
            Expected = new ExpectedBehavior { Description = "200, then 400" },
            Steps = [
                new SequenceStep { PayloadFactory = ctx => MakeRequest("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") },
                new SequenceStep { SendPartsFactory = ctx => [
                    new SequenceSendPart { PayloadFactory = c => MakeRequest("GET /healthz "),
                                           DelayAfter = TimeSpan.FromMilliseconds(1) },
                    new SequenceSendPart { PayloadFactory = c => MakeRequest("HTTP/1.1\r\n\r\n") } ] },
                new SequenceStep { PayloadFactory = ctx => MakeRequest("") }
            ],
            Validator = steps => {
                if (steps[2].Executed || steps[1].Response?.StatusCode != 400) return TestVerdict.Fail;
                return steps[0].Response?.StatusCode is 200 or 204 ? TestVerdict.Warn : TestVerdict.Fail;
            }
        };
    }
}
"""


class Harness(Folder):
    """tests/conformance/run, on a corpus of our own."""

    def run_it(self, status):
        run = os.path.join(ROOT, "tests", "conformance", "run")
        done = subprocess.run([sys.executable, run, self.folder], stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.STDOUT, timeout=PATIENCE, text=True)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def test_raw_files(self):
        for name, data in (("good", GET * 2), ("head", GET.replace(b"GET", b"HEAD")), ("half", GET[:-2]),
                           ("binary", bytes(range(256))), ("nothing", b"")):
            self.write(name, data)
        self.assertRegex(self.run_it(0), r": 2 answered, 3 closed\n")
        self.write("doubled", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n")
        said = self.run_it(0)
        if OLD:
            self.assertIn("DOUBLED-HEAD: doubled: an answer has its header twice\n", said)
            self.assertRegex(said, r": 3 answered, 3 closed, 1 differ as explained\n")

    def test_cases_with_rules(self):
        os.makedirs(os.path.join(self.folder, "src", "Http11Probe", "TestCases", "Suites"))
        self.write("src/Http11Probe/TestCases/Suites/OwnSuite.cs", SUITE)
        said = self.run_it(1)
        self.assertIn("OWN-NEW: 200 is expected; 400; ClosedByServer   <-- not explained\n", said)
        self.assertRegex(said, "OWN-UNREAD: not judged: ")
        self.assertRegex(said, r": 2 as expected, 1 as tolerated, 1 differ, 1 not judged\n")

    def test_no_folder(self):
        self.folder = os.path.join(self.folder, "none")
        self.assertIn("is no folder", self.run_it(1))


if __name__ == "__main__":
    unittest.main()
