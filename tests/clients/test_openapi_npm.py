"""test_openapi_npm: /openapi.json is a valid document, by npm's @seriousme/openapi-schema-validator."""
import json
import os
import subprocess
import unittest

from needs import needs, npm
from support import PATIENCE, ROOT, ServerCase


@needs("clients", "node", "npm:@seriousme/openapi-schema-validator")
class Document(ServerCase):
    def test_it_is_valid(self):
        done = subprocess.run(["node", os.path.join(ROOT, "tests", "clients", "openapi.mjs"), npm("clients")], timeout=PATIENCE,
                              input=self.server.get("/openapi.json").body, stdout=subprocess.PIPE, check=True)
        self.assertEqual(json.loads(done.stdout), {"valid": True, "version": "3.1"})


if __name__ == "__main__":
    unittest.main()
