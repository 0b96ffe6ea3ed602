// openapi: is the document on standard input valid OpenAPI 3.1? `node openapi.mjs NODE_MODULES`
import { readFileSync } from "node:fs";

const { Validator } = await import(`${process.argv[2]}/@seriousme/openapi-schema-validator/index.js`);
const validator = new Validator();
const verdict = await validator.validate(JSON.parse(readFileSync(0, "utf8")));
console.log(JSON.stringify({ ...verdict, version: validator.version }));
