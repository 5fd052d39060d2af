// Calls Sluicegate over the Redis protocol, with Lettuce.
//
// Not run by the tests: `mvn dependency:get -Dartifact=io.lettuce:lettuce-core:6.5.0.RELEASE` needs Maven Central, which
// the test machine cannot reach.
import io.lettuce.core.RedisClient;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;
import java.util.List;

public class LettuceCheck {
    enum Command implements ProtocolKeyword {
        THROTTLE;

        @Override
        public byte[] getBytes() {
            return toString().getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String toString() {
            return "CL.THROTTLE";
        }
    }

    /** Takes a token from a bucket of three that refills at one per second. Waits after a denial. */
    static long take(RedisCommands<String, String> sluicegate, String key) throws InterruptedException {
        while (true) {
            List<Object> answer = sluicegate.dispatch(Command.THROTTLE, new ArrayOutput<>(StringCodec.UTF8),
                    new CommandArgs<>(StringCodec.UTF8).addKey(key).add(2).add(1).add(1));
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
        try (RedisClient client = RedisClient.create("redis://" + address)) {
            var sluicegate = client.connect().sync();
            for (int i = 0; i < 4; i++) {
                System.out.println("allowed, " + take(sluicegate, "client:lettuce") + " left");
            }
        }
    }
}
