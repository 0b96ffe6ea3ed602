"""test_turns: who comes next: a short request passes long ones, of whatever model; many texts leave room for others."""
import os
import tempfile
import threading
import unittest

import prometheus
from support import MODE, Server, ServerCase, wait_until

ENCODER = {"transformer": {"random": {"seed": 1}}, "kind": "encoder", "layers": 4, "width": 256, "heads": 4,
           "feed_forward": 1024, "vocabulary": 100}
MODELS = {"encoder": ENCODER, "other": dict(ENCODER, layers=1), "decoder": dict(ENCODER, kind="decoder")}
# Keys and values of a text take as many bytes as in `decoder`, and a token a sixteenth of the work.
NARROW = dict(ENCODER, kind="decoder", layers=32, width=32, feed_forward=32)
ITEMS = 64 if MODE == "release" else 2  # a second or two of work
BATCH = {"tokens": [[i % 100 for i in range(256)]] * ITEMS, "pool": "mean"}
SHORT = {"tokens": [[1, 2, 3]], "pool": "mean"}
KEYS = ["a-key-of-the-first", "a-key-of-the-second"]


class Asked(threading.Thread):
    """A request on a connection of its own; `answer` is there once it is over."""

    def __init__(self, server, model, body, path="encode", headers=None):
        super().__init__(daemon=True)
        self.server, self.answer = server, None
        self.path, self.body, self.headers = f"/v1/models/{model}/{path}", body, headers
        self.start()

    def run(self):
        self.answer = self.server.post(self.path, self.body, self.headers)


class Turns(ServerCase):
    @classmethod
    def start(cls):
        return Server({"models": MODELS, "workers": 1, "max_body_bytes": 1 << 26, "deadline_ms": 600000})

    def under_way(self, *asked):
        """They have begun, or wait."""
        self.assertTrue(wait_until(lambda: self.server.metric("attend_queue_depth")
                                   + self.server.metric("attend_running") >= len(asked)))

    def test_a_short_request_passes_batches(self):
        batches = [Asked(self.server, "encoder", BATCH) for _ in range(3)]
        self.under_way(*batches)
        for model in ("encoder", "other"):
            self.ok(self.server.post(f"/v1/models/{model}/encode", SHORT))
        self.ok(self.server.post("/v1/models/decoder/generate", {"tokens": [[1, 2]], "max_tokens": 3}))
        self.assertEqual([batch.answer for batch in batches], [None] * 3)
        for batch in batches:
            batch.join()
            self.ok(batch.answer)

    def test_many_texts_leave_room(self):
        texts = [[i % 7, *range(1, 60)] for i in range(300 if MODE == "release" else 24)]
        many = Asked(self.server, "decoder", {"tokens": texts, "max_tokens": 24}, "generate")
        self.under_way(many)
        self.ok(self.server.post("/v1/models/encoder/encode", SHORT))
        one = self.ok(self.server.post("/v1/models/decoder/generate", {"tokens": texts[:1], "max_tokens": 2}))
        self.assertIsNone(many.answer)
        many.join()
        sequences = self.ok(many.answer)["sequences"]
        self.assertEqual(sequences[0][0]["tokens"][:2], one["sequences"][0][0]["tokens"])
        for i in range(7, len(texts)):
            self.assertEqual(sequences[i], sequences[i - 7], i)

    def test_waits_are_counted_by_class(self):
        def waits():
            text = self.server.get("/metrics").body.decode()
            return prometheus.Scrape(text).values("attend_queue_wait_seconds_count", "class")
        before = waits()
        self.ok(self.server.post("/v1/models/encoder/encode", SHORT))
        self.ok(self.server.post("/v1/models/encoder/encode", dict(BATCH, tokens=BATCH["tokens"][:2])))
        self.assertTrue(wait_until(lambda: sum(waits().values()) == sum(before.values()) + 2))
        self.assertGreaterEqual(waits()["short"], before["short"] + 1)
        self.assertEqual(set(before), {"short", "medium", "long"})


class Memory(ServerCase):
    """Texts whose keys and values do not fit together wait for each other; one that never fits is refused."""

    @classmethod
    def start(cls):
        return Server({"models": {"decoder": NARROW}, "memory_budget_bytes": 64 << 20, "deadline_ms": 600000})

    def test_texts_wait_for_memory(self):
        texts = [[i % 7, *range(1, 60)] for i in range(110)]  # 0.7 MB each, with what comes behind
        answer = self.ok(self.server.post("/v1/models/decoder/generate", {"tokens": texts, "max_tokens": 24}))
        alone = self.ok(self.server.post("/v1/models/decoder/generate", {"tokens": texts[:7], "max_tokens": 24}))
        for i, sequence in enumerate(answer["sequences"]):
            self.assertEqual(sequence, alone["sequences"][i % 7], i)
        self.settled()

    def test_one_that_never_fits_is_refused(self):
        self.problem(self.server.post("/v1/models/decoder/generate", {"tokens": [[1], [2]], "max_tokens": 10000}),
                     413, "too-large", limit="memory_budget_bytes")
        self.settled()


class Keys(ServerCase):
    """Of two keys, one with many connections: the other's batch does not wait for all of these."""

    @classmethod
    def start(cls):
        with tempfile.NamedTemporaryFile("w", suffix=".keys", delete=False) as file:
            file.write("\n".join(KEYS) + "\n")
        cls.addClassCleanup(os.unlink, file.name)
        return Server({"models": MODELS, "workers": 1, "max_body_bytes": 1 << 26, "deadline_ms": 600000,
                       "api_key_file": file.name, "metrics_open": True})

    def test_clients_take_turns(self):
        of = [{"Authorization": f"Bearer {key}"} for key in KEYS]
        half = dict(BATCH, tokens=BATCH["tokens"][:ITEMS // 2])
        many = [Asked(self.server, "encoder", half, headers=of[0]) for _ in range(8)]
        self.assertTrue(wait_until(lambda: self.server.metric("attend_queue_depth") >= 7))
        one = Asked(self.server, "encoder", half, headers=of[1])
        one.join()
        self.assertEqual(one.answer.status, 200)
        ended = sum(each.answer is not None for each in many)
        self.assertLessEqual(ended, 5)
        for each in many:
            each.join()
            self.assertEqual(each.answer.status, 200)


if __name__ == "__main__":
    unittest.main()
