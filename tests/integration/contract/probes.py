"""Programs that look at their own box and print what they find as JSON."""

from __future__ import annotations

POSTURE = """
import json, os, socket, stat, sys

fds = {}
for fd in os.listdir("/proc/self/fd"):
    try:
        fds[int(fd)] = os.readlink("/proc/self/fd/" + fd)
    except OSError:
        pass
status = dict(line.rstrip().split(":", 1) for line in open("/proc/self/status"))
mounts = [line.split() for line in open("/proc/self/mountinfo")]
writable = []
for folder in ["/", *sorted({mount[4] for mount in mounts})]:
    name = os.path.join(folder, "written")
    try:
        open(name, "x").close()
    except OSError:
        continue
    os.remove(name)
    writable.append(folder)
print(json.dumps({
    "ids": [os.getresuid(), os.getresgid(), os.getgroups()],
    "status": {key: value.strip() for key, value in status.items()},
    "interfaces": [name for _, name in socket.if_nameindex()],
    "writable": sorted(set(writable)),
    "mounts": {mount[4]: mount[5].split(",") for mount in mounts},
    "environment": dict(os.environ),
    "fds": fds,
    "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
    "hostname": socket.gethostname(),
    "root": sorted(os.listdir("/")),
    "etc": sorted(os.listdir("/etc")),
    "dev": sorted(os.listdir("/dev")),
    "limits": {name: __import__("resource").getrlimit(number) for name, number in
               {"core": 4, "open files": 7}.items()},
    "session": [os.getsid(0), os.getpgid(0)],
    "umask": oct(os.umask(0o22)),
}))
"""

SYSTEM_CALLS = """
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
calls = {calls}

def attempt(number, arguments):
    # in a child, because a call that is let through may do anything to its caller
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        libc.syscall.restype = ctypes.c_long
        result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
        os.write(writer, str(0 if result != -1 else ctypes.get_errno()).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    answer = os.read(reader, 64)
    os.close(reader)
    return errno.errorcode.get(int(answer), "OK") if answer else "DIED"

print(json.dumps({{name: attempt(*call) for name, call in calls.items()}}))
"""

WRITE_PUBLIC = """
try:
    open("/workdir/task/prepared/public/planted", "x").close()
    print("WRITTEN")
except OSError:
    print("REFUSED")
"""

CONNECT = """
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=5).close()
    print("CONNECTED")
except OSError:
    print("REFUSED")
"""

FORKS = """
import os, time
count = 0
for _ in range(40):
    try:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        count += 1
    except OSError:
        break
print(count)
"""

LATE = """
import os, time
open("submission.csv", "w").write("early")
if os.fork() == 0:
    os.setsid()
    for fd in range(3):
        os.close(fd)
    time.sleep(2)
    open("submission.csv", "w").write("late")
"""
