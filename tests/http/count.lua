-- count: wrk posts the file $BODY and prints one line of JSON: how many answers of each kind.
local file = io.open(os.getenv("BODY"), "rb")
wrk.body = file:read("*a")
file:close()
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init()
  good, refused, other = 0, 0, 0
end

function response(status)
  if status == 200 then
    good = good + 1
  elseif status == 429 then
    refused = refused + 1
  else
    other = other + 1
  end
end

function done(summary)
  local sum = {good = 0, refused = 0, other = 0}
  for _, thread in ipairs(threads) do
    for name in pairs(sum) do
      sum[name] = sum[name] + thread:get(name)
    end
  end
  local e = summary.errors
  print(string.format('{"good": %d, "refused": %d, "other": %d, "broken": %d, "us": %d}', sum.good,
                      sum.refused, sum.other, e.connect + e.read + e.write + e.timeout,
                      summary.duration))
end
