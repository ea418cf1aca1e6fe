"""
Runs LocalStack until SIGTERM, or until the standard input ends, as it does with the process that holds its other end: so nothing
is left even after a kill -9 of that. The working directory holds everything that LocalStack writes.

LAMBDA_HOST_NODE names the Node.js that functions run in, LAMBDA_HOST_RIC the folder of npm's aws-lambda-ric.
"""

import atexit
import os
import runpy
import shutil
import signal
import sys
import threading
import time


ENDS_WITHIN_S = 5


def end_with_input(folder: str) -> None:
    while os.read(0, 4096):
        pass
    # In place of the process that would have done so.
    atexit.register(remove, folder)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ENDS_WITHIN_S)
    remove(folder)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def remove(folder: str) -> None:
    """Ends DynamoDB Local, which has a process group of its own, and removes the files."""
    pids = os.path.join(folder, "pids")
    for pid in open(pids).read().split() if os.path.exists(pids) else []:
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    shutil.rmtree(folder, ignore_errors=True)


def mark_expired_items() -> None:
    """
    AWS marks the removals of items whose time to live is over, by `userIdentity`, and event sources filter by it. LocalStack removes
    such items (`DELETE /_aws/dynamodb/expired`) without a mark. An item that is removed after the time that its attribute `ttl`
    names is taken for one of these.
    """
    from localstack.services.lambda_.event_source_mapping.pollers.dynamodb_poller import DynamoDBPoller

    transform = DynamoDBPoller.transform_into_events

    def marked(self, records, shard_id):
        events = transform(self, records, shard_id)
        for event in events:
            expires_at = event["dynamodb"].get("OldImage", {}).get("ttl", {}).get("N")
            if event["eventName"] == "REMOVE" and expires_at and float(expires_at) <= time.time():
                event["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
        return events

    DynamoDBPoller.transform_into_events = marked


threading.Thread(target=end_with_input, args=(os.getcwd(),), daemon=True).start()
mark_expired_items()
sys.argv = ["localstack.runtime.main"]
runpy.run_module("localstack.runtime.main", run_name="__main__")
