"""attend: a client for the inference server attend. Copy this one file; it needs Python's standard library alone.

    from attend import Client

    with Client("http://127.0.0.1:8080") as client:
        response = client.attention([[[1, 0, 0, 1], [0, 1, 1, 0]]], causal=True, return_attention=True)
    response["outputs"][0][1]      # the output of the first item's second query

    Client(model="minilm").encode(text=["How warm is it?"], pool="mean")["outputs"]   # a sentence embedding

Arguments are lists, numpy arrays, or anything with `tolist`, such as PyTorch tensors on the CPU. A call takes a whole
batch, with the names and shapes of the HTTP API. The items of a batch may differ in length (not as safetensors). The
response is a dict with the fields of the server's response.

`form` selects how requests and responses are sent; the numbers are the same:

    form="json"            text; arrays of the response are lists
    form="safetensors"     bytes; the fastest. Arrays of the response are numpy arrays if numpy is installed, else lists
    form="base64"          JSON with arrays as base64, also for ragged batches. Arrays of the response are as above,
                           and read-only

A request that the server rejects raises `attend.Error`. A failed connection raises OSError or
http.client.HTTPException.

A client keeps one connection open between requests, and opens it again if the server has closed it. It is for one
thread at a time: create one for each thread.
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
    """The server has rejected a request. `status` is the HTTP status; `title` and `detail` explain it. `pointer` (the
    JSON Pointer of the wrong value), `offset` (the byte of the body) and `limit` (the setting that was exceeded) are
    None where they do not apply. `retry_after` is the seconds to wait before a retry (429, 503), or None."""

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
    """The fields of a response. `request_id` also appears in the server's log. `timing` has the milliseconds of the
    server's stages: decode, queue, compute, encode."""

    def __init__(self, fields, headers):
        super().__init__(fields)
        self.request_id = headers.get("X-Request-Id")
        stages = re.findall(r"(\w+);dur=([\d.]+)", headers.get("Server-Timing", ""))
        self.timing = {stage: float(milliseconds) for stage, milliseconds in stages}


class Client:
    """A connection to one server.

    `url` may end with a path, for a server below a proxy's path. `model` is the default model of calls; None is the
    server's default layer. `timeout` in seconds limits the time to the response (the server answers 504 then) and the
    silence of the network. `tls` is an ssl.SSLContext for https://."""

    def __init__(self, url="http://127.0.0.1:8080", model=None, *, form="json", api_key=None, timeout=60, tls=None):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the URL of a server, such as http://127.0.0.1:8080")
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
        """Runs an attention layer on a batch. Returns "outputs", and what `fields` request: they are fields of the
        request, such as valid_lens, mask, causal, return_attention. `layer` names an attention block of a model, such
        as "encoder.0.self"."""
        fields.update(queries=queries, keys=keys, values=values)
        return self._ask("attention", model, form, request_id, fields, layer)

    def heads(self, queries, keys=None, values=None, *, model=None, layer=None, form=None, request_id=None, **fields):
        """Measures the heads of a layer on a batch. There is no default model: name one, here or for the client."""
        fields.update(queries=queries, keys=keys, values=values)
        return self._ask("heads", model, form, request_id, fields, layer)

    def encode(self, tokens=None, *, embeddings=None, model=None, form=None, request_id=None, **fields):
        """Token embeddings, or pooled embeddings, of tokens, of text=..., or of input embeddings. Returns "outputs",
        and what the fields request, such as pool, normalize, return_hidden, return_attention. "hidden", "attention" and
        "thumbnails" are dicts by the names of parts. There is no default model. As base64 and safetensors, arrays are
        rectangles: zeros follow the positions that "valid_lens" counts. Thumbnails are byte arrays in every form. With
        pool="multi_vector" there are "positions" of the vectors, "vector_lens" counts them, and role="query" or
        "document" is the kind of text=...."""
        fields.update(tokens=tokens, embeddings=embeddings)
        return self._ask("encode", model, form, request_id, fields)

    def classify(self, tokens=None, *, embeddings=None, model=None, form=None, request_id=None, **fields):
        """Classifies tokens, or text=.... Returns "outputs", a number for each class of each item, and "labels", the
        names of the classes. The field function, "softmax", "sigmoid" or "none", selects the activation. Other fields
        and forms are those of encode. There is no default model."""
        fields.update(tokens=tokens, embeddings=embeddings)
        return self._ask("classify", model, form, request_id, fields)

    def classify_tokens(self, tokens=None, *, embeddings=None, model=None, form=None, request_id=None, **fields):
        """Classifies each token of tokens, or of text=.... Returns "outputs", a number for each class of each token, and
        "labels"; or, with the field group, "entities", a list of dicts for each text. Other fields and forms are those
        of classify. There is no default model."""
        fields.update(tokens=tokens, embeddings=embeddings)
        return self._ask("classify_tokens", model, form, request_id, fields)

    def question(self, tokens=None, *, embeddings=None, model=None, form=None, request_id=None, **fields):
        """The answers to question=... in context=..., texts or lists of them: "answers", for each question a list of
        {"text", "score", "start", "end"}; the fields are return_top, max_answer and stride. Of tokens, or of
        text=[[question, context], ...], the logits of each token as the first and the last one of the answer: "start" and
        "end"; other fields are those of encode except pooling. There is no default model. A response has no safetensors
        form."""
        fields.update(tokens=tokens, embeddings=embeddings)
        return self._ask("question", model, form, request_id, fields)

    def fill(self, tokens=None, *, embeddings=None, model=None, form=None, request_id=None, **fields):
        """The most likely tokens of masked positions of tokens, or of text=.... Returns "masks": for each item a list of
        {"position", "top": [{"token", "string", "probability"}]}. The fields are return_top and positions, "masks" (of the
        mask token), "all" or lists, and those of encode except pooling. There is no default model. A response has no
        safetensors form."""
        fields.update(tokens=tokens, embeddings=embeddings)
        return self._ask("fill", model, form, request_id, fields)

    def score(self, tokens=None, targets=None, *, model=None, form=None, request_id=None, **fields):
        """Log probabilities of targets after tokens, or after text=.... Returns "log_probabilities", and what the
        fields request, such as return_top, return_lens, return_hidden, return_attention. For encoder-decoder models,
        tokens is the source. There is no default model. As base64 and safetensors, arrays are rectangles: zeros follow
        the positions that "valid_lens" and "target_lens" count. As safetensors, "top" is a dict of the arrays "token"
        and "log_probability", and "lens" has two arrays for each hidden state, such as "decoder.0.token"."""
        fields.update(tokens=tokens, targets=targets)
        return self._ask("score", model, form, request_id, fields)

    def worth(self, tokens=None, targets=None, *, model=None, request_id=None, **fields):
        """Head importance of a model, by ablation. Returns "heads", a number for each head by the names of attention
        blocks, and "ranking", the least important first. With targets, a number is the log probability of all targets
        that is lost without the head; else it is the relative change of the outputs of encode. The fields are those of
        score or encode, and attentions, the names of the blocks that are measured. There is no default model."""
        fields.update(tokens=tokens, targets=targets)
        return self._ask("heads", model, "json", request_id, fields)

    def stream_worth(self, tokens=None, targets=None, *, model=None, request_id=None, **fields):
        """Like worth, but yields {"attention", "head", "loss"} for each head, and the whole response last. Finish the
        loop before the next call on this client."""
        fields.update(tokens=tokens, targets=targets, stream=True)
        return self._events("heads", model, request_id, fields)

    def generate(self, tokens=None, *, model=None, request_id=None, **fields):
        """Generates tokens after tokens, or after text=.... Returns "sequences", a list for each item, of dicts with
        "tokens", "score", "finish", "log_probabilities" and, after text, "text". Fields are those of the request, such
        as max_tokens, temperature, returns, seed, beams, stop, return_top. For encoder-decoder models, tokens is the
        source, and targets the first tokens of the output. There is no default model."""
        fields.update(tokens=tokens)
        return self._ask("generate", model, "json", request_id, fields)

    def stream(self, tokens=None, *, model=None, request_id=None, **fields):
        """Like generate, but yields events as dicts: {"item", "sequence", "token", "log_probability"}, with "text" after
        text and "top" on request; {"item", "sequence", "finish", "score"}; {"usage"} last. Finish the loop before the
        next call on this client; ending it early closes the connection."""
        fields.update(tokens=tokens, stream=True)
        return self._events("generate", model, request_id, fields)

    def _events(self, what, model, request_id, fields):
        """The events of a stream."""
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
        """The descriptions of all models, by name."""
        return {model["name"]: model for model in self._send("GET", "/v1/models")["models"]}

    def close(self):
        """Closes the connection. The next request opens another one."""
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _ask(self, what, model, form, request_id, fields, layer=None):
        return self._send("POST", *self._request(what, model, form, request_id, fields, layer))

    def _request(self, what, model, form, request_id, fields, layer=None):
        """Path, body and headers of a request."""
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
        """A response whose body is not read yet; raises Error for an error status."""
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
        """Sends a request, once more if the server has closed a connection that was used before. A repetition is safe:
        requests change nothing on the server."""
        used = self._connection.sock is not None
        try:
            try:
                self._connection.request(method, path, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the server may reject a large body before it has read it
            return self._connection.getresponse()
        except ConnectionError:
            self._connection.close()
            if not used:
                raise
            return self._exchange(method, path, body, headers)


def _problem(data):
    """The problem in an error's body; a body of another form comes from a proxy."""
    try:
        problem = json.loads(data)
    except ValueError:
        problem = None
    return problem if isinstance(problem, dict) else {"detail": data[:200].decode("utf-8", "replace").strip()}


# --- arrays ---

def _shape(value):
    """The shape of nested lists or of an array; None if items differ in shape."""
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
    """Lists, arrays and lists of arrays as nested lists."""
    if isinstance(value, (list, tuple)):
        return [_lists(part) for part in value]
    if isinstance(value, dict):
        return {name: _lists(part) for name, part in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def _bytes(name, value, shape):
    """The bytes of a field's numbers in the body."""
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
    """The array whose bytes are data."""
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
    """Numbers from the machine's byte order to little-endian, or back."""
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
    """A base64 object; for a ragged batch, a list with one per item. Empty lists have no width and stay lists, and so
    does a batch that contains one."""
    shape = _shape(value)
    if shape is None:
        items = [_coded(name, item) for item in value]
        return items if all(isinstance(item, dict) for item in items) else value
    if 0 in shape and isinstance(value, (list, tuple)):
        return value
    return {"dtype": "F32", "shape": shape, "base64": base64.b64encode(_bytes(name, value, shape)).decode()}


def _decoded(value):
    """Base64 objects and thumbnails as arrays; any other value unchanged."""
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
    text += b" " * (-len(text) % 8)  # aligns the numbers
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
