# redis-rb, as applications use it. `SLUICEGATE_RESP` has no password, `SLUICEGATE_GUARDED` has `canary`.
require "redis"

MANY = 5000

def same(found, expected)
  raise "#{found.inspect} is not #{expected.inspect}" unless found == expected
end

client = Redis.new(url: "redis://#{ENV.fetch("SLUICEGATE_RESP")}/0", id: "tests")
same client.ping, "PONG"
same client.call("CL.THROTTLE", "ruby", 15, 30, 60), [0, 16, 15, -1, 2]
answers = client.pipelined { |pipeline| MANY.times { pipeline.call("CL.THROTTLE", "ruby:many", MANY - 2, 1, 3600) } }
same answers.map { |answer| answer[2] }, (0..MANY - 2).to_a.reverse + [0]
same answers.map(&:first), [0] * (MANY - 1) + [1]
begin
  client.get("ruby")
  raise "no error"
rescue Redis::CommandError => error
  same error.message.include?("this is Sluicegate"), true
end
verdict = client.call("SG.CHECK", "user_id", "ruby", "ip", "203.0.113.9")
same [verdict.size, verdict.first, verdict.last], [10, 1, nil]

guarded = ENV.fetch("SLUICEGATE_GUARDED")
same Redis.new(url: "redis://:canary@#{guarded}").ping, "PONG"
same Redis.new(url: "redis://default:canary@#{guarded}").ping, "PONG"
begin
  Redis.new(url: "redis://:other@#{guarded}").ping
  raise "no error"
rescue Redis::BaseError => error
  same error.message.include?("WRONGPASS"), true
end

# Options of docs/clients/ruby.md: without a server, calls fail at once.
begin
  Redis.new(url: "redis://127.0.0.1:1", timeout: 0.1, reconnect_attempts: 0).ping
  raise "no error"
rescue Redis::BaseConnectionError
  puts "done"
end
