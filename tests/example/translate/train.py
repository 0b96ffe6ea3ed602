#!/usr/bin/env python3
"""train: makes the model that translates anew: the textbook's Transformer, and the files that a server and translate.py
need. Debian: python3-torch, and six minutes of one core.

    /usr/bin/python3 tests/example/translate/train.py [STEPS]

The same PyTorch on the same kind of machine writes the same files.
"""
import itertools
import json
import math
import os
import struct
import sys

import torch
from torch import nn
from torch.nn import functional

import grammar

HERE = os.path.dirname(os.path.abspath(__file__))
PAD, BEGIN, END = 0, 1, 2
RESERVED = ["<pad>", "<bos>", "<eos>"]
WIDTH, HEADS, FORWARD, LAYERS, DROPOUT = 64, 4, 128, 2, 0.1
HELD_OUT, BATCH, STEPS, RATE = 200, 128, 2500, 3e-3
SAMPLE = 20000  # sentences that have all words
TOLD = 250  # steps of which the mean loss is printed
CONFIGURATION = {
    "model_type": "transformer", "heads": HEADS, "norm": "post", "norm_eps": 1e-5, "activation": "relu",
    "positions": "sinusoid", "scale_embedding": True, "tie_output": False, "begin": BEGIN, "end": END, "pad": PAD}


# --- the model, with the names of the textbook's blocks ---

def positions(count):
    """Sines in the even columns, cosines in the odd ones."""
    angle = torch.arange(count)[:, None] / 10000 ** (torch.arange(0, WIDTH, 2) / WIDTH)
    return torch.stack([angle.sin(), angle.cos()], 2).flatten(1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, rows, keys, hidden):
        """`hidden` [b, 1, q or 1, k] is true where a row does not see a key."""
        def split(x):
            return x.view(*x.shape[:2], HEADS, -1).transpose(1, 2)
        q, k, v = split(self.W_q(rows)), split(self.W_k(keys)), split(self.W_v(keys))
        scores = (q @ k.transpose(2, 3) / math.sqrt(q.shape[3])).masked_fill(hidden, -math.inf)
        return self.W_o((scores.softmax(3) @ v).transpose(1, 2).flatten(2))


class AddNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm(WIDTH)

    def forward(self, rows, branch):
        return self.ln(rows + functional.dropout(branch, DROPOUT, self.training))


class Forward(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense1, self.dense2 = nn.Linear(WIDTH, FORWARD), nn.Linear(FORWARD, WIDTH)

    def forward(self, rows):
        return self.dense2(self.dense1(rows).relu())


class EncoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.addnorm1, self.ffn, self.addnorm2 = Attention(), AddNorm(), Forward(), AddNorm()

    def forward(self, rows, hidden):
        rows = self.addnorm1(rows, self.attention(rows, rows, hidden))
        return self.addnorm2(rows, self.ffn(rows))


class DecoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention1, self.addnorm1, self.attention2, self.addnorm2 = Attention(), AddNorm(), Attention(), AddNorm()
        self.ffn, self.addnorm3 = Forward(), AddNorm()

    def forward(self, rows, later, memory, hidden):
        rows = self.addnorm1(rows, self.attention1(rows, rows, later))
        rows = self.addnorm2(rows, self.attention2(rows, memory, hidden))
        return self.addnorm3(rows, self.ffn(rows))


class Half(nn.Module):
    """The encoder or the decoder: an embedding and blocks."""

    def __init__(self, words, block):
        super().__init__()
        self.embedding = nn.Embedding(words, WIDTH)
        self.blks = nn.ModuleDict({f"block{i}": block() for i in range(LAYERS)})
        nn.init.normal_(self.embedding.weight, 0, WIDTH ** -0.5)

    def embed(self, tokens):
        rows = self.embedding(tokens) * math.sqrt(WIDTH) + positions(tokens.shape[1])
        return functional.dropout(rows, DROPOUT, self.training)


class Transformer(nn.Module):
    def __init__(self, english, french):
        super().__init__()
        self.encoder, self.decoder = Half(english, EncoderBlock), Half(french, DecoderBlock)
        self.decoder.dense = nn.Linear(WIDTH, french)

    def encode(self, source):
        """The memory, and where it is hidden."""
        rows, hidden = self.encoder.embed(source), (source == PAD)[:, None, None]
        for block in self.encoder.blks.values():
            rows = block(rows, hidden)
        return rows, hidden

    def decode(self, target, memory, hidden):
        """The logits of the token behind each."""
        rows = self.decoder.embed(target)
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)[None, None]
        for block in self.decoder.blks.values():
            rows = block(rows, later, memory, hidden)
        return self.decoder.dense(rows)


# --- words and numbers ---

class Vocabulary:
    def __init__(self, texts):
        self.words = RESERVED + sorted({word for text in texts for word in text.split()})
        self.number = {word: i for i, word in enumerate(self.words)}

    def tokens(self, text):
        return [self.number[word] for word in text.split()] + [END]

    def write(self, name):
        with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
            file.writelines(word + "\n" for word in self.words)


def batches_of(pairs, english, french):
    """(sources, targets) [BATCH, of the longest]"""
    while True:
        some = list(itertools.islice(pairs, BATCH))
        yield padded([english.tokens(a) for a, _ in some]), padded([french.tokens(b) for _, b in some])


def padded(lists):
    longest = max(map(len, lists))
    return torch.tensor([tokens + [PAD] * (longest - len(tokens)) for tokens in lists])


def write_model(model):
    """Numbers that bfloat16 has, as such."""
    header, data = {}, b""
    for name, tensor in sorted(model.state_dict().items()):
        raw = tensor.bfloat16().view(torch.int16).numpy().tobytes()
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(HERE, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    with open(os.path.join(HERE, "config.json"), "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}"
                                      for key, value in CONFIGURATION.items()) + "\n}\n")


# --- training ---

def rate_of(step, steps):
    """Rises for a while, then falls along half a cosine."""
    return min(1, step / 400) * (0.505 + 0.495 * math.cos(math.pi * step / steps))


def train(model, batches, steps):
    """Each batch is new. Prints the loss per word."""
    optimizer = torch.optim.Adam(model.parameters(), RATE, betas=(0.9, 0.98))
    model.train()
    total = 0.0
    for step in range(1, steps + 1):
        source, target = next(batches)
        fed = functional.pad(target[:, :-1], (1, 0), value=BEGIN)
        logits = model.decode(fed, *model.encode(source))
        loss = functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
        for group in optimizer.param_groups:
            group["lr"] = RATE * rate_of(step, steps)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        total += float(loss)
        if step % TOLD == 0:
            print(f"step {step:5}: loss {total / TOLD:.4f}", flush=True)
            total = 0.0


@torch.no_grad()
def translate(model, sources):
    """Greedily: the tokens of each, without the end."""
    model.eval()
    memory, hidden = model.encode(padded(sources))
    target = torch.full((len(sources), 1), BEGIN)
    for _ in range(grammar.LONGEST + 6):
        target = torch.cat([target, model.decode(target, memory, hidden)[:, -1:].argmax(2)], 1)
    return [tokens[1:tokens.index(END)] if END in tokens else tokens[1:] for tokens in target.tolist()]


def main(steps):
    torch.manual_seed(1)
    torch.set_num_threads(1)  # of two, each would wait for the other most of the time
    torch.use_deterministic_algorithms(True)
    held_out = dict(itertools.islice(grammar.sentences(2, form=0), HELD_OUT))
    english, french = (Vocabulary(texts) for texts in zip(*itertools.islice(grammar.sentences(3), SAMPLE)))
    model = Transformer(len(english.words), len(french.words))
    print(f"{len(english.words)} and {len(french.words)} words; {sum(p.numel() for p in model.parameters())} parameters")
    train(model, batches_of(grammar.sentences(1, without=held_out), english, french), steps)
    for tensor in model.state_dict().values():
        tensor.copy_(tensor.bfloat16())
    found = translate(model, [english.tokens(a) for a in held_out])
    scores = [grammar.bleu([french.words[token] for token in tokens], right.split())
              for tokens, right in zip(found, held_out.values())]
    print(f"of {len(held_out)} other sentences, greedily: BLEU {sum(scores) / len(scores):.4f}, "
          f"{scores.count(1)} without a fault")
    write_model(model)
    english.write("english.txt")
    french.write("french.txt")
    with open(os.path.join(HERE, "held_out.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{a} = {b}\n" for a, b in held_out.items())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS)
