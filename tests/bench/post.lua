-- post: wrk posts the file $BODY and prints one line of JSON: what came of it.
local file = io.open(os.getenv("BODY"), "rb")
wrk.body = file:read("*a")
file:close()
wrk.method = "POST"

function done(summary, latency)
  local e = summary.errors
  print(string.format('{"requests": %d, "us": %d, "failed": %d, "p50_us": %d, "p99_us": %d}',
                      summary.requests, summary.duration,
                      e.connect + e.read + e.write + e.status + e.timeout,
                      latency:percentile(50), latency:percentile(99)))
end
