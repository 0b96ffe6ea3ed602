// openai: what OpenAI's own client gets from a server. `node openai.mjs NODE_MODULES ADDRESS KEY` makes the calls on
// standard input (a list of {call: "embeddings.create", arguments: […]}) and prints, for each, what it resolves to, or
// what it throws.
import { readFileSync } from "node:fs";

const { default: OpenAI } = await import(`${process.argv[2]}/openai/index.mjs`);
const client = new OpenAI({ baseURL: process.argv[3], apiKey: process.argv[4], maxRetries: 0 });

// A page of a list is read to its end.
async function whole(value) {
  if (!value?.[Symbol.asyncIterator]) return value;
  const all = [];
  for await (const one of value) all.push(one);
  return all;
}

const results = [];
for (const { call, arguments: given } of JSON.parse(readFileSync(0, "utf8"))) {
  const names = call.split(".");
  const method = names.pop();
  try {
    const resource = names.reduce((of, name) => of[name], client);
    results.push({ value: await whole(await resource[method](...given)) });
  } catch (error) {
    const { status, message, type, param, code, requestID } = error;
    results.push({ thrown: error.constructor.name, status, message, type, param, code, requestID });
  }
}
console.log(JSON.stringify(results));
