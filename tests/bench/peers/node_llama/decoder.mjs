// decoder: tokens a second of llama.cpp, of sequences that go on together and of a prompt.
//
//     node decoder.mjs PEERS MODEL.gguf THREADS VOCABULARY
//
// Batches are filled here, through the bindings, so that no queue and no tokenizer is measured.
// Prints {case: tokens a second}, the best of some turns: "x8" is of the steps behind 16 tokens.
const [peers, path, threads, vocabulary] = process.argv.slice(2);
const { getLlama } = await import(`${peers}/node_modules/node-llama-cpp/dist/index.js`);

const TEXT = 16, TOKENS = 64, PROMPT = 512, TURNS = 3;

const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, logLevel: "error" });
const { AddonModel, AddonContext, AddonSampler } = llama._bindings;
const model = new AddonModel(path, { addonExports: llama._bindings, useMmap: true, gpuLayers: 0 });
if (!await model.init()) throw new Error(`llama.cpp does not load ${path}`);

let drawn = 1;
const draw = (count) => Uint32Array.from({ length: count }, () => {
  drawn = (drawn * 1103515245 + 12345) % 2147483648;
  return drawn % Number(vocabulary);
});

async function openContext(sequences, rows) {
  const context = new AddonContext(model, {
    contextSize: 1024 * sequences, batchSize: rows, sequences, embeddings: false,
    flashAttention: "auto", threads: Number(threads) });
  if (!await context.init()) throw new Error("no context");
  return context;
}

function greedy() {
  const sampler = new AddonSampler(model);
  sampler.applyConfig({ temperature: 0 });
  return sampler;
}

// One batch: the lists behind the position, and the token that follows each.
async function step(context, samplers, lists, position) {
  context.initBatch(lists.reduce((sum, list) => sum + list.length, 0));
  const at = lists.map((list, i) =>
    context.addToBatch(i, position, list, Uint32Array.of(list.length - 1))[0]);
  await context.decodeBatch();
  return Promise.all(at.map((place, i) => context.sampleToken(place, samplers[i])));
}

async function decode(sequences) {
  const context = await openContext(sequences, Math.max(512, sequences * TEXT));
  const samplers = Array.from({ length: sequences }, greedy);
  let best = Infinity;
  for (let turn = 0; turn < TURNS; turn++) {
    for (let i = 0; i < sequences; i++) context.removeTokenCellsFromSequence(i, 0, -1);
    let next = await step(context, samplers, samplers.map(() => draw(TEXT)), 0);
    const begin = performance.now();
    for (let t = 0; t < TOKENS; t++)
      next = await step(context, samplers, next.map((token) => Uint32Array.of(token)), TEXT + t);
    best = Math.min(best, performance.now() - begin);
  }
  context.dispose?.();
  return sequences * TOKENS / best * 1000;
}

async function prompt() {
  const context = await openContext(1, PROMPT), samplers = [greedy()];
  let best = Infinity;
  for (let turn = 0; turn < TURNS; turn++) {
    context.removeTokenCellsFromSequence(0, 0, -1);
    const text = draw(PROMPT), begin = performance.now();
    await step(context, samplers, [text], 0);
    best = Math.min(best, performance.now() - begin);
  }
  return PROMPT / best * 1000;
}

const found = {};
for (const sequences of [1, 8, 16]) found[`x${sequences}`] = await decode(sequences);
found.text = await prompt();
console.log(JSON.stringify(found));
process.exit(0);
