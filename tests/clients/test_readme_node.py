"""test_readme_node: the commands of the documentation that Node runs do what they say, as tests/http/test_readme.py tells."""
import unittest

from needs import needs
from test_readme import Commands


@needs("clients", "node")
class Checked(Commands):
    def test_checked_commands(self):
        self.run_all(lambda command: "node " in command)


if __name__ == "__main__":
    unittest.main()
