<?php
// phpredis, as applications use it. `SLUICEGATE_RESP` has no password, `SLUICEGATE_GUARDED` has `canary`.

const MANY = 5000;

function same(mixed $found, mixed $expected): void
{
    if ($found !== $expected) {
        throw new RuntimeException(json_encode($found) . ' is not ' . json_encode($expected));
    }
}

function connect(string $variable, bool $lasting = false): Redis
{
    [$host, $port] = explode(':', getenv($variable));
    $client = new Redis();
    $lasting ? $client->pconnect($host, (int) $port) : $client->connect($host, (int) $port);
    return $client;
}

foreach ([false, true] as $lasting) {
    $client = connect('SLUICEGATE_RESP', $lasting);
    same($client->ping(), true);
    same($client->select(0), true);
    $key = 'php:' . (int) $lasting;
    same($client->rawCommand('CL.THROTTLE', $key, 15, 30, 60), [0, 16, 15, -1, 2]);
    $client->pipeline();
    for ($i = 0; $i < MANY; $i++) {
        $client->rawCommand('CL.THROTTLE', "$key:many", MANY - 2, 1, 3600);
    }
    $answers = $client->exec();
    same(array_column($answers, 2), [...range(MANY - 2, 0), 0]);
    same(array_column($answers, 0), [...array_fill(0, MANY - 1, 0), 1]);
    same($client->get($key), false);
    same(str_contains($client->getLastError(), 'this is Sluicegate'), true);
    $verdict = $client->rawCommand('SG.CHECK', 'user_id', $key, 'ip', '203.0.113.9');
    same([count($verdict), $verdict[0]], [10, 1]);
}

$guarded = connect('SLUICEGATE_GUARDED');
same($guarded->auth('canary'), true);
same($guarded->auth(['default', 'canary']), true);
same($guarded->ping(), true);
try {
    same(connect('SLUICEGATE_GUARDED')->auth('other'), false);
} catch (RedisException $error) {
    same(str_contains($error->getMessage(), 'WRONGPASS'), true);
}

// Options of docs/clients/php.md: without a server, calls fail at once.
try {
    (new Redis())->connect('127.0.0.1', 1, 0.1, null, 0, 0.1);
    throw new LogicException('no error');
} catch (RedisException $error) {
    echo "done\n";
}
