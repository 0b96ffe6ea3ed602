// slices: runs long work in slices of a few milliseconds, one a frame, so that the page never stalls.
//
// Slices.run(generator) -> a promise of its result. It is run after those that wait, from one `yield` to
// the next. Slices.drop(generator): its work ends, and its promise is never kept.
const Slices = (() => {
  const LONG = 8; // ms
  let waiting = [], busy = false;
  const work = () => {
    const end = performance.now() + LONG;
    try {
      while (waiting.length && performance.now() < end) {
        const [{ generator, done }] = waiting, step = generator.next();
        if (!step.done) continue;
        waiting.shift();
        done(step.value);
      }
    } finally {
      busy = waiting.length > 0;
      if (busy) requestAnimationFrame(work);
    }
  };
  const run = (generator) => new Promise((done) => {
    waiting.push({ generator, done });
    if (!busy) requestAnimationFrame(work);
    busy = true;
  });
  const drop = (generator) => {
    waiting = waiting.filter((one) => one.generator !== generator);
  };
  return { run, drop };
})();
