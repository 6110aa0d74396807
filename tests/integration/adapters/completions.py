"""Sixty-four answers of a policy, most of them of different worth, for any integration."""

from __future__ import annotations

from tests.support.job_client import TASK

_PUBLIC = f"/workdir/{TASK}/prepared/public"
_READ = f"""import csv
rows = list(csv.DictReader(open("{_PUBLIC}/sample_submission.csv")))
authors = ["EAP", "HPL", "MWS"]
"""
_WRITE = """with open("submission.csv", "w", newline="") as file:
    table = csv.DictWriter(file, ["id", *authors])
    table.writeheader()
    table.writerows(rows)
"""
_FRAME = f"""import pandas as pd
from sklearn.dummy import DummyClassifier
train = pd.read_csv("{_PUBLIC}/train.csv")
test = pd.read_csv("{_PUBLIC}/test.csv")
model = DummyClassifier()
model.fit(train[["text"]], train["author"])
"""
_HAND_IN = """guesses = model.predict_proba(test[["text"]])
frame = pd.DataFrame(guesses, columns=model.classes_)
frame.insert(0, "id", test["id"])
frame.to_csv("submission.csv", index=False)
"""


def _tilted(author: str, share: float) -> str:
    """Return a program that is surer of one author than of the others."""
    rest = (1 - share) / 2
    return f"""{_READ}for row in rows:
    row.update({{name: {share} if name == "{author}" else {rest} for name in authors}})
{_WRITE}"""


def _fenced(code: str, before: str = "Here it is.", after: str = "Good luck!") -> str:
    return f"{before}\n```python\n{code}\n```\n{after}"


_VALID = [
    _fenced(_tilted(author, round(0.1 + 0.08 * place, 2)))
    for author in ("EAP", "HPL", "MWS")
    for place in range(10)
]
_PARTIAL = [
    _fenced(code)
    for code in (
        "import pandas as pd",
        _FRAME.partition("train =")[0] + "raise ValueError",
        _FRAME.partition("test =")[0] + "raise KeyError('text')",
        _FRAME.partition("model =")[0] + "1 / 0",
        _FRAME.partition("model.fit")[0] + "import no_such_package",
        _FRAME + "raise SystemExit(3)",
        _FRAME + _HAND_IN.partition("frame =")[0] + "open('/no/such/file')",
        _FRAME + _HAND_IN.partition("frame.to_csv")[0],
        _FRAME + _HAND_IN,
        _FRAME.replace("DummyClassifier()", "DummyClassifier(strategy='uniform', random_state=1)")
        + _HAND_IN,
    )
]
_REFUSED = [
    _fenced(code)
    for code in (
        _tilted("EAP", 0.4).replace('["id", *authors]', '["id", "EAP", "HPL"], "", "ignore"'),
        _tilted("EAP", 0.4).replace("table.writerows(rows)", "table.writerows(rows[1:])"),
        _tilted("EAP", 0.4).replace("table.writerows(rows)", "table.writerows(rows + rows)"),
        _tilted("EAP", 0.4).replace("table.writeheader()\n", "pass\n"),
        _tilted("EAP", 0.4).replace("0.4 if", "'nan' if"),
        _tilted("EAP", 0.4).replace("0.4 if", "'much' if"),
        _tilted("EAP", 0.4).replace("0.4 if", "-4.0 if"),
        "open('submission.csv', 'w').close()",
        "import os\nos.symlink('/etc/passwd', 'submission.csv')",
        "import os\nos.mkdir('submission.csv')",
    )
]
_ODD = [
    "",
    " \n\t\n",
    "I would rather not.",
    "```python\n```",
    "```python\nthis is no program\n```",
    "```python\nprint('an open end'",
    "```\n" + _tilted("HPL", 0.35) + "```",
    "~~~python\n" + _tilted("MWS", 0.35) + "~~~",
    _fenced(_tilted("EAP", 0.36)).replace("\n", "\r\n"),
    _fenced(_tilted("EAP", 0.37), "<think>First a wrong one.\n```python\n1/0\n```\n</think>\nNow:"),
    _fenced(_tilted("HPL", 0.38)) + "\n" + _fenced(_tilted("MWS", 0.39)),
    _fenced("print('```')\n" + _tilted("HPL", 0.41)),
    _fenced("# Überall ist Mittelmaß 🦉\n" + _tilted("HPL", 0.42), "¡Olé! 数据"),
    _fenced("print('<|im_end|>', '</s>')\n" + _tilted("MWS", 0.43)),
]
COMPLETIONS = [*_VALID, *_PARTIAL, *_REFUSED, *_ODD]
