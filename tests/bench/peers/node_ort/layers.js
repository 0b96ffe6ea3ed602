// layers: milliseconds of ONNX Runtime's layers on one thread, as JSON: node layers.js MODELS [SECONDS]
//
// Per shape the best of SECONDS, with a mask of the visible keys and, where all are visible, without
// one. The padding is computed: ONNX Runtime knows no lengths of items.
const ort = require('onnxruntime-node');

const SHAPES = [
  {b: 2, q: 4, k: 6, d: 100},
  {b: 1, q: 16, k: 16, d: 512},
  {b: 8, q: 64, k: 64, d: 512, ragged: true},
  {b: 32, q: 128, k: 128, d: 512, ragged: true},
  {b: 1, q: 4096, k: 4096, d: 512},
];
const AT_LEAST = 5;

function randoms(...shape) {
  const x = new Float32Array(shape.reduce((a, b) => a * b));
  for (let i = 0; i < x.length; i++) x[i] = Math.random() * 2 - 1;
  return new ort.Tensor('float32', x, shape);
}

function maskOf({b, k, ragged}) {
  const mask = new Int32Array(b * k);
  for (let i = 0; i < b; i++) {
    const length = ragged ? k / 2 + Math.floor(Math.random() * (k / 2 + 1)) : k;
    mask.fill(1, i * k, i * k + length);
  }
  return new ort.Tensor('int32', mask, [b, k]);
}

async function best(session, inputs, seconds) {
  let least = Infinity;
  const until = performance.now() + seconds * 1e3;
  for (let turn = 0; turn < AT_LEAST || performance.now() < until; turn++) {
    const begun = performance.now();
    await session.run(inputs);
    least = Math.min(least, performance.now() - begun);
  }
  return least;
}

async function measure(models, shape, seconds) {
  const {b, q, k, d} = shape;
  const open = (name) => ort.InferenceSession.create(
    `${models}/${name}.onnx`,
    {intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential'});
  const inputs = {queries: randoms(b, q, d), keys: randoms(b, k, d), values: randoms(b, k, d)};
  const result = {...shape};
  result.masked = await best(await open(`mha${d}`), {...inputs, mask: maskOf(shape)}, seconds);
  if (!shape.ragged) result.all = await best(await open(`mha${d}-all`), inputs, seconds);
  return result;
}

async function main(models, seconds = 1) {
  const results = [];
  for (const shape of SHAPES) results.push(await measure(models, shape, Number(seconds)));
  console.log(JSON.stringify(results));
}

main(...process.argv.slice(2));
