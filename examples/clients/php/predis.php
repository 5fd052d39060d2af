<?php
// Calls Sluicegate over the Redis protocol, with Predis (`composer require predis/predis`, `apt install php-predis`).

require 'Predis/Autoloader.php'; // with Composer: vendor/autoload.php
Predis\Autoloader::register();

$sluicegate = new Predis\Client('tcp://' . (getenv('SLUICEGATE_RESP') ?: '127.0.0.1:6380'));

/** Takes a token from a bucket of three that refills at one per second. Waits after a denial. */
function take(Predis\Client $sluicegate, string $key): int
{
    while (true) {
        [$denied, , $left, $retryAfter] = $sluicegate->executeRaw(['CL.THROTTLE', $key, 2, 1, 1]);
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
    $left = take($sluicegate, 'client:predis');
    echo "allowed, {$left} left\n";
}
