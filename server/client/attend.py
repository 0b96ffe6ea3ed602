"""attend: a client for the attention server: one file, to copy; Python's standard library, and numpy if it is there.

    from attend import Client

    with Client("http://127.0.0.1:8080") as client:
        answer = client.attention([[[1, 0, 0, 1], [0, 1, 1, 0]]], causal=True, return_attention=True)
    answer["outputs"][0][1]        # of the first item, its second query's output

    Client(model="minilm").encode([[101, 7592, 102], [101, 102]], pool="mean")["outputs"]   # a whole model's

Arguments are lists, numpy's arrays, or anything with `tolist`, such as PyTorch's tensors on the CPU: a whole batch,
with the names and shapes of POST /v1/attention, or of encode, classify and score. The items of a batch may differ in length (not as
safetensors). The answer is a dict with the fields of the server's answer.

There are three forms of request and answer; the numbers are the same:

    form="json"            text; the answer's arrays are lists
    form="safetensors"     bytes; the fastest. The answer's arrays are numpy's where numpy is there, else lists
    form="base64"          JSON with arrays as base64: bytes for ragged batches, too. Arrays as above,
                           which are read-only

What the server refuses is an `attend.Error`. Without an answer, an OSError or http.client.HTTPException says why.

A client has one connection, kept open from request to request, and opened again where the server has closed it. It is
for one thread at a time: make one for each thread.
"""
import array
import base64
import http.client
import json
import math
import re
import struct
import sys
import urllib.parse

try:
    import numpy
except ImportError:
    numpy = None

__all__ = ["Answer", "Client", "Error"]

FLOATS = ("queries", "keys", "values", "bias", "head_mask", "gradients", "embeddings")
INTEGERS = ("valid_lens", "segments", "causal_offset", "tokens", "token_types", "targets", "target_lens")
DTYPES = {**dict.fromkeys(FLOATS, "F32"), **dict.fromkeys(INTEGERS, "I64"), "mask": "BOOL"}
CODES = {"F32": "f", "I32": "i", "I64": "q", "BOOL": "B", "U8": "B"}  # of array; little-endian of numpy
KINDS = {"F32": "biuf", "I64": "biu", "BOOL": "biu"}  # of numpy's arrays, that can be sent so
DAY_MS = 86_400_000  # the longest timeout that the server takes
TYPES = {"json": "application/json", "base64": "application/json", "safetensors": "application/x-safetensors"}


class Error(Exception):
    """The server has refused a request. `status` is HTTP's; `title` and `detail` say why; `pointer` (the JSON Pointer
    of what is wrong), `offset` (the byte of the body) and `limit` (the setting that was exceeded) are None where they
    do not apply. `retry_after`: the seconds to wait before the same request may succeed (429, 503), or None."""

    def __init__(self, status, problem, headers):
        self.status = status
        self.title = problem.get("title", http.client.responses.get(status, "An error"))
        self.detail = problem.get("detail", "")
        self.type = problem.get("type")
        self.pointer, self.offset, self.limit = (problem.get(name) for name in ("pointer", "offset", "limit"))
        seconds = headers.get("Retry-After", "")
        self.retry_after = int(seconds) if seconds.isdigit() else None
        self.request_id = headers.get("X-Request-Id")
        places = [f"{name} {value}" for name in ("pointer", "offset", "limit")
                  if (value := getattr(self, name)) is not None]
        super().__init__(f"{status} {self.title}{': ' if self.detail else ''}{self.detail}"
                         f"{' (' if places else ''}{', '.join(places)}{')' if places else ''}")


class Answer(dict):
    """The fields of an answer. `request_id` is in the server's log, too; `timing` has the milliseconds of the server's
    stages: decode, queue, compute, encode."""

    def __init__(self, fields, headers):
        super().__init__(fields)
        self.request_id = headers.get("X-Request-Id")
        stages = re.findall(r"(\w+);dur=([\d.]+)", headers.get("Server-Timing", ""))
        self.timing = {stage: float(milliseconds) for stage, milliseconds in stages}


class Client:
    """A connection to one server.

    `url` may end with a path, where a proxy has the server below one. `model` is the model that is asked where a call
    names none; None is the server's default. `timeout` is in seconds: how long the server may take for an answer (it
    then says 504), and how long the network may be silent. `tls`, an ssl.SSLContext, is for https://."""

    def __init__(self, url="http://127.0.0.1:8080", model=None, *, form="json", api_key=None, timeout=60, tls=None):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no URL of a server, such as http://127.0.0.1:8080")
        options = {"timeout": timeout + 1}  # so that the server's own 504 comes first
        if parts.scheme == "https":
            self._connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=tls, **options)
        else:
            self._connection = http.client.HTTPConnection(parts.hostname, parts.port, **options)
        self._path = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.model, self.form, self.timeout = model, form, timeout

    def attention(self, queries, keys=None, values=None, *, model=None, layer=None, form=None, request_id=None,
                  **fields):
        """The layer's answer to a batch: "outputs", and what the fields ask for. `fields` are those of the request,
        such as valid_lens, mask, causal, return_attention. `layer` names an attention of a whole model, such as
        "encoder.0.self"."""
        fields.update(queries=queries, keys=keys, values=values)
        return self._ask("attention", model, form, request_id, fields, layer)

    def heads(self, queries, keys=None, values=None, *, model=None, layer=None, form=None, request_id=None, **fields):
        """What each head does on this batch. There is no default model: name one, here or for the client."""
        fields.update(queries=queries, keys=keys, values=values)
        return self._ask("heads", model, form, request_id, fields, layer)

    def encode(self, tokens=None, *, embeddings=None, model=None, form=None, request_id=None, **fields):
        """A whole model's answer to tokens, or to the rows of embeddings in their stead: "outputs", and what the fields
        ask for, such as pool, normalize, return_hidden, return_attention. "hidden", "attention" and "thumbnails" are
        dicts by the names of parts. There is no default model. As base64 and safetensors the answer is a rectangle,
        with zeros behind what "valid_lens" counts. Thumbnails are arrays of bytes in every form."""
        fields.update(tokens=tokens, embeddings=embeddings)
        return self._ask("encode", model, form, request_id, fields)

    def classify(self, tokens=None, *, embeddings=None, model=None, form=None, request_id=None, **fields):
        """What an encoder's classifier makes of tokens, or of the field text in their stead: "outputs", for each item a
        number for each class, and "labels", the names of the classes. The field function, "softmax", "sigmoid" or
        "none", is what the numbers are behind; without it the model's own. The other fields and the forms are those of
        encode. There is no default model."""
        fields.update(tokens=tokens, embeddings=embeddings)
        return self._ask("classify", model, form, request_id, fields)

    def score(self, tokens, targets, *, model=None, form=None, request_id=None, **fields):
        """How likely a decoder holds the targets, each behind an item's tokens and the targets before it:
        "log_probabilities", and what the fields ask for, such as return_top, return_lens, return_hidden,
        return_attention. Where the model has an encoder, too, tokens are its source. There is no default model. As
        base64 and safetensors the answer is a rectangle, with zeros behind what "valid_lens" and "target_lens" count;
        as safetensors "top" is a dict of two arrays, "token" and "log_probability", and "lens" one of two of each
        hidden state, "decoder.0.token" and "decoder.0.log_probability"."""
        fields.update(tokens=tokens, targets=targets)
        return self._ask("score", model, form, request_id, fields)

    def worth(self, tokens, targets=None, *, model=None, request_id=None, **fields):
        """What each head of a whole model is worth: "heads", by the names of attentions a number for each head, and
        "ranking", the least important first. With targets, of a model that foretells tokens, a number is the log
        probability of all of them that is lost without the head, of "log_probability"; else by how much the outputs of
        encode change. The fields are those of score or encode, such as head_mask, and attentions, the names of those
        whose heads are measured. There is no default model."""
        fields.update(tokens=tokens, targets=targets)
        return self._ask("heads", model, "json", request_id, fields)

    def stream_worth(self, tokens, targets=None, *, model=None, request_id=None, **fields):
        """The same, head by head: yields the events as dicts: {"attention", "head", "loss"}; at last the whole answer.
        As for stream, another call has to wait for the last one."""
        fields.update(tokens=tokens, targets=targets, stream=True)
        return self._events("heads", model, request_id, fields)

    def generate(self, tokens, *, model=None, request_id=None, **fields):
        """How a decoder goes on from texts: "sequences", for each item a list of them, each with "tokens", "score",
        "finish" and "log_probabilities", and what the fields ask for. The fields are those of the request, such as
        max_tokens, temperature, returns, seed, return_top, return_attention; beams and return_search, which adds
        "search". Where the model has an encoder, too, tokens are its source, and the field targets is how the answers
        begin. There is no default model."""
        fields.update(tokens=tokens)
        return self._ask("generate", model, "json", request_id, fields)

    def stream(self, tokens, *, model=None, request_id=None, **fields):
        """The same, token by token: yields the events as dicts: {"item", "sequence", "token", "log_probability"} and
        "top" if asked for; {"item", "sequence", "finish", "score"}; at last {"usage"}. Another call on this client has
        to wait for the last one; ending the loop early closes the connection."""
        fields.update(tokens=tokens, stream=True)
        return self._events("generate", model, request_id, fields)

    def _events(self, what, model, request_id, fields):
        """Those of a stream."""
        response = self._open("POST", *self._request(what, model, "json", request_id, fields))
        kind, whole = None, False
        try:
            for line in response:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data" and kind == "error":
                    problem = json.loads(value)
                    raise Error(problem["status"], problem, response.headers)
                elif name == "data":
                    yield json.loads(value)
            whole = True
        finally:
            if not whole:
                self._connection.close()

    def models(self):
        """The models in service, by their names."""
        return {model["name"]: model for model in self._send("GET", "/v1/models")["models"]}

    def close(self):
        """The next request opens a connection again."""
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _ask(self, what, model, form, request_id, fields, layer=None):
        return self._send("POST", *self._request(what, model, form, request_id, fields, layer))

    def _request(self, what, model, form, request_id, fields, layer=None):
        """Path, body and headers."""
        model, form = model or self.model, form or self.form
        if form not in TYPES:
            raise ValueError(f"form is {form!r}, not one of {', '.join(TYPES)}")
        if not model and (layer or what != "attention"):
            raise ValueError(f"{what}() needs the name of a model")
        names = (("models", model), ("layers", layer))
        path = "".join(f"/{kind}/{urllib.parse.quote(name, safe='')}" for kind, name in names if name)
        path = f"/v1{path}/{what}"
        headers = {"Content-Type": TYPES[form], "X-Timeout-Ms": str(min(max(1, round(self.timeout * 1000)), DAY_MS))}
        if request_id:
            headers["X-Request-Id"] = request_id
        fields = {name: value for name, value in fields.items() if value is not None}
        body = _safetensors(fields) if form == "safetensors" else _json(fields, form)
        return path, body, headers

    def _open(self, method, path, body=None, headers=None):
        """The response, whose body is still to be read; an error is raised."""
        try:
            response = self._exchange(method, self._path + path, body, {**self._headers, **(headers or {})})
            data = response.read() if response.status != 200 else None
        except BaseException:
            self._connection.close()  # or the next request would read the rest of this one
            raise
        if response.status != 200:
            raise Error(response.status, _problem(data), response.headers)
        return response

    def _send(self, method, path, body=None, headers=None):
        response = self._open(method, path, body, headers)
        try:
            data = response.read()
        except BaseException:
            self._connection.close()
            raise
        if response.headers.get_content_type() == TYPES["safetensors"]:
            return Answer(_read_safetensors(data), response.headers)
        return Answer({name: _decoded(value) for name, value in json.loads(data).items()}, response.headers)

    def _exchange(self, method, path, body, headers):
        """The response. On a connection that has served before, a request is sent once more if the server has closed
        it meanwhile: it changes nothing there, so it may be repeated."""
        used = self._connection.sock is not None
        try:
            try:
                self._connection.request(method, path, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # a server that refuses a large body may answer before it has read it
            return self._connection.getresponse()
        except ConnectionError:
            self._connection.close()
            if not used:
                raise
            return self._exchange(method, path, body, headers)


def _problem(data):
    """What an error's body says; one that is no problem of attend's comes from a proxy."""
    try:
        problem = json.loads(data)
    except ValueError:
        problem = None
    return problem if isinstance(problem, dict) else {"detail": data[:200].decode("utf-8", "replace").strip()}


# --- arrays ---

def _shape(value):
    """The lengths of nested lists or of an array; None: items differ in shape."""
    if hasattr(value, "shape"):
        return tuple(value.shape)
    if not isinstance(value, (list, tuple)):
        return ()
    first = _shape(value[0]) if value else ()
    if first == ():
        return (len(value),)
    if first is None or any(_shape(part) != first for part in value[1:]):
        return None
    return (len(value), *first)


def _lists(value):
    """Nested lists of lists, arrays, or lists of arrays."""
    if isinstance(value, (list, tuple)):
        return [_lists(part) for part in value]
    if isinstance(value, dict):
        return {name: _lists(part) for name, part in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def _bytes(name, value, shape):
    """The numbers of a field, as they are sent."""
    dtype = DTYPES[name]
    if numpy:
        value = numpy.asarray(value)
        if value.size and value.dtype.kind not in KINDS[dtype]:
            raise TypeError(f"{name}: {value.dtype} cannot be sent as {dtype}")
        return value.astype("<" + CODES[dtype], copy=False).tobytes()
    value = _lists(value)
    for _ in shape[1:]:
        value = [number for part in value for number in part]
    return _little(array.array(CODES[dtype], value)).tobytes()


def _read(data, dtype, shape):
    """The same the other way round."""
    if numpy:
        return numpy.frombuffer(data, "<" + CODES[dtype]).reshape(shape)
    numbers = array.array(CODES[dtype])
    numbers.frombytes(data)
    numbers = _little(numbers).tolist()
    if not shape:
        return numbers[0]
    for axis in range(len(shape) - 1, 0, -1):
        size, count = shape[axis], math.prod(shape[:axis])
        numbers = [numbers[i * size:(i + 1) * size] for i in range(count)]
    return numbers


def _little(numbers):
    """With the bytes in the order of the wire, or back."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


# --- forms ---

def _json(fields, form):
    if form == "base64":
        coded = {name: _coded(name, value) for name, value in fields.items()
                 if name in FLOATS and not isinstance(value, dict)}
        fields = {**fields, **coded, "encoding_format": "base64"}
    return json.dumps(fields, default=lambda value: value.tolist(), allow_nan=False).encode()


def _coded(name, value):
    """An object of base64; for a ragged batch, one for each item. Lists that do not tell how wide their rows would be
    stay as they are, and so does a batch with such items."""
    shape = _shape(value)
    if shape is None:
        items = [_coded(name, item) for item in value]
        return items if all(isinstance(item, dict) for item in items) else value
    if 0 in shape and isinstance(value, (list, tuple)):
        return value
    return {"dtype": "F32", "shape": shape, "base64": base64.b64encode(_bytes(name, value, shape)).decode()}


def _decoded(value):
    """What _coded makes, and thumbnails, as arrays; anything else as it is."""
    if isinstance(value, dict) and "base64" in value:
        return _read(base64.b64decode(value["base64"]), value.get("dtype", "U8"), value["shape"])
    if isinstance(value, dict):
        return {name: _decoded(part) for name, part in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict) and "base64" in value[0]:
        return [_decoded(item) for item in value]
    return value


def _safetensors(fields):
    header, parts, size = {"__metadata__": {}}, [], 0
    for name, value in fields.items():
        shape = _shape(value)
        if shape is None:
            raise ValueError(f"the items of {name} differ in shape: pad them, or send json or base64")
        if name not in DTYPES or shape == ():
            header["__metadata__"][name] = json.dumps(_lists(value))
            continue
        parts.append(_bytes(name, value, shape))
        header[name] = {"dtype": DTYPES[name], "shape": shape, "data_offsets": [size, size + len(parts[-1])]}
        size += len(parts[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the numbers lie where processors like them
    return b"".join([struct.pack("<Q", len(text)), text, *parts])


def _read_safetensors(data):
    (size,) = struct.unpack_from("<Q", data)
    header, data = json.loads(data[8:8 + size]), memoryview(data)[8 + size:]
    fields = header.pop("__metadata__", {})
    fields.update({name: json.loads(fields[name]) for name in ("usage", "labels") if name in fields})
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        numbers = _read(data[begin:end], tensor["dtype"], tensor["shape"])
        group, _, part = name.partition(".")  # "hidden.encoder.2" is one of "hidden"
        if part:
            fields.setdefault(group, {})[part] = numbers
        else:
            fields[name] = numbers
    return fields
