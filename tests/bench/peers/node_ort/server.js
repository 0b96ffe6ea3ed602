// server: Node and ONNX Runtime, two processes on one free port: node server.js MODELS
//
// Prints "listening on 127.0.0.1:PORT"; SIGTERM ends it. MODELS is the folder of make_onnx.py.
const cluster = require('cluster');
const http = require('http');

const PROCESSES = 2;

function primary() {
  let ready = 0;
  cluster.on('listening', (worker, address) => {
    if (++ready === PROCESSES) console.log(`listening on 127.0.0.1:${address.port}`);
  });
  process.on('SIGTERM', () => {
    for (const worker of Object.values(cluster.workers)) worker.process.kill();
    process.exit(0);
  });
  for (let i = 0; i < PROCESSES; i++) cluster.fork();
}

async function worker(models) {
  const ort = require('onnxruntime-node');
  const sessions = {};
  for (const width of [100, 512]) {
    sessions[width] = await ort.InferenceSession.create(
      `${models}/mha${width}.onnx`, {intraOpNumThreads: 1, interOpNumThreads: 1});
  }

  function tensorOf(items) {
    const shape = [items.length, items[0].length, items[0][0].length];
    const flat = new Float32Array(shape[0] * shape[1] * shape[2]);
    let i = 0;
    for (const rows of items) for (const row of rows) for (const x of row) flat[i++] = x;
    return new ort.Tensor('float32', flat, shape);
  }

  function maskOf(lengths, k) {
    const mask = new Int32Array(lengths.length * k);
    lengths.forEach((length, i) => mask.fill(1, i * k, i * k + length));
    return new ort.Tensor('int32', mask, [lengths.length, k]);
  }

  function nest({data, dims: [b, q, d]}) {
    const row = (i) => Array.from(data.subarray(i * d, (i + 1) * d));
    return Array.from({length: b}, (_, i) => Array.from({length: q}, (_, j) => row(i * q + j)));
  }

  async function attention(body) {
    const request = JSON.parse(body);
    const inputs = {queries: tensorOf(request.queries), keys: tensorOf(request.keys),
                    values: tensorOf(request.values)};
    const [, k, width] = inputs.keys.dims;
    inputs.mask = maskOf(request.valid_lens, k);
    const {outputs} = await sessions[width].run(inputs);
    return JSON.stringify({outputs: nest(outputs)});
  }

  http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', async () => {
      const text = await attention(Buffer.concat(chunks));
      response.writeHead(200, {'content-type': 'application/json',
                               'content-length': Buffer.byteLength(text)});
      response.end(text);
    });
  }).listen(0, '127.0.0.1');
}

if (cluster.isPrimary) primary();
else worker(process.argv[2]);
