"""Scores programs over plain HTTP, with nothing but Python's standard library."""

import json
import os
import sys
import time
import urllib.error
import urllib.request

URL = os.environ.get("REWARD_SERVER_URL", "http://127.0.0.1:8000")
API_KEY = os.environ.get("REWARD_SERVER_API_KEY")  # only if the server has keys
RUN = os.environ.get("RUN_ID", "plain-http")
TASK = "spooky-author-identification"
GOOD = f"""
import shutil
shutil.copy("/workdir/{TASK}/prepared/public/sample_submission.csv", "submission.csv")
"""
BAD = "raise SystemExit('the model made a mistake')"


def call(
    method: str, path: str, body: dict | None = None, key: str | None = None
) -> tuple[int, int, dict]:
    """Send one request; return the status, the seconds to wait, and the JSON that came back."""
    headers = {"Content-Type": "application/json"}
    if API_KEY:
        headers["Authorization"] = f"Bearer {API_KEY}"
    if key:
        headers["Idempotency-Key"] = key
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=90) as response:
            return response.status, 0, json.load(response)
    except urllib.error.HTTPError as error:  # 4xx and 5xx: a problem document
        return error.code, int(error.headers.get("Retry-After", 5)), json.load(error)
    except OSError as error:  # no answer at all: as retryable as a 503
        return 503, 5, {"kind": "no_answer", "detail": str(error), "retryable": True}


def score(body: dict, key: str) -> dict | None:
    """Return the answer for one program, or None if there is no reward for it."""
    for _ in range(10):
        status, seconds, answer = call("POST", "/v1/jobs", body, key)
        while status == 202:  # accepted, queued or running: wait up to 30 seconds at a time
            status, seconds, answer = call("GET", f"/v1/jobs/{answer['job_id']}?wait_seconds=30")
        if status == 200:
            return answer
        if status not in (429, 503):
            sys.exit(f"our request is wrong: {status} {answer['detail']}")
        if not answer["retryable"]:  # somebody cancelled the job
            return None
        time.sleep(seconds)  # then retry with the same key, which joins the known job
    return None


def report(name: str, answer: dict | None) -> None:
    """Print the outcome of a program."""
    if answer is None:
        print(f"{name}: no reward, drop this sample")
    elif answer["error"]:
        print(f"{name}: reward {answer['reward']}, failed: {answer['error']['kind']}")
    else:
        print(f"{name}: reward {answer['reward']:.3f} in {answer['duration_seconds']:.3f} s")


status, _, ready = call("GET", "/readyz")
print("ready:", status == 200)

first = score({"task_id": TASK, "code": GOOD, "run_id": RUN, "step": 1}, key=f"{RUN}/1/0")
report("a good program", first)
again = score({"task_id": TASK, "code": GOOD, "run_id": RUN, "step": 1}, key=f"{RUN}/1/0")
print("the same key again is the same job:", again["job_id"] == first["job_id"])
report("a bad program", score({"task_id": TASK, "code": BAD, "run_id": RUN}, key=f"{RUN}/1/1"))

items = [
    {"task_id": TASK, "code": code, "run_id": RUN, "idempotency_key": f"{RUN}/2/{number}"}
    for number, code in enumerate((GOOD, BAD, "import time; time.sleep(50)"))
]
batch = {"items": items, "min_complete": 2, "rest": "cancel"}
while True:  # all items are accepted, or none
    status, seconds, accepted = call("POST", "/v1/batches", batch)
    if status == 202:
        break
    if not accepted["retryable"]:
        sys.exit(f"our batch is wrong: {status} {accepted['detail']}")
    time.sleep(seconds)
progress = {"complete": False}
while not progress["complete"]:
    path = f"/v1/batches/{accepted['batch_id']}?wait_seconds=30"
    status, seconds, answer = call("GET", path)
    if status == 200:
        progress = answer
    else:
        time.sleep(seconds)
for result in progress["results"]:
    report(f"item {result['index']}", result)
for lost in progress["errors"]:
    report(f"item {lost['index']}", None)
