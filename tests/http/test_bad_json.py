"""test_bad_json: wrong text, wrong numbers, wrong shapes: the right refusal, at the right place.

Every case is sent as the real bytes; afterwards the server must work and hold no memory of it."""
import ctypes
import json
import re
import struct
import unittest

from support import MODE, Raw, Server, ServerCase, attend, chunked, head_of, wait_until

HEADS = "/v1/models/demo/heads"
GOOD = b'{"queries":[[[1,2,3,4]]]}'


def with_query(number):
    """A request whose second number is `number`, and the byte where that starts."""
    text = number if isinstance(number, bytes) else number.encode()
    return b'{"queries":[[[1,' + text + b',3,4]]]}', 16


def problem_of_pieces(server, body):
    """The problem of a body that comes byte by byte."""
    with Raw(server) as raw:
        raw.send(head_of("/v1/attention", None, "Transfer-Encoding: chunked"))
        raw.send(chunked(body, [1]))
        return raw.answer().json


class BadJson(ServerCase):
    @classmethod
    def start(cls):
        return Server(None, "--max-body-bytes", "4194304", "--max-items", "1000",
                      "--max-pairs", "1000000", "--max-answer-bytes", "1048576")

    def tearDown(self):
        self.alive()
        self.settled()

    def invalid_json(self, body, offset=None, **options):
        with self.subTest(body=body[:60], offset=offset):
            problem = self.problem(self.server.attend(body, **options), 400, "invalid-json")
            self.assertIsInstance(problem.get("offset"), int)
            if offset is not None:
                self.assertEqual(problem["offset"], offset, problem)

    def invalid_request(self, body, pointer=None, path="/v1/attention"):
        """`pointer` is the offending value, or the first value within it that shows the offence.
        Returns the problem."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        with self.subTest(body=body[:80], pointer=pointer):
            problem = self.problem(self.server.post(path, body), 400, "invalid-request")
            if pointer is not None:
                self.assertRegex(problem.get("pointer", ""), rf"\A{re.escape(pointer)}(/\d+)*\Z")
            return problem

    # --- not JSON ---

    def test_not_json(self):
        self.invalid_json(b"", 0)
        self.invalid_json(b"   ", 3)
        self.invalid_json(b"\xef\xbb\xbf" + GOOD, 0)
        self.invalid_json(GOOD.decode().encode("utf-16-le"), 1)
        self.invalid_json(GOOD.decode().encode("utf-16"), 0)
        self.invalid_json(GOOD + b"x", len(GOOD))
        self.invalid_json(GOOD + b" {}", len(GOOD) + 1)
        self.invalid_json(GOOD + b"\0", len(GOOD))
        self.invalid_json(b"hello", 0)
        self.invalid_json(b"{queries:1}", 1)
        self.invalid_json(b'{"queries" [[1]]}', 11)
        self.invalid_json(b"{'queries':[[1]]}", 1)
        self.invalid_json(b'{"queries":[[[1,2,3,4]]],}', 25)
        self.invalid_json(b'{,"queries":[[[1,2,3,4]]]}', 1)
        self.invalid_json(b'{"queries":[[[1,2,3,4]]] "causal":true}', 25)

    def test_wrong_top_level(self):
        for body in (b"[]", b"1", b"null", b'"x"', b"true"):
            with self.subTest(body):
                self.problem(self.server.attend(body), 400, "invalid-request")

    def test_truncated_everywhere(self):
        body = (b'{"queries":[[[1.5e1,-2,3,4]]],"valid_lens":[1],"causal":true,"window":[1,2],'
                b'"return_attention":"average"}')
        for size in range(len(body)):
            answer = self.server.attend(body[:size])
            with self.subTest(size):
                problem = self.problem(answer, 400, "invalid-json")
                self.assertEqual(problem["offset"], size)
        self.ok(self.server.attend(body))

    def test_not_utf8(self):
        for bad in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"):
            self.invalid_json(b'{"queries":[[[1,2,3,4]]],"select":"' + bad + b'"}')
            self.invalid_json(b'{"' + bad + b'":1,"queries":[[[1,2,3,4]]]}')
        self.invalid_json(b'{"queries":[[[1,\xff,3,4]]]}', 16)

    def test_nul_bytes(self):
        for at in range(len(GOOD) + 1):
            body = GOOD[:at] + b"\0" + GOOD[at:]
            self.invalid_json(body)
        self.invalid_json(b'{"queries":[[[1,2,3,4]]],"select":"so\0ft"}')
        self.invalid_json(b'{"queries":[[[1\0,2,3,4]]]}', 15)

    def test_numbers_json_does_not_know(self):
        for number in ("NaN", "Infinity", "-Infinity", "inf", "+1", ".5", "e5", "True", "\u0661"):
            body, at = with_query(number.encode())
            self.invalid_json(body, at if number[0] != "-" else at + 1)
        for number, bad in (("01", 1), ("-01", 2), ("1.", 2), ("1.e5", 2), ("1e", 2), ("1e+", 3),
                            ("-", 1), ("--1", 1), ("1.2.3", 3), ("1e5.5", 3), ("1-2", 1), ("1_0", 1),
                            ("1f", 1), ("1 2", 2), ("1e5e5", 3), ("00", 1), ("nan", 1),
                            ("0x10", 1), ("tru", 3)):
            body, at = with_query(number)
            self.invalid_json(body, at + bad)

    def test_broken_arrays(self):
        self.invalid_json(b'{"queries":[[[1,2,,4]]]}', 18)
        self.invalid_json(b'{"queries":[[[1,2,3,]]]}', 20)
        self.invalid_json(b'{"queries":[[[,1,2,3,4]]]}', 14)
        self.invalid_json(b'{"queries":[[[1,2,3,4],]]}', 23)
        self.invalid_json(b'{"queries":[[[1,2,3,4}]]}', 21)
        self.invalid_json(b'{"queries":[[[1,2,3,4]]]]}', 24)
        self.invalid_json(b'{"queries":[[[1,2,3,4][1,2,3,4]]]}', 22)
        self.invalid_json(b'{"queries":[[[1;2,3,4]]]}', 15)

    def test_deep_nesting(self):
        self.invalid_json(b"[" * 1000000)
        self.invalid_json(b'{"causal":' + b"[" * 1000000)
        self.invalid_json(b'{"causal":' + b'{"a":' * 200000)
        for field in (b"queries", b"valid_lens", b"mask", b"segments", b"gradients"):
            answer = self.server.post(HEADS, b'{"' + field + b'":' + b"[" * 1000000)
            self.assertEqual(answer.status, 400, answer)

    # --- numbers ---

    def test_numbers_beyond_float32(self):
        for number in ("1e999", "1e39", "-1e39", "3.4028236e38", "1" + "0" * 400, "1e99999999999999",
                       "340282356779733661637539395458142568448"):
            self.invalid_request(with_query(number)[0], "/queries/0/0/1")
        self.invalid_request(b'{"queries":[[[1,2,3,4]],[[1,2,3,1e39]]],"keys":[[],[]]}',
                             "/queries/1/0/3")
        self.invalid_request(b'{"queries":[[[1,2,3,4]]],"bias":[[1e39]]}', "/bias/0/0")

    def test_numbers_round_as_strtof(self):
        """A model without projections and one key hands each value through."""
        server = Server({"models": {"copy": {"projection": "none", "query_size": 1}}})
        cases = ["1e-999", "-1e-999", "-0", "0", "-0.0e5", "1e-46", "1.401298464324817e-45",
                 "0." + "0" * 60 + "1e61", "123456789012345678901234567890123456789",
                 "0.1234567890123456789012345678901234567890", "16777217", "16777219",
                 "1.00000017881393432617187499", "1.00000017881393432617187500",
                 "1.00000017881393432617187501", "3.40282346638528859811704183484516925e38",
                 "340282356779733661637539395458142568447", "1e-45", "7e-46", "7.1e-46", "1E5",
                 "1e+5", "5e-324", "9007199254740993", "0.3", "1e00005"]
        strtof = ctypes.CDLL(None).strtof
        strtof.restype, strtof.argtypes = ctypes.c_float, (ctypes.c_char_p, ctypes.c_void_p)
        try:
            for text in cases:
                body = f'{{"queries":[[[1]]],"keys":[[[1]]],"values":[[[{text}]]]}}'.encode()
                with self.subTest(text):
                    answer = self.ok(server.attend(body))
                    got = struct.pack("<f", answer["outputs"][0][0][0])
                    want = struct.pack("<f", strtof(text.encode(), None))
                    if abs(struct.unpack("<f", want)[0]) < 2 ** -126:
                        # The sum may lose the sign of zero, and workers take denormals for zero.
                        self.assertIn(got, (want, b"\0\0\0\0", b"\0\0\0\x80"))
                    else:
                        self.assertEqual(got, want)
        finally:
            server.stop()

    def test_number_cut_at_every_byte(self):
        body = (b'{"queries": [[[-1.25e-2, 0.000123456789012345678901234567890, 3e+05 ,'
                b'12345.6789012345678901234567890],[-0,1E5,0.1e-10,167772.17]]] , "valid_lens":[2],'
                b'"causal" :true,"causal_offset":12,"window":[-1, 10],"return_attention":true}')
        whole = self.server.attend(body)
        self.ok(whole)
        for at in range(1, len(body)):
            with self.subTest(at), Raw(self.server) as raw:
                raw.send(head_of("/v1/attention", None, "Transfer-Encoding: chunked"))
                raw.send(chunked(body, [at, len(body)]))
                answer = raw.answer()
                self.assertEqual((answer.status, answer.body), (200, whole.body))

    def test_bad_number_cut_at_every_byte(self):
        body = b'{"queries":[[[1,2,3,4],[1,-2.5e+1x,3,4]]]}'
        bad = body.index(b"x")
        for at in range(1, len(body)):
            with self.subTest(at), Raw(self.server) as raw:
                raw.send(head_of("/v1/attention", None, "Transfer-Encoding: chunked"))
                raw.send(chunked(body, [at, len(body)]))
                self.problem(raw.answer(), 400, "invalid-json", offset=bad)

    def test_what_json_has_no_number_for(self):
        for number in ("NaN", "Infinity", "-Infinity"):
            for body in (f'{{"queries":[[[1,2,{number},4]]]}}', f'{{"queries":[[{number}]]}}',
                         f'{{"queries":[[[1,2,3,4]]],"seed":{number}}}',
                         f'{{"queries":[[[1,2,3,4]]],"bias":[[[{number}]]]}}'):
                with self.subTest(body):
                    answer = self.server.attend(body.encode())
                    detail = self.problem(answer, 400, "invalid-json",
                                          offset=body.index(number.lstrip("-")))["detail"]
                    self.assertTrue(detail.endswith(": JSON has no NaN and no Infinity"), detail)
                    self.assertEqual(problem_of_pieces(self.server, body.encode()), answer.json)

    # --- JSON, but not the contract ---

    def test_a_model_in_the_body(self):
        for name in ("model", "model_name"):
            for path in ("/v1/attention", HEADS):
                for body in ({name: "demo"}, {"queries": [[[1, 2, 3, 4]]], name: None}):
                    problem = self.invalid_request(body, "/" + name, path)
                    for words in ("in the path", "/v1/models/NAME/attention",
                                  "/v1/models/NAME/heads", "/v1/attention", "GET /v1/models "):
                        self.assertIn(words, problem["detail"])
        for name, field in (("attention_mask", "mask"), ("attn_bias", "bias"), ("is_causal", "causal"),
                            ("maks", "mask"), ("lens", "valid_lens")):
            problem = self.invalid_request({name: 1}, "/" + name)
            self.assertIn(f' (did you mean "{field}"?)', problem["detail"])
        for name in ("temperature", "x"):
            problem = self.invalid_request({name: 1}, "/" + name)
            self.assertEqual(problem["detail"], f'unknown field "{name}"')

    def test_other_paths_name_known_ones(self):
        paths = {path.replace("{model}", "NAME") for path in self.server.get("/openapi.json").json["paths"]}
        for path in ("/v1/attention/x", "/attention", "/v1/heads", "/v2/attention"):
            answer = self.server.post(path, GOOD)
            v2 = path.startswith("/v2")
            detail = answer.json["error"] if v2 else self.problem(answer, 404, "not-found")["detail"]
            self.assertEqual(answer.status, 404)
            told = set(re.findall(r"/[\w/.]+", detail))
            self.assertGreater(len(told), 4)
            self.assertLessEqual(told, paths | {"/v2/rerank"})  # an alias
            self.assertEqual("/openapi.json" in told, not v2)

    def test_rows_too_long_and_too_short(self):
        for numbers in (1, 3, 5, 768, 100000):
            problem = self.invalid_request({"queries": [[[1, 2, 3, 4], [1] * numbers]]})
            self.assertEqual(problem["pointer"], "/queries/0/1")
            self.assertEqual(problem["detail"], f"the array has {numbers} elements, expected 4 "
                                                "(the model's query_size)")
        for numbers in (0, 1, 3, 200):
            problem = self.invalid_request({"queries": [[[1] * 4]], "head_mask": [1] * numbers})
            self.assertEqual(problem["pointer"], "/head_mask")
            self.assertEqual(problem["detail"], f"the array has {numbers} elements, expected 2 "
                                                "(the model's heads)")

    def test_fields(self):
        self.invalid_request({}, None)
        self.invalid_request({"keys": [[[1, 2, 3, 4]]]})
        self.invalid_request({"queries": [[[1, 2, 3, 4]]], "keyz": 1}, "/keyz")
        self.invalid_request({"queries": [[[1, 2, 3, 4]]], "a/b~c": 1}, "/a~1b~0c")
        self.invalid_request({"queries": [[[1, 2, 3, 4]]], "keyz": {"a": [1, {"b": 2}]}}, "/keyz")
        self.invalid_request(b'{"queries":[[[1,2,3,4]]],"queries":[[[1,2,3,4]]]}', "/queries")
        self.invalid_request(b'{"queries":[[[1,2,3,4]]],"causal":true,"causal":true}', "/causal")
        self.invalid_request(b'{"causal":true,"queries":[[[1,2,3,4]]],"c\\u0061usal":false}',
                             "/causal")
        self.invalid_request({"queries": None}, "/queries")
        self.invalid_request({"queries": 1}, "/queries")
        self.invalid_request({"queries": "x"}, "/queries")
        self.invalid_request({"queries": [[[1, 2, 3, 4]]], "": 1}, "/")

    def test_escaped_names_are_names(self):
        plain = self.ok(self.server.attend(b'{"queries":[[[1,2,3,4]]]}'))
        spelled = self.ok(self.server.attend(b'{"qu\\u0065ries":[[[1,2,3,4]]]}'))
        self.assertEqual(plain, spelled)

    def test_wrong_things_inside_a_tensor(self):
        for thing in ('"1"', "true", "null", "{}", '{"a":1}', "[1]", "[]"):
            self.invalid_request(with_query(thing)[0], "/queries/0/0/1")
        self.invalid_request(b'{"queries":[[[1,2,3,4],5]]}', "/queries/0/1")
        self.invalid_request(b'{"queries":[[[1,2,3,4]],5]}', "/queries/1")
        self.invalid_request(b'{"queries":[[[1,2,3,4]],[5]]}', "/queries/1/0")
        self.invalid_request(b'{"queries":[[[1,2,3,4]],null]}', "/queries/1")

    def test_widths_and_depths(self):
        self.invalid_request(b'{"queries":[[[1,2,3]]]}', "/queries/0/0")
        self.invalid_request(b'{"queries":[[[1,2,3,4,5]]]}', "/queries/0/0")
        self.invalid_request(b'{"queries":[[[1,2,3,4],[1,2,3]]]}', "/queries/0/1")
        self.invalid_request(b'{"queries":[[[]]]}', "/queries/0/0")
        self.invalid_request(b'{"queries":[1,2,3,4]}', "/queries")
        self.invalid_request(b'{"queries":[[[[1,2,3,4]]]]}', "/queries")
        self.invalid_request(b'{"queries":[[[1,2,3,4]]],"keys":[[[1,2,3]]]}', "/keys/0/0")
        self.invalid_request(b'{"queries":[[[1,2,3,4]]],"keys":[[1,2,3,4]]}', "/keys")
        self.invalid_request(b'{"queries":[[1,2,3,4]],"keys":[[[1,2,3,4]]]}', "/keys")

    def test_counts_that_disagree(self):
        row = [1, 2, 3, 4]
        self.invalid_request({"queries": [[row]], "keys": [[row], [row]]}, "/keys")
        self.invalid_request({"queries": [[row]], "keys": [[row]], "values": [[row, row]]},
                             "/values/0")
        self.invalid_request({"queries": [[row], [row]], "keys": [[row], [row, row]],
                              "values": [[row], [row]]}, "/values/1")
        self.invalid_request({"queries": [[row]], "values": [[row], [row]]}, "/values")
        self.invalid_request({"queries": [[row]], "valid_lens": [1, 1]}, "/valid_lens")
        self.invalid_request({"queries": [[row], [row]], "valid_lens": [1]}, "/valid_lens")
        self.invalid_request({"queries": [[row, row]], "valid_lens": [[1]]}, "/valid_lens/0")
        self.invalid_request({"queries": [[row]], "head_mask": [1]}, "/head_mask")
        self.invalid_request({"queries": [[row]], "head_mask": [1, 1, 1]}, "/head_mask")
        self.invalid_request({"queries": [[row], [row]], "causal_offset": [1]}, "/causal_offset")

    def test_valid_lens(self):
        row = [1, 2, 3, 4]
        for lens, pointer in (([-1], "/valid_lens/0"), ([2], "/valid_lens/0"),
                              ([[2]], "/valid_lens/0/0"), ([4294967297], "/valid_lens/0"),
                              ([1e9], "/valid_lens/0"), (["1"], "/valid_lens/0"),
                              ([None], "/valid_lens/0"), ([True], "/valid_lens/0"),
                              (1, "/valid_lens"), ("all", "/valid_lens"), ({}, "/valid_lens"),
                              ([[[1]]], "/valid_lens")):
            self.invalid_request({"queries": [[row]], "valid_lens": lens}, pointer)
        for text in ("1.0", "0.5", "1e0", "1E0", "-1", "99999999999999999999"):
            body = b'{"queries":[[[1,2,3,4]]],"valid_lens":[' + text.encode() + b"]}"
            self.invalid_request(body, "/valid_lens/0")

    def test_masks_and_biases(self):
        request = {"queries": [[[1, 2, 3, 4]] * 2] * 2}
        for field, value, pointer in (
                ("mask", [[1, 2], [1, 1]], "/mask/0/1"), ("mask", [[1, 0.5], [1, 1]], "/mask/0/1"),
                ("mask", [[1, "x"], [1, 1]], "/mask/0/1"), ("mask", [[1, None], [1, 1]], "/mask/0/1"),
                ("mask", [[1], [1]], "/mask"), ("mask", [[1, 1]], "/mask"),
                ("mask", [[[1, 1]] * 2] * 3, "/mask"), ("mask", [1, 1], "/mask"),
                ("mask", [[[1, 1]] * 2, [[1, 1]]], "/mask/1"),
                ("mask", [[[1, 1]] * 2, [[1, 1], [1]]], "/mask/1/1"),
                ("bias", [[0, 0]], "/bias"), ("bias", [[[0, 0]] * 2] * 3, "/bias"),
                ("bias", [[[[0, 0]] * 2] * 3] * 2, "/bias/0"),
                ("bias", [[0, True], [0, 0]], "/bias/0/1")):
            self.invalid_request(dict(request, **{field: value}), pointer)
        ragged = {"queries": [[[1, 2, 3, 4]], [[1, 2, 3, 4]] * 2]}
        self.invalid_request(dict(ragged, mask=[[1]]), "/mask")
        self.invalid_request(dict(ragged, bias=[[1]]), "/bias")

    def test_segments(self):
        row = [1, 2, 3, 4]
        request = {"queries": [[row], [row]], "keys": [[row], [row] * 3]}
        for segments, pointer in (
                ([[1], [1, -2, 4]], "/segments/1/1"), ([[1], [0, 4, -1]], "/segments/1/2"),
                ([[1], [1, 1]], "/segments/1"), ([[1], [2, 2]], "/segments/1"),
                ([[2], [3]], "/segments/0"), ([[1], []], "/segments/1"),
                ([[1], [2 ** 31 - 1] * 3], "/segments/1"), ([[1], [2 ** 31]], "/segments/1/0"),
                ([[1]], "/segments"), ([[1], [3], []], "/segments"), ([], "/segments"),
                ([1, 3], "/segments"), (3, "/segments"), ([[[1]], [[3]]], "/segments"),
                (None, "/segments"), ("all", "/segments"), ({}, "/segments"),
                ([[1], [True, 2]], "/segments/1/0"), ([[1], [3.0]], "/segments/1/0"),
                ([[1], [1.5, 1.5]], "/segments/1/0"), ([[1], [None]], "/segments/1/0"),
                ([[1], ["3"]], "/segments/1/0"), ([[1], [1e2]], "/segments/1/0")):
            for path in ("/v1/attention", HEADS):
                self.invalid_request(dict(request, segments=segments), pointer, path)
        problem = self.invalid_request(dict(request, segments=[[1], [2, 2]]), "/segments/1")
        self.assertIn("4", problem["detail"])
        self.assertIn("3", problem["detail"])
        one = {"queries": [row], "keys": [row] * 3}
        for segments, pointer in (([1, 3], "/segments"), ([], "/segments"), ([[3]], "/segments"),
                                  ([[]], "/segments"), ([4, -1], "/segments/1")):
            self.invalid_request(dict(one, segments=segments), pointer)

    def test_combinations_without_meaning(self):
        request = {"queries": [[[1, 2, 3, 4]]]}
        for extra, pointer in (({"segments": [[1]], "select": "hard"}, "/select"),
                               ({"segments": [[1]], "select": "sample", "seed": 3}, "/select"),
                               ({"segments": [[1]], "empty_rows": "uniform"}, "/empty_rows"),
                               ({"select": "hard", "empty_rows": "uniform"}, "/empty_rows"),
                               ({"select": "sample", "empty_rows": "uniform"}, "/empty_rows")):
            for path in ("/v1/attention", HEADS):
                self.invalid_request(dict(request, **extra), pointer, path)
                backwards = dict(reversed(list(dict(request, **extra).items())))
                self.invalid_request(backwards, pointer, path)

    def test_gradients(self):
        row = [1, 2, 3, 4]
        request = {"queries": [[row], [row, row]]}
        for gradients, pointer in (
                ([[row], [row, [1, 2, 3]]], "/gradients/1/1"),
                ([[row], [row, row + [5]]], "/gradients/1/1"), ([[row], [row]], "/gradients/1"),
                ([[row], [row] * 3], "/gradients/1"), ([[], []], "/gradients/0"),
                ([[row]], "/gradients"), ([], "/gradients"), ([row, row], "/gradients"),
                ([[[row]], [[row, row]]], "/gradients"), (None, "/gradients"), (1, "/gradients"),
                ({}, "/gradients"), ("x", "/gradients"), ([[row], [row, [1, 2, 3, True]]],
                                                          "/gradients/1/1/3"),
                ([[row], [row, [1, 2, 3, 1e39]]], "/gradients/1/1/3")):
            self.invalid_request(dict(request, gradients=gradients), pointer, HEADS)
        one = {"queries": [row, row]}
        for gradients, pointer in (([row], "/gradients"), ([[row, row]], "/gradients"),
                                   ([row, [1, 2]], "/gradients/1"), ([], "/gradients")):
            self.invalid_request(dict(one, gradients=gradients), pointer, HEADS)
        for path in ("/v1/attention", "/v1/models/demo/attention"):
            problem = self.invalid_request(dict(one, gradients=[row, row]), "/gradients", path)
            self.assertIn("/heads", problem["detail"])

    def test_broken_base64(self):
        array = {"dtype": "F32", "shape": [1, 4], "base64": "AAAAAAAAAAAAAAAAAAAAAA=="}
        self.assertEqual(self.server.post(HEADS, {"queries": array}).status, 200)
        for change in ({"base64": "AAAAAAAAAAAAAAAAAAAAAA="}, {"base64": "AAAAAAAAAAAAAAAAAAAAAB=="},
                       {"base64": "AAAAAAAAAAAAAAAAAAAA"}, {"base64": "AAAA AAAAAAAAAAAAAAAAAA=="},
                       {"base64": None}, {"dtype": "I32"}, {"dtype": "F31"}, {"shape": [1, 3]},
                       {"shape": [2, 4]}, {"shape": [-1, 4]}, {"shape": [4]}, {"shape": 4}, {"x": 1}):
            for field in ("queries", "keys", "values", "bias", "gradients"):
                body = dict({"queries": [[1, 2, 3, 4]]}, **{field: dict(array, **change)})
                with self.subTest(field=field, change=change):
                    problem = self.problem(self.server.post(HEADS, body), 400, "invalid-request")
                    self.assertTrue(problem["pointer"].startswith("/" + field), problem)

    def test_the_path_of_the_heads_refuses_as_attention_does(self):
        server = self.server
        for body in (b"", b"{", b'{"queries":[[[1,2,3,4]]]}x', b"hello"):
            self.problem(server.post(HEADS, body), 400, "invalid-json")
        self.invalid_request({"keys": [[[1, 2, 3, 4]]]}, "/queries", HEADS)
        self.invalid_request({"queries": [[[1, 2, 3]]]}, "/queries/0/0", HEADS)
        self.invalid_request({"queries": [[[1, 2, 3, 4]]], "gradient": 1}, "/gradient", HEADS)
        self.problem(server.post("/v1/models/nobody/heads", GOOD), 404, "unknown-model")
        self.problem(server.post("/v1/heads", GOOD), 404, "not-found")
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            answer = server.request(method, HEADS)
            self.assertEqual((answer.status, answer.headers["allow"]), (405, "POST"))
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        self.problem(server.post(HEADS, GOOD, form), 415, "unsupported-media-type")
        self.problem(server.post(HEADS, GOOD, {"Content-Encoding": "gzip"}), 415,
                     "unsupported-media-type")
        self.problem(server.post(HEADS, GOOD, {"Accept": "image/png"}), 406, "not-acceptable")
        with Raw(server) as raw:
            raw.send(head_of(HEADS, 5000000))
            self.problem(raw.answer(), 413, "too-large", limit="max_body_bytes")
        labels = b'{route="/v1/models/{model}/heads",method="POST",code="400"} '
        self.assertIn(b"attend_http_requests_total" + labels, server.get("/metrics").body)

    def test_run_measures_the_heads_where_it_is_told_to(self):
        body = b'{"queries":[[1,2,3,4]],"gradients":[[1,2]]}'
        status, out, err = attend("run", "demo", "--heads", "--workers", "1", data=body)
        self.assertEqual((status, out), (1, b""), err)
        self.assertIn("(at /gradients/0)", err)
        status, out, err = attend("run", "demo", "--workers", "1", data=body)
        self.assertEqual((status, out), (1, b""), err)
        self.assertIn("(at /gradients)", err)
        for words in (("run", "--heads"), ("check", "--heads"), ("serve", "--heads")):
            self.assertEqual(attend(*words, data=body)[0], 2, words)

    def test_small_fields(self):
        request = {"queries": [[[1, 2, 3, 4]]]}
        for field, values in {
                "causal": [1, "true", None, []], "causal_offset": [0.5, "start", True, [[0]], {}],
                "window": [[1], [1, 2, 3], 1, [-2, 0], [0, -2], [0.5, 1], ["a", 1], "all"],
                "empty_rows": ["one", 1, True], "return_attention": ["yes", 1, None, []],
                "select": ["best", "Hard", 1, None, ["soft"]], "encoding_format": ["hex", 1],
                "return_pointers": [1, 0, "true", None, []],
                "seed": [-1, 0.5, "1", 2 ** 53, 2 ** 64, None, [1]]}.items():
            for value in values:
                body = dict(request, **{field: value})
                with self.subTest(field=field, value=value):
                    problem = self.problem(self.server.attend(body), 400, "invalid-request")
                    self.assertTrue(problem["pointer"].startswith("/" + field), problem)

    def test_long_names_and_values(self):
        request = b'{"queries":[[[1,2,3,4]]],'
        self.invalid_request(request + b'"' + b"x" * 100000 + b'":1}')
        self.invalid_request(request + b'"select":"' + b"y" * 1000000 + b'"}')
        self.invalid_request(request + b'"x":[' + b"0," * 1000000 + b"0]}")

    # --- too much ---

    def too_large(self, body, limit, path="/v1/attention"):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        with self.subTest(body=body[:40], limit=limit):
            return self.problem(self.server.post(path, body), 413, "too-large", limit=limit)

    def test_limits(self):
        self.too_large(b'{"queries":[' + b",".join([b"[[1,2,3,4]]"] * 1001) + b"]}", "max_items")
        self.ok(self.server.attend(b'{"queries":[' + b",".join([b"[]"] * 1000) + b"]}"))
        row = [0, 0, 0, 0]
        self.too_large({"queries": [[row] * 800]}, "max_pairs")  # 800 x 800 x 2 heads
        self.ok(self.server.attend({"queries": [[row] * 700]}))
        self.too_large({"queries": [[row] * 600], "return_attention": True}, "max_answer_bytes")

    def test_limits_of_segments_and_heads(self):
        row = [0, 0, 0, 0]
        empty = {"queries": [[row] * 1000], "keys": [[]]}
        self.too_large(dict(empty, segments=[[0] * 501]), "max_pairs")  # 1000 x 501 x 2 heads
        self.too_large(dict(empty, segments=[[0] * 400], return_attention=True), "max_answer_bytes")
        problem = self.too_large({"queries": [[row] * 600]}, "max_pairs", HEADS)
        self.assertIn("3 pairs of heads", problem["detail"])  # 600 x 600 x 3
        long = {"queries": [[row] * 40000], "keys": [[row]]}
        self.too_large(dict(long, return_pointers=True), "max_answer_bytes", HEADS)
        self.too_large(dict(long, return_attention="average", return_pointers=True),
                       "max_answer_bytes", HEADS)

    def test_few_bytes_that_ask_for_much(self):
        server = Server(None, "--deadline-ms", "3000")
        try:
            body = b'{"queries":[[' + b",".join([b"[0,0,0,0]"] * 1000000) + b"]]}"
            self.problem(server.attend(body), 413, "too-large", limit="max_pairs")
            body = (b'{"queries":[[' + b",".join([b"[0,0,0,0]"] * 100000) + b']],"keys":[[]],'
                    b'"segments":[[' + b",".join([b"0"] * 1000000) + b"]]}")
            self.problem(server.attend(body), 413, "too-large", limit="max_pairs")
            self.assertTrue(wait_for_nothing(server))
        finally:
            server.stop()

    def test_answer_too_large_to_build(self):
        """Weights of 10^5 x 10^5 are refused before anything of that size is allocated."""
        server = Server(None, "--max-pairs", str(1 << 40))
        try:
            rows = b",".join([b"[0,0,0,0]"] * 100000)
            before = server.resident()
            body = b'{"return_attention":true,"queries":[[' + rows + b"]]}"
            self.problem(server.attend(body), 413, "too-large", limit="max_answer_bytes")
            self.assertLess(server.resident() - before, 64 << 20)
        finally:
            server.stop()

    def test_floods_in_any_field(self):
        """30 MB of brackets and zeros: refused, with memory bounded by what may be accepted."""
        server = Server()
        server.attend({"queries": [[[1, 2, 3, 4]]]})
        before = server.resident()
        try:
            for field in (b"queries", b"keys", b"values", b"valid_lens", b"mask", b"bias",
                          b"head_mask", b"causal_offset", b"window", b"select", b"segments",
                          b"gradients", b"nonsense"):
                large = MODE == "release" and field in (b"queries", b"valid_lens", b"nonsense")
                size = 30 << 20 if large else 2 << 20
                for unit in (b"{},", b"0,", b"[],", b"[[],[]],", b'"",'):
                    body = b'{"' + field + b'":[' + unit * (size // len(unit)) + b"0]}"
                    answer = server.post(HEADS if field == b"gradients" else "/v1/attention", body)
                    with self.subTest(field=field, unit=unit):
                        self.assertIn(answer.status, (400, 413), answer)
            self.assertTrue(wait_for_nothing(server))
            if MODE == "release":
                self.assertLess(server.resident() - before, 100 << 20)
        finally:
            server.stop()

    def test_hundreds_of_refusals_leave_nothing(self):
        bodies = [b"[" * 1000, with_query("1e39")[0], with_query("x")[0], GOOD[:-2],
                  b'{"queries":[[[1,2,3,4]]],"valid_lens":[7]}', b'{"queries":[[[1,2,3]]]}',
                  b'{"queries":[[[1,2,3,4]]],"segments":[[1,1]]}']
        self.alive()
        for _ in range(20):
            for body in bodies:
                self.server.attend(body)
        before, descriptors = self.server.resident(), self.server.descriptors()
        for _ in range(100 if MODE == "release" else 10):
            for body in bodies:
                self.assertEqual(self.server.attend(body).status, 400)
        if MODE == "release":
            self.assertLess(self.server.resident() - before, 4 << 20)
        self.assertLessEqual(self.server.descriptors(), descriptors + 4)


def wait_for_nothing(server):
    return wait_until(lambda: server.metric("attend_inflight_bytes") == 0)


if __name__ == "__main__":
    unittest.main()
