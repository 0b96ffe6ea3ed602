// measures: requests the measures of each head, and the outputs without some heads, with the request of
// the answer that is shown.
//
// Measures.ask(kind) -> a promise of { rows, heads, divergence, ranking }, or of { problem }.
//   `kind`: the gradients that are sent: "none", "request" (the request's own), "square" (of half
//   the squared output: these are the outputs) or "signs" (random, the same every time).
// Measures.asked(kind) -> the fields of its request that differ from the answer's.
// Measures.mask(h) -> the request's own head_mask, or ones.
// Measures.lose(head_mask) -> a promise of { lost, most }, or of { problem }. lost: ‖Y' - Y‖ / ‖Y‖
//   over all items; Y are the outputs that are shown; most: the largest change of a number.
// Measures.race(head_mask, goesOn) -> a promise of [times of all heads, times with the mask], the
//   compute times in ms, in pairs; of { problem }; or of null as soon as goesOn() is false.
// needs: state tensor net answer ask request whole
const Measures = (() => {
  const PAIRS = 5, LIMIT = 1500;

  const fields = () => Request.fields(State.asked.body);
  const post = (what, changes) => Whole.again(changes, what, Ask.accept(Infinity));
  const attend = (head_mask) => post("attention", head_mask && { head_mask });

  // The highest bit of a linear congruential generator is random enough.
  let seed;
  const sign = () => (seed = (Math.imul(seed, 1664525) + 1013904223) | 0) < 0 ? -1 : 1;
  const gradients = ({ items, batched }, kind) => {
    seed = 1;
    const lists = items.map(({ outputs }) => Array.from({ length: outputs.rows }, (_, i) =>
      Array.from(Answer.row(outputs, i), (y) => (kind === "signs" ? sign() : y))));
    return batched ? lists : lists[0];
  };
  const asked = (kind) => {
    const answer = State.answer;
    if (kind === "request") return { gradients: fields().gradients };
    // A safetensors file could not give gradients their shape without any output.
    return kind !== "none" && answer.items.some(({ outputs }) => outputs.rows)
      ? { gradients: gradients(answer, kind) } : {};
  };
  const ask = async (kind) => {
    const reply = await post("heads", asked(kind));
    return reply.ok ? tried(() => whole(reply.json())) : reply;
  };
  const whole = (found) => {
    const { heads, ranking, divergence } = found, h = heads.length;
    const square = (list) => list.length === h && list.every((line) => line.length === h);
    const good = h > 0 && heads.every((head) => Object.keys(head).length) && ranking.length === h
      && ranking.every((i) => i in heads) && (!divergence || square(divergence));
    if (!good) throw new Error("it does not describe every head");
    return found;
  };
  const tried = (read) => {
    try {
      return read();
    } catch (error) {
      return Net.unreadable(error);
    }
  };

  const mask = (h) => {
    const own = Tensor.of(fields().head_mask);
    return own ? [...own.data] : Array(h).fill(1);
  };
  const lose = async (head_mask) => {
    const { items } = State.answer, asked = fields(), reply = await attend(head_mask);
    return reply.ok ? tried(() => loss(items, Answer.read(reply, asked).items)) : reply;
  };
  const loss = (items, pruned) => {
    let change = 0, all = 0, most = 0;
    for (const [i, { outputs }] of items.entries())
      outputs.data.forEach((y, j) => {
        const by = Math.abs(pruned[i].outputs.data[j] - y);
        change += by * by;
        all += y * y;
        most = Math.max(most, by);
      });
    return { lost: all && Math.sqrt(change / all), most };
  };

  // The two take turns, so that other work on the machine slows both. A pair that would end after the
  // limit is not begun.
  const race = async (head_mask, goesOn) => {
    const times = [[], []], begin = performance.now();
    for (let pair = 0; pair < PAIRS; pair++) {
      if ((performance.now() - begin) * (pair + 1) > LIMIT * pair && pair) break;
      for (const which of pair % 2 ? [1, 0] : [0, 1]) {
        const reply = await attend(which && head_mask);
        if (!goesOn()) return null;
        if (!reply.ok) return reply;
        times[which].push(reply.timing.find(({ name }) => name === "compute")?.ms);
      }
    }
    return times;
  };
  return { ask, asked, mask, lose, race };
})();
