"""test_bits: one request, one answer, bit for bit: whatever else runs, however the body is cut."""
import json
import os
import random
import shutil
import tempfile
import threading
import unittest

from support import (MODE, Case, Layer, Raw, Server, attend, chunked, head_of, randoms)

LAYERS = {"small": Layer(11, 20, 5), "wide": Layer(12, 96, 4, kv_heads=2),
          "split": Layer(13, 24, 3, projection="none"),
          "additive": Layer(14, 24, 2, score="additive", score_size=9),
          "bilinear": Layer(15, 30, 3, score="bilinear", projection="grouped"),
          "sigmoid": Layer(16, 16, 2, weighting="sigmoid")}


def body_of(name, q, k, draw, **extra):
    """A request of two items (or of as many as q has) as bytes."""
    layer, rng = LAYERS[name], random.Random(draw)
    qs = q if isinstance(q, list) else [q, q]
    ks = k if isinstance(k, list) else [k] * len(qs)
    request = {"queries": [randoms(rng, n, layer.query_size) for n in qs],
               "keys": [randoms(rng, n, layer.query_size) for n in ks],
               "values": [randoms(rng, n, layer.query_size) for n in ks]}
    return json.dumps(dict(request, **extra), separators=(",", ":")).encode()


BODIES = [
    ("small", body_of("small", 4, 6, 1, valid_lens=[6, 2])),
    ("small", body_of("small", [1], [3], 2)),
    ("small", body_of("small", [5, 0, 9], [2, 4, 70], 3, causal=True, causal_offset="end")),
    ("wide", body_of("wide", 3, 65, 4, valid_lens=[65, 40])),
    ("wide", body_of("wide", [70], [130], 5)),
    ("wide", body_of("wide", [1] * 5, [7, 1, 64, 2, 9], 6)),
    ("split", body_of("split", 6, 40, 7, window=[5, 2])),
    ("additive", body_of("additive", [1, 40], [90, 7], 8, return_pointers=True)),
    ("bilinear", body_of("bilinear", [66, 3], [20, 70], 9, select="hard", head_mask=[1, 0, 2])),
    ("sigmoid", body_of("sigmoid", [5, 20], [3, 130], 10)),
    ("wide", body_of("wide", [70, 2], [65, 30], 11, select="sample", seed=5, return_pointers=True)),
    ("small", body_of("small", [20, 3], [70, 9], 12, segments=[[1, 0, 66, 3], [9]])),
]
FIELDS = {"outputs", "attention_weights", "segment_weights", "pointers"}  # of an answer
# Measuring heads takes steps of its own.
HEADS = [(name, body) for name, body in BODIES if b"return_pointers" not in body]


class Bits(Case):
    """Every variant of a request must give the bytes that it gives alone on one worker."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")
        cls.config = {"models": {n: l.definition(cls.folder, n) for n, l in LAYERS.items()}}
        server = cls.serve("--workers", "1")
        cls.alone = [server.attend(body, name) for name, body in BODIES]
        cls.measured = [server.post(f"/v1/models/{name}/heads", body) for name, body in HEADS]
        server.stop()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def serve(cls, *args):
        return Server(cls.config, *args, folder=cls.folder)

    def compare(self, server, connection=None):
        for (name, body), alone in zip(BODIES, self.alone):
            self.assertEqual(alone.status, 200, alone)
            answer = server.attend(body, name, connection=connection)
            self.assertEqual(answer.status, 200, answer)
            self.assertEqual(answer.body, alone.body)
        for (name, body), alone in zip(HEADS, self.measured):
            self.assertEqual(alone.status, 200, alone)
            answer = server.post(f"/v1/models/{name}/heads", body, connection=connection)
            self.assertEqual(answer.body, alone.body)

    def test_repeated(self):
        server = self.serve()
        connection = server.connect()
        for _ in range(3):
            self.compare(server)
            self.compare(server, connection)
        connection.close()
        server.stop()

    def test_any_number_of_workers(self):
        for workers in (1, 2, 4):
            for merge in ("true", "false"):
                with self.subTest(workers=workers, merge=merge):
                    server = self.serve("--workers", str(workers), f"--merge={merge}")
                    self.compare(server)
                    server.stop()

    def test_while_others_are_served(self):
        for args in (["--workers", "1"], ["--workers", "4"], ["--workers", "2", "--merge=false"]):
            with self.subTest(args):
                server = self.serve(*args)
                self.under_load(server)
                server.stop()

    def under_load(self, server):
        wrong, stop = [], threading.Event()
        noise = [(name, body_of(name, q, k, 100 + q)) for name in LAYERS
                 for q, k in ((1, 2), (9, 30), (40, 80))]

        def other(seed):
            rng, connection = random.Random(seed), server.connect()
            while not stop.is_set():
                if rng.random() < 0.5:
                    name, body = rng.choice(noise)
                    if server.attend(body, name, connection=connection).status != 200:
                        wrong.append("noise refused")
                else:
                    i = rng.randrange(len(BODIES))
                    name, body = BODIES[i]
                    if server.attend(body, name, connection=connection).body != self.alone[i].body:
                        wrong.append(f"request {i} differs under load")
            connection.close()

        threads = [threading.Thread(target=other, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        try:
            for _ in range({"release": 6, "tsan": 1}.get(MODE, 2)):
                self.compare(server)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])

    def test_body_cut_into_chunks(self):
        server = self.serve()
        for (name, body), alone in zip(BODIES, self.alone):
            path = f"/v1/models/{name}/attention"
            for sizes in ([1], [2], [3], [7], [1, 63, 64, 65], [509], [4096], [16384], [1 << 20]):
                if len(body) // sizes[-1] > 50000:
                    continue
                with self.subTest(name=name, sizes=sizes), Raw(server) as raw:
                    raw.send(head_of(path, None, "Transfer-Encoding: chunked"))
                    raw.send(chunked(body, sizes))
                    answer = raw.answer()
                    self.assertEqual((answer.status, answer.body), (200, alone.body))
        server.stop()

    def test_body_in_separate_packets(self):
        server = self.serve()
        name, body = BODIES[0]
        for size in (1, 17, 1000):
            with self.subTest(size), Raw(server) as raw:
                raw.send(head_of(f"/v1/models/{name}/attention", len(body)))
                limit = 600 if size == 1 else len(body)  # the rest at once
                for at in range(0, limit, size):
                    raw.send(body[at:min(at + size, limit)])
                raw.send(body[limit:])
                self.assertEqual(raw.answer().body, self.alone[0].body)
        server.stop()

    def test_with_and_without_weights(self):
        server = self.serve("--workers", "2")
        for name, body in BODIES:
            bare = server.attend(body, name).body
            outputs = bare[bare.index(b'"outputs":'):bare.index(b"]]]") + 3]
            self.assertTrue(outputs)
            for form in (b"true", b'"average"', b"false"):
                asked = body[:-1] + b',"return_attention":' + form + b"}"
                answer = server.attend(asked, name)
                self.assertEqual(answer.status, 200, answer)
                self.assertIn(outputs, answer.body)
        server.stop()

    def test_run_without_a_socket(self):
        path = os.path.join(self.folder, "run.json")
        with open(path, "w") as file:
            json.dump(self.config, file)
        for (name, body), alone in zip(BODIES, self.alone):
            status, out, err = attend("run", name, "--config", path, data=body)
            self.assertEqual((status, out.rstrip(b"\n")), (0, alone.body), err)

    def test_items_alone_and_together(self):
        """An item's rows do not depend on the other items of its batch."""
        server = self.serve("--workers", "2")
        request = json.loads(body_of("wide", [3, 1, 70, 2], [5, 64, 66, 1], 9))
        together = server.attend(request, "wide").json["outputs"]
        for i in range(4):
            single = {field: rows[i:i + 1] for field, rows in request.items()}
            self.assertEqual(server.attend(single, "wide").json["outputs"][0], together[i])
        server.stop()

    def test_queries_alone_and_together(self):
        """Nor on the other queries of its item: any cut of them gives the same text, whatever is
        seen, added, chosen or asked for. (OpenBLAS's products do depend on the rows beside.)"""
        server = self.serve("--workers", "2", "--gemm", "packed")
        rng = random.Random(21)
        for name, q, k, extra in self.cuts(rng):
            whole = json.loads(body_of(name, [q], [k], 22, return_attention=True, **extra))
            whole.update(causal_offset=[k - q], causal=True)
            together = self.numbers(server, whole, name)
            at, parts = 0, []
            while at < q:
                to = min(q, at + rng.choice((1, 1, 2, 3, 5, 20)))
                parts.append(self.numbers(server, self.some_queries(whole, at, to), name))
                at = to
            for field in FIELDS & together.keys():
                by_head = field != "outputs"
                joined = [row for part in parts for row in self.rows(part[field], by_head)]
                self.assertEqual(joined, self.rows(together[field], by_head), (name, field))
        server.stop()

    @staticmethod
    def cuts(rng):
        for name in LAYERS:
            yield name, 9, 70, {"return_pointers": True}
            yield name, 40, 50, {"window": [30, 1], "select": "hard"}
            bias = [[[rng.uniform(-2, 2) for _ in range(66)] for _ in range(20)]]
            mask = [[[rng.random() < 0.6 for _ in range(66)] for _ in range(20)]]
            yield name, 20, 66, {"bias": bias, "mask": mask, "empty_rows": "uniform"}
            if name != "sigmoid":
                yield name, 12, 90, {"segments": [[20, 65, 5]]}

    @staticmethod
    def some_queries(whole, at, to):
        cut = {name: [whole[name][0][at:to]] for name in ("queries", "bias", "mask") if name in whole}
        return dict(whole, causal_offset=[whole["causal_offset"][0] + at], **cut)

    @staticmethod
    def rows(numbers, by_head):
        """Of one item, [q, ...] or [h, q, ...], what belongs to each query."""
        return list(zip(*numbers[0])) if by_head else numbers[0]

    def numbers(self, server, request, name):
        """The answer, with its numbers as they are written."""
        answer = server.attend(request, name)
        self.assertEqual(answer.status, 200, answer)
        return json.loads(answer.body, parse_float=str, parse_int=str)


if __name__ == "__main__":
    unittest.main()
