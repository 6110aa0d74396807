"""Markers: calls compiled into a program that report its milestones from inside the box.

They exist only in the compiled tree, after the statements they belong to and on their lines,
so that a traceback shows the original and the program's file reveals no token. A marker is an
audit event with a random name. The hook that receives it cannot be removed or listed, is hidden
from the garbage collector, and responds only to the calls that were compiled in here.
"""

import _ast
import builtins
import gc
import os
import sys

_ONLY_TREE = 0x0400
_FIRST_COLUMN = 1_000_000


def compile_with_markers(payload, file):
    """Return the program's code with its markers, and install the hook for them."""
    tree = compile(payload["code"], file, "exec", _ONLY_TREE, dont_inherit=True)
    _insert(tree, payload["positions"], payload["name"])
    code = compile(tree, file, "exec", dont_inherit=True)
    setattr(builtins, payload["name"], sys.audit)
    sys.addaudithook(_make_hook(payload["name"], payload["tokens"], _all_codes(code)))
    gc.freeze()
    return code


def _insert(tree, positions, name):
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
                    value[:], count = _with_markers(value, positions, name, count)


def _with_markers(statements, positions, name, count):
    marked = []
    for statement in statements:
        marked.append(statement)
        for milestone in positions.get((statement.lineno, statement.col_offset), ()):
            marked.append(_marker(statement, name, milestone, _FIRST_COLUMN + count))
            count += 1
    return marked, count


def _marker(statement, name, milestone, column):
    location = {
        "lineno": statement.lineno,
        "end_lineno": statement.lineno,
        "col_offset": column,
        "end_col_offset": column + 1,
    }
    function = _ast.Name(name, _ast.Load(), **location)
    arguments = [_ast.Constant(name, **location), _ast.Constant(milestone, **location)]
    return _ast.Expr(_ast.Call(function, arguments, [], **location), **location)


def _all_codes(code):
    found = {id(code): code}
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            found.update(_all_codes(constant))
    return found


def _make_hook(name, tokens, codes):
    """Make the audit hook that reports each milestone once, from a call compiled in for it.

    The column of the calling instruction identifies such a call: no source text has columns
    beyond a million. The program's own `sys.audit` calls have other columns or code objects.
    """
    get_frame, write = sys._getframe, os.write  # noqa: SLF001 - there is no public way
    stat, stream = os.fstat, os.fstat(2)
    channels = (os.dup2(2, os.sysconf("SC_OPEN_MAX") - 1, inheritable=False), 2)

    def report(token):
        for channel in channels:
            try:
                now = stat(channel)
                if (now.st_dev, now.st_ino) == (stream.st_dev, stream.st_ino):
                    return write(channel, token)
            except OSError:  # the program closed it, which must not fail it
                continue
        return 0

    def on_event(event, arguments):
        if event != name:
            return
        token = tokens.get(arguments[0]) if arguments else None
        if token is None:
            return
        frame = get_frame(1)
        positions = list(frame.f_code.co_positions())
        column = positions[frame.f_lasti // 2][2]
        if id(frame.f_code) in codes and column and column >= _FIRST_COLUMN and report(token):
            tokens.pop(arguments[0], None)

    return on_event
