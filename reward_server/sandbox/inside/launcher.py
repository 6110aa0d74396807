"""The first code in a box: hands over what the supervisor needs, then becomes the program.

It runs under the box's own Python, where this package does not exist, and imports nothing
but built-in modules, because every program pays for what it imports. Until the last lines it
is trusted, and it leaves nothing for the program to use: the payload is erased, the control
socket and every other descriptor are closed. The program's file holds the code as the model wrote
it; `markers` describes how markers come into the compiled code.
"""

import _socket
import builtins
import marshal
import os
import sys
import time

_CONTROL = 3


def hand_over(control, started_ns, folders):
    """Send the supervisor the start time and descriptors of the folders.

    A descriptor keeps a mount alive after the death of its namespace: the supervisor reads the
    folders when every process that could change them is dead.
    """
    descriptors = [os.open(folder, os.O_PATH | os.O_DIRECTORY) for folder in folders]
    packed = b"".join(fd.to_bytes(4, sys.byteorder) for fd in descriptors)
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)
    channel = _socket.socket(fileno=control)
    channel.sendmsg([marshal.dumps(started_ns, 2)], [rights])
    channel.close()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def read_payload():
    """Read what the server sent from standard input, erase it, and leave an empty one."""
    size = os.fstat(0).st_size
    payload = b""
    while len(payload) < size:
        payload += os.read(0, size - len(payload))
    os.ftruncate(0, 0)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return marshal.loads(payload)  # noqa: S302 - written by the server, before any program ran


def _write(file, data):
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, 0o644)
    while data:
        data = data[os.write(descriptor, data) :]
    os.close(descriptor)


def _write_files(work, inputs):
    """Write the files that came with the program into its work directory."""
    for name, data in inputs.items():
        folder = os.path.dirname(name)
        if folder:
            os.makedirs(os.path.join(work, folder), exist_ok=True)
        _write(os.path.join(work, name), data)


def _set_stdin(folder, data):
    """Make the program's standard input: a file without a name, in a folder of limited size."""
    path = os.path.join(folder, ".stdin")
    _write(path, data)
    descriptor = os.open(path, os.O_RDONLY)
    os.unlink(path)
    os.dup2(descriptor, 0)
    os.close(descriptor)


def _prefer_for_oom_kill():
    """Have the kernel kill the box before its supervisor when memory runs out."""
    try:
        _write("/proc/self/oom_score_adj", b"1000")
    except OSError:  # a host that forbids it must not fail the program
        return


def _limit(limits):
    import resource  # noqa: PLC0415 - not built in everywhere

    for name, value in limits.items():
        kind = getattr(resource, "RLIMIT_" + name)
        most = resource.getrlimit(kind)[1]
        least = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (least, least))  # never above the host's own: that would fail


def _compile(payload, file):
    if payload["positions"]:
        import markers  # noqa: PLC0415 - only programs with markers need it

        code = markers.compile_with_markers(payload, file)
    else:
        code = compile(payload["code"], file, "exec", dont_inherit=True)
    sys.modules.pop("markers", None)
    return code


def _become_main(file):
    main = type(sys)("__main__")
    main.__file__ = file
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    sys.argv[:] = [file]
    sys.path[0] = os.path.dirname(file)
    return main.__dict__


def _prepare(payload):
    _limit(payload["limits"])
    _prefer_for_oom_kill()
    file = payload["file"]
    _write_files(os.path.dirname(file), payload["inputs"])
    if payload["stdin"]:
        _set_stdin(payload["folders"][1], payload["stdin"])
    _write(file, payload["code"].encode())
    sys.stdout.reconfigure(line_buffering=True)
    return _compile(payload, file), _become_main(file)


def run(payloads):
    """Become the program whose payload is the only element; popping it keeps no reference.

    An exception is shown as the interpreter would show it, without our own frames.
    """
    code = None
    try:
        code, namespace = _prepare(payloads.pop())
        exec(code, namespace)  # noqa: S102 - this is the box
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - shown as the interpreter would show it
        trace = error.__traceback__.tb_next if code and error.__traceback__ else None
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(1)


def _main(started_ns):
    payloads = [read_payload()]
    hand_over(_CONTROL, started_ns, payloads[0]["folders"])
    run(payloads)


if __name__ == "__main__":
    _keep = sys.modules["__main__"]
    _main(time.monotonic_ns())
