from __future__ import annotations

import ast
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_server.instrument.static.analyzer import find_markers
from reward_server.model import Milestone
from tests.unit.instrument.corpus import PROGRAMS, expected, markers_verify

if TYPE_CHECKING:
    from pathlib import Path

LABEL = "#>"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_is_marked_as_a_person_would(path: Path) -> None:
    code = path.read_text()
    found = {(marker.line, int(marker.milestone)) for marker in find_markers(ast.parse(code))}
    assert found == expected(code)


def test_there_are_at_least_twenty_labelled_programs() -> None:
    assert len(PROGRAMS) >= 20


def test_a_canonical_script_reaches_all_milestones_in_the_natural_order() -> None:
    code = next(path for path in PROGRAMS if path.stem == "pizza_flat").read_text()
    order = list(dict.fromkeys(marker.milestone for marker in find_markers(ast.parse(code))))
    assert [int(milestone) for milestone in order] == [1, 2, 3, 5, 4, 6, 7]


def milestones(code: str) -> set[int]:
    return {int(marker.milestone) for marker in find_markers(ast.parse(code))}


HEAD = (
    "import numpy as np, optuna, pandas as pd\nfrom sklearn.svm import SVC\n"
    "from sklearn.metrics import log_loss\n"
    "train = pd.read_csv('train.csv')\ntest = pd.read_csv('test.csv')\nm = SVC()\n"
)


@pytest.mark.parametrize(
    ("step", "reached"),
    [
        ("m.fit(train, train.y)", 5),
        ("log_loss(train.y, m.predict(train))", 4),
        ("log_loss(oof_y, m.predict(val_X))", 6),
        ("m.predict(test)", 7),
        ("m.predict(test[cols].fillna(train.median()))", 7),
    ],
)
def test_one_step_is_one_milestone(step: str, reached: int) -> None:
    assert milestones(HEAD + step) == {1, 2, 3, reached}


@pytest.mark.parametrize(
    "step",
    [
        "print('trained model')",
        "m.fit",
        "fit = m.get_params()",
        "def fit(*a): pass\nfit(train, train.y)",
        "log_loss(train.y, train.y)",
        "log_loss([0, 1], [0.5, 0.5])",
        "predict = lambda x: x\npredict(test)",
        "m.predict([[1, 2]])",
        "m.transform(test)",
        "m = type('M', (), {'fit': print, 'predict': print})()\nm.fit(train)\nm.predict(test)",
        "SVC = object\nk = SVC()\nk.fit(train, train.y)",
        "SVC.fit = print\nm = SVC()\nm.fit(train, train.y)",
        "m.fit = print\nm.fit(train, train.y)",
        "import sklearn.svm as s\ns.LinearSVC = print\ns.LinearSVC().fit(train, train.y)",
        "class M(object):\n    def fit(self, X, y): return self\nM().fit(train, train.y)",
        "0 and m.fit(train, train.y)",
        "f'{train}' # m.fit(train, train.y)",
        "m.fit(train, train.y) if train is None else None",
        "import builtins\nbuiltins.Ridge = print\nRidge().fit(train, train.y)",
        "print.__self__.Ridge = print\nRidge().fit(train, train.y)",
        "globals()['Ridge'] = print\nRidge().fit(train, train.y)",
        "def f():\n    global Ridge\n    Ridge = print\nf()\nRidge().fit(train, train.y)",
        "w = np.zeros(3)\nfor i in range(3):\n    w -= train.y",
        "w = np.zeros(3)\nfor i in range(3):\n    w -= train.y.mean()\nprint(test @ w)",
        "preds = np.zeros(3)\nfor i in range(3):\n    preds += m.predict(train)",
        "loss = np.mean([0.1])\nprint('val loss', loss)",
        "def jaccard(a, b): return 1.0\nprint(jaccard(m.predict(train), train.y))",
        "s = optuna.create_study()\ns.optimize(lambda t: 0.5)\nprint(s.best_value)",
        "m.history = {'loss': 0.1}\nprint(m.history['loss'])",
        "m.best_score_ = 1\nprint(m.best_score_)",
        "print(train['loss'], {'val_loss': 0.1}['val_loss'])",
    ],
)
def test_code_that_only_looks_like_a_step_is_none(step: str) -> None:
    assert milestones(HEAD + step) - {3} == {1, 2}


@pytest.mark.parametrize(
    ("step", "is_data"),
    [
        ("pd.read_csv(ROOT + '/train.csv')", True),
        ("pd.read_csv('submission.csv')", False),
        ("pd.read_csv(ROOT + '/sampleSubmission.csv')", False),
        ("pd.read_csv('/data/submission/train.csv')", True),
        ("rows = json.loads(open('train.json').read())", True),
        ("def load(f):\n    rows = json.loads(f.read())\n    return rows", True),
        ("def parse(cell):\n    rows = json.loads(cell)\n    return rows", False),
        ("json.loads('[1, 2]')", False),
        ("a, b = (pd.read_csv(f'{name}.csv') for name in ('train', 'test'))", True),
        ("frames = (pd.read_csv(f'{name}.csv') for name in ('train', 'test'))", False),
    ],
)
def test_data_is_what_is_read_from_a_file_of_the_task(step: str, *, is_data: bool) -> None:
    assert (2 in milestones("import json\nimport pandas as pd\n" + step)) == is_data


VAL = "v = train[5:]\n"
FOLD = "from sklearn.model_selection import KFold\na, b = next(KFold().split(train))\n"
FLOW = "import keras\nk = keras.Sequential()\ng, h = train.head(), train.tail()\n"
PHASES = (
    "import torch\nr = torch.randperm(9)\nrows = {{'train': train[r[:5]], 'val': train[r[5:]]}}\n"
    "net = torch.nn.Sequential()\nloss = torch.nn.MSELoss()\n"
    "for phase in rows:\n    l = loss(net(rows[phase]), rows[phase].y)\n    {step}\n"
)
HISTORY = "h = pd.DataFrame(past.history)\n"
RUN = (
    "from sklearn.model_selection import train_test_split\n"
    "def run(d):\n    a, b = train_test_split(d)\n    m.fit(a, a.y)\n"
)
NETWORK = (
    "import keras, pytorch_lightning as pl, torch.nn.functional as F\n"
    "class Net(pl.LightningModule):\n"
    "    def {name}(self, batch, _):\n"
    "        loss = F.mse_loss(self(batch[0]), batch[1])\n"
    "        return loss\n"
    "net = keras.Sequential()\n"
    "past = net.fit(train, train.y)\n"
)


@pytest.mark.parametrize(
    ("step", "reached"),
    [
        ("joblib.dump(m, 'm.bin')\njoblib.load('m.bin').predict(test)", {7}),
        ("joblib.dump(m, 'm.bin')\njoblib.load('other.bin').predict(test)", set()),
        ("joblib.dump(object(), 'm.bin')\njoblib.load('m.bin').predict(test)", set()),
        ("r = np.random.permutation(9)\nlog_loss(train.y[r[4:]], m.predict(train[r[4:]]))", {6}),
        ("r = np.random.permutation(9)\nlog_loss(train.y[r[:4]], m.predict(train[r[:4]]))", {4}),
        (NETWORK.format(name="training_step"), {4, 5}),
        (NETWORK.format(name="validation_step"), {5, 6}),
        (NETWORK.format(name="test_step") + "print(past.history)", {4, 5, 6}),
        (NETWORK.format(name="test_step") + "h = pd.DataFrame(past.history)", {4, 5, 6}),
        (NETWORK.format(name="training_step") + HISTORY + "h[['loss', 'val_loss']]", {4, 5, 6}),
        (NETWORK.format(name="training_step") + HISTORY + "h[['loss', 'lr']]", {4, 5}),
        (
            RUN + "    return log_loss(a.y, m.predict(a)), log_loss(b.y, m.predict(b))\nrun(train)",
            {4, 5, 6},
        ),
        (RUN + "    return log_loss(a.y, m.predict(a)), m.predict(b)\nrun(train)", {4, 5}),
        (
            NETWORK.format(name="test_step") + "for k, v in past.history.items(): print(k, v)",
            {4, 5, 6},
        ),
        (NETWORK.format(name="test_step") + "print(past.epoch)", {5, 6}),
        ("k = CrossEncoder('x')\nk.fit(train)\nk.predict(test)", {5, 7}),
        ("k = CrossEncoder('x')\nk.save('y')", set()),
        (
            "from fastai.vision.all import *\nk = vision_learner(d)\nk.fine_tune(1)\nk.validate()",
            {5, 6},
        ),
        ("from fastai.vision.all import *\nk = Resize(3)\nk.fine_tune(1)\nk.validate()", set()),
        ("class C:\n    at = 'test.csv'\nhold = pd.read_csv(C.at)\nm.predict(hold)", {7}),
        ("class C:\n    at = 'train.csv'\nhold = pd.read_csv(C.at)\nm.predict(hold)", set()),
        (VAL + "p = m.predict(v)\nlog_loss(v.y, [['a', 'b'][i] for i in p])", {6}),
        ("a = train.sample(9)\nb = train.drop(a.index)\nlog_loss(b.y, m.predict(b))", {6}),
        ("val = train.sample(9)\nb = train.drop(val.index)\nlog_loss(b.y, m.predict(b))", {4}),
        ("b = train.drop('a', axis=1)\nlog_loss(b.y, m.predict(b))", {4}),
        (FOLD + "log_loss(train.y[b], m.predict(train[b]))", {6}),
        (FOLD + "log_loss(train.y[a], m.predict(train[a]))", {4}),
        (
            FOLD + "o = np.zeros_like(train.y)\no[b] = m.predict(train[b])\nlog_loss(train.y, o)",
            {6},
        ),
        (
            FOLD + "o = np.zeros_like(train.y)\no[a] = m.predict(train[a])\nlog_loss(train.y, o)",
            {4},
        ),
        (FLOW + "k.fit(g, validation_data=h)\nk.evaluate(h)", {5, 6}),
        (FLOW + "k.fit(g, validation_data=g)\nk.evaluate(g)", {5, 4}),
        ("best = m.get_best_score()\nbest['learn']", {4, 6}),
        ("best = m.get_best_score()\nbest['validation']", {6}),
        (PHASES.format(step="l.backward()"), {4, 5}),
        (PHASES.format(step="l.item()"), {4}),
        ("cols = [c for c in test if c != 'y']\nm.predict(train[cols])", set()),
        ("cols = [c for c in train if c != 'y']\nm.predict(test[cols])", {7}),
        (VAL + "p = v.groups\nlog_loss(v.y, [['a', 'b'][i] for i in p])", set()),
        (VAL + "p = m.predict(v)\nlog_loss(v.y, [a if i else '' for i, a in zip(p, v.a)])", {6}),
        (VAL + "log_loss(v.y, [a if b else '' for a, b in zip(v.a, v.b)])", set()),
    ],
)
def test_less_usual_ways_to_take_a_step(step: str, reached: set[int]) -> None:
    head = "import joblib\nfrom sentence_transformers import CrossEncoder\n" + HEAD
    assert milestones(head + step) == {1, 2, 3} | reached


@pytest.mark.parametrize(("trains", "places"), [(True, {3}), (False, {3, 5})])
def test_a_network_that_is_read_back_is_not_defined_again(
    places: set[int], *, trains: bool
) -> None:
    code = (
        "import keras, pandas as pd\ntrain = pd.read_csv('train.csv')\nk = keras.Sequential()\n"
        f"k.{'fit' if trains else 'summary'}(train, train.y)\nk = keras.models.load_model('k.h5')"
    )
    found = find_markers(ast.parse(code))
    assert {m.line for m in found if m.milestone is Milestone.DEFINED_MODEL} == places


def test_a_step_in_a_dead_branch_is_marked_inside_the_branch() -> None:
    markers = find_markers(ast.parse(HEAD + "if False:\n    m.fit(train, train.y)\n"))
    trained = [marker for marker in markers if marker.milestone is Milestone.TRAINED_MODEL]
    assert [(marker.line, marker.column) for marker in trained] == [(8, 4)]


def test_columns_count_bytes() -> None:
    markers = find_markers(ast.parse("é = 1; f = open('train.csv').read()"))
    assert [(marker.line, marker.column) for marker in markers] == [(1, 8)]


def mutate(code: str, rng: random.Random) -> str:
    lines = code.replace(LABEL, "#").split("\n")
    for _ in range(rng.randrange(1, 12)):
        here, there = rng.randrange(len(lines)), rng.randrange(len(lines))
        choice = rng.randrange(5)
        if choice == 0:
            lines[here], lines[there] = lines[there], lines[here]
        elif choice == 1:
            del lines[here]
            lines = lines or [""]
        elif choice == 2:
            lines.insert(here, lines[there])
        elif choice == 3:
            lines[here] = "    " * rng.randrange(3) + lines[here].strip()
        else:
            lines.insert(
                here, rng.choice(("class A:", "def f(x):", "for i in f:", "try:", "else:"))
            )
    return "\n".join(lines)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(PROGRAMS))
def test_markers_of_any_mutated_program_verify(seed: int, path: Path) -> None:
    rng = random.Random(seed)  # noqa: S311
    code = path.read_text()
    for _ in range(8):
        if markers_verify(mutate(code, rng)):
            break
