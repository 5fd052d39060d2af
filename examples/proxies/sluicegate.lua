-- Checks a request with Sluicegate: `http-request lua.sluicegate` in a frontend. A denial ends the request, and so does a
-- request that Sluicegate refuses to parse, because a client could send one on purpose. If Sluicegate fails, or does not
-- answer in time, the request passes.
--
-- Uses a socket because core.httpclient() retries an unreachable server for three seconds.

local ADDRESS, PORT = "127.0.0.1", 8080
local TIMEOUT_S = 0.1

-- The request to Sluicegate. Forwards only these headers, so that no other header of the client can mislead Sluicegate.
-- Control characters, which are invalid in a header, become question marks.
local function authorize_request(txn)
    local headers = {
        ["X-Forwarded-Method"] = txn.sf:method(),
        ["X-Forwarded-Uri"] = txn.sf:pathq(),
        ["X-Forwarded-Host"] = txn.sf:req_hdr("host"),
        ["X-Forwarded-For"] = txn.sf:src(),
        -- For limits per user: authorize.user_header = "x-api-key"
        ["X-Api-Key"] = txn.sf:req_fhdr("x-api-key"),
    }
    local lines = { "GET /v1/authorize HTTP/1.1", "Host: sluicegate", "Connection: close" }
    for name, value in pairs(headers) do
        lines[#lines + 1] = name .. ": " .. value:gsub("%c", "?")
    end
    return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

-- Returns the status, the headers by lower-case name, and the body; nil without an answer in time.
local function send(text)
    local socket = core.tcp()
    socket:settimeout(TIMEOUT_S)
    if not socket:connect(ADDRESS, PORT) or not socket:send(text) then
        socket:close()
        return nil
    end
    local answer = socket:receive("*a")
    socket:close()
    local head, body = (answer or ""):match("^(.-)\r\n\r\n(.*)$")
    if not head then
        return nil
    end
    local headers = {}
    for name, value in head:gmatch("\r\n([^:]+):%s*([^\r]*)") do
        headers[name:lower()] = value
    end
    return tonumber(head:match("^HTTP/1%.1 (%d+)")), headers, body
end

local function deny(txn, status, headers, body)
    local reply = txn:reply({ status = status, body = body })
    for _, name in ipairs({ "content-type", "retry-after", "ratelimit-policy", "ratelimit" }) do
        if headers[name] then
            reply:add_header(name, headers[name])
        end
    end
    txn:done(reply)
end

core.register_action("sluicegate", { "http-req" }, function(txn)
    local status, headers, body = send(authorize_request(txn))
    if not status or status >= 500 then
        return
    elseif status ~= 200 then
        deny(txn, status == 429 and 429 or 400, headers, body)
    else
        for _, name in ipairs({ "ratelimit-policy", "ratelimit" }) do
            if headers[name] then
                txn:set_var("txn." .. name:gsub("-", "_"), headers[name])
            end
        end
    end
end)
