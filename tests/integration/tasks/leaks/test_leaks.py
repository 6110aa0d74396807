"""The leak lint finds what gives a label away, and only that."""

from __future__ import annotations

import dataclasses
import json
import shutil
import zipfile
import zlib
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from reward_server.cli.tasks import tasks_app
from reward_server.grade.process import grade_all
from reward_server.tasks.folders import read_card
from reward_server.tasks.leaks import check_leaks, public_files
from reward_server.tasks.leaks.bundled import check_bundled
from reward_server.tasks.leaks.columns import LabeledTable, find_in_table
from reward_server.tasks.leaks.lint import check_sample
from reward_server.tasks.leaks.report import LeakCheck, LeakFinding, LeakKind, LeakReport, Severity
from reward_server.tasks.leaks.rows import find_in_ids
from reward_server.tasks.leaks.strength import Labels, standardised_ranks
from reward_server.tasks.manifest import digest_files, read_manifest, record_files, write_manifest
from tests.integration.tasks.leaks import (
    planted_files,  # noqa: F401 -- adds its plants to the suite
    planted_rows,  # noqa: F401 -- as above
    planted_subtleties,  # noqa: F401 -- as above
)
from tests.integration.tasks.leaks.planted_columns import SUITE, beds
from tests.integration.tasks.leaks.prepared_tasks import (
    FOLDERS,
    MADE_UP,
    PIZZA,
    PLANTS,
    SPOOKY,
    Prepared,
    make,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from tests.integration.tasks.leaks.planted_columns import Plant

    Copies = Callable[[str], Prepared]

SEEDS = (11, 12)
BEDS = beds()


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Prepared]:
    made: dict[tuple[str, int], Prepared] = {}

    def get(task_id: str, seed: int) -> Prepared:
        if (task_id, seed) not in made:
            made[task_id, seed] = make(task_id, tmp_path_factory.mktemp("clean") / "data", seed)
        return made[task_id, seed]

    return get


@pytest.fixture
def copy(clean: Callable[[str, int], Prepared], tmp_path: Path) -> Copies:
    def get(task_id: str) -> Prepared:
        data = clean(task_id, SEEDS[0])
        shutil.copytree(data.root, tmp_path / "copy")
        return Prepared(data.card, tmp_path / "copy")

    return get


@pytest.mark.parametrize("task_id", [*FOLDERS, *MADE_UP])
@pytest.mark.parametrize("seed", SEEDS)
def test_clean_data_has_no_leak(
    clean: Callable[[str, int], Prepared], task_id: str, seed: int
) -> None:
    assert clean(task_id, seed).leaks() == {}


@pytest.fixture(scope="module")
def leaks_beside(
    clean: Callable[[str, int], Prepared], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Plant], dict[str, str]]:
    """Return the leaks found in the data that a plant was sown in, with those it shares it with."""

    @cache
    def find(number: int) -> dict[str, str]:
        bed = BEDS[number]
        source = clean(bed[0].task_id, SEEDS[0])
        data = Prepared(source.card, tmp_path_factory.mktemp("bed") / "data")
        shutil.copytree(source.root, data.root)
        for plant in bed:
            plant.sow(data)
        return data.leaks()

    return lambda plant: find(next(n for n, bed in enumerate(BEDS) if plant in bed))


@pytest.mark.parametrize("plant", SUITE.values(), ids=SUITE.keys())
def test_a_planted_leak_is_found(
    leaks_beside: Callable[[Plant], dict[str, str]], plant: Plant
) -> None:
    assert plant.place in leaks_beside(plant)


def noise(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    words = [f"w{number}" for number in range(200)]
    return pd.DataFrame(
        {
            "float": rng.normal(size=rows).round(5).astype(str),
            "count": rng.poisson(20, rows).astype(str),
            "large": rng.integers(0, 10**6, rows).astype(str),
            "flag": (rng.random(rows) < 0.1).astype(int).astype(str),
            "group": rng.choice([f"g{number}" for number in range(50)], rows),
            "missing": np.where(rng.random(rows) < 0.4, "", rng.random(rows).astype(str)),
            "rare": np.where(rng.random(rows) < 0.05, rng.integers(0, 999, rows).astype(str), "-"),
            "text": [" ".join(rng.choice(words, 6)) for _ in range(rows)],
        },
        dtype=str,
    )


@pytest.mark.parametrize("kind", ["binary", "rare", "classes", "numbers"])
def test_columns_and_ids_of_noise_are_no_leak(kind: str) -> None:
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    for rows in (40, 60, 100, 400):
        values = {
            "binary": (rng.random(rows) < 0.3).astype(float),
            "rare": (rng.random(rows) < 0.05).astype(float),
            "classes": rng.integers(0, 5, rows).astype(float),
            "numbers": standardised_ranks(rng.normal(size=rows)),
        }[kind]
        labels = Labels("label", values, {"numbers": 0, "classes": 5}.get(kind, 2))
        for _ in range(6):
            found = list(find_in_table("x", LabeledTable(noise(rng, rows), (labels,))))
            ids = [f"{number:06x}" for number in rng.permutation(10**6)[:rows]]
            assert [*found, *find_in_ids("x", ids, (labels,))] == []


def test_a_givers_name_without_information_is_no_leak(copy: Copies) -> None:
    data = copy(PIZZA)
    is_known = np.random.default_rng(0).random(len(data.test)) < 0.2
    names = np.where(is_known, [f"giver{n}" for n in range(len(data.test))], "N/A")
    data.write("test.json", data.test.assign(giver_username_if_known=names))
    assert data.leaks() == {}


def test_packed_copies_of_public_files_are_no_leak(copy: Copies) -> None:
    data = copy(PLANTS)
    with zipfile.ZipFile(data.public / "all.zip", "w") as archive:
        for path in sorted(data.public.rglob("*.*")):
            if path.name != "all.zip":
                archive.write(path, path.relative_to(data.public))
    assert data.leaks() == {}


def test_files_are_checked_without_a_target(copy: Copies) -> None:
    data = copy(SPOOKY)
    card = dataclasses.replace(data.card, target=None)
    shutil.copyfile(data.answers, data.public / "x")
    checks = check_leaks(card, data.public, data.answers)
    assert [finding.place for check in checks for finding in check.findings] == ["x"]


def test_a_bomb_is_refused_and_reported(copy: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_files, "MOST_UNPACKED_BYTES", 1 << 16)
    data = copy(SPOOKY)
    with zipfile.ZipFile(data.public / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(1 << 20))
    notes = [f for x in check_leaks(data.card, data.public, data.answers) for f in x.findings]
    assert [(x.place, x.kind, x.severity) for x in notes] == [
        ("bomb.zip!zeros", LeakKind.UNCHECKED, Severity.NOTE)
    ]


def test_answers_that_do_not_fit_are_a_fault(copy: Copies) -> None:
    data = copy(SPOOKY)
    data.write("test.csv", data.test.assign(id=[f"x{n}" for n in range(len(data.test))]))
    assert "do not fit" in data.leaks()["test.csv"]


def shares(data: Prepared, weight: float) -> pd.DataFrame:
    guess = np.random.default_rng(0).dirichlet([5, 5, 5], len(data.test))
    right = np.column_stack([data.label == name for name in data.target.columns])
    mixed = (1 - weight) * guess + weight * right
    return data.read("sample_submission.csv").assign(
        **dict(zip(data.target.columns, mixed.T, strict=True))
    )


@pytest.mark.parametrize(("weight", "is_leak"), [(0.0, False), (0.3, True)])
def test_a_sample_that_scores_better_than_its_shuffled_self_is_found(
    copy: Copies,
    weight: float,
    is_leak: bool,  # noqa: FBT001
) -> None:
    data = copy(SPOOKY)
    data.write("sample_submission.csv", shares(data, weight))
    check = check_sample(data.card, data.public, partial(grade_all, FOLDERS[SPOOKY], data.answers))
    assert check.failed is is_leak


def test_an_ungradable_sample_is_a_fault(copy: Copies) -> None:
    data = copy(SPOOKY)
    data.write("sample_submission.csv", data.read("sample_submission.csv").assign(EAP="2"))
    check = check_sample(data.card, data.public, partial(grade_all, FOLDERS[SPOOKY], data.answers))
    assert [finding.reason for finding in check.findings] == ["the sample submission is not valid"]


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment with a table, a text and a picture in one of its packages."""
    folder = tmp_path / "environment/lib/python3.11/site-packages/flowers/data"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.normal(5, 2, (200, 4)).round(2)).assign(kind=rng.integers(0, 3, 200))
    table.to_csv(folder / "flowers.csv", index=False)
    lines = [" ".join(rng.choice(list("abcdefgh"), 30)) for _ in range(80)]
    (folder / "verses.txt").write_text("\n".join(lines))
    Image.fromarray(rng.integers(0, 255, (9, 9, 3)).astype(np.uint8)).save(folder / "flower.png")
    return tmp_path / "environment"


def test_rows_texts_and_images_that_the_sandbox_ships_are_found(
    copy: Copies, environment: Path
) -> None:
    data = copy(SPOOKY)
    check = check_bundled(data.card, data.public, data.answers, environment)
    assert (check.findings, check.scope) == ((), "3 data files of the environment")
    shipped = environment / "lib/python3.11/site-packages/flowers/data"
    table = pd.read_csv(shipped / "flowers.csv").sample(90, random_state=1)[["2", "0", "3"]]
    verses = (shipped / "verses.txt").read_text().upper().splitlines()
    test = data.test.iloc[:90].assign(**{f"x{n}": table[n].to_numpy() for n in table})
    data.write("test.csv", test)
    data.write("train.csv", data.train.iloc[:80].assign(text=verses))
    shutil.copyfile(shipped / "flower.png", data.public / "a.png")
    check = check_bundled(data.card, data.public, data.answers, environment)
    assert {finding.place for finding in check.findings} == {"test.csv", "train.csv", "a.png"}


def test_a_container_image_is_reported_as_not_checked(copy: Copies) -> None:
    data = copy(SPOOKY)
    check = check_bundled(data.card, data.public, data.answers, None)
    assert not check.failed
    assert "does not check" in check.findings[0].reason


def test_a_report_names_the_checks_and_the_remedies() -> None:
    finding = LeakFinding(
        LeakKind.PREDICTIVE_ORDER, "test.csv:id", "sorted", "skill 1.00 of 1 on 9 rows"
    )
    checks = (LeakCheck("columns", "3 columns"), LeakCheck("order", "9 rows", (finding,)))
    text = "\n".join(LeakReport("some-task", checks).as_lines())
    assert text.startswith("some-task: not ok\n  ok    columns: 3 columns\n  FAIL  order: 9 rows")
    for part in ("leak in test.csv:id: sorted (skill 1.00", "why: ", "do:  shuffle the rows"):
        assert part in text
    content = json.loads(json.dumps(LeakReport("some-task", checks).as_json()))
    assert content["ok"] is False
    assert content["looks"][1]["findings"][0]["severity"] == "leak"


def test_the_command_checks_all_prepared_tasks_and_fails_on_a_leak(
    tmp_path: Path, data_dir: Path, environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REWARD_SERVER_SANDBOX__ENVIRONMENT", str(environment))

    own_dir = tmp_path / "data"
    shutil.copytree(data_dir / SPOOKY, own_dir / SPOOKY)

    def check(*words: str) -> Result:
        return CliRunner().invoke(tasks_app, ["check", *words, "--data-dir", str(own_dir)])

    clean = check()
    assert (clean.exit_code, clean.stdout.splitlines()[0]) == (0, f"{SPOOKY}: ok")
    for name in ("checksums", "columns", "overlap", "files beside", "sample", "sandbox ships"):
        assert name in clean.stdout
    data = Prepared(read_card(FOLDERS[SPOOKY]), own_dir / SPOOKY / "prepared")
    data.write("test.csv", data.test.assign(shelf=data.label))
    damaged = check(SPOOKY)
    assert (damaged.exit_code, "has changed" in damaged.stdout) == (1, True)
    files = record_files(data.root)
    manifest = read_manifest(data.root)
    changed = dataclasses.replace(manifest, files=files, data_digest=digest_files(files))
    write_manifest(data.root, changed)
    leaking = check(SPOOKY, "--json")
    assert leaking.exit_code == 1
    checks = json.loads(leaking.stdout)[0]["looks"]
    places = {finding["place"] for check in checks for finding in check["findings"]}
    assert "test.csv:shelf" in places
