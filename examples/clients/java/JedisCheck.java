// Calls Sluicegate over the Redis protocol, with Jedis.
//
// Not run by the tests: `mvn dependency:get -Dartifact=redis.clients:jedis:5.2.0` needs Maven Central, which
// the test machine cannot reach.
import java.nio.charset.StandardCharsets;
import java.util.List;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.commands.ProtocolCommand;

public class JedisCheck {
    private static final ProtocolCommand THROTTLE = () -> "CL.THROTTLE".getBytes(StandardCharsets.UTF_8);

    /** Takes a token from a bucket of three that refills at one per second. Waits after a denial. */
    static long take(JedisPooled sluicegate, String key) throws InterruptedException {
        while (true) {
            List<?> answer = (List<?>) sluicegate.sendCommand(THROTTLE, key, "2", "1", "1");
            long denied = (Long) answer.get(0), left = (Long) answer.get(2), retryAfter = (Long) answer.get(3);
            if (denied == 0) {
                return left;
            }
            if (retryAfter < 0) {
                throw new IllegalArgumentException("this will never be allowed");
            }
            System.out.println("denied, waiting " + retryAfter + " s");
            Thread.sleep(retryAfter * 1000);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String address = System.getenv().getOrDefault("SLUICEGATE_RESP", "127.0.0.1:6380");
        try (JedisPooled sluicegate = new JedisPooled("redis://" + address)) {
            for (int i = 0; i < 4; i++) {
                System.out.println("allowed, " + take(sluicegate, "client:jedis") + " left");
            }
        }
    }
}
