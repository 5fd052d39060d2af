"""Calls Sluicegate over HTTP, with Python's standard library."""

import json
import os
import time
import urllib.request

url = os.environ.get("SLUICEGATE_URL", "http://127.0.0.1:8080")


def take(key):
    """Takes a token from a bucket of three that refills at one per second. Waits after a denial."""
    body = json.dumps({"key": key, "capacity": 3, "refill_rate": 1}).encode()
    while True:
        request = urllib.request.Request(f"{url}/v1/take", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=5) as response:
            answer = json.load(response)
        if answer["allowed"]:
            return answer["remaining"]
        if answer["retry_after_ms"] is None:
            raise ValueError("this will never be allowed")
        print(f"denied, waiting {answer['retry_after_ms']} ms", flush=True)
        time.sleep(answer["retry_after_ms"] / 1000)


for _ in range(4):
    print(f"allowed, {take('client:python:http')} left", flush=True)
