"""redis-py, as applications use it. `SLUICEGATE_RESP` has no password, `SLUICEGATE_GUARDED` has `canary`."""

import asyncio
import os

import redis
import redis.asyncio

MANY = 5000
NO_RETRIES = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
VERDICT = ["allowed", "limit", "remaining", "retry_after_ms", "reset_after_ms", "delay_ms", "degraded"]
VERDICT += ["violated_tier", "violated_rule", "rule_id"]


def where(variable):
    host, port = os.environ[variable].rsplit(":", 1)
    return {"host": host, "port": int(port)}


def refused(kind, ask):
    try:
        ask()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def in_both_versions():
    for version in (2, 3):
        client = redis.Redis(**where("SLUICEGATE_RESP"), protocol=version, decode_responses=True, client_name="tests")
        assert client.ping() is True
        key = f"py:{version}"
        assert client.execute_command("CL.THROTTLE", key, 15, 30, 60) == [0, 16, 15, -1, 2]
        assert "this is Sluicegate" in refused(redis.ResponseError, lambda: client.get(key))
        assert client.client_getname() == "tests", "the same connection goes on"
        verdict = client.execute_command("SG.CHECK", "user_id", key, "ip", "203.0.113.9", "endpoint", "/login")
        taken = client.execute_command("SG.TAKE", key + ":take", 5, 1, 60000)
        if version == 2:
            assert len(verdict) == len(VERDICT) and verdict[0] == 1 and verdict[7:] == [None] * 3, verdict
            assert taken == [1, 5, 4, 0, 60000, 0, 0], taken
        else:
            assert list(verdict) == VERDICT and verdict["allowed"] is True and verdict["rule_id"] is None, verdict
            assert list(taken) == VERDICT[:7] and taken["remaining"] == 4 and taken["degraded"] is False, taken
        client.close()


def at_its_defaults():
    client = redis.Redis(**where("SLUICEGATE_RESP"))
    assert client.execute_command("SG.TAKE", "py", 5, 1, 60000)[b"remaining"] == 4
    pipeline = client.pipeline(transaction=False)
    for _ in range(MANY):
        pipeline.execute_command("CL.THROTTLE", "py:many", MANY - 2, 1, 3600)
    check(pipeline.execute())
    # MULTI is rejected, and later replies on the connection stay in order.
    pipeline = client.pipeline()
    pipeline.execute_command("CL.THROTTLE", "py:multi", 4, 1, 3600)
    refused(redis.ResponseError, pipeline.execute)
    assert client.ping() is True


async def asynchronously():
    client = redis.asyncio.Redis(**where("SLUICEGATE_RESP"))
    pipeline = client.pipeline(transaction=False)
    for _ in range(MANY):
        pipeline.execute_command("CL.THROTTLE", "py:async", MANY - 2, 1, 3600)
    check(await pipeline.execute())
    asks = (client.execute_command("CL.THROTTLE", "py:gather", 9, 1, 3600) for _ in range(50))
    assert sum(answer[0] == 0 for answer in await asyncio.gather(*asks)) == 10
    await client.aclose()


def check(answers):
    """So many, in their order, and all but the last were there."""
    assert [answer[2] for answer in answers] == [*range(MANY - 2, -1, -1), 0]
    assert [answer[0] for answer in answers] == [0] * (MANY - 1) + [1]


def with_a_password():
    for version in (2, 3):
        options = {**where("SLUICEGATE_GUARDED"), "protocol": version}
        assert redis.Redis(**options, password="canary").ping() is True
        assert redis.Redis(**options, username="default", password="canary").ping() is True
        refused(redis.AuthenticationError, redis.Redis(**options).ping)
        # Without its retries: after five wrong passwords every attempt waits.
        refused(redis.AuthenticationError, redis.Redis(**options, password="other", retry=NO_RETRIES).ping)


def without_a_server():
    """As docs/clients/python.md has it: nobody listens there, and that is known at once."""
    client = redis.Redis(port=1, socket_connect_timeout=0.1, socket_timeout=0.1, retry=NO_RETRIES)
    refused(redis.ConnectionError, client.ping)


in_both_versions()
at_its_defaults()
asyncio.run(asynchronously())
with_a_password()
without_a_server()
print("done")
