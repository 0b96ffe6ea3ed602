// encoder_server: embeddings over HTTP with Node and ONNX Runtime:
//     node encoder_server.js FOLDER GRAPH PROCESSES THREADS
//
// POST {"tokens": [[101, 7592, ...], ...]} to any path gives {"outputs": [[...], ...]}, the mean of
// each item's last hidden state. FOLDER and GRAPH are encoder.js's; each process has THREADS. Prints
// "listening on 127.0.0.1:PORT", a free one; SIGTERM ends it.
const cluster = require('cluster');
const http = require('http');

function primary(processes) {
  let ready = 0;
  cluster.on('listening', (worker, address) => {
    if (++ready === processes) console.log(`listening on 127.0.0.1:${address.port}`);
  });
  process.on('SIGTERM', () => {
    for (const worker of Object.values(cluster.workers)) worker.process.kill();
    process.exit(0);
  });
  for (let i = 0; i < processes; i++) cluster.fork();
}

async function worker(folder, graph, threads) {
  const {embed, open} = require('./encoder.js');
  const session = await open(folder, graph, threads);

  async function answer(body) {
    const {data, dims: [items, width]} = await embed(session, JSON.parse(body).tokens);
    const outputs = Array.from({length: items},
                               (_, i) => Array.from(data.subarray(i * width, (i + 1) * width)));
    return JSON.stringify({outputs});
  }

  const server = http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', async () => {
      const text = await answer(Buffer.concat(chunks));
      response.writeHead(200, {'content-type': 'application/json',
                               'content-length': Buffer.byteLength(text)});
      response.end(text);
    });
  });
  // A run holds up whatever else the process does: with the usual 5 s a long one costs connections.
  server.keepAliveTimeout = 120000;
  server.listen(0, '127.0.0.1');
}

const [folder, graph, processes, threads] = process.argv.slice(2);
if (cluster.isPrimary) primary(Number(processes));
else worker(folder, graph, Number(threads));
