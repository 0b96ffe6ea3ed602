// fetch: one request of the Open Inference Protocol v2 with Node's fetch, all numbers binary.
// Arguments: the URL. Prints the outputs as a line of hexadecimal bytes.
const queries = Float32Array.from([1, 0, 0, 1, 0, 1, 1, 0]);
const json = new TextEncoder().encode(JSON.stringify({
  id: 'ä"', inputs: [{name: 'queries', shape: [1, 2, 4], datatype: 'FP32',
    parameters: {binary_data_size: queries.byteLength}}],
  outputs: [{name: 'outputs', parameters: {binary_data: true}}],
}));
const body = new Uint8Array(json.length + queries.byteLength);
body.set(json);
body.set(new Uint8Array(queries.buffer), json.length);

const answer = await fetch(process.argv[2], {
  method: 'POST', headers: {'inference-header-content-length': String(json.length)}, body,
});
if (!answer.ok) throw new Error((await answer.json()).error);
const bytes = Buffer.from(await answer.arrayBuffer());
const length = Number(answer.headers.get('inference-header-content-length'));
const message = JSON.parse(bytes.subarray(0, length));
if (message.id !== 'ä"') throw new Error(`the id came back as ${message.id}`);
console.log(bytes.subarray(length).toString('hex'));
