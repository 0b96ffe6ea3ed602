// encoder: BERT by ONNX Runtime: node encoder.js FOLDER GRAPH THREADS SECONDS MOST_OFF
//
// FOLDER is that of bert_onnx.py, GRAPH a name of it. Prints {case: milliseconds} as JSON: the best of
// SECONDS, or of two runs. Its answers are compared with PyTorch's: they may be off by MOST_OFF.
const fs = require('fs');
const ort = require('onnxruntime-node');

const AT_LEAST = 2;

function open(folder, graph, threads) {
  return ort.InferenceSession.create(`${folder}/${graph}.onnx`, {
    executionProviders: ['cpu'], graphOptimizationLevel: 'all',
    intraOpNumThreads: threads, interOpNumThreads: 1, executionMode: 'sequential'});
}

// Lists of different lengths as tensors: padded with 0 up to the longest.
function padded(items) {
  const longest = Math.max(...items.map((item) => item.length));
  const tokens = new BigInt64Array(items.length * longest);
  const mask = new BigInt64Array(items.length * longest);
  items.forEach((item, i) => {
    item.forEach((token, j) => tokens[i * longest + j] = BigInt(token));
    mask.fill(1n, i * longest, i * longest + item.length);
  });
  const shape = [items.length, longest];
  return {input_ids: new ort.Tensor('int64', tokens, shape),
          attention_mask: new ort.Tensor('int64', mask, shape)};
}

async function embed(session, items) {
  const {embedding} = await session.run(padded(items), ['embedding']);
  return embedding;
}

// The largest difference, against the largest number that is right.
function off(numbers, right) {
  const largest = Math.max(...right.map(Math.abs));
  return Math.max(...right.map((x, i) => Math.abs(x - numbers[i]))) / largest;
}

async function best(run, seconds) {
  let least = Infinity;
  const until = performance.now() + seconds * 1e3;
  for (let turn = 0; turn < AT_LEAST || performance.now() < until; turn++) {
    const begun = performance.now();
    await run();
    least = Math.min(least, performance.now() - begun);
  }
  return least;
}

async function main(folder, graph, threads, seconds, mostOff) {
  const session = await open(folder, graph, Number(threads));
  const cases = JSON.parse(fs.readFileSync(`${folder}/cases.json`, 'utf8'));
  const found = {};
  for (const [name, {tokens, embeddings}] of Object.entries(cases)) {
    const wrong = off((await embed(session, tokens)).data, embeddings.flat());
    if (!(wrong < Number(mostOff))) throw new Error(`${graph}, ${name}: wrong by ${wrong}`);
    const inputs = padded(tokens);
    found[name] = await best(() => session.run(inputs, ['embedding']), Number(seconds));
  }
  console.log(JSON.stringify(found));
}

module.exports = {embed, open};
if (require.main === module) main(...process.argv.slice(2));
