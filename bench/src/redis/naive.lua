-- A token bucket the way most people write it first: a hash with the tokens left and when they were last
-- counted, both fractions, and the client's own time. It writes on every call, also when it denies.
-- KEYS[1] the bucket; ARGV rate per second, burst, now in seconds, cost.
-- Returns whether it is allowed, a thousand times the tokens left, and the wait in milliseconds.
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local now, cost = tonumber(ARGV[3]), tonumber(ARGV[4])

local stored = redis.call('HMGET', KEYS[1], 'tokens', 'last_refill_at')
local tokens, last = tonumber(stored[1]), tonumber(stored[2])
if tokens == nil then
  tokens, last = burst, now
end
tokens = math.min(burst, tokens + math.max(0, now - last) * rate)

local allowed, wait_ms = 0, 0
if tokens >= cost then
  tokens, allowed = tokens - cost, 1
else
  wait_ms = math.ceil((cost - tokens) / rate * 1000)
end

redis.call('HMSET', KEYS[1], 'tokens', tokens, 'last_refill_at', now)
redis.call('EXPIRE', KEYS[1], math.ceil(burst / rate * 2))
return { allowed, tokens * 1000, wait_ms }
