// tour: eight steps through the page, made for a lesson. Each step shows a real view, with the model
// "words", and marks the part that it speaks of.
//
// Tour.step(): the current step, or -1. A step is { title, text, book, show, mark }: book: the
// chapter that it belongs to; show(isCurrent) brings the view up; mark: a selector of the marked part.
// needs: dom own place state models ask request whole steps lesson
const Tour = (() => {
  const WIDE = Lesson.sentence.replace("tired", "wide");
  const chapter = (number, name) => `Dive into Deep Learning 11.${number}: ${name}`;

  // Shows a text of the model "words" in a tab or in Learn, at a word of it.
  const words = (text, place, { tab, part = "encoder.1.self", head = 0, word = "it" } = {}) => async (isCurrent) => {
    const model = Models.all().find((one) => Lesson.of(one)), body = State.body;
    Place.go(place, tab);
    const isSame = State.model === model.name && State.asked?.body === body && !Ask.isOther()
      && (Request.fields(body) || {}).text === text;
    if (!isSame) {
      State.set({ model: model.name, body: Own.made({ text: Request.layout({ text }) }) });
      await Ask.send();
    }
    const answer = State.answer;
    if (!isCurrent() || !answer || Ask.isOther()) return;
    Whole.show(part, head);
    State.show({ item: 0, row: answer.words(0, part).rows.indexOf(word), col: -1, masked: -1 });
  };
  const STEPS = [
    { title: "Every word looks at the others", book: chapter(1, "Queries, Keys, and Values"),
      text: "“it” must find out what it stands for. It gives most of its attention to “animal”: see the number under the word, "
        + "and the thick arc. Click any other word.",
      show: words(Lesson.sentence, "learn"), mark: "#arcs" },
    { title: "A query meets keys", book: chapter(1, "Queries, Keys, and Values"),
      text: "A word's query is what it looks for, its key what it offers. “it” looks for an animal, and “animal” offers one, so "
        + "their score is the largest: the sum of query number times key number, divided by √d.",
      show: words(Lesson.sentence, "learn"), mark: "#cards > :nth-child(1)" },
    { title: "Scores become weights", book: chapter(3, "Attention Scoring Functions"),
      text: "Softmax turns scores into shares that add up to 100 %: a score larger by 1 means 2.7 times the weight. "
        + "Choose Mask under “Try it”: the others share what the masked word had.",
      show: words(Lesson.sentence, "learn"), mark: "#cards > :nth-child(2)" },
    { title: "Weights mix values", book: chapter(2, "Attention Pooling by Similarity"),
      text: "Each word hands over its value, in proportion to its weight. The sum is what “it” takes away: nearly all of it "
        + "comes from “animal”.", show: words(Lesson.sentence, "learn"), mark: "#cards > :nth-child(3)" },
    { title: "Several heads, several questions", book: chapter(5, "Multi-Head Attention"),
      text: "One layer asks several questions at once, one in each head. This head looks at the word to the left. "
        + "Click the others to see theirs.",
      show: words(Lesson.sentence, "learn", { head: 1 }), mark: "#learn .heads" },
    { title: "One word changes, and the attention moves", book: chapter(6, "Self-Attention and Positional Encoding"),
      text: "“tired” became “wide”, so “it” is the street now. Head 1 of layer 0, which was not taught where to look, takes "
        + "“it” to its adjective. Layer 1 then finds the noun that fits.",
      show: words(WIDE, "learn"), mark: "#arcs" },
    { title: "The same numbers, one by one", book: chapter(3, "Attention Scoring Functions"),
      text: "Computation shows how the server computed this weight, step by step. Change a score, and see the weights follow.",
      show: (isCurrent) => words(WIDE, "explore", { tab: "steps" })(isCurrent).then(() => isCurrent() && Steps.go(3)), mark: "#steps" },
    { title: "What is a head worth?", book: chapter(7, "The Transformer Architecture"),
      text: "Choose Measure every head: each is removed once. Head 1 of layer 0 takes “it” to its adjective. Without it, “it” "
        + "gives “animal” 68 % of its attention for “tired” and for “wide” alike: the model can only guess.",
      show: words(Lesson.sentence, "ablate", { tab: "worth" }), mark: "#worth" },
  ];

  // --- the panel ---

  let step = -1;
  const title = el("h3", { id: "tour-title" }), text = el("p"), book = el("p.small.soft");
  const count = el("span.small.soft");
  const before = button("Back", () => go(step - 1)), after = button("Next", () => go(step + 1));
  after.className = "primary";
  const panel = el("aside.card", { id: "tour", "aria-labelledby": "tour-title", hidden: true }, title,
    el("div", { "aria-live": "polite" }, text, book), el("div.row", count, before, after, button("End the tour", () => go(-1))));
  document.body.append(panel);
  const mark = () => {
    for (const one of document.querySelectorAll(".toured")) one.classList.remove("toured");
    const part = step >= 0 && document.querySelector(STEPS[step].mark);
    if (!part) return;
    part.classList.add("toured");
    const { top, bottom } = part.getBoundingClientRect(), free = innerHeight - panel.offsetHeight - 24;
    if (top < 0 || bottom > free) scrollTo(0, Math.max(0, scrollY + top - Math.max(8, (free - (bottom - top)) / 2)));
  };
  const go = async (to) => {
    step = to < STEPS.length ? to : -1;
    panel.hidden = step < 0;
    document.body.classList.toggle("touring", step >= 0);
    if (step < 0) return mark();
    const mine = STEPS[step];
    title.textContent = mine.title;
    text.textContent = mine.text;
    book.textContent = mine.book;
    count.textContent = `${step + 1} of ${STEPS.length}`;
    before.disabled = step === 0;
    after.textContent = step === STEPS.length - 1 ? "Done" : "Next";
    const isCurrent = () => STEPS[step] === mine;
    await mine.show(isCurrent);
    if (isCurrent()) mark();
  };
  document.addEventListener("keydown", ({ key }) => key === "Escape" && step >= 0 && go(-1));
  const begin = button(`Tour: attention in ${STEPS.length} steps`, () => go(0));
  begin.className = "primary";
  id("learn-tour").append(begin);
  State.on(["models"], () => {
    begin.hidden = !Models.all().some((one) => Lesson.of(one));
  });
  return { step: () => step };
})();
