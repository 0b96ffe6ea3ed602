// away: notices that the server stops or does not answer, says so in #notice, and waits until the
// server is back.
//
// Away.heard(reply): does the reply mean that the server is away? After the first such reply
//   /readyz is asked until the server is back, or the list of models if a proxy does not pass that
//   path on; then the models are read anew.
// Away.now(): is it away? Away.back(signal) -> a promise: true once the server is back, false if
//   the signal came first.
const Away = (() => {
  const FIRST = 1000, LONGEST = 5000;
  const notice = Dom.id("notice");
  let coming = null, waiting = 0, how = "";

  // A proxy without a server behind it says 502, or 503 without a problem type of the server's.
  const kind = ({ status, problem }) => {
    const { type, title } = problem || {};
    if (status === 503 && /\/(draining|not-ready)$/.test(type)) return title;
    return status === 0 || status === 502 || (status === 503 && !type)
      ? "The server does not respond" : null;
  };
  const tell = () => {
    const then = waiting ? "your request will be sent again when it is back"
      : "this page keeps trying to reach it";
    const text = `${how}: ${then}.`;
    if (notice.textContent !== text) notice.textContent = text;
    notice.hidden = false;
  };

  // A proxy may not pass /readyz on.
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
