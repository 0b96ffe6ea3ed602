"""test_table: every call of tests/clients/table.mjs: what each client from npm resolves to, or the sentence that it shows;
and the table of them in server/docs/clients.md."""
import json
import math
import os
import re
import subprocess
import tempfile
import unittest

from needs import needs, npm
from support import PATIENCE, ROOT, Server, ServerCase, wait_until
from test_chat import TEMPLATE, write_letters
from test_openai import RANDOM, SIZES
from test_tei import ON, write_words

PACKAGES = ("openai", "@langchain/openai", "@langchain/cohere", "@llamaindex/openai", "ai", "@ai-sdk/openai",
            "@ai-sdk/openai-compatible", "@ai-sdk/cohere", "cohere-ai", "ollama", "@huggingface/inference")
TEXTS, DOCUMENTS, QUERY = ["the cat sat", "on a mat ."], ["a mat", "the cat"], "the cat"
DRAWN = {"model": "gpt", "prompt": "hello w", "max_tokens": 6, "seed": 5}
TALK = {"model": "gpt", "messages": [{"role": "user", "content": "hello w"}], "max_tokens": 6, "seed": 5}
VARIABLES = {"chat_template_kwargs": {"word": "hell"}}
SAID = [{"role": "system", "content": "w"}, {"role": "user", "content": "\n".join(TEXTS)}, {"role": "assistant", "content": "d"}, *TALK["messages"]]
NO_TOOLS, NO_STRUCTURE = "tools are not supported", "structured output is not supported"
NO_IMAGES, NO_OTHERS = "images, audio and files are not supported", "this kind of chat is not supported: use POST /v1/chat/completions"
LATE = "the deadline has passed"
NO_OLLAMA = "Ollama's API is not supported: "


def near(one, other):
    """Clients add float64 and read base64: numbers of float32 are the same ones, but for how they are written."""
    if isinstance(one, list):
        return len(one) == len(other) and all(map(near, one, other))
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-7)


@needs("clients", "node", *(f"npm:{name}" for name in PACKAGES))
class Table(ServerCase):
    @classmethod
    def start(cls):
        cls.folder = tempfile.TemporaryDirectory()
        write_letters(os.path.join(cls.folder.name, "letters"), chat_template=TEMPLATE)
        models = write_words(cls.folder.name)
        del models["ranker"]  # so that one model has /predict
        models["vectors"].update(aliases=["text-embedding-3-small"], truncate=True)
        models["gpt"] = dict(RANDOM, **SIZES, tokenizer=os.path.join(cls.folder.name, "letters"), end=19, kind="decoder")
        return Server({"models": models}, *ON, "--default-model", "vectors")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = subprocess.run(["node", os.path.join(ROOT, "tests", "clients", "table.mjs"), npm("clients"),
                               f"http://127.0.0.1:{cls.server.port}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=PATIENCE, check=False)
        if done.returncode:
            raise AssertionError(done.stderr.decode())
        cls.results = {(one["client"], one["call"]): one for one in json.loads(done.stdout)}

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def post(self, path, request):
        return self.ok(self.server.post(path, request))

    def vectors(self, **more):
        answer = self.post("/v1/embeddings", dict({"model": "vectors", "input": TEXTS}, **more))
        return [one["embedding"] for one in answer["data"]]

    def complete(self, **more):
        return self.post("/v1/completions", dict(DRAWN, **more))["choices"]

    def chat(self, **more):
        return self.post("/v1/chat/completions", dict(TALK, **more))

    def said(self, **more):
        return self.chat(**more)["choices"][0]["message"]["content"]

    def joined(self, events):
        """The choices of a chat that is streamed."""
        choices = {}
        for event in events:
            for one in event["choices"]:
                choice = choices.setdefault(one["index"], {"message": {"role": "assistant", "content": "", "refusal": None}, "index": one["index"], "logprobs": None})
                choice["message"]["content"] += one["delta"].get("content", "")
                if one["logprobs"]:
                    choice["logprobs"] = choice["logprobs"] or {"content": [], "refusal": None}
                    choice["logprobs"]["content"] += one["logprobs"]["content"]
                choice["finish_reason"] = one["finish_reason"]
        return list(choices.values())

    def of(self, client):
        """What each call of it resolves to, or the message that it shows."""
        return {call: one.get("thrown", one.get("value")) for (name, call), one in self.results.items() if name == client}

    def near(self, one, other):
        self.assertTrue(near(one, other), (one, other))

    def shows(self, message, sentence):
        self.assertIsInstance(message, str)
        self.assertIn(sentence, message)

    def test_openai(self):
        got = self.of("openai")
        self.near([one["embedding"] for one in got["embeddings.create"]["data"]], self.vectors())
        self.assertEqual(got["embeddings.create"]["model"], "text-embedding-3-small")
        self.near([one["embedding"] for one in got["embeddings.create, float"]["data"]], self.vectors(dimensions=4))
        [long] = got["embeddings.create, a text that is too long"]["data"]
        self.near([long["embedding"]], self.vectors(input="cat " * 50))
        self.shows(got["embeddings.create, an empty text"], "400 the text is empty")
        self.assertEqual(got["completions.create"]["choices"], self.complete(n=2, logprobs=2))
        events = got["completions.create, stream"]
        self.assertEqual("".join(one["choices"][0]["text"] for one in events if one["choices"]), self.complete()[0]["text"])
        self.assertEqual(events[-1]["usage"]["completion_tokens"], 6)
        penalties = {"presence_penalty": 1, "frequency_penalty": -0.5, "logit_bias": {"13": 2}}
        self.assertEqual(got["completions.create, penalties, logit_bias"]["choices"], self.complete(**penalties))
        self.shows(got["completions.create, best_of"], "400 best_of is not supported")
        self.shows(got["completions.create, suffix"], "400 suffix is not supported")
        self.assertEqual([one["id"] for one in got["models.list"]], ["vectors", "sorter", "gpt", "text-embedding-3-small"])
        self.assertEqual(got["models.retrieve"], self.ok(self.server.get("/v1/models/gpt")))
        self.shows(got["models.retrieve, unknown"], "404 no model has this name. Available: vectors, ")
        self.shows(got["responses.create"], "404 " + NO_OTHERS)
        self.shows(got["moderations.create"], "404 moderation is not supported: use POST /v1/models/NAME/classify")
        for call in ("files.list", "batches.list"):
            self.shows(got[call], "404 this server stores and trains nothing")
        for call in ("audio.speech.create", "images.generate"):
            self.shows(got[call], "404 images, video and audio are not supported")

    def test_openai_chat(self):
        got = self.of("openai")
        two = self.chat(n=2, logprobs=True, top_logprobs=2)
        self.assertEqual(got["chat.completions.create"]["choices"], two["choices"])
        for call, more in (("max_completion_tokens, stop", {"max_completion_tokens": 40, "stop": ["e"]}), ("chat_template_kwargs", VARIABLES),
                           ("penalties, logit_bias", {"presence_penalty": 1, "frequency_penalty": -0.5, "logit_bias": {"13": 2}})):
            self.assertEqual(got[f"chat.completions.create, {call}"]["choices"], self.chat(**more)["choices"])
        events = got["chat.completions.create, stream"]
        self.assertEqual(self.joined(events), two["choices"])
        self.assertEqual(events[-1]["usage"], two["usage"])
        final = got["chat.completions.stream"]["choices"]
        self.assertEqual([dict(one, message=dict(one["message"], parsed=None)) for one in two["choices"]], final)
        self.assertEqual(got["chat.completions.create, a stream that is closed early"]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        self.assertTrue(wait_until(lambda: self.server.metric("attend_running") == 0))
        self.shows(got["chat.completions.create, an error in the stream"], LATE)
        for call, sentence in (("create, an image", NO_IMAGES), ("create, tools", NO_TOOLS), ("runTools", NO_TOOLS), ("parse", NO_STRUCTURE),
                               ("create, audio", "audio is not supported")):
            self.shows(got[f"chat.completions.{call}"], "400 ")
            self.shows(got[f"chat.completions.{call}"], sentence)
        self.shows(got["chat.completions.retrieve"], "404 this server stores and trains nothing")

    def test_langchain_openai(self):
        got, right = self.of("@langchain/openai"), self.vectors()
        self.near(got["OpenAIEmbeddings.embedQuery"], right[0])
        self.near(got["OpenAIEmbeddings.embedDocuments"], right)
        text = self.complete(temperature=0)[0]["text"]
        self.assertEqual((got["OpenAI.invoke"], "".join(got["OpenAI.stream"]), got["OpenAI.batch"]), (text, text, [text] * 2))
        text, usage = self.said(), self.chat()["usage"]
        self.assertEqual((got["ChatOpenAI.invoke"], got["ChatOpenAI.streamEvents"], got["ChatOpenAI.batch"]), (text, text, [text] * 2))
        self.assertEqual(got["ChatOpenAI.stream"]["text"], text)
        self.assertEqual(got["ChatOpenAI.stream"]["usage"]["output_tokens"], usage["completion_tokens"])
        self.assertEqual(got["ChatOpenAI.invoke, messages"], self.said(messages=SAID))
        self.assertEqual(got["ChatOpenAI.invoke, modelKwargs"], self.said(**VARIABLES))
        for call, sentence in (("bindTools", NO_TOOLS), ("withStructuredOutput", NO_STRUCTURE), ("invoke, an image", NO_IMAGES)):
            self.shows(got[f"ChatOpenAI.{call}"], sentence)

    def test_llamaindex(self):
        got, right = self.of("@llamaindex/openai"), self.vectors()
        self.near(got["OpenAIEmbedding.getTextEmbedding"], right[0])
        self.near(got["OpenAIEmbedding.getTextEmbeddingsBatch"], right)
        for call in ("OpenAI.complete", "OpenAI.complete, stream", "OpenAI.chat", "OpenAI.chat, stream"):
            self.assertEqual(got[call], self.said(), call)
        self.assertEqual(got["OpenAI.chat, additionalChatOptions"], self.said(**VARIABLES))
        for call, sentence in (("responseFormat", NO_STRUCTURE), ("tools", NO_TOOLS), ("an image", NO_IMAGES)):
            self.shows(got[f"OpenAI.chat, {call}"], sentence)

    def test_ai_sdk(self):
        right, text = self.vectors(), self.complete(temperature=0)[0]["text"]
        for client in ("ai, @ai-sdk/openai-compatible", "ai, @ai-sdk/openai"):
            with self.subTest(client=client):
                got = self.of(client)
                self.near(got["embed"], right[0])
                self.near(got["embedMany"], right)
                penalised = self.complete(temperature=0, presence_penalty=0.5)[0]["text"]
                self.assertEqual(got["generateText of completion"], {"text": penalised, "tokens": 6})
                self.assertEqual("".join(got["streamText of completion"]), text)
                chat = self.chat()
                said, tokens = chat["choices"][0]["message"]["content"], chat["usage"]["completion_tokens"]
                self.assertEqual(got["generateText of chat"], {"text": said, "tokens": tokens, "prompt": chat["usage"]["prompt_tokens"], "finishReason": "length"})
                self.assertEqual(got["streamText of chat"], {"text": said, "tokens": tokens})
                self.assertEqual(got["generateText of chat, messages"], self.said(messages=SAID, stop=["e"]))
                for call, sentence in (("Output.object", NO_STRUCTURE), ("tools", NO_TOOLS), ("an image", NO_IMAGES)):
                    self.shows(got[f"generateText of chat, {call}"], sentence)
        got = self.of("ai, @ai-sdk/openai-compatible")
        self.assertEqual(got["generateText of chat, chat_template_kwargs"], self.said(**VARIABLES))
        self.shows(got["streamText of chat, an error in the stream"], LATE)
        got = self.of("ai, @ai-sdk/openai")
        [choice] = self.chat(logit_bias={"13": 2}, logprobs=True, top_logprobs=2)["choices"]
        shown = got["generateText of chat, logitBias, logprobs"]
        self.assertEqual(shown["text"], choice["message"]["content"])
        self.assertEqual([one["logprob"] for one in shown["content"]], [one["logprob"] for one in choice["logprobs"]["content"]])
        self.shows(got["generateText of responses"], NO_OTHERS)

    def ranked(self):
        return [(one["index"], one["relevance_score"]) for one in self.post(
            "/v1/rerank", {"model": "vectors", "query": QUERY, "documents": DOCUMENTS})["results"]]

    def test_ai_sdk_cohere(self):
        got = self.of("ai, @ai-sdk/cohere")
        for call in ("rerank, /v1", "rerank, /v2"):
            self.assertEqual([(one["originalIndex"], one["score"]) for one in got[call]], self.ranked())
        self.near(got["embed"], self.vectors()[0])
        self.shows(got["generateText of chat"], NO_OTHERS)

    def test_cohere(self):
        got = self.of("cohere-ai")
        for call, count in (("CohereClient.rerank", 2), ("CohereClient.rerank, maxChunksPerDoc", 1), ("CohereClientV2.rerank", 2)):
            results = [(one["index"], one["relevanceScore"]) for one in got[call]["results"]]
            self.assertEqual(results, self.ranked()[:count])
        self.assertEqual(got["CohereClient.rerank"]["results"][0]["document"], {"text": DOCUMENTS[self.ranked()[0][0]]})
        self.shows(got["CohereClientV2.rerank, maxTokensPerDoc"], "max_tokens_per_doc is not supported")
        self.near(got["CohereClient.embed"]["embeddings"], self.vectors())
        self.near(got["CohereClientV2.embed"]["embeddings"]["float"], self.vectors())
        self.assertEqual((got["CohereClient.embed"]["texts"], got["CohereClientV2.embed"]["texts"]), (TEXTS, TEXTS))
        self.shows(got["CohereClientV2.chat"], NO_OTHERS)

    def test_langchain_cohere(self):
        got = self.of("@langchain/cohere")
        self.assertEqual([(one["index"], one["relevanceScore"]) for one in got["CohereRerank.rerank"]], self.ranked())
        self.assertEqual([one["pageContent"] for one in got["CohereRerank.compressDocuments"]], [DOCUMENTS[i] for i, _ in self.ranked()])
        self.near(got["CohereEmbeddings.embedQuery"], self.vectors()[0])
        self.near(got["CohereEmbeddings.embedDocuments"], self.vectors())

    def test_hugging_face(self):
        got = self.of("@huggingface/inference")
        self.assertEqual(got["featureExtraction"], self.post("/embed", {"inputs": TEXTS}))
        self.assertEqual(got["featureExtraction, /embed"], self.vectors())
        self.assertEqual(got["textClassification, /predict"], self.post("/predict", {"inputs": TEXTS[0]}))
        cosines = self.post("/similarity", {"inputs": {"source_sentence": QUERY, "sentences": DOCUMENTS}})
        self.assertEqual(got["sentenceSimilarity, /similarity"], cosines)
        self.assertEqual(list(got["textGeneration, /v1"]), ["generated_text"])  # another one each time: it sends no seed
        choices = self.chat()["choices"]
        self.assertEqual((got["chatCompletion, /v1"]["choices"], self.joined(got["chatCompletionStream, /v1"])), (choices, choices))
        self.assertEqual(got["chatCompletion, chat_template_kwargs"]["choices"], self.chat(**VARIABLES)["choices"])
        self.shows(got["chatCompletion, tools"], "Failed to perform inference: an HTTP error occurred")  # the sentence is in its httpResponse
        self.shows(got["chatCompletionStream, tools"], NO_TOOLS)

    def test_ollama(self):
        self.assertEqual(set(self.of("ollama")), {"list", "embed", "generate", "chat"})
        for call, message in self.of("ollama").items():
            with self.subTest(call=call):
                self.shows(message, NO_OLLAMA)

    # --- the documentation ---

    def rows(self):
        """A row for each client: the calls that it gets an answer to, and those that it gets a sentence for."""
        calls = {}
        for (client, call), one in self.results.items():
            calls.setdefault(client, ([], []))["thrown" in one].append(call)
        return [f"| `{client.replace(', ', '`, `')}` | {'; '.join(works) or '–'} | {'; '.join(others) or '–'} |" for client, (works, others) in calls.items()]

    def test_the_documentation(self):
        """The table in server/docs/clients.md has the calls above."""
        with open(os.path.join(ROOT, "server", "docs", "clients.md"), encoding="utf-8") as file:
            section = re.search(r"^## Tested clients$(.*?)^## ", file.read(), re.M | re.S)[1]
        told = re.findall(r"^\| `.*\|$", section, re.M)
        self.assertEqual(told, self.rows(), "\n".join(self.rows()))


if __name__ == "__main__":
    unittest.main()
