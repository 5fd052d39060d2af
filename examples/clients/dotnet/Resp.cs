// Calls Sluicegate over the Redis protocol, with StackExchange.Redis (`dotnet add package StackExchange.Redis`).
//
// Not run by the tests: Debian has no package dotnet-sdk-8.0, and the test machine cannot download `dotnet-install.sh`.
using StackExchange.Redis;

var address = Environment.GetEnvironmentVariable("SLUICEGATE_RESP") ?? "127.0.0.1:6380";
// Switches off features of Redis that Sluicegate does not have.
using var connection = await ConnectionMultiplexer.ConnectAsync($"{address},$SUBSCRIBE=,$CLUSTER=,tiebreaker=");
var sluicegate = connection.GetDatabase();

for (var i = 0; i < 4; i++)
{
    Console.WriteLine($"allowed, {await Take("client:dotnet")} left");
}

// Takes a token from a bucket of three that refills at one per second. Waits after a denial.
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
