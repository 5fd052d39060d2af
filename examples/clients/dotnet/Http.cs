// Calls Sluicegate over HTTP, with .NET alone.
//
// Not run by the tests: Debian has no package dotnet-sdk-8.0, and the test machine cannot download `dotnet-install.sh`.
using System.Net.Http.Json;
using System.Text.Json.Serialization;

var url = Environment.GetEnvironmentVariable("SLUICEGATE_URL") ?? "http://127.0.0.1:8080";
using var client = new HttpClient { BaseAddress = new Uri(url), Timeout = TimeSpan.FromSeconds(5) };

for (var i = 0; i < 4; i++)
{
    Console.WriteLine($"allowed, {await Take("client:dotnet:http")} left");
}

// Takes a token from a bucket of three that refills at one per second. Waits after a denial.
async Task<ulong> Take(string key)
{
    while (true)
    {
        var response = await client.PostAsJsonAsync("/v1/take", new { key, capacity = 3, refill_rate = 1 });
        var answer = (await response.EnsureSuccessStatusCode().Content.ReadFromJsonAsync<Answer>())!;
        if (answer.Allowed) return answer.Remaining;
        if (answer.RetryAfterMs is not { } wait) throw new ArgumentException("this will never be allowed");
        Console.WriteLine($"denied, waiting {wait} ms");
        await Task.Delay(TimeSpan.FromMilliseconds(wait));
    }
}

record Answer(bool Allowed, ulong Remaining, [property: JsonPropertyName("retry_after_ms")] long? RetryAfterMs);
