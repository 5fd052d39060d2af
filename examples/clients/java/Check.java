// Calls Sluicegate over HTTP, with Java's standard library: `java Check.java`
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Check {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static final String URL =
            System.getenv().getOrDefault("SLUICEGATE_URL", "http://127.0.0.1:8080");

    /** Takes a token from a bucket of three that refills at one per second. Waits after a denial. */
    static String take(String key) throws Exception {
        String body = "{\"key\":\"" + key + "\",\"capacity\":3,\"refill_rate\":1}";
        HttpRequest request = HttpRequest.newBuilder(URI.create(URL + "/v1/take"))
                .timeout(Duration.ofSeconds(5))
                .header("content-type", "application/json")
                .POST(BodyPublishers.ofString(body))
                .build();
        while (true) {
            var response = CLIENT.send(request, BodyHandlers.ofString());
            if (response.statusCode() != 200) {
                throw new IllegalStateException(response.body());
            }
            if (field(response.body(), "allowed").equals("true")) {
                return field(response.body(), "remaining");
            }
            String retryAfterMs = field(response.body(), "retry_after_ms");
            if (retryAfterMs.equals("null")) {
                throw new IllegalArgumentException("this will never be allowed");
            }
            System.out.println("denied, waiting " + retryAfterMs + " ms");
            Thread.sleep(Long.parseLong(retryAfterMs));
        }
    }

    /** Returns a number, boolean or null of a flat JSON object. Use a JSON library if you have one. */
    static String field(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":(\\w+)").matcher(json);
        if (!found.find()) {
            throw new IllegalStateException(json);
        }
        return found.group(1);
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 4; i++) {
            System.out.println("allowed, " + take("client:java") + " left");
        }
    }
}
