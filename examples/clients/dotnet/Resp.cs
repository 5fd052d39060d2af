// Asks Sluicegate over the Redis protocol, with StackExchange.Redis (`dotnet add package StackExchange.Redis`).
//
// Not run by the tests: `apt-get install dotnet-sdk-8.0` found no such package in Debian, and `dotnet-install.sh` could not
// be fetched where they run.
using StackExchange.Redis;

var address = Environment.GetEnvironmentVariable("SLUICEGATE_RESP") ?? "127.0.0.1:6380";
// What it would look for in a Redis, and is not here.
using var connection = await ConnectionMultiplexer.ConnectAsync($"{address},$SUBSCRIBE=,$CLUSTER=,tiebreaker=");
var sluicegate = connection.GetDatabase();

for (var i = 0; i < 4; i++)
{
    Console.WriteLine($"allowed, {await Take("client:dotnet")} left");
}

// Three at once, and one per second. Waits as long as it is told to.
async Task<long> Take(string key)
{
    while (true)
    {
        var answer = (long[])(await sluicegate.ExecuteAsync("CL.THROTTLE", key, 2, 1, 1))!;
        var (denied, left, retryAfter) = (answer[0], answer[2], answer[3]);
        if (denied == 0) return left;
        if (retryAfter < 0) throw new ArgumentException("this will never be allowed");
        Console.WriteLine($"denied, waiting {retryAfter} s");
        await Task.Delay(TimeSpan.FromSeconds(retryAfter));
    }
}
