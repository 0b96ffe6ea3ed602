"""pieces: SentencePiece, of which tokenizers of that kind were made: `/usr/bin/python3 pieces.py MODEL`

It knows no special tokens in a text and no pairs; its ids are those of a tokenizer that keeps them.
"""
import json
import sys

import sentencepiece

processor = sentencepiece.SentencePieceProcessor(model_file=sys.argv[1])
for line in sys.stdin.buffer:
    question = json.loads(line)
    if "pair" in question:
        answer = {"error": "no pairs"}
    else:
        ids = question["ids"] if "ids" in question else processor.encode(question["text"])
        answer = {"bare": ids, "whole": processor.decode(ids)}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
