// lines: what the oracles in JavaScript share: a line of standard input, an answer to it on standard output.
"use strict";

// A line ends at "\n" alone: Node's readline would also cut at U+2028, which may stand in a text.
async function answer(respond) {
  process.stdin.setEncoding("utf8");
  let rest = "";
  for await (const chunk of process.stdin) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    let out = "";
    for (const line of lines) {
      let answered;
      try {
        answered = await respond(JSON.parse(line));
      } catch (error) {
        answered = { error: String(error.message || error) };
      }
      out += JSON.stringify(answered) + "\n";
    }
    if (out && !process.stdout.write(out)) await new Promise((resolve) => process.stdout.once("drain", resolve));
  }
}

module.exports = { answer };
