"""test_huggingface: Hugging Face's own client, npm's @huggingface/inference, on the paths of text-embeddings-inference."""
import json
import os
import subprocess
import unittest

from needs import needs, npm
from support import PATIENCE, ROOT, Server
from test_openai import SIZES
from test_tei import KEY, ON, TEXTS, Served, write_words


@needs("clients", "node", "npm:@huggingface/inference")
class Client(Served):
    def call(self, *calls, key=KEY, server=None):
        calls = [dict(zip(("call", "path", "arguments"), one)) for one in calls]
        done = subprocess.run(["node", os.path.join(ROOT, "tests", "clients", "huggingface.mjs"), npm("clients"),
                               f"http://127.0.0.1:{(server or self.server).port}", key],
                              input=json.dumps(calls), capture_output=True, text=True, timeout=PATIENCE, check=True)
        return json.loads(done.stdout)

    def test_its_own_client(self):
        results = self.call(("featureExtraction", "/embed", {"inputs": TEXTS}),
                            ("featureExtraction", "/embed", {"inputs": TEXTS[0], "normalize": False}),
                            ("featureExtraction", "/embed", {"inputs": []}))
        self.assertEqual(results[0]["value"], self.embed(inputs=TEXTS))
        self.assertEqual(results[1]["value"], self.embed(inputs=TEXTS[0], normalize=False))
        self.assertEqual((results[2]["status"], results[2]["body"]["error_type"]), (400, "Validation"))
        self.assertIn("the list is empty", results[2]["message"])

    def test_keys(self):
        path = os.path.join(self.folder.name, "keys")
        with open(path, "w", encoding="utf-8") as file:
            file.write(KEY + "\n")
        os.chmod(path, 0o600)
        server = Server({"models": write_words(self.folder.name)}, *ON, "--api-key-file", path,
                        "--default-model", "vectors")
        self.addCleanup(server.stop)
        request = ("featureExtraction", "/embed", {"inputs": "a"})
        refused = self.call(request, key="hf_somebody_else_0123", server=server)[0]
        self.assertEqual((refused["status"], refused["body"]["error_type"]), (401, "Validation"))
        self.assertEqual(len(self.call(request, server=server)[0]["value"][0]), SIZES["width"])


if __name__ == "__main__":
    unittest.main()
