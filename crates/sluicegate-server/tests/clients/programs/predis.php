<?php
// Predis, as applications use it. `SLUICEGATE_RESP` has no password, `SLUICEGATE_GUARDED` has `canary`.

require 'Predis/Autoloader.php';
Predis\Autoloader::register();

const MANY = 5000;

function same(mixed $found, mixed $expected): void
{
    if ($found !== $expected) {
        throw new RuntimeException(json_encode($found) . ' is not ' . json_encode($expected));
    }
}

$client = new Predis\Client('tcp://' . getenv('SLUICEGATE_RESP') . '?database=0');
same((string) $client->ping(), 'PONG');
same($client->executeRaw(['CL.THROTTLE', 'predis', 15, 30, 60]), [0, 16, 15, -1, 2]);
$answers = $client->pipeline(function ($pipeline) {
    for ($i = 0; $i < MANY; $i++) {
        $pipeline->executeCommand(Predis\Command\RawCommand::create('CL.THROTTLE', 'predis:many', MANY - 2, 1, 3600));
    }
});
same(array_column($answers, 2), [...range(MANY - 2, 0), 0]);
same(array_column($answers, 0), [...array_fill(0, MANY - 1, 0), 1]);
try {
    $client->get('predis');
    throw new LogicException('no error');
} catch (Predis\Response\ServerException $error) {
    same(str_contains($error->getMessage(), 'this is Sluicegate'), true);
}
$verdict = $client->executeRaw(['SG.CHECK', 'user_id', 'predis', 'ip', '203.0.113.9']);
same([count($verdict), $verdict[0]], [10, 1]);

$guarded = 'tcp://' . getenv('SLUICEGATE_GUARDED');
same((string) (new Predis\Client("$guarded?password=canary"))->ping(), 'PONG');
try {
    (new Predis\Client("$guarded?password=other"))->ping();
    throw new LogicException('no error');
} catch (Predis\Connection\ConnectionException | Predis\Response\ServerException $error) {
    same(str_contains($error->getMessage(), 'WRONGPASS'), true);
}

// Options of docs/clients/php.md: without a server, calls fail at once.
try {
    (new Predis\Client('tcp://127.0.0.1:1?timeout=0.1&read_write_timeout=0.1'))->ping();
    throw new LogicException('no error');
} catch (Predis\Connection\ConnectionException $error) {
    echo "done\n";
}
