-- Asks Sluicegate about a request: `http-request lua.sluicegate` in a frontend. A denial ends it, and so does
-- what Sluicegate refuses to read, for a client can choose to send such a thing. If Sluicegate fails, or does not answer in
-- time, the request goes on.
--
-- A socket and not core.httpclient(): that one tries a dead server for three seconds before it gives up.

local ADDRESS, PORT = "127.0.0.1", 8080
local PATIENCE_S = 0.1

-- What is told about the request. Nothing else that the client sent: no other header of its own can mislead Sluicegate. What
-- no header may hold becomes a question mark.
local function question(txn)
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

-- The status, the headers by their names in small letters, and the body; nothing if there is no answer in time.
local function ask(text)
    local socket = core.tcp()
    socket:settimeout(PATIENCE_S)
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
    local status, headers, body = ask(question(txn))
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
