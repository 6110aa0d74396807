"""The first thing that runs in a box: hands the box over, then becomes the program.

It runs under the box's own Python, where this package does not exist, and imports nothing
but built-in modules, because every program pays for what it imports. Until the last lines it
is trusted; what it leaves behind for the program is a closed door: the payload is erased,
the control socket and every other descriptor are shut.

The program's file holds the code as the model wrote it. The markers exist only in the
compiled tree, after the statements they belong to and on their lines, so that a traceback
shows the original and the file gives no token away. A marker's function answers only to the
call that was compiled in for it.
"""

import _ast
import _socket
import builtins
import marshal
import os
import sys
import time

_CONTROL = 3
_FIRST_COLUMN = 1_000_000


def _hand_over(started_ns, folders):
    """Give the keeper the start time and the folders, whose contents outlive the box."""
    descriptors = [os.open(folder, os.O_PATH | os.O_DIRECTORY) for folder in folders]
    packed = b"".join(fd.to_bytes(4, sys.byteorder) for fd in descriptors)
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)
    control = _socket.socket(fileno=_CONTROL)
    control.sendmsg([marshal.dumps(started_ns, 2)], [rights])
    control.close()
    os.closerange(_CONTROL, os.sysconf("SC_OPEN_MAX"))


def _read_payload():
    size = os.fstat(0).st_size
    payload = b""
    while len(payload) < size:
        payload += os.read(0, size - len(payload))
    os.ftruncate(0, 0)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return marshal.loads(payload)  # noqa: S302 - written by the server, before any program ran


def _limit(limits):
    import resource  # noqa: PLC0415 - not built in everywhere

    for name, value in limits.items():
        kind = getattr(resource, "RLIMIT_" + name)
        resource.setrlimit(kind, (value, value))


def _place_markers(tree, places, name):
    """Insert a call of the marker function after every statement at one of the places."""
    pending = [tree]
    count = 0
    while pending:
        node = pending.pop()
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, _ast.AST):
                pending.append(value)
            elif isinstance(value, list):
                pending += [item for item in value if isinstance(item, _ast.AST)]
                if value and isinstance(value[0], _ast.stmt):
                    value[:], count = _with_markers(value, places, name, count)


def _with_markers(statements, places, name, count):
    marked = []
    for statement in statements:
        marked.append(statement)
        for milestone in places.get((statement.lineno, statement.col_offset), ()):
            marked.append(_marker(statement, name, milestone, _FIRST_COLUMN + count))
            count += 1
    return marked, count


def _marker(statement, name, milestone, column):
    where = {
        "lineno": statement.lineno,
        "end_lineno": statement.lineno,
        "col_offset": column,
        "end_col_offset": column + 1,
    }
    function = _ast.Name(name, _ast.Load(), **where)
    call = _ast.Call(function, [_ast.Constant(milestone, **where)], [], **where)
    return _ast.Expr(call, **where)


def _marker_function(tokens, file):
    """Make the function that reports a milestone, once, from a place compiled in for it."""
    get_frame, write = sys._getframe, os.write  # noqa: SLF001 - there is no public way
    stat, stream = os.fstat, os.fstat(2)
    channels = (os.dup2(2, os.sysconf("SC_OPEN_MAX") - 1, inheritable=False), 2)

    def report(token):
        for channel in channels:
            try:
                now = stat(channel)
                if (now.st_dev, now.st_ino) == (stream.st_dev, stream.st_ino):
                    return write(channel, token)
            except OSError:  # the program shut it: its right, and no reason to fail it
                continue
        return 0

    def reached(milestone):
        token = tokens.get(milestone)
        if token is None:
            return
        frame = get_frame(1)
        positions = list(frame.f_code.co_positions())
        column = positions[frame.f_lasti // 2][2]
        is_compiled_in = frame.f_code.co_filename == file and column and column >= _FIRST_COLUMN
        if is_compiled_in and report(token):
            tokens.pop(milestone, None)

    return reached


def _compile(payload, file):
    flags = 0x0400  # PyCF_ONLY_AST
    if not payload["places"]:
        return compile(payload["code"], file, "exec", dont_inherit=True)
    tree = compile(payload["code"], file, "exec", flags, dont_inherit=True)
    _place_markers(tree, payload["places"], payload["name"])
    setattr(builtins, payload["name"], _marker_function(payload["tokens"], file))
    return compile(tree, file, "exec", dont_inherit=True)


def _become_main(file):
    main = type(sys)("__main__")
    main.__file__ = file
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    sys.argv[:] = [file]
    sys.path[0] = os.path.dirname(file)
    return main.__dict__


def _prepare(started_ns):
    payload = _read_payload()
    _hand_over(started_ns, payload["folders"])
    _limit(payload["limits"])
    file = payload["file"]
    with open(file, "w", encoding="utf-8", newline="") as written:
        written.write(payload["code"])
    sys.stdout.reconfigure(line_buffering=True)
    return _compile(payload, file), _become_main(file)


def _run(started_ns):
    try:
        code, namespace = _prepare(started_ns)
        exec(code, namespace)  # noqa: S102 - this is the box
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - shown as the interpreter would show it
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(1)


_keep = sys.modules["__main__"]
_run(time.monotonic_ns())
