"""Servers with the module loaded, each in a directory of its own, on the loopback alone."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest
import redis

GOLDEN = pathlib.Path(__file__).parents[2] / "tamis/tests/golden"
MODULE = os.environ["TAMIS_MODULE"]
SERVERS = dict(entry.split("=", 1) for entry in os.environ["TAMIS_SERVERS"].split(","))


def free_port():
    """A port that nobody listens on, nor on the one of the cluster bus above it."""
    while True:
        with socket.socket() as one, socket.socket() as bus:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            if port > 55000:
                continue
            with contextlib.suppress(OSError):
                bus.bind(("127.0.0.1", port + 10000))
                return port


class Server:
    """A server, started anew as often as wanted in one directory."""

    def __init__(self, program, directory, *options):
        self.program, self.directory, self.options = program, directory, options
        self.port, self.process = free_port(), None
        directory.mkdir(exist_ok=True)
        self.start()

    def start(self):
        words = [self.program, "--port", str(self.port), "--bind", "127.0.0.1"]
        words += ["--dir", str(self.directory), "--logfile", "log", "--enable-debug-command", "yes"]
        words += ["--save", "", "--loadmodule", MODULE, *self.options]
        # The program may be unpacked beside the libraries that it needs.
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return
            except (redis.ConnectionError, redis.BusyLoadingError):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    log = pathlib.Path(self.directory, "log").read_text(errors="replace")
                    raise RuntimeError(f"the server did not start:\n{log[-3000:]}") from None
                time.sleep(0.05)

    def client(self, protocol=2, **options):
        return redis.Redis(port=self.port, protocol=protocol, **options)

    def is_alive(self):
        return self.process.poll() is None

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()


@pytest.fixture(params=SERVERS, scope="session")
def program(request):
    return SERVERS[request.param]


@pytest.fixture
def start(program, tmp_path):
    """Starts servers, and ends them with the test."""
    servers = []

    def begin(*options):
        server = Server(program, tmp_path / str(len(servers)), *options)
        servers.append(server)
        return server

    yield begin
    died = [server for server in servers if not server.is_alive()]
    for server in servers:
        server.stop()
    logs = [pathlib.Path(server.directory, "log").read_text(errors="replace") for server in died]
    shutil.rmtree(tmp_path, ignore_errors=True)
    assert not died, "a server ended by itself:\n" + "\n".join(log[-3000:] for log in logs)


@pytest.fixture(scope="session")
def shared(program, tmp_path_factory):
    """A server for tests that need none of their own."""
    server = Server(program, tmp_path_factory.mktemp("shared"))
    yield server
    assert server.is_alive()
    server.stop()


@pytest.fixture(params=[2, 3])
def client(request, shared):
    with shared.client(protocol=request.param) as client:
        client.flushall()
        yield client


@pytest.fixture
def resp2(shared):
    with shared.client() as client:
        client.flushall()
        yield client


def call(client, line, *more):
    """Sends a command given as a line of words, and perhaps more of them."""
    return client.execute_command(*line.split(), *more)


def refused(client, line, *more):
    """The error that a command is answered with."""
    with pytest.raises(redis.ResponseError) as error:
        call(client, line, *more)
    return str(error.value)


def waiting(server, clients, line, *more):
    """Sends a command in a thread, and gives that thread when so many clients wait, or it is done.

    Whether the command is refused is not its matter.
    """

    def send():
        with server.client() as client, contextlib.suppress(redis.ResponseError):
            call(client, line, *more)

    thread = threading.Thread(target=send)
    thread.start()
    with server.client() as client:
        while client.info("clients")["blocked_clients"] < clients and thread.is_alive():
            pass
    return thread


def digest(client, *keys):
    """The digest of some keys, or of the whole data set."""
    if keys:
        return client.execute_command("DEBUG", "DIGEST-VALUE", *keys)
    return client.execute_command("DEBUG", "DIGEST")


def synced(primary, replica, seconds=30):
    """Waits until a replica has all that its primary has."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ours, theirs = primary.info("replication"), replica.info("replication")
        if (
            theirs["role"] == "slave"
            and theirs["master_link_status"] == "up"
            and theirs["slave_repl_offset"] == ours["master_repl_offset"]
        ):
            return
        time.sleep(0.02)
    raise TimeoutError("the replica does not catch up")
