"""SandboxFusion's `POST /run_code`, field by field."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from reward_server.sandbox.bubblewrap.cgroups import missing_limits
from tests.conftest import descendants, read_line
from tests.support.job_client import TASK

if TYPE_CHECKING:
    import httpx

    from tests.conftest import RunningServer

KEYS = {"status", "message", "compile_result", "run_result", "executor_pod_name", "files"}
RUN_KEYS = {"status", "execution_time", "return_code", "stdout", "stderr", "error_kind"}
EAT = "x = []\nwhile True: x.append(bytearray(10**7))\n"
FORK = "import os, time\nfor _ in range(10**4):\n    if os.fork() == 0: time.sleep(60)\n"
FILL = "with open('filler', 'wb') as f:\n    while True: f.write(bytes(1 << 20))\n"


def encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def ask(client: httpx.Client, code: str, **fields: object) -> httpx.Response:
    return client.post("/run_code", json={"code": code, "language": "python", **fields})


def run(client: httpx.Client, code: str, **fields: object) -> dict[str, Any]:
    response = ask(client, code, **fields)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    assert answer.keys() == KEYS
    assert answer["run_result"].keys() == RUN_KEYS
    assert answer["compile_result"] is None
    assert answer["executor_pod_name"] is None
    return answer


def says(client: httpx.Client, code: str, **fields: object) -> str:
    answer = run(client, code, **fields)
    assert answer["status"] == "Success", answer
    said: str = answer["run_result"]["stdout"]
    return said


def refusal(client: httpx.Client, status: int = 422, **fields: object) -> str:
    response = client.post("/run_code", json={"code": "pass", "language": "python", **fields})
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    detail: str = response.json()["detail"]
    return detail


def test_a_program_that_exits_with_zero_is_a_success(client: httpx.Client) -> None:
    code = "import sys, time\ntime.sleep(0.2)\nprint('out')\nprint('err', file=sys.stderr)"
    answer = run(client, code)
    assert answer["status"] == "Success"
    assert answer["message"] == ""
    assert answer["files"] == {}
    result = answer["run_result"]
    assert result.pop("execution_time") >= 0.2
    assert result == {
        "status": "Finished",
        "return_code": 0,
        "stdout": "out\n",
        "stderr": "err\n",
        "error_kind": None,
    }


def test_a_traceback_has_only_frames_of_the_program(
    client: httpx.Client,
) -> None:
    answer = run(client, "print('first')\n\nraise ValueError('no')")
    assert answer["status"] == "Failed"
    assert answer["message"].startswith("nonzero_exit: ")
    result = answer["run_result"]
    assert (result["status"], result["return_code"]) == ("Finished", 1)
    assert result["error_kind"] == "nonzero_exit"
    assert result["stdout"] == "first\n"
    assert "line 3" in result["stderr"]
    assert result["stderr"].endswith("ValueError: no\n")
    assert result["stderr"].count("File ") == 1


def test_a_syntax_error_fails_as_in_python(client: httpx.Client) -> None:
    result = run(client, "def f(:\n    pass")["run_result"]
    assert (result["return_code"], result["error_kind"]) == (1, "nonzero_exit")
    assert "SyntaxError" in result["stderr"]
    assert "launcher" not in result["stderr"]


def test_the_exit_code_is_the_programs_own(client: httpx.Client) -> None:
    assert run(client, "raise SystemExit(7)")["run_result"]["return_code"] == 7
    killed = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
    assert run(client, killed)["run_result"]["return_code"] == 137
    assert run(client, "raise SystemExit(0)")["status"] == "Success"


def test_a_timeout_kills_all_children_and_keeps_the_output(
    client: httpx.Client, server: RunningServer
) -> None:
    code = (
        "import subprocess\nprint('so far')\n"
        "subprocess.Popen(['sleep', '61.25'], start_new_session=True)\n"
        "while True: pass"
    )
    answer = run(client, code, run_timeout=1.5)
    assert answer["status"] == "Failed"
    assert answer["message"].startswith("timeout: ")
    result = answer["run_result"]
    assert result["execution_time"] >= 1.5
    assert result["status"] == "TimeLimitExceeded"
    assert result["return_code"] is None
    assert result["error_kind"] == "timeout"
    assert result["stdout"] == "so far\n"
    assert not any(b"61.25" in read_line(pid) for pid in descendants(server.pid))


def test_both_streams_come_back_whole(client: httpx.Client) -> None:
    code = (
        "import sys\n"
        "for i in range(200_000): print(f'{i:06}')\n"
        "for i in range(200_000): print(f'{-i:07}', file=sys.stderr)\n"
    )
    result = run(client, code, run_timeout=60)["run_result"]
    assert result["stdout"] == "".join(f"{i:06}\n" for i in range(200_000))
    assert result["stderr"] == "".join(f"{-i:07}\n" for i in range(200_000))


def test_output_of_many_programs_at_once_is_never_mixed_or_cut(client: httpx.Client) -> None:
    def shout(letter: str) -> str:
        return says(client, f"print('{letter}' * 300_000)", compile_timeout=100)

    letters = "abcdefgh"
    with ThreadPoolExecutor(len(letters)) as pool:
        assert list(pool.map(shout, letters)) == [f"{c * 300_000}\n" for c in letters]


def test_output_that_is_not_utf8_is_replaced(client: httpx.Client) -> None:
    assert says(client, "import os; os.write(1, b'a\\xffb')") == "a\ufffdb"
    assert says(client, "print('\u00e4\u20ac\U0001f600')") == "\u00e4\u20ac\U0001f600\n"


@pytest.mark.parametrize(
    ("code", "kind", "without_cgroups"),
    [
        (EAT, "oom", "nonzero_exit"),
        (FORK, "pids_limit", "nonzero_exit"),
        (FILL, "disk_limit", "disk_limit"),
        ("while True: print('A' * 65536)", "output_limit", "output_limit"),
    ],
)
def test_a_limit_that_ends_a_program_is_named(
    client: httpx.Client, code: str, kind: str, without_cgroups: str
) -> None:
    expected = without_cgroups if missing_limits() else kind
    answer = run(client, code, run_timeout=60)
    assert answer["status"] == "Failed"
    assert answer["message"].startswith(f"{expected}: ")
    result = answer["run_result"]
    assert result["error_kind"] == expected
    assert result["status"] == "Finished"
    assert result["return_code"] not in (0, None)


def test_memory_is_lowered_by_the_request_and_never_raised(client: httpx.Client) -> None:
    kinds = {"oom", "nonzero_exit"}
    code = "x = bytearray(200 << 20)\nprint(len(x))"
    assert run(client, code, memory_limit_MB=100)["run_result"]["error_kind"] in kinds
    for enough in (400, 0, -1, -7):
        assert says(client, code, memory_limit_MB=enough) == f"{200 << 20}\n"
    much = "x = bytearray(800 << 20)\nprint(len(x))"
    assert run(client, much, memory_limit_MB=4096)["run_result"]["error_kind"] in kinds
    assert says(client, "print(1)", memory_limit_MB=1) == "1\n"


@pytest.mark.parametrize("size", [0, 5, 3_000_000])
def test_a_program_reads_its_standard_input_to_the_end(client: httpx.Client, size: int) -> None:
    code = "import sys\ntext = sys.stdin.read()\nprint(len(text), text[-5:])"
    text = ("0123456789" * (size // 10 + 1))[:size]
    assert says(client, code, stdin=text) == f"{size} {text[-5:]}\n"


def test_input_comes_line_by_line_in_unicode_and_then_ends(client: httpx.Client) -> None:
    code = (
        "a = input()\nb = int(input())\nprint(a, b)\n"
        "try: input()\nexcept EOFError: print('the end')\n"
    )
    assert says(client, code, stdin="Zo\u00eb\n3\n") == "Zo\u00eb 3\nthe end\n"
    assert says(client, "import sys\nprint(repr(sys.stdin.read()))", stdin=None) == "''\n"
    again = "print(open('/dev/stdin').read(), open(0).read())"
    assert says(client, again, stdin="twice") == "twice twice\n"
    child = "import subprocess\nprint(subprocess.check_output('cat', text=True), end='')"
    assert says(client, child, stdin="for a child") == "for a child"
    packages = "import numpy as np, sys\nprint(np.loadtxt(sys.stdin).sum())"
    assert says(client, packages, stdin="1\n2\n3.5\n") == "6.5\n"


def test_files_are_sent_to_and_fetched_from_the_work_directory(client: httpx.Client) -> None:
    content = bytes(range(256)) * 1000
    code = (
        "import os, helper\n"
        "data = open('in/data.bin', 'rb').read()\n"
        "os.makedirs('out/deep')\n"
        "open('out/deep/copy.bin', 'wb').write(helper.turn(data))\n"
        "open('empty', 'w')\n"
        "print(sorted(os.listdir('.')), os.getcwd() == os.path.dirname(__file__))\n"
    )
    files = {
        "in/data.bin": encode(content),
        "./helper.py": encode(b"def turn(data): return data[::-1]"),
        "program.py": encode(b"raise SystemExit('not this one')"),
        "left_out": None,
    }
    fetch = ["out/deep/copy.bin", "./empty", "helper.py", "nowhere", "in", "in/data.bin"]
    answer = run(client, code, files=files, fetch_files=fetch)
    assert answer["run_result"]["stderr"] == ""
    listed = ["_program.py", "empty", "helper.py", "in", "out", "program.py"]
    assert answer["run_result"]["stdout"] == f"{listed} True\n"
    assert answer["files"] == {
        "out/deep/copy.bin": encode(content[::-1]),
        "./empty": "",
        "helper.py": files["./helper.py"],
        "in/data.bin": files["in/data.bin"],
    }
    assert answer["message"] == "in is not a regular file of an allowed size"


def test_files_of_a_failed_program_are_fetched(client: httpx.Client) -> None:
    late = "open('a', 'w').write('b')\nwhile True: pass"
    answer = run(client, late, run_timeout=1, fetch_files=["a"])
    assert (answer["status"], answer["files"]) == ("Failed", {"a": encode(b"b")})


def test_no_link_leads_out_of_the_work_directory(client: httpx.Client) -> None:
    code = (
        "import os\n"
        "os.symlink('/etc/passwd', 'link')\nos.symlink('/etc', 'folder')\n"
        "os.symlink('/proc/self/environ', 'environ')\nos.mkfifo('pipe')\n"
        "open('one', 'w').write('x')\nos.link('one', 'two')\n"
    )
    fetch = ["link", "folder/passwd", "environ", "pipe", "two"]
    answer = run(client, code, fetch_files=fetch)
    assert (answer["status"], answer["files"]) == ("Success", {})
    assert all(name in answer["message"] for name in fetch)


def test_files_above_the_fetch_limit_are_named_and_not_returned(client: httpx.Client) -> None:
    code = "for name in 'abc': open(name, 'wb').truncate(15 << 20)"
    answer = run(client, code, fetch_files=["a", "b", "c"])
    assert answer["files"].keys() == {"a", "b"}
    assert answer["message"].startswith("c is not")


@pytest.mark.parametrize(
    "name", ["/etc/x", "../x", "a/../../x", "a/..", "", ".", "a/", "n\0l", "x" * 300]
)
def test_paths_outside_the_work_directory_are_refused(client: httpx.Client, name: str) -> None:
    assert refusal(client, files={name: ""})
    assert refusal(client, fetch_files=[name])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"language": "cpp"}, "language: Value error, only python is run here"),
        ({"language": "pytest"}, "only python"),
        ({"language": None}, "only python"),
        ({"code": 3}, "code: "),
        ({"code": None}, "code: "),
        ({"stdin": 3}, "stdin: "),
        ({"run_timeout": 0}, "run_timeout: "),
        ({"run_timeout": -1}, "run_timeout: "),
        ({"run_timeout": 601}, "run_timeout is above this server's limit of 600"),
        ({"run_timeout": "soon"}, "run_timeout: "),
        ({"compile_timeout": -1}, "compile_timeout: "),
        ({"memory_limit_MB": "much"}, "memory_limit_MB: "),
        ({"files": ["a"]}, "files: "),
        ({"files": {"a": "x"}}, "files: the content of 'a' is not base64"),
        ({"files": {"a": "", "a/b": ""}}, "files: 'a/b' lies below a file"),
        ({"files": {str(n): "" for n in range(1025)}}, "files: "),
        ({"fetch_files": "a"}, "fetch_files: "),
        ({"fetch_files": [str(n) for n in range(65)]}, "fetch_files: "),
    ],
)
def test_an_invalid_program_is_refused(
    client: httpx.Client, fields: dict[str, Any], reason: str
) -> None:
    assert reason in refusal(client, **fields)


def test_only_code_and_language_are_required(client: httpx.Client) -> None:
    for body in ({"code": "pass"}, {"language": "python"}):
        assert client.post("/run_code", json=body).status_code == 422
    assert says(client, "print(1)", request_id="x", extra={"nobody": "asked"}) == "1\n"


@pytest.mark.parametrize(
    "fields", [{"code": "\ud800"}, {"stdin": "\ud800"}, {"files": {"\ud800": ""}},
               {"fetch_files": ["\ud800"]}, {"files": {"a": "\ud800"}}],
)  # fmt: skip
def test_text_that_is_not_unicode_is_refused(client: httpx.Client, fields: dict[str, Any]) -> None:
    body = json.dumps({"code": "pass", "language": "python", **fields})
    headers = {"content-type": "application/json"}
    assert client.post("/run_code", content=body, headers=headers).status_code == 422


def test_a_body_above_the_limit_is_refused(client: httpx.Client) -> None:
    response = ask(client, "pass", stdin="x" * (33 << 20))
    assert (response.status_code, response.json()["kind"]) == (413, "too_large")
    response = ask(client, "pass", files={"a": encode(bytes(20 << 20)), "b": encode(bytes(1))})
    assert response.status_code == 200
    assert says(client, "print(len(input()))", stdin="x" * 32_000_000) == "32000000\n"


def test_a_program_sees_no_network_no_task_and_no_other_program(client: httpx.Client) -> None:
    traces = (
        "import os\n"
        "for folder in ('/box', '/tmp', '/dev/shm'):\n"
        "    print(sorted(os.listdir(folder)))\n"
        "    open(folder + '/trace', 'w').write('x')\n"
        "found = [os.path.join(top, name) for top, _, names in os.walk('/workdir')\n"
        "         for name in names]\n"
        f"print(found, os.path.exists('/workdir/{TASK}'))\n"
        "print(len([name for name in os.listdir('/proc') if name.isdigit()]) <= 2)\n"
    )
    expected = "['program.py']\n[]\n[]\n[] False\nTrue\n"
    assert [says(client, traces) for _ in range(6)] == [expected] * 6
    network = (
        "import socket\n"
        "print([name for _, name in socket.if_nameindex() if name != 'lo'])\n"
        f"try: socket.create_connection(('127.0.0.1', {client.base_url.port}), 2)\n"
        "except OSError as error: print(type(error).__name__)\n"
    )
    assert says(client, network) == "[]\nConnectionRefusedError\n"


def test_an_ad_hoc_program_is_not_stored(client: httpx.Client) -> None:
    before = client.get("/v1/solutions", params={"limit": 1}).json()
    assert says(client, "print('not to be kept')") == "not to be kept\n"
    assert client.get("/v1/solutions", params={"limit": 1}).json() == before


def test_metrics_count_ad_hoc_programs(client: httpx.Client) -> None:
    def counted(status: str) -> float:
        line = f'reward_run_code_ended_total{{status="{status}"}} '
        lines = client.get("/metrics").text.splitlines()
        return sum(float(one.removeprefix(line)) for one in lines if one.startswith(line))

    before = counted("success"), counted("nonzero_exit")
    run(client, "pass")
    run(client, "raise SystemExit(1)")
    assert (counted("success"), counted("nonzero_exit")) == (before[0] + 1, before[1] + 1)


def test_openapi_describes_every_answer(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    described = document["paths"]["/run_code"]["post"]
    assert {"200", "401", "413", "415", "422", "429", "503", "504"} <= described["responses"].keys()
    fields = document["components"]["schemas"]["RunCodeRequest"]["properties"]
    assert fields.keys() == {
        *("code", "language", "compile_timeout", "run_timeout", "memory_limit_MB", "stdin"),
        *("files", "fetch_files"),
    }
