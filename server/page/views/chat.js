// chat: the tab Chat: a conversation with a model that has a chat template. The model's template writes the
// conversation as the prompt, which the page shows with its special tokens; generation.js generates the answer
// and shows its tokens, with their alternatives.
//
// A conversation is the system prompt, which may be empty, the messages up to the last one of the user, and the
// answer to it, or null; own.js keeps it over a reload of the tab.
// needs: dom own state net code request generation
(() => {
  const panel = id("chat");
  const [said = "", before = [], last = null] = Own.kept?.chat || [];
  let messages = before, answer = last, seed = 0; // each answer to the same messages has another seed
  const system = el("textarea", { rows: 1, "aria-label": "System prompt", oninput: () => keep() }, said);
  const list = el("ol", { "aria-label": "Conversation" });
  const prompt = el("pre", { tabindex: 0, "aria-label": "Prompt" });
  const next = el("textarea", { rows: 2, "aria-describedby": "chat-keys", onkeydown: (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    event.stopPropagation();
    send();
  } });

  const message = (role, content) => ({ role, content });
  const all = () => [...(system.value.trim() ? [message("system", system.value)] : []), ...messages];
  const keep = () => (Own.chat = [system.value, messages, answer]);
  const draw = () => {
    keep();
    const shown = answer === null ? messages : [...messages, message("assistant", answer)];
    fill(list, shown.map(({ role, content }, i) => el(`li.card.${role}`, el("b.small.soft", role),
      role === "user" ? el("button.plain.small", { onclick: () => edit(i) }, "Edit") : null, el("p", content))));
    again.hidden = answer === null;
  };
  const hear = (text) => {
    answer = text;
    list.lastChild.lastChild.textContent = text;
    keep();
  };
  const render = async (signal) => {
    const reply = await Net.post("render", State.model, { messages: all(), add_generation_prompt: true }, signal);
    if (!reply.ok) return reply;
    const { text, tokens } = reply.json();
    fill(prompt, text);
    return { tokens, seed };
  };
  const ask = () => {
    answer = "";
    draw();
    Generation.start(render, hear);
  };
  const send = () => {
    if (!next.value.trim()) return;
    messages = [...messages, ...(answer ? [message("assistant", answer)] : []), message("user", next.value)];
    next.value = "";
    seed = 0;
    ask();
  };
  // The conversation before message i, which becomes the next message.
  const cut = (i, text) => {
    Generation.clear();
    [messages, answer, next.value] = [messages.slice(0, i), null, text];
    fill(prompt);
    draw();
    next.focus();
  };
  const edit = (i) => cut(i, messages[i].content);

  const again = button("Regenerate", () => {
    seed++;
    ask();
  });
  fill(panel, el("details", { open: Boolean(said) }, el("summary", "System prompt"), system), list,
    el("label", "Message", next),
    el("div.row", el("button.primary", { onclick: send }, "Send"), again, button("New chat", () => cut(0, "")),
      Code.button(() => ["chat/completions", { text: Request.layout({ model: State.model, messages: all() }) }, null]),
      el("span.soft.small", { id: "chat-keys" }, "Enter sends, Shift+Enter starts a new line")),
    el("details", el("summary", "Prompt"), prompt));
  draw();
  State.on(["tab"], () => {
    if (["chat", "generation"].includes(State.tab)) id(State.tab).append(Generation.node);
  });
})();
