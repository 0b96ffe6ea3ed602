"""test_abuse: clients that leave, and more of them than can be served: nobody else is disturbed."""
import socket
import struct
import unittest

from support import Case, Raw, Server, head_of, wait_until

PATH = "/v1/attention"
HEAD = head_of(PATH, 80000)


class Leaving(Case):
    """Clients that go away in the middle hold nothing from then on, in a house that is small."""

    def abort(self, server, data, how):
        """Sends and leaves in one breath: by closing, by a reset, or by half-closing first."""
        raw = Raw(server)
        raw.send(data)
        if how == "reset":
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if how == "half":
            raw.socket.shutdown(socket.SHUT_WR)
        return raw.socket if how == "half" else raw.socket.close()

    def test_aborted_uploads_hold_no_connection(self):
        """The reaper would find them twice a second: of 20 connections they would take all."""
        server = Server(None, "--max-connections", "20")
        self.addCleanup(server.stop)
        statuses = []
        for turn in range(100):
            for data in (HEAD + b" " * 20000, HEAD + b"{" + b" " * 60000, HEAD[:40]):
                self.abort(server, data, ("close", "reset")[turn % 2])
            statuses.append(server.get("/healthz").status)
        self.assertEqual(statuses, [200] * 100)
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))

    def test_half_closed_uploads_are_let_go(self):
        """Long before any deadline."""
        server = Server(None, "--max-connections", "20", "--header-timeout-ms", "600000",
                        "--body-timeout-ms", "600000")
        self.addCleanup(server.stop)
        before = server.descriptors()
        for data in (HEAD + b" " * 20000, HEAD[:40], b"", HEAD + b"{" + b" " * 79000):
            held = [self.abort(server, data, "half") for _ in range(15)]
            self.assertTrue(wait_until(lambda: server.descriptors() <= before + 1), len(data))
            for one in held:
                one.close()
        self.assertEqual(server.get("/healthz").status, 200)

    def test_pipelined_requests_before_the_end_are_answered(self):
        server = Server()
        self.addCleanup(server.stop)
        body = b'{"queries":[[' + b",".join([b"[1,0,0,1]"] * 300) + b"]]}"
        post = head_of(PATH, len(body)) + body
        for count in (1, 3, 20):
            with Raw(server) as raw:
                raw.send((post + head_of("/healthz", method="GET")) * count)
                raw.socket.shutdown(socket.SHUT_WR)
                self.assertEqual([raw.answer().status for _ in range(2 * count)], [200] * 2 * count)
                self.assertIsNone(raw.answer())


if __name__ == "__main__":
    unittest.main()
