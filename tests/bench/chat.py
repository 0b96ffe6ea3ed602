"""chat: what a chat costs beyond the completion of the same prompt, and how soon the second turn of a conversation begins."""
import http.client
import json
import os
import time

from process import cpu_exact_ms
from support import JSON_TYPE, Server
from table import line

TEMPLATE = "{% for m in messages %}h{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}w{% endif %}"
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
TOKENIZER = {"model": {"type": "BPE", "vocab": {piece: i for i, piece in enumerate(
    ["h", "e", "l", "o", "Ġ", "w", "r", "d", "he", "ll", "hell", "hello", "<|end|>"])},
    "merges": ["h e", "l l", "he ll", "hell o"]},
    "pre_tokenizer": BYTES, "decoder": BYTES,
    "added_tokens": [{"id": 12, "content": "<|end|>", "special": True}]}
RANDOM = {"transformer": {"random": {"seed": 1}}, "kind": "decoder", "tokenizer": "letters", "vocabulary": 16}
TURNS, TOKENS = 12, 256


def serve(folder, **model):
    letters = os.path.join(folder, "letters")
    if not os.path.exists(letters):
        os.mkdir(letters)
        for name, text in ("tokenizer.json", json.dumps(TOKENIZER)), ("chat_template.jinja", TEMPLATE):
            with open(os.path.join(letters, name), "w", encoding="utf-8") as file:
                file.write(text)
    return Server({"models": {"m": dict(RANDOM, **dict(model, tokenizer=letters))}, "prefix_cache_bytes": 1 << 28})


def ask(server, path, **request):
    """Seconds to the first event, and the number of events."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    begun = time.monotonic()
    connection.request("POST", path, json.dumps(dict(request, stream=True)).encode(), JSON_TYPE)
    response = connection.getresponse()
    assert response.status == 200, response.read()
    response.readline()
    first = time.monotonic() - begun
    events = response.read().count(b"data: ")
    connection.close()
    return first, events


def chat_tokens(folder):
    """The processor time of a streamed token, in turns with completions of the rendered prompt."""
    server = serve(folder, layers=2, width=32, heads=4, feed_forward=64)
    messages = [{"role": "user", "content": "hello hello"}]
    options = {"max_tokens": TOKENS, "ignore_eos": True}
    forms = {"/v1/completions": {"prompt": "hhello hello<|end|>w"}, "/v1/chat/completions": {"messages": messages}}
    spent = {path: [] for path in forms}
    for turn in range(TURNS + 1):
        for path, form in forms.items():
            before = cpu_exact_ms(server.pid)
            for seed in range(8):
                ask(server, path, seed=seed, **form, **options)
            if turn:
                spent[path].append((cpu_exact_ms(server.pid) - before) * 1e3 / 8 / TOKENS)
    server.stop()
    completion, chat = (sorted(spent[path])[TURNS // 2] for path in forms)
    line(f"chat, a streamed token of a toy ({TOKENS} a message), CPU", f"{chat:.2f} us", f"{completion:.2f} us, completion",
         chat / completion, "<= +2 us", chat <= completion + 2)


def chat_turns(folder):
    """The time to the first token of the first and of the second turn of a conversation of 1000 tokens."""
    server = serve(folder, layers=12, width=512, heads=8, feed_forward=2048)
    firsts, seconds = [], []
    for turn in range(5):
        said = [{"role": "user", "content": "helo"[turn % 4] * 3 + " hello" * 500}]
        options = {"max_tokens": 16, "ignore_eos": True, "logit_bias": {"12": -100}}
        firsts.append(ask(server, "/v1/chat/completions", messages=said, seed=turn, **options)[0])
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        connection.request("POST", "/v1/chat/completions", json.dumps(dict(options, messages=said, seed=turn)).encode(), JSON_TYPE)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        said += [answer["choices"][0]["message"], {"role": "user", "content": "hello hello hello"}]
        seconds.append(ask(server, "/v1/chat/completions", messages=said, seed=turn, **options)[0])
    server.stop()
    first, second = (sorted(times)[2] for times in (firsts, seconds))
    line(f"first token of the second turn of a chat of {answer['usage']['prompt_tokens']} tokens", f"{second * 1e3:.1f} ms",
         f"{first * 1e3:.0f} ms, first turn", second / first, "< 0.2", second / first < 0.2)


def chat(folder):
    chat_tokens(folder)
    chat_turns(folder)
