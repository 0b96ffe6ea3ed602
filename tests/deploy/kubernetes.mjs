// kubernetes: does each object on standard input (a list of {schema, data}) fit Kubernetes' schema?
// `node kubernetes.mjs NODE_MODULES` prints, for each, its errors and the fields that no schema knows.
import { readFileSync } from "node:fs";

// The schemas let unknown fields pass. But a field that a schema knows is one that its validator
// reads; what was never read is a slip of the pen. `read` maps objects to the names read of them.
function watched(value, read) {
  if (value === null || typeof value !== "object") return value;
  const names = new Set();
  read.set(value, names);
  const parts = new Map();
  return new Proxy(value, {
    get(target, name) {
      if (!Object.hasOwn(target, name)) return target[name];
      names.add(name);
      if (!parts.has(name)) parts.set(name, watched(target[name], read));
      return parts.get(name);
    },
  });
}

function* unread(value, read, path) {
  if (value === null || typeof value !== "object") return;
  for (const name of Object.keys(value)) {
    if (!read.get(value)?.has(name)) yield `${path}/${name}`;
    else yield* unread(value[name], read, `${path}/${name}`);
  }
}

const results = [];
for (const { schema, data } of JSON.parse(readFileSync(0, "utf8"))) {
  const { validate } = await import(`${process.argv[2]}/${schema}.js`);
  const read = new Map();
  const errors = validate(watched(data, read)) ? [] : validate.errors;
  results.push({
    errors: errors.map((e) => `${e.instancePath}: ${e.keyword}`),
    unknown: [...unread(data, read, "")],
  });
}
console.log(JSON.stringify(results));
