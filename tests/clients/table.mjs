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
const documents = ["a mat", "the cat"], query = "the cat";
const seed = 5, drawn = { model: "gpt", prompt: "hello w", max_tokens: 6, seed };
const messages = [{ role: "user", content: "hello w" }], talk = { model: "gpt", messages, max_tokens: 6, seed };
const endless = { max_tokens: 100000, ignore_eos: true, stream: true }, late = { "X-Timeout-Ms": "200" };
const variables = { chat_template_kwargs: { word: "hell" } };
const parts = texts.map((text) => ({ type: "text", text }));
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const functions = [{ type: "function", function: { name: "weather", description: "the weather of a city", parameters: schema } }];
const response_format = { type: "json_schema", json_schema: { name: "city", schema } };
const image = "iVBORw0KGgo=", picture = { type: "image_url", image_url: { url: `data:image/png;base64,${image}` } };

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
  const chat = (more) => client.chat.completions.create({ ...talk, ...more });
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
    "chat.completions.create": () => chat({ n: 2, logprobs: true, top_logprobs: 2 }),
    "chat.completions.create, max_completion_tokens, stop": () => chat({ max_tokens: null, max_completion_tokens: 40, stop: ["e"] }),
    "chat.completions.create, penalties, logit_bias": () =>
      chat({ presence_penalty: 1, frequency_penalty: -0.5, logit_bias: { 13: 2 } }),
    "chat.completions.create, chat_template_kwargs": () => chat(variables),
    "chat.completions.create, stream": async () =>
      all(await chat({ n: 2, logprobs: true, top_logprobs: 2, stream: true, stream_options: { include_usage: true } })),
    "chat.completions.create, a stream that is closed early": async () => {
      for await (const event of await chat(endless)) return event;
    },
    "chat.completions.create, an error in the stream": () =>
      client.chat.completions.create({ ...talk, ...endless }, { headers: late }).then(all).catch((error) => error.message),
    "chat.completions.stream": () => client.chat.completions.stream({ ...talk, n: 2, logprobs: true, top_logprobs: 2 }).finalChatCompletion(),
    "chat.completions.create, an image": () => chat({ messages: [{ role: "user", content: [picture] }] }),
    "chat.completions.create, tools": () => chat({ tools: functions }),
    "chat.completions.runTools": () => {
      const tools = [{ type: "function", function: { ...functions[0].function, function: () => "", parse: JSON.parse } }];
      return client.chat.completions.runTools({ ...talk, tools }).finalContent();
    },
    "chat.completions.create, audio": () => chat({ modalities: ["text", "audio"], audio: { voice: "alloy", format: "wav" } }),
    "chat.completions.parse": () => client.chat.completions.parse({ ...talk, response_format }),
    "chat.completions.retrieve": () => client.chat.completions.retrieve("chatcmpl-1"),
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
  const { AIMessage, HumanMessage, SystemMessage } = await load("@langchain/core/messages");
  const chatting = (more) => new ChatOpenAI({ model: "gpt", apiKey, configuration, maxRetries, maxTokens: 6, ...more });
  const chat = chatting(), given = { seed };
  return {
    "OpenAIEmbeddings.embedQuery": () => embeddings.embedQuery(texts[0]),
    "OpenAIEmbeddings.embedDocuments": () => embeddings.embedDocuments(texts),
    "OpenAI.invoke": () => model.invoke("hello w"),
    "OpenAI.stream": async () => all(await model.stream("hello w")),
    "OpenAI.batch": () => model.batch(["hello w", "hello w"]),
    "ChatOpenAI.invoke": async () => (await chat.invoke("hello w", given)).content,
    "ChatOpenAI.invoke, messages": async () => {
      const said = [new SystemMessage("w"), new HumanMessage({ content: parts }), new AIMessage("d"), new HumanMessage("hello w")];
      return (await chat.invoke(said, given)).content;
    },
    "ChatOpenAI.invoke, modelKwargs": async () => (await chatting({ modelKwargs: variables }).invoke("hello w", given)).content,
    "ChatOpenAI.stream": async () => {
      const chunks = await all(await chat.stream("hello w", given));
      return { text: chunks.map((one) => one.content).join(""), usage: chunks.at(-1).usage_metadata };
    },
    "ChatOpenAI.streamEvents": async () => chat.streamEvents("hello w", given).text,
    "ChatOpenAI.batch": async () => (await chat.batch(["hello w", "hello w"], given)).map((one) => one.content),
    "ChatOpenAI.bindTools": () => chat.bindTools(functions).invoke("hello w"),
    "ChatOpenAI.withStructuredOutput": () => chat.withStructuredOutput(schema, { name: "city", method: "jsonSchema" }).invoke("hello w"),
    "ChatOpenAI.invoke, an image": () => chat.invoke([new HumanMessage({ content: [picture] })]),
  };
}

async function callsOfLlamaIndex() {
  const { OpenAI, OpenAIEmbedding } = await load("@llamaindex/openai");
  const embedding = new OpenAIEmbedding({ model: "vectors", apiKey, baseURL: openai, maxRetries });
  const model = new OpenAI({ model: "gpt", apiKey, baseURL: openai, maxRetries, temperature: 1, maxTokens: 6, additionalChatOptions: { seed } });
  const joined = async (stream, name) => (await all(stream)).map((one) => one[name]).join("");
  return {
    "OpenAIEmbedding.getTextEmbedding": () => embedding.getTextEmbedding(texts[0]),
    "OpenAIEmbedding.getTextEmbeddingsBatch": () => embedding.getTextEmbeddingsBatch(texts),
    "OpenAI.complete": async () => (await model.complete({ prompt: "hello w" })).text,
    "OpenAI.complete, stream": async () => joined(await model.complete({ prompt: "hello w", stream: true }), "text"),
    "OpenAI.chat": async () => (await model.chat({ messages })).message.content,
    "OpenAI.chat, stream": async () => joined(await model.chat({ messages, stream: true }), "delta"),
    "OpenAI.chat, additionalChatOptions": async () =>
      (await model.chat({ messages, additionalChatOptions: variables })).message.content,
    "OpenAI.chat, responseFormat": () => model.chat({ messages, responseFormat: response_format }),
    "OpenAI.chat, tools": () =>
      model.chat({ messages, tools: [{ metadata: { name: "weather", description: "", parameters: schema }, call: () => "" }] }),
    "OpenAI.chat, an image": () => model.chat({ messages: [{ role: "user", content: [picture] }] }),
  };
}

// What a model of the AI SDK's is asked, whichever provider it is of.
async function callsOfSdk({ vectors, completion, chat }) {
  const { embed, embedMany, generateText, jsonSchema, Output, streamText } = await load("ai");
  const given = { prompt: "hello w", maxOutputTokens: 6, temperature: 0, maxRetries };
  const asked = { model: chat, messages, maxOutputTokens: 6, seed, maxRetries };
  const ask = (more) => generateText({ ...asked, ...more });
  return {
    embed: async () => (await embed({ model: vectors, value: texts[0], maxRetries })).embedding,
    embedMany: async () => (await embedMany({ model: vectors, values: texts, maxRetries })).embeddings,
    "generateText of completion": async () => {
      const { text, usage } = await generateText({ model: completion, ...given, presencePenalty: 0.5 });
      return { text, tokens: usage.outputTokens };
    },
    "streamText of completion": () => all(streamText({ model: completion, ...given, onError() {} }).textStream),
    "generateText of chat": async () => {
      const { text, usage, finishReason } = await ask({});
      return { text, tokens: usage.outputTokens, prompt: usage.inputTokens, finishReason };
    },
    "generateText of chat, messages": async () => {
      const said = [{ role: "user", content: parts }, { role: "assistant", content: [{ type: "text", text: "d" }] }, ...messages];
      return (await ask({ system: "w", messages: said, stopSequences: ["e"] })).text;
    },
    "streamText of chat": async () => {
      const { textStream, usage } = streamText(asked);
      return { text: (await all(textStream)).join(""), tokens: (await usage).outputTokens };
    },
    "generateText of chat, Output.object": () => ask({ output: Output.object({ schema: jsonSchema(schema) }) }),
    "generateText of chat, tools": () => ask({ tools: { weather: { inputSchema: jsonSchema(schema) } } }),
    "generateText of chat, an image": () => ask({ messages: [{ role: "user", content: [{ type: "image", image }] }] }),
  };
}

async function callsOfSdkCompatible() {
  const { generateText, streamText } = await load("ai");
  const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
  const provider = createOpenAICompatible({ name: "attend", baseURL: openai, apiKey, includeUsage: true });
  const asked = (attend) => ({ model: provider("gpt"), messages, maxOutputTokens: 6, seed, maxRetries, providerOptions: { attend } });
  return {
    ...(await callsOfSdk({ vectors: provider.textEmbeddingModel("vectors"), completion: provider.completionModel("gpt"), chat: provider("gpt") })),
    "generateText of chat, chat_template_kwargs": async () => (await generateText(asked(variables))).text,
    "streamText of chat, an error in the stream": () =>
      new Promise((done) => {
        const request = { ...asked({ ignore_eos: true }), maxOutputTokens: 100000, headers: late };
        streamText({ ...request, onError: ({ error }) => done(error.message) }).consumeStream().then(done);
      }),
  };
}

async function callsOfSdkOpenAI() {
  const { generateText } = await load("ai");
  const { createOpenAI } = await load("@ai-sdk/openai");
  const provider = createOpenAI({ baseURL: openai, apiKey });
  return {
    ...(await callsOfSdk({ vectors: provider.textEmbeddingModel("vectors"), completion: provider.completion("gpt"), chat: provider.chat("gpt") })),
    "generateText of chat, logitBias, logprobs": async () => {
      const providerOptions = { openai: { logitBias: { 13: 2 }, logprobs: 2 } };
      const request = { model: provider.chat("gpt"), messages, maxOutputTokens: 6, seed, maxRetries, providerOptions };
      const { text, providerMetadata } = await generateText(request);
      return { text, content: providerMetadata.openai.logprobs };
    },
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
    "chatCompletion, /v1": () => client.chatCompletion({ ...at("/v1"), ...talk }),
    "chatCompletion, chat_template_kwargs": () => client.chatCompletion({ ...at("/v1"), ...talk, ...variables }),
    "chatCompletionStream, /v1": async () => all(client.chatCompletionStream({ ...at("/v1"), ...talk })),
    "chatCompletion, tools": () => client.chatCompletion({ ...at("/v1"), ...talk, tools: functions }),
    "chatCompletionStream, tools": () => all(client.chatCompletionStream({ ...at("/v1"), ...talk, tools: functions })),
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
