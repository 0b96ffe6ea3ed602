// huggingface: what Hugging Face's own client gets from a server that has the paths of text-embeddings-inference.
// `node huggingface.mjs NODE_MODULES ADDRESS KEY` makes the calls on standard input (a list of {call:
// "featureExtraction", path: "/embed", arguments: {…}}) and prints, for each, what it resolves to, or what it throws.
import { readFileSync } from "node:fs";

const { InferenceClient } = await import(`${process.argv[2]}/@huggingface/inference/dist/esm/index.js`);
const client = new InferenceClient(process.argv[4]);

const results = [];
for (const { call, path, arguments: given } of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    results.push({ value: await client[call]({ endpointUrl: process.argv[3] + path, ...given }) });
  } catch (error) {
    const { name, message, httpResponse } = error;
    results.push({ thrown: name, message, status: httpResponse?.status, body: httpResponse?.body });
  }
}
console.log(JSON.stringify(results));
