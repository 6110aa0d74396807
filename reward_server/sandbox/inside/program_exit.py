"""How a forked program exits: as the interpreter would end it, without finalising it.

Finalising an interpreter with hundreds of modules writes to all the memory it shares with its
parent, which costs more than most programs do. What a program can observe of it happens here, in
the interpreter's order: its threads are joined, its exit functions run, its own module is dropped
(which closes the files it left open), its streams are flushed.
"""

import atexit
import gc
import os
import sys
import threading


def leave(run, payloads):
    """Run the program and end the process with its exit code."""
    code = _exit_code(run, payloads)
    _attempt(threading._shutdown)  # noqa: SLF001 - what the interpreter itself calls
    _attempt(atexit._run_exitfuncs)  # noqa: SLF001 - likewise
    _attempt(_drop_main)
    os._exit(_flushed(code))


def _exit_code(run, payloads):
    try:
        run(payloads)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        sys.stderr.write(f"{error.code}\n")
        return 1
    return 0


def _attempt(step):
    try:
        step()
    except BaseException:  # noqa: BLE001 - shown, and the exit goes on
        sys.excepthook(*sys.exc_info())


def _drop_main():
    gc.collect()  # the interpreter does, and files in cycles end well only because it does
    sys.modules.pop("__main__", None)
    gc.collect()


def _flushed(code):
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (OSError, ValueError):
            code = code or 120
    return code
