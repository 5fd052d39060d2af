# Asks Sluicegate over the Redis protocol, with redis-rb (`gem install redis`).
require "redis"

# Three at once, and one per second. Waits as long as it is told to.
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
