// away: notices that the server stops or does not answer, tells people so in #notice, and waits
// until it is back.
//
// Away.heard(reply): does the reply say that the server is away? From the first such reply on
//   /readyz is asked until the server is there again, or the models, where a proxy keeps that path
//   to itself; then the models are read anew.
// Away.now(): is it away? Away.back(signal) -> a promise: true once it is there again, false if the
//   signal came first.
const Away = (() => {
  const FIRST = 1000, LONGEST = 5000;
  const notice = Dom.id("notice");
  let coming = null, waiting = 0, how = "";

  // A proxy says 502, or 503 without a word of ours, where there is no server behind it.
  const kind = ({ status, problem }) => {
    const { type, title } = problem || {};
    if (status === 503 && /\/(draining|not-ready)$/.test(type)) return title;
    return status === 0 || status === 502 || (status === 503 && !type)
      ? "The server does not answer" : null;
  };
  const tell = () => {
    const then = waiting ? "what you sent is sent again when it is back"
      : "this page goes on trying to reach it";
    const text = `${how}: ${then}.`;
    if (notice.textContent !== text) notice.textContent = text;
    notice.hidden = false;
  };

  // Before a proxy there may be no /readyz.
  const sign = async () => {
    const ready = await Net.peek("readyz");
    return ready.status === 404 ? Net.peek("v1/models") : ready;
  };
  const watch = async () => {
    for (let pause = FIRST; ; pause = Math.min(1.5 * pause, LONGEST)) {
      await Net.pause(pause);
      if (!heard(await sign())) break;
    }
    coming = null;
    notice.hidden = true;
    Models.load();
  };
  const heard = (reply) => {
    how = kind(reply) || how;
    if (!kind(reply)) return false;
    tell();
    coming ||= watch();
    return true;
  };
  const stopped = (signal) => new Promise((done) => signal && (signal.onabort = done));
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
