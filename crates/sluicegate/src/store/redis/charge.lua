#!lua
-- Charges all buckets of a decision or none; refunds, undoes and removes. Encoding version 1.
--
-- KEYS    every bucket, once.
-- ARGV    either one decision over plain token buckets (N = 1, enforced), one for each key in order:
--           'b', and of every bucket: form, cost, capacity
--         or several such decisions:
--           'B', and of each: number of buckets, and of every bucket: key number, form, cost, capacity
--         or any decisions, one after another:
--           op, number of buckets, [undo only: time of the charge], and of every bucket
--           key number, kind, form, cost, capacity, and further arguments of its kind.
--           op     c charge   r refund   u undo   x remove (of a bucket only the key number)
--           kind   b token bucket of N = 1; n of other N; q, m the same as queues; i interval refill;
--                  f fixed window; c sliding counter; w sliding window. Upper case: shadow mode. A '?' after
--                  it: a probe, which can deny and is not charged; other parts may have the same bucket.
--           cost, capacity   b n q m: in units of 1/N microsecond; else in tokens. A cost that is never
--                  granted is sent as capacity + 1.
--           further   n N   q longest wait   m N, longest wait   i N, P   f c w P
--         All of these may be preceded by 't' and a time in microseconds, instead of the server's clock.
-- Reply   the time; of every decision 1 or 0 (granted; undone; removed), and of every
--         bucket its content, before a charge, after any other operation:
--           b q full_at   n m debt, at   i missing, anchor   f count, start
--           c previous * 2^26 + current, start   w used, newest, the entry that must leave
--         and last, if not zero, the number of keys with another value, which were treated as full.
--
-- A bucket is a string: its state (a number, or two with '@' between them), ':' and the form it
-- was written under. A sliding window is a sorted set: running totals by time of admission, and, with the
-- score 0, the total before the first, ':' and the form. Full buckets are not stored.
--
-- All numbers are integers below 2^53, which doubles hold exactly. A product that may be larger is
-- only compared with a number that is not, and rounding keeps the order.

local KEYS, ARGV, call = KEYS, ARGV, redis.call
local sub, format = string.sub, string.format
local EXACT = 9007199254740991

local at, now = 1, nil
if ARGV[1] == 't' then
  at, now = 3, tonumber(ARGV[2])
else
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- ## Fast path: plain token buckets that are stored in their own form, or not at all. Nothing is written
-- before all is decided, so that any other case can fall through to the general path.
--
-- '%d' truncates. Of (x + 999) / 1000 that leaves x / 1000 rounded up: doubles below 2^53 / 1000 are closer
-- together than a thousandth, the least distance of such a quotient to the next integer.

-- One bucket.
if ARGV[at] == 'b' and not KEYS[2] then
  local text, form, cap = redis.pcall('GET', KEYS[1]), ARGV[at + 1], ARGV[at + 3] + 0
  local stored, full_at = now, nil
  if text then stored = type(text) == 'string' and sub(text, 17) == form and tonumber(sub(text, 1, 16)) end
  if not stored then
    full_at = nil
  elseif stored >= now and stored <= now + cap then
    full_at = stored
  elseif stored >= 0 and stored < now then
    full_at = now
  elseif stored > now and stored <= EXACT then
    full_at = now + cap
  end
  if full_at then
    local cost, granted, after = ARGV[at + 2] + 0, 1, full_at
    if full_at - now + cost > cap then granted = 0 else after = full_at + cost end
    -- A denial writes only the clamp of a state beyond an empty bucket.
    if cost > 0 and (granted == 1 or stored > full_at) then
      call('SET', KEYS[1], format('%d%s', after, form), 'PXAT', format('%d', (after + 999) / 1000))
    end
    return { now, granted, full_at }
  end
end

-- One decision over several buckets.
if ARGV[at] == 'b' then
  local count, held, usual, granted = #KEYS, call('MGET', unpack(KEYS)), true, 1
  local missing, clamped = nil, nil
  -- Allocated at the usual length.
  local answer, after = { now, 1, nil, nil, nil }, { nil, nil, nil }
  for i = 1, count do
    local j, text, full_at = at + 3 * i, held[i], now
    if text then
      full_at = sub(text, 17) == ARGV[j - 2] and tonumber(sub(text, 1, 16))
      usual = full_at and full_at >= 0 and full_at <= EXACT
      if not usual then break end
    else
      missing = missing or {}
      missing[#missing + 1] = KEYS[i]
    end
    local cost, cap = ARGV[j - 1] + 0, ARGV[j] + 0
    if full_at < now then
      full_at = now
    elseif full_at > now + cap then
      full_at = now + cap
      clamped = clamped or {}
      clamped[i] = cost > 0 and full_at
    end
    if full_at - now + cost > cap then granted = 0 end
    answer[i + 2], after[i] = full_at, cost > 0 and full_at + cost
  end
  if usual and missing then usual = call('EXISTS', unpack(missing)) == 0 end
  if usual then
    if granted == 0 then answer[2], after = 0, clamped or {} end
    for i = 1, count do
      local full_at = after[i]
      if full_at then
        call('SET', KEYS[i], format('%d%s', full_at, ARGV[at + 3 * i - 2]),
          'PXAT', format('%d', (full_at + 999) / 1000))
      end
    end
    return answer
  end
  local general = { 'c', count }
  for i = 1, count do
    local n, j = #general, at + 3 * i - 2
    general[n + 1], general[n + 2], general[n + 3] = i, 'b', ARGV[j]
    general[n + 4], general[n + 5] = ARGV[j + 1], ARGV[j + 2]
  end
  ARGV, at = general, 1
end

-- Several decisions. A bucket is read once and written once, however often it is charged.

if ARGV[at] == 'B' then
  local held = call('MGET', unpack(KEYS))
  local answer, said, last = { now }, 1, #ARGV
  local forms, dirty, missing, usual = {}, {}, nil, true
  local j = at + 1
  while usual and j <= last do
    local first, stop, granted = j + 1, j + 4 * ARGV[j], 1
    local verdict = said + 1
    said = verdict
    for i = first, stop, 4 do
      local k, form, cap = ARGV[i] + 0, ARGV[i + 1], ARGV[i + 3] + 0
      local full_at = held[k]
      if forms[k] ~= form then
        if forms[k] then
          usual = false
          break
        end
        forms[k] = form
        if not full_at then
          missing = missing or {}
          missing[#missing + 1] = KEYS[k]
          full_at = now
        elseif sub(full_at, 17) == form then
          full_at = tonumber(sub(full_at, 1, 16))
          if not full_at or not (full_at >= 0 and full_at <= EXACT) then
            usual = false
            break
          end
        else
          usual = false
          break
        end
        held[k] = full_at
      end
      if full_at < now then
        full_at = now
      elseif full_at > now + cap then
        full_at = now + cap
        if ARGV[i + 2] + 0 > 0 then held[k], dirty[k] = full_at, true end
      end
      if full_at - now + ARGV[i + 2] > cap then granted = 0 end
      said = said + 1
      answer[said] = full_at
    end
    answer[verdict] = granted
    if usual and granted == 1 then
      local n = verdict
      for i = first, stop, 4 do
        local k, cost = ARGV[i] + 0, ARGV[i + 2] + 0
        n = n + 1
        if cost > 0 then held[k], dirty[k] = answer[n] + cost, true end
      end
    end
    j = stop + 1
  end
  if usual and missing then usual = call('EXISTS', unpack(missing)) == 0 end
  if usual then
    for k = 1, #KEYS do
      if dirty[k] then
        local full_at = held[k]
        call('SET', KEYS[k], format('%d', full_at) .. forms[k],
          'PXAT', format('%d', (full_at + 999) / 1000))
      end
    end
    return answer
  end
  local general = {}
  j = at + 1
  while j <= last do
    local n, count = #general, ARGV[j] + 0
    general[n + 1], general[n + 2] = 'c', count
    for i = j + 1, j + 4 * count, 4 do
      n = #general
      general[n + 1], general[n + 2], general[n + 3] = ARGV[i], 'b', ARGV[i + 1]
      general[n + 4], general[n + 5] = ARGV[i + 2], ARGV[i + 3]
    end
    j = j + 4 * count + 1
  end
  ARGV, at = general, 1
end

-- ## General path

local ceil, floor, max, min, match = math.ceil, math.floor, math.max, math.min, string.match
local WIDEST = 4503599627370496 -- maximum of units or tokens of any quota
local COUNT = 67108864 -- base of the number that holds a sliding counter's two counts as digits
local LOG = 65536 -- maximum of tokens in a sliding window
local TEXT = 64 -- maximum length of a bucket's text
local BEHIND = 128 -- maximum of log entries that an undo rewrites
local KEYS_PER_READ = 4096 -- limited by the stack

-- Stored values by key number; and once read: the state, the form, and the expiry if the bucket is to be
-- written (0: not at all).
local held, A, B, FORM, UNTIL, dirty = {}, {}, {}, {}, {}, {}
-- Buckets that were written under another form, or held another value: the first charge writes them.
local changed = {}
local repaired = 0

for first = 1, #KEYS, KEYS_PER_READ do
  local texts = call('MGET', unpack(KEYS, first, min(first + KEYS_PER_READ - 1, #KEYS)))
  for i = 1, #texts do held[first + i - 1] = texts[i] end
end

local function write(k)
  local till = UNTIL[k]
  if till == 0 then
    call('DEL', KEYS[k])
  elseif till then
    local b = B[k]
    local state = b and format('%016d@%016d', A[k], b) or format('%016d', A[k])
    call('SET', KEYS[k], state .. FORM[k], 'PXAT', format('%d', ceil(till / 1000)))
  end
  UNTIL[k] = nil
end

local function put(k, a, b, till)
  A[k], B[k], UNTIL[k], changed[k] = a, b, till or 0, nil
  dirty[#dirty + 1] = k
end

-- Writes a bucket if it changed; it is read again on the next access.
local function settle(k)
  if FORM[k] then
    write(k)
    FORM[k], changed[k] = nil, nil
    held[k] = call('MGET', KEYS[k])[1]
  end
end

local function number(text)
  local value = tonumber(text)
  if value and value >= 0 and value <= EXACT and value == floor(value) then return value end
end

-- ## The algorithms, as in sluicegate-core. A state is a, b; b is nil if one number is enough.

local function is_plain(kind) return kind == 'b' or kind == 'q' end
local function is_units(kind) return is_plain(kind) or kind == 'n' or kind == 'm' end

local function full(kind)
  if is_plain(kind) then return now end
  return 0, now
end

local function counts(a)
  local current = a % COUNT
  return (a - current) / COUNT, current
end

-- The state advanced to now and clamped to an empty bucket, and whether it was beyond one.
local function level(kind, a, b, cap, n, p)
  if is_plain(kind) then
    return max(min(a, now + cap), now), nil, a > now + cap
  elseif is_units(kind) then
    local debt = a - (now - b) * n
    return max(min(debt, cap), 0), now, debt > cap
  elseif kind == 'i' then
    local back = b > now
    local periods = floor((now - min(b, now)) / p)
    if periods * n >= a then return 0, now, false end
    a = a - periods * n
    return min(a, cap), min(b, now) + periods * p, back or a > cap
  end
  local start = now - now % p
  if kind == 'f' then
    if a == 0 or b < start then return 0, start, false end
    -- A window of the future: the clock stepped back over its edge, and will pass it again.
    if b > start then return min(a, cap), start + p, b ~= start + p end
    return min(a, cap), start, false
  end
  local previous, current = counts(a)
  if b > start then return min(previous + current, cap), start, a > 0 end
  if b == start then return a, start, false end
  if start - b == p then return current * COUNT, start, false end
  return 0, start, false
end

-- The level after taking `cost`; nil if it does not fit.
local function take(kind, a, b, cost, cap, p, wait)
  if is_plain(kind) then
    if a - now + cost <= cap and not (wait and a - now > wait) then return a + cost end
  elseif kind == 'c' then
    local previous, current = counts(a)
    local used = previous * (p - now % p) + current * p
    if cost <= cap and used <= (cap - cost) * p then return a + cost, b end
  elseif a + cost <= cap and not (wait and a > wait) then
    return a + cost, b
  end
end

-- The level after a refund of `amount`.
local function give(kind, a, b, amount)
  if is_plain(kind) then return max(a - amount, now) end
  if kind ~= 'c' then return max(a - amount, 0), b end
  local previous, current = counts(a)
  local rest = max(amount - current, 0)
  return max(previous - rest, 0) * COUNT + max(current - amount, 0), b
end

-- The time at which a bucket of this level is full again; nil if it is full.
local function full_after(kind, a, b, n, p)
  if is_plain(kind) then return a > now and a or nil end
  if a == 0 then return nil end
  if is_units(kind) then return now + ceil(a / n) end
  if kind == 'i' then return b + ceil(a / n) * p end
  if kind == 'c' and a % COUNT > 0 then return b + 2 * p end
  return b + p
end

-- The level without a charge of `cost` made at `when`, less the tokens that were refilled since.
local function undo(kind, a, b, cost, n, p, when)
  local elapsed = max(now - when, 0)
  if kind == 'b' or kind == 'n' then return give(kind, a, b, max(cost - elapsed * n, 0)) end
  if kind == 'i' then
    local ticks = when < b and ceil((b - when) / p) or 0
    return give(kind, a, b, max(cost - ticks * n, 0))
  end
  if kind == 'f' and when >= b then return give(kind, a, b, cost) end
  if kind == 'c' then
    local previous, current = counts(a)
    local start = when - when % p
    if start == b then return previous * COUNT + max(current - cost, 0), b end
    if start == b - p then return max(previous - cost, 0) * COUNT + current, b end
  end
  -- A window that is over; or a place in a queue, which is not taken back from those behind it.
  return a, b
end

-- ## Buckets of another form

-- Parses a string into state and form; nil if it is not a bucket.
local function parse(text)
  -- Matching takes quadratic time in the length of a text.
  if #text > TEXT then return end
  local a, b, form = match(text, '^(%d+)@?(%d*)(:[qifc]?%d-/?%d+)$')
  a, b = number(a), b ~= '' and number(b) or nil
  if not a then return end
  local kind, n, p = match(form, '^:(%l?)(%d-)/?(%d+)$')
  n, p = number(n) or 1, number(p)
  local is_pair = n > 1 or kind == 'i' or kind == 'f' or kind == 'c'
  if not p or p == 0 or n == 0 or is_pair ~= (b ~= nil) then return end
  return a, b, form, kind, n, p
end

-- Whole tokens spent in this state, rounded up.
local function spent(a, b, kind, n, p)
  if kind == 'f' then return (level('f', a, b, WIDEST, n, p)) end
  if kind == 'i' then return (level('i', a, b, min(n * floor(WIDEST / p), WIDEST), n, p)) end
  if kind == 'c' then
    local most = min(floor(WIDEST / p), COUNT - 1)
    local previous, current = counts((level('c', a, b, most, n, p)))
    local used = previous * (p - now % p) + current * p
    return most - floor(max(most * p - used, 0) / p)
  end
  local debt = level(b and 'n' or 'b', a, b, floor(WIDEST / p) * p, n, p)
  if not b then debt = debt - now end
  return ceil(debt / p)
end

-- A full bucket of this form after taking `tokens` now.
local function spend(kind, form, tokens)
  local p = tonumber(match(form, '(%d+)$'))
  if is_plain(kind) then return now + tokens * p end
  if is_units(kind) then return tokens * p, now end
  if tokens > 0 and (kind == 'f' or kind == 'c') then return tokens, now - now % p end
  return tokens, now
end

-- ## Sliding windows

local function head_of(key)
  local head = redis.pcall('ZRANGE', key, 0, 0)
  if head.err then
    -- Any other error ends the script: without a permission to read, every bucket would look full.
    if not string.find(head.err, 'WRONGTYPE', 1, true) then call('ZRANGE', key, 0, 0) end
    return
  end
  if not head[1] or #head[1] > TEXT then return end
  local base, form, p = match(head[1], '^(%d+)(:w(%d+))$')
  if base and #base == 16 and number(base) and number(p) then return head[1], form, number(p) end
end

local function total_of(entry) return number(sub(entry, 1, 16)) end

-- The log of a key within its window: tokens used, running totals, time of the newest entry. Nil if its
-- totals are invalid.
local function read_log(key, head, p)
  local log = { key = key, p = p, used = 0, newest = 0, total = 0, base = 0 }
  local gone = call('ZREVRANGEBYSCORE', key, format('%d', now - p), '0', 'LIMIT', 0, 1)[1]
  local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
  local base, total = total_of(gone or head), total_of(last[1])
  if not base or not total or total < base or total > EXACT - LOG + 1 then return nil end
  if total == base then return log end
  log.base, log.total, log.used = base, total, total - base
  log.is_gone = gone and gone ~= head
  -- Entries of the future, after the clock stepped back, count as of now.
  log.beyond = tonumber(last[2]) > now
  log.newest = min(tonumber(last[2]), now)
  return log
end

-- The first live entry whose running total is at least `total`: its index and its time; one past the last
-- index, and now, if there is none.
local function find(log, total)
  local low = max(call('ZCOUNT', log.key, '-inf', format('%d', now - log.p)), 1)
  local past = call('ZCOUNT', log.key, '-inf', format('%d', now))
  local high = past
  while low < high do
    local middle = floor((low + high) / 2)
    local found = total_of(call('ZRANGE', log.key, middle, middle)[1])
    -- Invalid totals are skipped; they leave the window with their time.
    if not found then repaired = repaired + 1 end
    if found and found >= total then high = middle else low = middle + 1 end
  end
  if low >= past then return past, now end
  return low, tonumber(call('ZRANGE', log.key, low, low, 'WITHSCORES')[2])
end

-- Writes a log whose newest entry is at `when`, with the running total `total`.
local function write_log(log, form, when, total)
  local key = log.key
  if log.is_new or log.used == 0 then
    call('DEL', key)
    if total == 0 then return end
    call('ZADD', key, 0, format('%016d', 0) .. form)
  else
    if log.is_gone then
      call('ZREMRANGEBYSCORE', key, '-inf', format('%d', now - log.p))
      call('ZADD', key, 0, format('%016d', log.base) .. form)
    end
    -- Admissions of one microsecond are one entry.
    call('ZREMRANGEBYSCORE', key, format('%d', when), '+inf')
  end
  call('ZADD', key, format('%d', when), format('%016d', total))
  call('PEXPIREAT', key, format('%d', ceil((when + log.p) / 1000)))
end

-- Refunds tokens, newest first: a refund usually follows its charge closely.
local function give_log(log, form, amount)
  local total, when = log.total - amount, now
  if total <= log.base then
    call('DEL', log.key)
    log.used, log.newest = 0, 0
    return
  end
  if not log.is_new then
    -- The rest of a partly refunded entry keeps its time.
    local place
    place, when = find(log, total + 1)
    call('ZREMRANGEBYRANK', log.key, place, -1)
    local last = call('ZRANGE', log.key, -1, -1, 'WITHSCORES')
    if total_of(last[1]) == total then when = tonumber(last[2]) end
  end
  write_log(log, form, when, total)
  log.used, log.newest = total - log.base, when
end

-- Takes the tokens charged at `when` out of their entry, and out of the running totals of the few entries
-- after it. False if there are too many, or the entry is missing.
local function undo_log(log, amount, when)
  if when <= now - log.p then return true end
  if log.is_new or log.beyond then return false end
  local key, from = log.key, format('%d', when)
  local entries = call('ZRANGE', key, from, '+inf', 'BYSCORE', 'LIMIT', 0, BEHIND + 1, 'WITHSCORES')
  if #entries > 2 * BEHIND or tonumber(entries[2]) ~= when then return false end
  local place = call('ZCOUNT', key, '-inf', '(' .. from)
  local before, total = total_of(call('ZRANGE', key, place - 1, place - 1)[1]), total_of(entries[1])
  if not before or not total or total < before then return false end
  local taken = min(amount, total - before)
  call('ZREMRANGEBYSCORE', key, from, '+inf')
  for i = 1, #entries, 2 do
    local rest = (total_of(entries[i]) or total) - taken
    if rest > before then call('ZADD', key, entries[i + 1], format('%016d', rest)) end
  end
  log.used = log.used - taken
  if log.used == 0 then
    call('DEL', key)
    log.newest = 0
  end
  return true
end

-- ## Reading a bucket of any stored value

-- Tokens spent in a bucket that is stored under another form; nil if there is none.
local function spent_before(k)
  local text = held[k]
  if text then
    local a, b, _, kind, n, p = parse(text)
    if a then return spent(a, b, kind, n, p) end
  elseif call('EXISTS', KEYS[k]) == 0 then
    return nil
  else
    local head, _, p = head_of(KEYS[k])
    local log = head and read_log(KEYS[k], head, p)
    if log then return log.used end
  end
  repaired = repaired + 1
  return 0
end

local function read(k, kind, form, cap)
  if FORM[k] == form then return A[k], B[k] end
  settle(k)
  FORM[k] = form
  if held[k] then
    local a, b, stored = parse(held[k])
    if stored == form then
      A[k], B[k] = a, b
      return a, b
    end
  end
  local tokens = spent_before(k)
  local most = is_units(kind) and floor(cap / tonumber(match(form, '(%d+)$'))) or cap
  changed[k] = tokens ~= nil
  if tokens and tokens > 0 then
    A[k], B[k] = spend(kind, form, min(tokens, most))
  else
    A[k], B[k] = full(kind)
  end
  return A[k], B[k]
end

local function open_log(k, form, cap, p)
  settle(k)
  local key = KEYS[k]
  if not held[k] then
    local head, stored = head_of(key)
    local log = stored == form and read_log(key, head, p)
    if log then return log end
  end
  local tokens = spent_before(k)
  local used = min(tokens or 0, cap)
  local newest = used > 0 and now or 0
  local log = { key = key, p = p, used = used, newest = newest, total = used, base = 0 }
  log.is_new, log.beyond = true, tokens ~= nil
  return log
end

-- ## Decisions

local answer, said = { now }, 1
local function say(value)
  said = said + 1
  answer[said] = value
end

-- Parses a bucket's part in a decision, and evaluates it.
local function part_of()
  local kind = ARGV[at + 1]
  local is_probe = #kind > 1
  if is_probe then kind = sub(kind, 1, 1) end
  local lower = string.lower(kind)
  local part = { k = tonumber(ARGV[at]), kind = lower, enforced = kind == lower, form = ARGV[at + 2] }
  part.is_probe = is_probe
  part.cost, part.cap, part.n = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), 1
  at = at + 5
  if lower == 'n' or lower == 'm' or lower == 'i' then
    part.n, at = tonumber(ARGV[at]), at + 1
  end
  if lower == 'q' or lower == 'm' then
    part.wait, at = tonumber(ARGV[at]), at + 1
  elseif not is_units(lower) then
    part.p, at = tonumber(ARGV[at]), at + 1
  end
  return part
end

local function look(part)
  local k, kind, form, cap, p = part.k, part.kind, part.form, part.cap, part.p
  if kind == 'w' then
    part.log = open_log(k, form, cap, p)
    return
  end
  local a, b = read(k, kind, form, cap)
  part.a, part.b, part.beyond = level(kind, a, b, cap, part.n, p)
  part.beyond = part.beyond or changed[k]
end

local function tell(part, leaving)
  local log = part.log
  if log then
    say(log.used)
    say(log.newest)
    say(leaving)
  else
    say(part.a)
    if part.b then say(part.b) end
  end
end

local function keep(part, a, b)
  put(part.k, a, b, full_after(part.kind, a, b, part.n, part.p))
end

local function fits(part)
  local log, cost, cap = part.log, part.cost, part.cap
  if cost == 0 then return true end
  if log then return log.used + cost <= cap end
  part.a1, part.b1 = take(part.kind, part.a, part.b, cost, cap, part.p, part.wait)
  return part.a1 ~= nil
end

-- The time of the entry that must leave before a charge fits.
local function leaving_of(part)
  local log, cost, cap = part.log, part.cost, part.cap
  if not log or part.fits or cost > cap then return 0 end
  if log.is_new then return now end
  return select(2, find(log, log.total - (cap - cost)))
end

local function charge(count)
  local parts, granted, taken = {}, true, {}
  for i = 1, count do
    local part = part_of()
    look(part)
    part.fits = fits(part)
    part.leaving = leaving_of(part)
    if part.enforced and not part.fits then granted = false end
    parts[i] = part
  end
  say(granted and 1 or 0)
  for i = 1, count do
    local part = parts[i]
    local k, log, takes = part.k, part.log, granted and part.fits and not part.is_probe
    tell(part, part.leaving)
    -- A peek writes nothing, and a probe nothing to a bucket that another part has taken from.
    if part.cost > 0 and not taken[k] then
      taken[k] = takes
      if log then
        if takes or log.beyond then
          held[k] = false
          write_log(log, part.form, now, log.total + (takes and part.cost or 0))
        end
      elseif takes then
        keep(part, part.a1, part.b1)
      elseif part.beyond then
        keep(part, part.a, part.b)
      end
    end
  end
  -- Not written: the next decision may read it under another capacity.
  for i = 1, count do
    local k = parts[i].k
    if changed[k] then FORM[k], changed[k] = nil, nil end
  end
end

-- Refunds the cost of a part, or undoes its charge at `when`. False if it cannot be undone.
local function give_back(part, when)
  local done = true
  look(part)
  local log = part.log
  if log then
    held[part.k] = false
    if when and when ~= log.newest then
      done = undo_log(log, part.cost, when)
    else
      give_log(log, part.form, part.cost)
    end
  else
    if when then
      part.a, part.b = undo(part.kind, part.a, part.b, part.cost, part.n, part.p, when)
      done = part.kind ~= 'q' and part.kind ~= 'm'
    else
      part.a, part.b = give(part.kind, part.a, part.b, part.cost)
    end
    keep(part, part.a, part.b)
  end
  return done
end

local function refund(count)
  say(1)
  for _ = 1, count do
    local part = part_of()
    give_back(part)
    tell(part, 0)
  end
end

local function take_back(when)
  local part = part_of()
  say(give_back(part, when) and 1 or 0)
  tell(part, 0)
end

local function forget()
  local k = tonumber(ARGV[at])
  at = at + 1
  settle(k)
  held[k] = false
  say(call('DEL', KEYS[k]))
end

while ARGV[at] do
  local op, count = ARGV[at], tonumber(ARGV[at + 1])
  at = at + 2
  if op == 'c' then
    charge(count)
  elseif op == 'r' then
    refund(count)
  elseif op == 'u' then
    at = at + 1
    take_back(tonumber(ARGV[at - 1]))
  else
    forget()
  end
end

for i = 1, #dirty do write(dirty[i]) end
if repaired > 0 then say(repaired) end
return answer
