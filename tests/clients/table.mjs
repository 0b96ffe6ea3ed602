// table: what clients from npm get, unchanged, from a server. `node table.mjs NODE_MODULES ADDRESS` makes the calls below
// and prints a list of {client, call, value}, or {client, call, thrown}: the message that the client shows.
import { pathToFileURL } from "node:url";

const [modules, address] = process.argv.slice(2);
const load = async (name) => {
  const { createRequire } = await import("node:module");
  const from = createRequire(pathToFileURL(`${modules}/here.js`));
  return import(pathToFileURL(from.resolve(name)));
};

const openai = `${address}/v1`, apiKey = "none", texts = ["the cat sat", "on a mat ."], maxRetries = 0;
const messages = [{ role: "user", content: "hello" }];
const documents = ["a mat", "the cat"], query = "the cat";
const drawn = { model: "gpt", prompt: "hello w", max_tokens: 6, seed: 5 };

async function all(stream) {
  const list = [];
  for await (const one of stream) list.push(one);
  return list;
}

async function callsOfOpenAI() {
  const { default: OpenAI } = await load("openai");
  const client = new OpenAI({ baseURL: openai, apiKey, maxRetries });
  const embed = (more) => client.embeddings.create({ model: "text-embedding-3-small", input: texts, ...more });
  const complete = (more) => client.completions.create({ ...drawn, ...more });
  return {
    "embeddings.create": () => embed({}),
    "embeddings.create, float": () => embed({ encoding_format: "float", dimensions: 4, user: "me" }),
    "embeddings.create, a text that is too long": () => embed({ input: "cat ".repeat(50) }),
    "embeddings.create, an empty text": () => embed({ input: ["a", ""] }),
    "completions.create": () => complete({ n: 2, logprobs: 2 }),
    "completions.create, stream": async () => all(await complete({ stream: true, stream_options: { include_usage: true } })),
    "completions.create, penalties, logit_bias": () =>
      complete({ presence_penalty: 1, frequency_penalty: -0.5, logit_bias: { 13: 2 } }),
    "completions.create, best_of": () => complete({ best_of: 2 }),
    "completions.create, suffix": () => complete({ suffix: "a" }),
    "models.list": async () => all(await client.models.list()),
    "models.retrieve": () => client.models.retrieve("gpt"),
    "models.retrieve, unknown": () => client.models.retrieve("nobody"),
    "chat.completions.create": () => client.chat.completions.create({ model: "gpt", messages }),
    "chat.completions.create, stream": () => client.chat.completions.create({ model: "gpt", messages, stream: true }),
    "responses.create": () => client.responses.create({ model: "gpt", input: "hello" }),
    "moderations.create": () => client.moderations.create({ input: "hello" }),
    "files.list": () => client.files.list(),
    "batches.list": () => client.batches.list(),
    "audio.speech.create": () => client.audio.speech.create({ model: "a", input: "a", voice: "b" }),
    "images.generate": () => client.images.generate({ prompt: "a" }),
  };
}

async function callsOfLangchainOpenAI() {
  const { ChatOpenAI, OpenAI, OpenAIEmbeddings } = await load("@langchain/openai");
  const configuration = { baseURL: openai };
  const embeddings = new OpenAIEmbeddings({ model: "vectors", apiKey, configuration, maxRetries });
  const model = new OpenAI({ model: "gpt", apiKey, configuration, maxRetries, maxTokens: 6, temperature: 0 });
  const chat = new ChatOpenAI({ model: "gpt", apiKey, configuration, maxRetries });
  return {
    "OpenAIEmbeddings.embedQuery": () => embeddings.embedQuery(texts[0]),
    "OpenAIEmbeddings.embedDocuments": () => embeddings.embedDocuments(texts),
    "OpenAI.invoke": () => model.invoke("hello w"),
    "OpenAI.stream": async () => all(await model.stream("hello w")),
    "OpenAI.batch": () => model.batch(["hello w", "hello w"]),
    "ChatOpenAI.invoke": () => chat.invoke("hello"),
  };
}

async function callsOfLlamaIndex() {
  const { OpenAI, OpenAIEmbedding } = await load("@llamaindex/openai");
  const embedding = new OpenAIEmbedding({ model: "vectors", apiKey, baseURL: openai, maxRetries });
  const model = new OpenAI({ model: "gpt", apiKey, baseURL: openai, maxRetries });
  return {
    "OpenAIEmbedding.getTextEmbedding": () => embedding.getTextEmbedding(texts[0]),
    "OpenAIEmbedding.getTextEmbeddingsBatch": () => embedding.getTextEmbeddingsBatch(texts),
    "OpenAI.complete": () => model.complete({ prompt: "hello" }),
    "OpenAI.chat": () => model.chat({ messages }),
  };
}

// What a model of the AI SDK's is asked, whichever provider it is of.
async function callsOfSdk({ vectors, completion, chat }) {
  const { embed, embedMany, generateText, streamText } = await load("ai");
  const given = { prompt: "hello w", maxOutputTokens: 6, temperature: 0, maxRetries };
  return {
    embed: async () => (await embed({ model: vectors, value: texts[0], maxRetries })).embedding,
    embedMany: async () => (await embedMany({ model: vectors, values: texts, maxRetries })).embeddings,
    "generateText of completion": async () => {
      const { text, usage } = await generateText({ model: completion, ...given, presencePenalty: 0.5 });
      return { text, tokens: usage.outputTokens };
    },
    "streamText of completion": () => all(streamText({ model: completion, ...given, onError() {} }).textStream),
    "generateText of chat": () => generateText({ model: chat, ...given }),
  };
}

async function callsOfSdkCompatible() {
  const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
  const provider = createOpenAICompatible({ name: "attend", baseURL: openai, apiKey });
  return callsOfSdk({ vectors: provider.textEmbeddingModel("vectors"), completion: provider.completionModel("gpt"), chat: provider("gpt") });
}

async function callsOfSdkOpenAI() {
  const { generateText } = await load("ai");
  const { createOpenAI } = await load("@ai-sdk/openai");
  const provider = createOpenAI({ baseURL: openai, apiKey });
  return {
    ...(await callsOfSdk({ vectors: provider.textEmbeddingModel("vectors"), completion: provider.completion("gpt"), chat: provider.chat("gpt") })),
    "generateText of responses": () => generateText({ model: provider("gpt"), prompt: "hello", maxRetries }),
  };
}

async function callsOfSdkCohere() {
  const { embed, generateText, rerank } = await load("ai");
  const { createCohere } = await load("@ai-sdk/cohere");
  const ask = async (path) => {
    const model = createCohere({ baseURL: `${address}/${path}`, apiKey }).reranking("vectors");
    return (await rerank({ model, documents, query, maxRetries })).ranking;
  };
  const provider = createCohere({ baseURL: `${address}/v2`, apiKey });
  return {
    "rerank, /v2": () => ask("v2"),
    "rerank, /v1": () => ask("v1"),
    embed: async () => (await embed({ model: provider.textEmbeddingModel("vectors"), value: texts[0], maxRetries })).embedding,
    "generateText of chat": () => generateText({ model: provider("gpt"), prompt: "hello", maxRetries }),
  };
}

async function callsOfCohere() {
  const { CohereClient, CohereClientV2 } = await load("cohere-ai");
  const [v1, v2] = [CohereClient, CohereClientV2].map((Client) => new Client({ environment: address, token: apiKey, maxRetries }));
  const request = { model: "vectors", query, documents };
  return {
    "CohereClient.rerank": () => v1.rerank({ ...request, returnDocuments: true }),
    "CohereClient.rerank, maxChunksPerDoc": () => v1.rerank({ ...request, maxChunksPerDoc: 10, topN: 1 }),
    "CohereClientV2.rerank": () => v2.rerank(request),
    "CohereClientV2.rerank, maxTokensPerDoc": () => v2.rerank({ ...request, maxTokensPerDoc: 100 }),
    "CohereClient.embed": () => v1.embed({ texts, model: "vectors", inputType: "search_document", truncate: "END" }),
    "CohereClientV2.embed": () => v2.embed({ texts, model: "vectors", inputType: "search_query", embeddingTypes: ["float"] }),
    "CohereClientV2.chat": () => v2.chat({ model: "gpt", messages }),
  };
}

async function callsOfLangchainCohere() {
  const { CohereClient } = await load("cohere-ai");
  const { CohereEmbeddings, CohereRerank } = await load("@langchain/cohere");
  const { Document } = await load("@langchain/core/documents");
  const client = new CohereClient({ environment: address, token: apiKey });
  const reranker = new CohereRerank({ model: "vectors", client });
  const embeddings = new CohereEmbeddings({ model: "vectors", client, maxRetries });
  return {
    "CohereEmbeddings.embedQuery": () => embeddings.embedQuery(texts[0]),
    "CohereEmbeddings.embedDocuments": () => embeddings.embedDocuments(texts),
    "CohereRerank.rerank": () => reranker.rerank(documents, query),
    "CohereRerank.compressDocuments": () => reranker.compressDocuments(documents.map((pageContent) => new Document({ pageContent })), query),
  };
}

async function callsOfHuggingFace() {
  const { InferenceClient } = await load("@huggingface/inference");
  const client = new InferenceClient(undefined);
  const at = (path) => ({ endpointUrl: `${address}${path}` });
  return {
    featureExtraction: () => client.featureExtraction({ ...at(""), inputs: texts }),
    "featureExtraction, /embed": () => client.featureExtraction({ ...at("/embed"), inputs: texts, normalize: false }),
    "textClassification, /predict": () => client.textClassification({ ...at("/predict"), inputs: [[texts[0]]] }),
    "sentenceSimilarity, /similarity": () =>
      client.sentenceSimilarity({ ...at("/similarity"), inputs: { source_sentence: query, sentences: documents } }),
    "textGeneration, /v1": () => client.textGeneration({ ...at("/v1"), model: "gpt", inputs: "hello w" }),
    chatCompletion: () => client.chatCompletion({ ...at("/v1"), model: "gpt", messages }),
  };
}

async function callsOfOllama() {
  const { Ollama } = await load("ollama");
  const client = new Ollama({ host: address });
  return {
    list: () => client.list(),
    embed: () => client.embed({ model: "vectors", input: "a" }),
    generate: () => client.generate({ model: "gpt", prompt: "hello" }),
    chat: () => client.chat({ model: "gpt", messages }),
  };
}

const clients = {
  openai: callsOfOpenAI,
  "@langchain/openai": callsOfLangchainOpenAI,
  "@llamaindex/openai": callsOfLlamaIndex,
  "ai, @ai-sdk/openai-compatible": callsOfSdkCompatible,
  "ai, @ai-sdk/openai": callsOfSdkOpenAI,
  "ai, @ai-sdk/cohere": callsOfSdkCohere,
  "cohere-ai": callsOfCohere,
  "@langchain/cohere": callsOfLangchainCohere,
  "@huggingface/inference": callsOfHuggingFace,
  ollama: callsOfOllama,
};

const results = [];
for (const [client, make] of Object.entries(clients))
  for (const [call, run] of Object.entries(await make()))
    try {
      results.push({ client, call, value: await run() });
    } catch (error) {
      results.push({ client, call, thrown: error.message });
    }
console.log(JSON.stringify(results));
