"""Calls Sluicegate over the Redis protocol, with redis-py (`pip install redis`), at its default settings."""

import os
import time

import redis

host, port = os.environ.get("SLUICEGATE_RESP", "127.0.0.1:6380").rsplit(":", 1)
sluicegate = redis.Redis(host=host, port=int(port))


def take(key):
    """Takes a token from a bucket of three that refills at one per second. Waits after a denial."""
    while True:
        denied, _limit, left, retry_after, _reset = sluicegate.execute_command("CL.THROTTLE", key, 2, 1, 1)
        if not denied:
            return left
        if retry_after < 0:
            raise ValueError("this will never be allowed")
        print(f"denied, waiting {retry_after} s", flush=True)
        time.sleep(retry_after)


for _ in range(4):
    print(f"allowed, {take('client:python')} left", flush=True)
