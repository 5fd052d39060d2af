# Calls Sluicegate over the Redis protocol, with redis-rb (`gem install redis`).
require "redis"

# Takes a token from a bucket of three that refills at one per second. Waits after a denial.
def take(sluicegate, key)
  loop do
    denied, _limit, left, retry_after = sluicegate.call("CL.THROTTLE", key, 2, 1, 1)
    return left if denied.zero?
    raise ArgumentError, "this will never be allowed" if retry_after.negative?

    puts "denied, waiting #{retry_after} s"
    sleep retry_after
  end
end

$stdout.sync = true
sluicegate = Redis.new(url: "redis://#{ENV.fetch("SLUICEGATE_RESP", "127.0.0.1:6380")}")
4.times { puts "allowed, #{take(sluicegate, "client:ruby")} left" }
