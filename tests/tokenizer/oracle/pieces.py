"""pieces: SentencePiece, of which tokenizers of that kind were made: `/usr/bin/python3 pieces.py MODEL`

Control tokens in a text are text to it, and it shows none of them.
"""
import json
import sys

import sentencepiece

processor = sentencepiece.SentencePieceProcessor(model_file=sys.argv[1])
for line in sys.stdin.buffer:
    question = json.loads(line)
    ids = question["ids"] if "ids" in question else processor.encode(question["text"])
    sys.stdout.write(json.dumps({"ids": ids, "text": processor.decode(ids)}) + "\n")
    sys.stdout.flush()
