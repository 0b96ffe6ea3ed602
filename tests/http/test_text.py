"""test_text: texts in the place of tokens, and tokenizers alone: every form, what is told, every mistake."""
import contextlib
import json
import os
import shutil
import tempfile
import unittest

from support import GOLDEN, ROOT, Case, Raw, Server, ServerCase, attend, wait_until

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "##s", "on", "mat", ".", "a", "##b", "é", "un", "##able"]
GPT2 = {"type": "BPE", "vocab": {piece: i for i, piece in enumerate(
    ["h", "e", "l", "o", "Ġ", "w", "r", "d", "Ã", "©", "he", "ll", "hell", "hello", "Ġw", "or", "Ġwor", "ld", "Ġworld",
     "<|end|>"])}, "merges": ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld"]}
LETTERS = {"model": GPT2, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
           "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
           "added_tokens": [{"id": 19, "content": "<|end|>", "special": True}]}
SIZES = {"layers": 2, "width": 16, "heads": 2, "feed_forward": 32, "vocabulary": 20}
RANDOM = {"transformer": {"random": {"seed": 1}}}


class Text(ServerCase):
    @classmethod
    def start(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.words, cls.letters = (os.path.join(cls.folder.name, name) for name in ("words", "letters"))
        os.makedirs(cls.words)
        with open(os.path.join(cls.words, "vocab.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(WORDS) + "\n")
        os.makedirs(cls.letters)
        with open(os.path.join(cls.letters, "tokenizer.json"), "w", encoding="utf-8") as file:
            json.dump(LETTERS, file)
        return Server({"models": {
            "bert": dict(RANDOM, **SIZES, kind="encoder", tokenizer=cls.words, positions="learned", max_positions=8),
            "gpt": dict(RANDOM, **SIZES, kind="decoder", tokenizer=cls.letters, end=19),
            "pair": dict(RANDOM, **SIZES, kind="seq2seq", tokenizer=cls.letters, end=19),
            "naked": dict(RANDOM, **SIZES, kind="decoder"),
            "bare": dict(RANDOM, **SIZES, kind="encoder")}})

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def ask(self, model, what, **request):
        return self.ok(self.server.post(f"/v1/models/{model}/{what}", request))

    def refused(self, model, what, pointer, words, status=400, slug="invalid-request", **request):
        problem = self.problem(self.server.post(f"/v1/models/{model}/{what}", request), status, slug, pointer)
        self.assertIn(words, problem["detail"])

    # --- a tokenizer alone ---

    def test_tokens_of_texts(self):
        answer = self.ask("bert", "tokenize", text="The cats, unable.")
        self.assertEqual(answer, {
            "model": "bert", "tokens": [2, 4, 5, 7, 1, 14, 15, 10, 3],
            "strings": ["[CLS]", "the", "cat", "##s", "[UNK]", "un", "##able", ".", "[SEP]"],
            "offsets": [[0, 0], [0, 3], [4, 7], [7, 8], [8, 9], [10, 12], [12, 16], [16, 17], [0, 0]],
            "byte_offsets": [[0, 0], [0, 3], [4, 7], [7, 8], [8, 9], [10, 12], [12, 16], [16, 17], [0, 0]]})
        answer = self.ask("bert", "tokenize", text=["É cat", ""], special_tokens=False)
        self.assertEqual(answer["tokens"], [[1, 5], []])  # the accent is taken off, and "e" is no piece
        self.assertEqual(answer["offsets"], [[[0, 1], [2, 5]], []])
        self.assertEqual(answer["byte_offsets"], [[[0, 2], [3, 6]], []])
        answer = self.ask("bert", "tokenize", text=[["the cat", "on a mat"]])
        self.assertEqual(answer["tokens"], [[2, 4, 5, 3, 8, 11, 9, 3]])
        self.assertEqual(answer["offsets"], [[[0, 0], [0, 3], [4, 7], [0, 0], [0, 2], [3, 4], [5, 8], [0, 0]]])
        self.assertEqual(self.ask("bert", "tokenize", text=[])["tokens"], [])

    def test_a_byte_is_a_part_of_its_character(self):
        answer = self.ask("gpt", "tokenize", text="hello é world<|end|>")
        self.assertEqual(answer["tokens"], [13, 4, 8, 9, 18, 19])
        self.assertEqual(answer["strings"], ["hello", "Ġ", "Ã", "©", "Ġworld", "<|end|>"])
        self.assertEqual(answer["byte_offsets"][2:4], [[6, 8], [6, 8]])
        self.assertEqual(answer["offsets"][2:], [[6, 7], [6, 7], [7, 13], [13, 20]])

    def test_many_tokens_of_one_place(self):
        """Of a run that no piece has, each byte's token came from all of it: its end is not counted for each."""
        count = 100_000
        made = {"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": True,
                          "vocab": [["<unk>", 0], *([f"<0x{byte:02X}>", -1] for byte in "é".encode())]}}
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as file:
                json.dump(made, file)
            with Served({"run": dict(RANDOM, **SIZES, kind="decoder", tokenizer=folder)}) as server:
                answer = self.ok(server.post("/v1/models/run/tokenize", {"text": ["é" * count, "é"]}))
        self.assertEqual(answer["tokens"], [[1, 2] * count, [1, 2]])
        self.assertEqual(answer["offsets"], [[[0, count]] * 2 * count, [[0, 1]] * 2])
        self.assertEqual(answer["byte_offsets"], [[[0, 2 * count]] * 2 * count, [[0, 2]] * 2])

    def test_cut(self):
        self.assertEqual(self.ask("bert", "tokenize", text="the cat sat on", truncate=4)["tokens"], [2, 4, 5, 3])
        self.assertEqual(self.ask("bert", "tokenize", text="the cat sat on", truncate=2)["tokens"], [2, 3])
        for what, text, most, words in (("tokenize", "the", 1, "adds 2 special tokens to each text"),
                                        ("encode", ["the"], 1, "2 special tokens"), ("tokenize", [["the", "cat"]], 2, "adds 3 special tokens to each pair")):
            self.refused("bert", what, "/truncate", words, text=text, truncate=most)
        self.assertEqual(self.ask("bert", "tokenize", text="the cat", truncate=1, special_tokens=False)["tokens"], [4])
        self.assertEqual(self.ask("bert", "tokenize", text=["the cat sat"], special_tokens=False, truncate=2)["tokens"],
                         [[4, 5]])
        self.assertEqual(self.ask("bert", "tokenize", text=[["the cat sat", "on"]], truncate=5)["tokens"],
                         [[2, 4, 3, 8, 3]])

    def test_a_models_own_length(self):
        """What `true` cuts to, and what is cut where a request says nothing: the files beside the tensors tell, and the
        definition."""
        text = "the cat sat on the mat THE CAT SAT ON THE MAT"
        endless = 10 ** 30  # as the library writes that there is no limit
        rows = ((9, {"max_seq_length": 9}, {"model_max_length": 7}), (7, {}, {"model_max_length": 7}),
                (14, None, {"model_max_length": endless}), (14, {"max_seq_length": None}, None),
                (5, {"max_seq_length": 5, "do_lower_case": True}, {"do_lower_case": False}))
        with tempfile.TemporaryDirectory() as root:
            models = {}
            for i, (_, sentences, tokens) in enumerate(rows):
                folder = os.path.join(root, str(i))
                shutil.copytree(os.path.join(GOLDEN, "models", "bert-b"), folder)
                with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
                    file.write("\n".join(WORDS) + "\n")
                for name, what in (("sentence_bert", sentences), ("tokenizer", tokens)):
                    if what is not None:
                        with open(os.path.join(folder, name + "_config.json"), "w", encoding="utf-8") as file:
                            json.dump(what, file)
                for name, truncate in (("", None), ("-all", True), ("-some", 4), ("-none", False)):
                    models[f"m{i}{name}"] = {"transformer": folder}
                    if truncate is not None:
                        models[f"m{i}{name}"]["truncate"] = truncate
            with Served(models) as server:
                def tokens(path, model, **more):
                    more = {"truncate": more["truncate"]} if more else {}
                    if path == "encode":
                        answer = server.post(f"/v1/models/{model}/encode", dict(more, text=[text], return_tokens=True))
                        return len(self.ok(answer)["tokens"][0])
                    if path == "rerank":
                        answer = server.post("/v1/rerank", dict(more, model=model, query="a", documents=[text]))
                        return self.ok(answer)["usage"]["total_tokens"] - 3
                    return self.ok(server.post("/v1/embeddings", dict(more, model=model, input=text)))["usage"]["total_tokens"]
                for i, (length, _, _) in enumerate(rows):
                    with self.subTest(i):
                        for path in ("encode", "embeddings", "rerank"):
                            self.assertEqual(tokens(path, f"m{i}", truncate=True), length, path)
                            self.assertEqual(tokens(path, f"m{i}-all"), length, path)
                            self.assertEqual(tokens(path, f"m{i}-some"), 4, path)
                            self.assertEqual(tokens(path, f"m{i}-none"), 14, path)
                            self.assertEqual(tokens(path, f"m{i}-none", truncate=3), 3, path)
                        self.assertEqual(tokens("embeddings", f"m{i}"), 14)
                        self.assertEqual(tokens("rerank", f"m{i}"), length)
                ids = {i: self.ok(server.post(f"/v1/models/m{i}/tokenize", {"text": "CAT"}))["tokens"] for i in (0, 4)}
                self.assertEqual(ids, {0: [2, 5, 3], 4: [2, 5, 3]})
            for name, what, words in (("sentence_bert_config.json", '{"max_seq_length": 0}', "max_seq_length: needs an integer from 1"),
                                      ("sentence_bert_config.json", '{"max_seq_length": "x"}', "max_seq_length: needs an"),
                                      ("sentence_bert_config.json", "{", "sentence_bert_config.json, line 1"),
                                      ("tokenizer_config.json", '{"model_max_length": 1.5}', "model_max_length: needs an")):
                folder = tempfile.mkdtemp(dir=root)
                shutil.copytree(os.path.join(root, "1"), folder, dirs_exist_ok=True)
                os.remove(os.path.join(folder, "sentence_bert_config.json"))
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(what)
                status, _, err = self.checked(root, folder)
                self.assertEqual(status, 2, err)
                self.assertIn(words, err)
            for truncate in (0, "x", 1.5, [1]):
                status, _, err = self.checked(root, os.path.join(root, "1"), truncate=truncate)
                self.assertEqual(status, 2)
                self.assertIn("truncate: needs true, false or an integer from 1", err)
            status, _, err = self.checked(root, os.path.join(root, "1"), truncate=1)
            self.assertEqual(status, 2)
            self.assertIn("truncate: too small for the 2 special tokens of each text", err)
            status, _, err = self.checked(root, os.path.join(root, "1"), truncate=True, tokenizer=False)
            self.assertEqual(status, 2)
            self.assertIn("truncate: the model has no tokenizer", err)

    def test_a_normalizer_has_a_deadline(self):
        """Each of its steps doubles the text: neither a server nor a command goes on beyond the deadline."""
        double = {"type": "Replace", "pattern": {"String": "h"}, "content": "hh"}
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "tokenizer.json"), "w", encoding="utf-8") as file:
                json.dump(dict(LETTERS, normalizer={"type": "Sequence", "normalizers": [double] * 40}), file)
            model = dict(RANDOM, **SIZES, kind="decoder", tokenizer=root)
            with Served({"m": model}) as server:
                answer = server.post("/v1/models/m/tokenize", {"text": "h"}, headers={"X-Timeout-Ms": "50"})
                self.problem(answer, 504, "deadline-exceeded")
            config = os.path.join(root, "attend.json")
            with open(config, "w", encoding="utf-8") as file:
                json.dump({"models": {"m": model}, "deadline_ms": 50}, file)
            status, _, err = attend("run", "m", "--tokenize", "--config", config, data=b'{"text":"h"}')
            self.assertEqual((status, err), (1, "attend: the deadline has passed\n"))

    def checked(self, root, folder, **more):
        path = os.path.join(root, "checked.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"models": {"m": dict(more, transformer=folder)}}, file)
        return attend("check", "--config", path)

    def test_text_of_tokens(self):
        self.assertEqual(self.ask("gpt", "detokenize", tokens=[13, 4, 8, 9, 18, 19]),
                         {"model": "gpt", "text": "hello é world<|end|>"})
        self.assertEqual(self.ask("gpt", "detokenize", tokens=[[13, 18, 19], [8], []], special_tokens=False)["text"],
                         ["hello world", "\ufffd", ""])
        self.assertEqual(self.ask("bert", "detokenize", tokens=[2, 4, 5, 7, 10, 3], special_tokens=False)["text"],
                         "the cats.")
        self.assertEqual(self.ask("gpt", "detokenize", tokens=[])["text"], [])

    def test_there_and_back(self):
        texts = ["hello world", "hell<|end|>o", " world hello", "é"]
        tokens = self.ask("gpt", "tokenize", text=texts)["tokens"]
        self.assertEqual(self.ask("gpt", "detokenize", tokens=tokens)["text"], texts)

    # --- texts that go on ---

    def detokenized(self, model, tokens):
        return self.ask(model, "detokenize", tokens=tokens, special_tokens=False)["text"] if tokens else ""

    def events(self, model, **request):
        answer = self.server.post(f"/v1/models/{model}/generate", dict(request, stream=True))
        self.assertEqual(answer.status, 200, answer)
        return [json.loads(line[len("data: "):]) for line in answer.body.decode().split("\n\n") if line]

    def test_generated_text(self):
        fed = self.ask("gpt", "tokenize", text="hello w", special_tokens=False)["tokens"]
        for seed in range(8):
            terms = {"max_tokens": 12, "temperature": 2, "returns": 3, "seed": seed}
            answer = self.ask("gpt", "generate", text="hello w", **terms)
            bare = self.ask("gpt", "generate", tokens=fed, **terms)
            told = self.ask("gpt", "generate", tokens=fed, return_text=True, **terms)
            self.assertEqual(answer, told)
            events = self.events("gpt", text="hello w", **terms)
            for sample, sequence in enumerate(answer["sequences"]):
                self.assertEqual("hello w" + sequence["text"], self.detokenized("gpt", fed + sequence["tokens"]))  # its end is special
                streamed = [e for e in events if e.get("sequence") == sample]
                self.assertEqual("".join(e.get("text", "") for e in streamed), sequence["text"])
                self.assertTrue(all("�" not in e["text"] for e in streamed[:-2]) or "�" in sequence["text"])
                del sequence["text"]
            self.assertEqual(answer, bare)

    def test_a_character_is_said_when_it_is_whole(self):
        """The bytes of é, which are two tokens, come one after the other, and so may others without their end."""
        others, seen = [i for i in range(20) if i not in (4, 8, 9)], set()
        for seed in range(8):
            events = self.events("gpt", text="hello", max_tokens=60, temperature=99, seed=seed, banned_tokens=others)
            tokens = [(4, None)] + [(e["token"], e["text"]) for e in events if "token" in e][:-1]
            for before, now in zip(tokens, tokens[1:]):
                held = before[0] == 8  # the first byte
                said = {8: "\ufffd" if held else "", 9: "é" if held else "\ufffd", 4: "\ufffd " if held else " "}
                self.assertEqual(now[1], said[now[0]], tokens)
                seen.add((held, now[0]))
        self.assertEqual(seen, {(held, token) for held in (False, True) for token in (4, 8, 9)})

    def test_a_word_list_s_text(self):
        answer = self.ask("pair", "generate", text=["hello world", "e"], beams=3, returns=2, max_tokens=5)
        for item in answer["sequences"]:
            for sequence in item:
                self.assertEqual(sequence["text"], self.detokenized("pair", sequence["tokens"]))
        targets = self.ask("pair", "generate", text="hello", targets=[13, 8], max_tokens=4, temperature=1, seed=2)
        sequence = targets["sequences"][0]
        self.assertEqual(self.detokenized("pair", [13, 8] + sequence["tokens"]).rstrip("�"),
                         ("hello" + sequence["text"]).rstrip("�"))

    def test_a_stream_behind_a_large_header(self):
        """What is left of a connection's memory then holds less than an event."""
        request = {"text": "hello", "max_tokens": 9, "return_top": 20, "banned_tokens": [19], "stop": "\x01" * 1024,
                   "stream": True}
        path, right = "/v1/models/gpt/generate", None
        for size in (0, 60000, 68000, 72000):
            answer = self.server.post(path, request, {f"X-Much-{i}": "m" * 1000 for i in range(size // 1000)})
            self.assertEqual(answer.status, 200, answer)
            right = right or answer.body
            self.assertEqual(answer.body, right)
        self.assertEqual(right.count(b'"token":'), 9 * 21)

    def test_texts_that_stop(self):
        chosen = {"max_tokens": 20, "temperature": 2, "seed": 3, "banned_tokens": [8, 9, 19]}
        whole = self.ask("gpt", "generate", text="hello", **chosen)["sequences"][0]
        text, found = whole["text"], 0
        for begin in range(len(text)):
            for stop in {text[begin:begin + 1], text[begin:begin + 2], text[begin:begin + 5]}:
                at = text.find(stop)
                terms = {**chosen, "stop": ["never there", stop]}
                answer = self.ask("gpt", "generate", text="hello", **terms)["sequences"][0]
                self.assertEqual((answer["text"], answer["finish"], answer["stop"]), (text[:at], "stop", stop))
                count = len(answer["tokens"])
                self.assertEqual(answer["tokens"], whole["tokens"][:count])
                self.assertNotIn(stop, self.detokenized("gpt", [13] + answer["tokens"][:-1])[5:])
                events = self.events("gpt", text="hello", **terms)
                self.assertEqual("".join(e.get("text", "") for e in events), text[:at])
                self.assertEqual([e["stop"] for e in events if "stop" in e], [stop])
                found += 1
        self.assertGreater(found, 10)
        alone = self.ask("gpt", "generate", text="hello", **chosen, stop=text[3])
        self.assertEqual(alone["sequences"][0]["text"], text[:text.find(text[3])])
        mute = self.ask("gpt", "generate", tokens=[13], **chosen, stop=text[3], return_text=False)["sequences"][0]
        self.assertEqual((mute["finish"], mute["stop"], mute.get("text")), ("stop", text[3], None))
        events = self.events("gpt", tokens=[13], **chosen, stop=text[3], return_text=False)
        self.assertEqual([(e["finish"], e["stop"]) for e in events if "finish" in e], [("stop", text[3])])
        self.assertFalse([e for e in events if "text" in e])

    def test_a_text_stops_from_min_tokens_on(self):
        whole = self.ask("gpt", "generate", text="hello", max_tokens=20, temperature=1, seed=3)["sequences"][0]
        first = whole["text"][0]
        late = self.ask("gpt", "generate", text="hello", max_tokens=20, temperature=1, seed=3, stop=first,
                        min_tokens=12)["sequences"][0]
        self.assertTrue(len(late["tokens"]) >= 12 and late["text"].startswith(first))

    def test_strings_of_what_was_generated(self):
        answer = self.ask("gpt", "generate", text="hello", max_tokens=6, temperature=1, seed=1, return_tokens=True)
        sequence = answer["sequences"][0]
        names = {i: piece for piece, i in GPT2["vocab"].items()}
        self.assertEqual(sequence["strings"], [names[i] for i in sequence["tokens"]])
        found = self.ask("pair", "generate", text="hello", beams=2, returns=2, max_tokens=4, return_tokens=True)
        for sequence in found["sequences"]:
            self.assertEqual(sequence["strings"], [names[i] for i in sequence["tokens"]])

    def test_text_that_is_refused(self):
        for stop in ("", [""], 7, ["a", 7], ["x"] * 17, "y" * 1025, {"a": 1}, None):
            with self.subTest(stop=stop):
                pointer = "/stop/0" if stop == [""] else "/stop/1" if stop == ["a", 7] else "/stop"
                self.refused("gpt", "generate", pointer, "stop", text="hello", stop=stop)
        self.refused("pair", "generate", "/stop", "beams", text="hello", stop="a", beams=2)
        self.refused("naked", "generate", "/stop", "no tokenizer", tokens=[1], stop="a")
        self.refused("naked", "generate", "/return_text", "no tokenizer", tokens=[1], return_text=True)
        self.refused("gpt", "generate", "/return_tokens", "stream", text="hello", return_tokens=True, stream=True)
        self.refused("gpt", "score", "/stop", "supported by", tokens=[1], targets=[2], stop="a")

    def test_a_text_that_cannot_be_made(self):
        """A decoder's expression that tries too many ways on what is generated: an error while tokens are chosen."""
        with tempfile.TemporaryDirectory() as folder:
            decoder = {"type": "Sequence", "decoders": [{"type": "Fuse"}, {
                "type": "Replace", "pattern": {"Regex": "(a+)+[cd]"}, "content": "x"}]}
            with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as file:
                json.dump({"model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "a" * 400: 2}},
                           "decoder": decoder}, file)
            server = Server({"models": {"hard": dict(RANDOM, **SIZES, kind="decoder", tokenizer=folder, end=3)}})
            self.addCleanup(server.stop)
        path, request = "/v1/models/hard/generate", {"tokens": [1], "max_tokens": 9, "banned_tokens": [0, 1, *range(3, 20)]}
        for more in ({"return_text": True}, {"stop": "b"}, {"return_text": True, "stream": True}):
            problem = self.problem(server.post(path, dict(request, **more)), 400, "invalid-request")
            self.assertIn("takes too long", problem["detail"])
        self.assertEqual(self.ok(server.post(path, request))["sequences"][0]["tokens"], [2] * 9)
        # one letter after the other it is well for a while
        short = {"tokens": [1], "max_tokens": 200, "banned_tokens": [0, *range(2, 20)], "return_text": True, "stream": True}
        answer = server.post(path, short)
        if answer.status == 200:  # the first ones were sent before it failed
            events = answer.body.decode().split("\n\n")
            self.assertTrue(events[-2].startswith("event: error\ndata: ") and "takes too long" in events[-2], events[-2])
            self.assertEqual([json.loads(event[len("data: "):])["text"] for event in events[:-2]], [""] * (len(events) - 2))
        else:
            self.problem(answer, 400, "invalid-request")

    # --- which files ---

    def one_of(self, files, **more):
        """The command's answer to one text from a model with these files: (status, tokens, what it says)."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            with open(os.path.join(folder, "attend.json"), "w", encoding="utf-8") as file:
                json.dump({"models": {"one": {**RANDOM, **SIZES, "kind": "decoder", "tokenizer": ".", **more}}}, file)
            status, out, err = attend("run", "one", "--tokenize", "--config", os.path.join(folder, "attend.json"),
                                      data='{"text": "Hello world"}'.encode())
            return status, json.loads(out)["tokens"] if out else None, err

    def test_the_files_of_a_tokenizer(self):
        vocabulary, merges = json.dumps(GPT2["vocab"]), "\n".join(["#version: 0.2", *GPT2["merges"], ""])
        framed = json.dumps({**{piece: i for piece, i in GPT2["vocab"].items() if i < 18}, "<s>": 18, "</s>": 19})
        bare = merges.replace("Ġwor ld\n", "")
        for files, right in (
                ({"words.txt": "<pad>\n<unk>\nhello\n"}, [2, 1]),
                ({"vocab.txt": "[UNK]\r\nHello\r\nhello\r\nworld\r\n"}, [2, 3]),
                ({"vocab.txt": "[UNK]\nHello\nhello\nworld\n", "tokenizer_config.json": '{"do_lower_case":false}'}, [1, 3]),
                ({"vocab.txt": "[CLS]\n[SEP]\n[UNK]\nhello\nworld"}, [0, 3, 4, 1]),
                ({"vocab.json": vocabulary.replace('"h"', '"H"'), "merges.txt": "e l\n"}, None),
                ({"vocab.json": vocabulary.replace('"h"', '"H"', 1), "merges.txt": "o r\n"}, [0, 1, 2, 2, 3, 4, 5, 15, 2, 7]),
                ({"vocab.json": framed.replace('"h"', '"H"', 1), "merges.txt": "o r"}, [18, 0, 1, 2, 2, 3, 4, 5, 15, 2, 7, 19]),
                ({"vocab.json": vocabulary, "merges.txt": bare + "o r</w>\n", "tokenizer.json": json.dumps(LETTERS)},
                 [1, 11, 3, 18])):
            with self.subTest(files=files):
                status, tokens, err = self.one_of(files)
                self.assertEqual((status, tokens), (0, right) if right else (2, None), err)

    def test_a_sentencepiece_model(self):
        """By its folder, and by its file: the first golden text, and its place in the description."""
        folder = os.path.join(ROOT, "tests", "golden", "tokenizers", "spm-bpe-bytes")
        with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
            cases = [case for case in json.load(file) if case["text"].isascii()][:20]
        for path, name in ((folder, "spiece.model"), (os.path.join(folder, "spiece.model"), "*.model")):
            definition = dict(RANDOM, **dict(SIZES, vocabulary=700), kind="decoder", tokenizer=path)
            server = Server({"models": {"one": definition}})
            self.addCleanup(server.stop)
            self.assertEqual(self.ok(server.get("/v1/models/one"))["tokenizer"], {"kind": "BPE", "file": name, "tokens": 700})
            told = self.ok(server.post("/v1/models/one/tokenize", {"text": [case["text"] for case in cases]}))
            self.assertEqual(told["tokens"], [case["ids"] for case in cases])
            back = self.ok(server.post("/v1/models/one/detokenize", {"tokens": [case["ids"] for case in cases]}))
            self.assertEqual(back["text"], [case["decoded"] for case in cases])

    def test_files_that_are_refused(self):
        for files, words in (
                ({}, "has no tokenizer.json, sentencepiece model (spiece.model"),
                ({"vocab.json": json.dumps(GPT2["vocab"]), "source.spm": ""}, "has no tokenizer.json"),
                ({"vocab.json": json.dumps(GPT2["vocab"]), "merges.txt": "o r</w>"}, "merges.txt: is not as GPT-2's"),
                ({"vocab.json": "[", "merges.txt": "o r"}, "vocab.json"),
                ({"tokenizer.json": "{}"}, "tokenizer.json: "),
                ({"words.txt": "\n".join(f"w{i}" for i in range(21))}, "words.txt: has 21 tokens, but the model has 20")):
            with self.subTest(files=files):
                status, tokens, err = self.one_of(files)
                self.assertEqual((status, tokens), (2, None), err)
                self.assertIn(words, err)
        for path in ("none.spm", "none"):
            status, _, err = self.one_of({}, tokenizer=path)
            self.assertEqual(status, 2)
            self.assertIn(f"{path}: no such file or folder", err)

    def test_a_file_that_is_refused_is_named(self):
        for files, words in (({"x.json": "{}"}, ': x.json: model: is missing'),
                             ({"x.json": "["}, 'x.json, line 1, column 1: '),
                             ({"x.spm": "\n\5"}, ': x.spm: byte 1: '),
                             ({"x.spm": "\n\t\n\5<unk>\x18\2", "config.json": '{"model_type": "bert"}'}, ': x.spm: model_type "bert" is not supported')):
            with self.subTest(files=files):
                name = next(iter(files))
                status, tokens, err = self.one_of(files, tokenizer=name)
                self.assertEqual((status, tokens), (2, None), err)
                self.assertIn(words, err)
                self.assertEqual(err.count(name), 1, err)

    def test_the_tokenizer_is_told(self):
        for model, kind, file, tokens in (("bert", "WordPiece", "vocab.txt", 16), ("gpt", "BPE", "tokenizer.json", 20)):
            self.assertEqual(self.ok(self.server.get(f"/v1/models/{model}"))["tokenizer"],
                             {"kind": kind, "file": file, "tokens": tokens})
        self.assertNotIn("tokenizer", self.ok(self.server.get("/v1/models/bare")))

    # --- in the place of tokens ---

    def test_the_same_as_tokens(self):
        """Every request that takes tokens gives the same answer to the text that they are of."""
        for model, what, text, more in (
                ("bert", "encode", ["the cat", "a"], {"pool": "mean"}), ("bert", "encode", "the cats", {}),
                ("gpt", "encode", ["hello world"], {"return_attention": True}),
                ("gpt", "score", ["hello", " world"], {"targets": [[1, 2], [3]]}),
                ("gpt", "generate", ["hello", "hell"], {"max_tokens": 4}),
                ("pair", "encode", "hello", {}), ("pair", "score", "hello world", {"targets": [1, 2]}),
                ("pair", "generate", ["hello", "w"], {"max_tokens": 3, "beams": 2})):
            with self.subTest(model=model, what=what):
                tokens = self.ask(model, "tokenize", text=text)["tokens"]
                if what == "generate":
                    more["return_text"] = True
                self.assertEqual(self.ask(model, what, text=text, **more), self.ask(model, what, tokens=tokens, **more))

    def test_tokens_are_told(self):
        told = self.ask("bert", "tokenize", text=["the cat", "a"])
        answer = self.ask("bert", "encode", text=["the cat", "a"], return_tokens=True)
        for name in ("tokens", "strings", "offsets", "byte_offsets"):
            self.assertEqual(answer[name], told[name])
        self.assertEqual(answer["outputs"], self.ask("bert", "encode", tokens=told["tokens"])["outputs"])

    def test_pairs_have_types(self):
        with Served({"two": dict(RANDOM, **SIZES, kind="encoder", tokenizer=self.words)}) as server:
            answer = self.ok(server.post("/v1/models/two/encode", {"text": [["the cat", "a mat"]], "return_tokens": True}))
            self.assertEqual(answer["tokens"], [[2, 4, 5, 3, 11, 9, 3]])

    def test_too_long(self):
        long = "the cat sat on a mat ."
        self.refused("bert", "encode", "/text", '9 tokens exceed the model\'s context length of 8: shorten the text or set "truncate": true', text=long)
        self.refused("bert", "encode", "/text/1", "9 tokens", text=["a", long])
        cut = self.ask("bert", "encode", text=long, truncate=True, return_tokens=True)
        self.assertEqual(cut["tokens"], [2, 4, 5, 6, 8, 11, 9, 3])
        self.assertEqual(len(self.ask("bert", "encode", text=long, truncate=3)["outputs"]), 3)

    def test_what_is_refused(self):
        for pointer, words, request in (
                ("/tokens", 'excludes "text"', {"text": "a", "tokens": [1]}),
                ("/embeddings", 'excludes "text"', {"text": "a", "embeddings": [[[0] * 16]]}),
                ("/valid_lens", 'excludes "text"', {"text": "a", "valid_lens": [1]}),
                ("/special_tokens", 'requires texts, not tokens', {"tokens": [1], "special_tokens": False}),
                ("/truncate", 'requires texts, not tokens', {"tokens": [1], "truncate": True}),
                ("/return_tokens", 'requires texts, not tokens', {"tokens": [1], "return_tokens": True}),
                ("/truncate", "must be true or false, or an integer", {"text": "a", "truncate": 0}),
                ("/text", "expected a string", {"text": 3}), ("/text/0", "expected a string", {"text": [3]}),
                ("/inputs", '"text"', {"inputs": "a"})):
            with self.subTest(request=request):
                self.refused("bert", "encode", pointer, words, **request)
        self.refused("bare", "encode", "/text", "this model has no tokenizer", text="a")
        self.refused("bare", "tokenize", None, "(encoder without a tokenizer)", 404, "not-found", text="a")
        self.refused("gpt", "tokenize", "/tokens", "detokenize", tokens=[1])
        self.refused("gpt", "tokenize", "/text", "is missing")
        self.refused("gpt", "tokenize", "/truncate", "an integer of at least 1", text="a", truncate=True)
        self.refused("gpt", "detokenize", "/text", "/tokenize", text="a")
        self.refused("gpt", "detokenize", "/tokens", "is missing")
        self.refused("gpt", "detokenize", "/tokens/1", "token 20 is out of range", tokens=[1, 20])
        self.refused("gpt", "detokenize", "/tokens/1/0", "token -1 is out of range", tokens=[[1], [-1]])
        answer = self.server.post("/v1/models/gpt/tokenize", {"text": "a"}, {"Accept": "application/x-safetensors"})
        self.problem(answer, 406, "not-acceptable")

    def test_texts_have_no_bytes(self):
        answer = self.server.post("/v1/models/bert/encode", {"text": "a", "return_tokens": True},
                                  {"Accept": "application/x-safetensors"})
        self.assertIn("remove \"return_tokens\"", self.problem(answer, 406, "not-acceptable")["detail"])
        answer = self.server.post("/v1/models/bert/encode", {"text": ["a cat"]}, {"Accept": "application/x-safetensors"})
        self.assertEqual(answer.status, 200, answer)

    def test_the_command(self):
        config = os.path.join(self.server.folder, "attend.json")
        status, out, err = attend("run", "gpt", "--tokenize", "--config", config, data=b'{"text":"hello"}')
        self.assertEqual((status, json.loads(out)["tokens"]), (0, [13]), err)
        status, out, err = attend("run", "gpt", "--detokenize", "--lines", "--config", config,
                                  data=b'{"tokens":[13]}\n{"tokens":[18]}\n')
        self.assertEqual([json.loads(line)["text"] for line in out.splitlines()], ["hello", " world"], err)

    def test_texts_are_counted(self):
        """Of a path of ours, of another service's words, of a tokenizer alone, and of a stream; not of what is refused."""
        names = ("attend_texts_total", "attend_text_bytes_total", "attend_text_tokens_total", "attend_text_seconds_total")
        before = [self.server.metric(name) for name in names]
        self.ask("gpt", "tokenize", text=["hello", " world"])
        self.ask("gpt", "generate", text="hello world", max_tokens=1)
        self.events("gpt", text="hello", max_tokens=1)
        self.ok(self.server.post("/v1/embeddings", {"model": "gpt", "input": "hello world"}))
        self.ask("gpt", "generate", tokens=[13], max_tokens=1)
        self.refused("gpt", "generate", "/text/0", "", text=[""])
        after = [self.server.metric(name) for name in names]
        self.assertEqual([b - a for a, b in zip(before, after)][:3], [5, 11 + 11 + 5 + 11, 2 + 2 + 1 + 2])
        self.assertGreater(after[3], before[3])

    def test_a_long_text(self):
        """A megabyte goes to a worker, and comes back."""
        text = "hello world" * 100000
        answer = self.ask("gpt", "tokenize", text=text)
        self.assertEqual(answer["tokens"], [13, 18] * 100000)
        self.assertEqual(self.ask("gpt", "detokenize", tokens=answer["tokens"])["text"], text)


class Patience(Case):
    """Tokenizing ends where the deadline passes, or the client leaves: it then takes but a part of the processor's time."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        with open(os.path.join(cls.folder.name, "tokenizer.json"), "w", encoding="utf-8") as file:
            json.dump(LETTERS, file)
        cls.server = Server({"models": {"gpt": dict(RANDOM, **SIZES, kind="decoder", tokenizer=cls.folder.name)}})
        cls.long = json.dumps({"text": ["hello world" * 1000] * 800}).encode()
        cls.word = json.dumps({"text": "l" * 4000000}).encode()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def post(self, body, **headers):
        return self.server.post("/v1/models/gpt/tokenize", body, {"X-Timeout-Ms": str(headers.get("timeout", 60000))})

    def test_the_deadline(self):
        for body in (self.long, self.word):
            begun = self.server.computed()
            self.assertEqual(self.post(body).status, 200)
            whole, begun = self.server.computed() - begun, self.server.computed()
            self.problem(self.post(body, timeout=1), 504, "deadline-exceeded")
            self.assertLess(self.server.computed() - begun, whole / 2)

    def test_the_client(self):
        for body in (self.long, self.word):
            before = self.server.metric("attend_client_aborts_total")
            with Raw(self.server) as raw:
                raw.send(b"POST /v1/models/gpt/tokenize HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                         b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self.assertTrue(wait_until(lambda: self.server.metric("attend_client_aborts_total") > before))


class Budget(Case):
    HEAD = "POST /v1/models/gpt/{} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"

    def hold(self, others, count, size):
        """Bodies that have begun, and do not end."""
        for _ in range(count):
            others.enter_context(Raw(self.server)).send(self.HEAD.format("tokenize", 10 ** 8) + '{"text":"' + size * "a")

    def goes_on(self, tokens):
        """A text to its end, while others take all the memory that is left. False: it was too short for that."""
        body = json.dumps({"text": "hello", "max_tokens": tokens, "min_tokens": tokens, "temperature": 1, "stream": True})
        with Raw(self.server) as reader, contextlib.ExitStack() as others:
            self.hold(others, 5, 4000000)
            self.assertTrue(wait_until(lambda: self.server.metric("attend_inflight_bytes") > 20000000))
            reader.send(self.HEAD.format("generate", len(body)) + body)
            while b"data: " not in reader.data:
                self.assertTrue(reader.more())
            self.hold(others, 400, 60000)
            self.assertTrue(wait_until(lambda: self.server.metric("attend_inflight_bytes") > 31900000
                                       or self.server.metric("attend_sequences") == 0))
            full = self.server.metric("attend_sequences") == 1
            while b'"usage"' not in reader.data and b"event: error" not in reader.data:
                self.assertTrue(reader.more())
            self.assertFalse(b"event: error" in reader.data, reader.data[-300:])
        self.assertTrue(wait_until(lambda: self.server.metric("attend_inflight_bytes") == 0))
        return full

    def test_a_text_that_goes_on_needs_nothing_more(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as file:
                json.dump(LETTERS, file)
            self.server = Server({"models": {"gpt": dict(RANDOM, **SIZES, kind="decoder", tokenizer=folder)}},
                                 "--memory-budget-bytes", "32000000")
            self.addCleanup(self.server.stop)
            self.assertTrue(any(self.goes_on(tokens) for tokens in (3000, 6000, 12000)))


class Served:
    """A server for a `with`."""

    def __init__(self, models, **settings):
        self.config = dict(settings, models=models)

    def __enter__(self):
        self.server = Server(self.config)
        return self.server

    def __exit__(self, *_):
        self.server.stop()


if __name__ == "__main__":
    unittest.main()
