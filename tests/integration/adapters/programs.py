"""What a policy may write, each with an outcome of its own, and quick to run."""

from __future__ import annotations

from tests.support import job_client
from tests.support.job_client import TASK

_PUBLIC = f"/workdir/{TASK}/prepared/public"


def answer(code: str) -> str:
    return f"A plan first.\n```python\n{code}```"


VALID = answer(f'import shutil\nshutil.copy("{_PUBLIC}/sample_submission.csv", "submission.csv")\n')
CRASH = answer(
    f'import pandas as pd\ntrain = pd.read_csv("{_PUBLIC}/train.csv")\nraise SystemExit(1)\n'
)
SYNTAX_ERROR = answer("def broken(:\n")
NO_CODE = "There is no program in this answer."
NO_SUBMISSION = answer("print('nothing is handed in')\n")
INVALID_SUBMISSION = answer('open("submission.csv", "w").write("id,EAP\\n1,2\\n")\n')

PROGRAMS = {
    "valid": VALID,
    "crash": CRASH,
    "syntax_error": SYNTAX_ERROR,
    "no_code": NO_CODE,
    "no_submission": NO_SUBMISSION,
    "invalid_submission": INVALID_SUBMISSION,
}


def nap(seconds: float) -> str:
    return answer(f"import time\ntime.sleep({seconds})\n")


LONG_NAP = "61.803"  # seconds, by which its process is found
ENDLESS = answer(job_client.nap(LONG_NAP))
