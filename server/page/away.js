// away: notices that the server stops or does not answer, tells people so in #notice, and waits
// until it is back.
//
// Away.heard(reply): does the reply say that the server is away? Net tells each one. From the first
//   such reply on /readyz is asked until the server is there again; then the models are read anew.
// Away.now(): is it away? Away.back(signal) -> a promise: true once it is there again, false if the
//   signal came first.
const Away = (() => {
  const FIRST = 1000, LONGEST = 5000;
  let coming = null, waiting = 0;

  // A proxy says 502, or 503 without a word of ours, where there is no server behind it.
  const kind = ({ status, problem }) => {
    const slug = problem && problem.type ? problem.type.split("/").pop() : null;
    if (status === 503 && slug === "draining") return "The server is stopping.";
    if (status === 503 && slug === "not-ready") return "The server is not ready.";
    return status === 0 || status === 502 || (status === 503 && !slug)
      ? "The server does not answer." : null;
  };
  const say = (text) => {
    const notice = Dom.id("notice");
    if (notice.textContent !== text) notice.textContent = text;
    notice.hidden = text === "";
  };
  let heardLast = "";
  const tell = () => say(`${heardLast} ${waiting
    ? "What you sent is sent again when it is back." : "This page goes on trying to reach it."}`);

  const watch = async () => {
    let done;
    coming = new Promise((resolve) => (done = resolve));
    for (let pause = FIRST; ; pause = Math.min(1.5 * pause, LONGEST)) {
      await Net.pause(pause);
      if (!heard(await Net.peek("readyz"))) break;
    }
    coming = null;
    say("");
    done();
    Models.load();
  };
  const heard = (reply) => {
    const text = kind(reply);
    if (text === null) return false;
    heardLast = text;
    tell();
    if (!coming) watch();
    return true;
  };

  const stopped = (signal) => new Promise((done) =>
    signal && signal.addEventListener("abort", done, { once: true }));
  const back = async (signal) => {
    waiting++;
    tell();
    await Promise.race([coming, stopped(signal)]);
    waiting--;
    if (coming) tell();
    return !(signal && signal.aborted);
  };
  return { heard, back, now: () => coming !== null };
})();
