"""
Runs the Lambda functions of LocalStack 4.14 as processes of this host, where there is no Docker. LocalStack decides when a
function is invoked, with what, how often it is tried again and where its log goes. This file stands in for the container: an
execution environment is one Node.js process that runs Amazon's runtime interface client (npm's aws-lambda-ric), and asks for
its invocations by the Lambda Runtime API, which is served here, on a port of the loopback interface.

It isolates nothing: functions see the host's files, network and clock, and memory is measured and not limited. It knows no
layers, no extensions and no response streams. `launch.py` says by which variables it is configured.
"""

import json
import os
import re
import select
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from localstack import config
from localstack.services.lambda_.invocation.executor_endpoint import StatusErrorException
from localstack.services.lambda_.invocation.lambda_models import FunctionVersion, InvocationResult
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor

API = "/2018-06-01/runtime"
MAX_RESPONSE_BYTES = 6 * 1024 * 1024 + 100
# AWS gives 10 s; a machine that does other things meanwhile may need more.
STARTS_WITHIN_S = 60.0
# A process may still write, or do something, between its answer and its next question.
SETTLES_WITHIN_S = 1.0
KEPT_LOG_LINES = 1000


class HostExecutorPlugin(RuntimeExecutorPlugin):
    name = "host"

    def load(self, *args, **kwargs):
        return HostExecutor


class Invocation:
    def __init__(self, payload: dict[str, str], deadline_at: float):
        self.id = payload["invoke-id"]
        self.arn = payload["invoked-function-arn"]
        self.trace = payload["trace-id"]
        self.event = payload["payload"].encode()
        self.deadline_at = deadline_at
        self.taken = False
        # Reports whether the function failed, and holds its result or error.
        self.answer: tuple[bool, bytes] | None = None


class Sandbox:
    """An execution environment: a process, its output, and the Runtime API that it asks."""

    def __init__(self, env: dict[str, str], task_root: str):
        self._changed = threading.Condition()
        self._invocation: Invocation | None = None
        self._questions = 0
        self._ended = False
        self.init_error: bytes | None = None
        self._output: list[bytes] = []
        self._output_lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        self._process = subprocess.Popen(
            [os.environ["LAMBDA_HOST_NODE"], os.path.join(os.environ["LAMBDA_HOST_RIC"], "index.mjs")],
            cwd=task_root,
            env={**env, "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self._server.server_port}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        os.set_blocking(self._process.stdout.fileno(), False)
        threading.Thread(target=self._attend, daemon=True).start()

    @property
    def alive(self) -> bool:
        return not self._ended

    def started(self) -> bool:
        """Waits until the process asks for its first invocation. False: it ended, failed or took too long."""
        with self._changed:
            self._changed.wait_for(lambda: self._questions or self._ended or self.init_error, STARTS_WITHIN_S)
            return self._questions > 0 and not self.init_error

    def run(self, invocation: Invocation) -> bool:
        """Hands an invocation to the process. False: there is no answer, because time ran out or the process ended."""
        with self._changed:
            asked, self._invocation = self._questions, invocation
            self._changed.notify_all()
            self._changed.wait_for(lambda: invocation.answer or self._ended, invocation.deadline_at - time.time())
            if invocation.answer:
                self._changed.wait_for(lambda: self._questions > asked or self._ended, SETTLES_WITHIN_S)
            self._invocation = None
        return invocation.answer is not None

    def output(self) -> str:
        """The output since the last call."""
        self._read()
        with self._output_lock:
            text, self._output = b"".join(self._output), []
        return text.decode(errors="replace")

    def peak_mib(self) -> int:
        try:
            with open(f"/proc/{self._process.pid}/status") as status:
                return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) // 1024
        except (OSError, AttributeError):
            return 0

    def exit_status(self) -> str:
        code = self._process.poll()
        return f"signal: {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit status {code}"

    def close(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._server.shutdown()
        self._server.server_close()

    def _attend(self) -> None:
        """Reads the output, and notices the end of the process."""
        while self._process.poll() is None:
            select.select([self._process.stdout], [], [], 0.1)
            self._read()
            time.sleep(0.01)
        self._read()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _read(self) -> None:
        with self._output_lock:
            while True:
                try:
                    chunk = os.read(self._process.stdout.fileno(), 65536)
                except (BlockingIOError, ValueError, OSError):
                    return
                if not chunk:
                    return
                self._output.append(chunk)

    def _next(self) -> Invocation | None:
        with self._changed:
            self._questions += 1
            self._changed.notify_all()
            # The answer to an invocation may come after the question for the next one.
            self._changed.wait_for(lambda: self._ended or (self._invocation and not self._invocation.taken))
            if self._ended:
                return None
            self._invocation.taken = True
            return self._invocation

    def _answer(self, request_id: str, failed: bool, body: bytes) -> bool:
        with self._changed:
            invocation = self._invocation
            if not invocation or invocation.id != request_id or invocation.answer:
                return False
            invocation.answer = (failed, body)
            self._changed.notify_all()
            return True

    def _handler(sandbox) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body in one packet.
            wbufsize = -1

            def log_message(self, *args):
                pass

            def do_GET(self):
                invocation = sandbox._next() if self.path == f"{API}/invocation/next" else None
                if not invocation:
                    return self._say(403, {}, b"{}")
                self._say(
                    200,
                    {
                        "Content-Type": "application/json",
                        "Lambda-Runtime-Aws-Request-Id": invocation.id,
                        "Lambda-Runtime-Deadline-Ms": str(int(invocation.deadline_at * 1000)),
                        "Lambda-Runtime-Invoked-Function-Arn": invocation.arn,
                        "Lambda-Runtime-Trace-Id": invocation.trace,
                    },
                    invocation.event,
                )

            def do_POST(self):
                body = self._body()
                if self.path == f"{API}/init/error":
                    with sandbox._changed:
                        sandbox.init_error = body
                        sandbox._changed.notify_all()
                    return self._say(202, {}, b"{}")
                found = re.fullmatch(f"{API}/invocation/([^/]+)/(response|error)", self.path)
                taken = found and sandbox._answer(found[1], found[2] == "error", body)
                self._say(202 if taken else 400, {}, b"{}")

            def _body(self) -> bytes:
                if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                parts = []
                while size := int(self.rfile.readline(), 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)

            def _say(self, status: int, headers: dict[str, str], body: bytes):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler


class HostExecutor(RuntimeExecutor):
    """Starts a process for an execution environment, and another one after a process that timed out or ended."""

    def __init__(self, id: str, function_version: FunctionVersion) -> None:
        super().__init__(id, function_version)
        self._env: dict[str, str] = {}
        self._sandbox: Sandbox | None = None
        self._init_ms: float | None = None
        self._lines: list[str] = []
        self._stopped = False

    def start(self, env_vars: dict[str, str]) -> None:
        self._task_root = str(self.function_version.config.code.get_unzipped_code_location())
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": "/tmp",
            "LANG": "en_US.UTF-8",
            **{name: str(value) for name, value in env_vars.items()},
            "LAMBDA_TASK_ROOT": self._task_root,
            "AWS_LAMBDA_NODEJS_USE_ALTERNATIVE_CLIENT_1": "true",
        }
        error = self._launch()
        if error:
            raise StatusErrorException("The function did not start.", payload=error)

    def _launch(self) -> bytes | None:
        """Starts a process, and returns the error of one that did not start."""
        if self._stopped:
            return failure("Sandbox.Stopped", "Error: the execution environment was stopped")
        began = time.time()
        self._sandbox = sandbox = Sandbox(self._env, self._task_root)
        if sandbox.started():
            self._init_ms = (time.time() - began) * 1000
            return None
        said = sandbox.output()
        self._keep(said)
        error = sandbox.init_error or failure("Runtime.ExitError", f"Error: Runtime exited: {sandbox.exit_status()}\n{said}")
        sandbox.close()
        self._sandbox = None
        return error

    def stop(self) -> None:
        self._stopped = True
        if self._sandbox:
            self._sandbox.close()

    def get_address(self) -> str:
        return "127.0.0.1"

    def get_endpoint_from_executor(self) -> str:
        return "localhost"

    def get_runtime_endpoint(self) -> str:
        return f"http://localhost:{config.GATEWAY_LISTEN[0].port}/_localstack_lambda/{self.id}"

    def get_logs(self) -> str:
        return "\n".join(self._lines)

    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        timeout_s = self.function_version.config.timeout
        request_id = payload["invoke-id"]
        log = [f"START RequestId: {request_id} Version: {self.function_version.id.qualifier}"]
        if not self._sandbox and (error := self._launch()):
            return InvocationResult(request_id, error, is_error=True, logs="\n".join(log))
        began = time.time()
        sandbox, invocation = self._sandbox, Invocation(payload, began + timeout_s)
        answered = sandbox.run(invocation)
        duration_ms = (time.time() - began) * 1000
        failed, body = invocation.answer or (True, b"")
        log += sandbox.output().splitlines()
        if answered and len(body) > MAX_RESPONSE_BYTES:
            failed = True
            body = failure(
                "Function.ResponseSizeTooLarge",
                "Response payload size exceeded maximum allowed payload size (6291556 bytes).",
            )
        elif not answered and sandbox.alive:
            said = f"{request_id} Task timed out after {timeout_s:.2f} seconds"
            body = failure("Sandbox.Timedout", f"RequestId: {said.replace(' ', ' Error: ', 1)}")
            log.append(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {said}")
        elif not answered:
            said = f"RequestId: {request_id} Error: Runtime exited with error: {sandbox.exit_status()}"
            body = failure("Runtime.ExitError", said)
        log += [f"END RequestId: {request_id}", self._report(request_id, duration_ms, sandbox.peak_mib())]
        if not answered or not sandbox.alive:
            sandbox.close()
            self._sandbox = None
        self._keep("\n".join(log))
        return InvocationResult(request_id, body, is_error=failed, logs="\n".join(log) + "\n")

    def _report(self, request_id: str, duration_ms: float, peak_mib: int) -> str:
        init, self._init_ms = self._init_ms, None
        values = {
            "RequestId": request_id,
            "Duration": f"{duration_ms:.2f} ms",
            "Billed Duration": f"{int(duration_ms + (init or 0)) + 1} ms",
            "Memory Size": f"{self.function_version.config.memory_size} MB",
            "Max Memory Used": f"{peak_mib} MB",
            **({"Init Duration": f"{init:.2f} ms"} if init else {}),
        }
        return "REPORT " + "\t".join(f"{name}: {value}" for name, value in values.items()) + "\t"

    def _keep(self, text: str) -> None:
        self._lines = [*self._lines, *text.splitlines()][-KEPT_LOG_LINES:]

    @classmethod
    def prepare_version(cls, function_version: FunctionVersion) -> None:
        function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version: FunctionVersion) -> None:
        pass


def failure(kind: str, message: str) -> bytes:
    return json.dumps({"errorType": kind, "errorMessage": message}).encode()
