<?php
// Calls Sluicegate over the Redis protocol, with the phpredis extension (`apt install php-redis`, `pecl install redis`).

[$host, $port] = explode(':', getenv('SLUICEGATE_RESP') ?: '127.0.0.1:6380');
$sluicegate = new Redis();
$sluicegate->connect($host, (int) $port);

/** Takes a token from a bucket of three that refills at one per second. Waits after a denial. */
function take(Redis $sluicegate, string $key): int
{
    while (true) {
        $answer = $sluicegate->rawCommand('CL.THROTTLE', $key, 2, 1, 1);
        if ($answer === false) {
            throw new RuntimeException($sluicegate->getLastError());
        }
        [$denied, , $left, $retryAfter] = $answer;
        if (!$denied) {
            return $left;
        }
        if ($retryAfter < 0) {
            throw new InvalidArgumentException('this will never be allowed');
        }
        echo "denied, waiting {$retryAfter} s\n";
        sleep($retryAfter);
    }
}

for ($i = 0; $i < 4; $i++) {
    $left = take($sluicegate, 'client:phpredis');
    echo "allowed, {$left} left\n";
}
