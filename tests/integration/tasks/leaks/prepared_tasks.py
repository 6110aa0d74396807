"""Clean data to plant leaks in: the built-in twins, and small tasks of the kinds they lack."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from PIL import Image

from reward_server.tasks.base import Card, Target, TargetKind
from reward_server.tasks.folders import find_folders, read_card
from reward_server.tasks.leaks import check_leaks
from reward_server.tasks.leaks.evidence import parse_written
from reward_server.tasks.leaks.report import LeakReport
from reward_server.tasks.sdk.modules import load_module

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = find_folders()
PIZZA, SPOOKY, NOMAD = (
    "random-acts-of-pizza",
    "spooky-author-identification",
    "nomad2018-predict-transparent-conductors",
)
TWEETS, PLANTS, LEAVES = "made-up-tweets", "made-up-plants", "made-up-leaves"
DISEASES = ("healthy", "rust", "scab")
SPECIES = tuple(f"species_{number:02d}" for number in range(60))


@dataclass(frozen=True)
class Prepared:
    """Prepared data of one task, all values as they are written."""

    card: Card
    root: Path

    @property
    def public(self) -> Path:
        return self.root / "public"

    @property
    def answers(self) -> Path:
        return self.root / "private" / self.card.answers

    @property
    def target(self) -> Target:
        assert self.card.target is not None
        return self.card.target

    def read(self, name: str) -> pd.DataFrame:
        path = self.public / name
        return parse_written(path.read_bytes(), path.suffix)

    def write(self, name: str, table: pd.DataFrame) -> None:
        path = self.public / name
        if path.suffix == ".json":
            path.write_text(json.dumps(table.to_dict("records")))
        else:
            table.to_csv(path, index=False)

    @property
    def test(self) -> pd.DataFrame:
        return self.read(self.target.test_file)

    @property
    def train(self) -> pd.DataFrame:
        return self.read(self.target.train_file)

    @property
    def truth(self) -> pd.DataFrame:
        """The answers in the order of the test file."""
        answers = parse_written(self.answers.read_bytes(), ".csv").set_index(self.target.id_column)
        return answers.loc[self.test[self.target.id_column]].reset_index()

    @property
    def label(self) -> pd.Series:
        """The label of each test row: a class, or the last of the target's numbers or texts."""
        columns = list(self.target.columns)
        if self.target.kind is TargetKind.CLASSES and len(columns) > 1:
            return self.truth[columns].astype(float).idxmax(axis=1)
        values = self.truth[columns[-1]]
        return values.astype(float) if self.target.kind is TargetKind.NUMBERS else values

    @property
    def is_positive(self) -> pd.Series:
        return self.label == "1"

    def leaks(self) -> dict[str, str]:
        report = LeakReport(self.card.id, check_leaks(self.card, self.public, self.answers))
        return {leak.place: leak.reason for leak in report.failures}


def make(task_id: str, root: Path, seed: int) -> Prepared:
    """Make clean data of a task below a folder."""
    for name in ("public", "private", "raw"):
        (root / name).mkdir(parents=True)
    if task_id in MADE_UP:
        card = MADE_UP[task_id](root, np.random.default_rng(seed))
        return Prepared(card, root)
    folder, card = FOLDERS[task_id], read_card(FOLDERS[task_id])
    assert card.twin is not None
    load_module(folder / "twin.py").generate(root / "raw", seed=seed, rows=card.twin.small)
    load_module(folder / "prepare.py").prepare(root / "raw", root / "public", root / "private")
    return Prepared(card, root)


def _card(task_id: str, kind: TargetKind, id_column: str, columns: tuple[str, ...]) -> Card:
    target = Target(kind, id_column, columns, columns, "train.csv", "test.csv")
    return Card(
        id=task_id,
        title=task_id,
        metric="any",
        higher_is_better=True,
        wall_seconds=1,
        memory_bytes=1,
        disk_bytes=1,
        artifact_bytes=1,
        answers="test.csv",
        sample_submission="sample_submission.csv",
        public_files=("*",),
        raw_files=(),
        columns=(id_column, *columns),
        target=target,
    )


def _write(root: Path, table: pd.DataFrame, card: Card, sample: str | float) -> Card:
    assert card.target is not None
    columns, half = list(card.target.columns), len(table) // 2
    test = table.iloc[half:]
    table.iloc[:half].to_csv(root / "public/train.csv", index=False)
    test.drop(columns=columns).to_csv(root / "public/test.csv", index=False)
    test.to_csv(root / "private/test.csv", index=False)
    empty = test[[card.target.id_column]].copy()
    empty[columns] = sample
    empty.to_csv(root / "public/sample_submission.csv", index=False)
    return card


def _tweets(root: Path, rng: np.random.Generator) -> Card:
    words = [f"w{number}" for number in range(400)]
    moods = rng.choice(["neutral", "positive", "negative"], 600)
    rows = []
    for mood in moods:
        text = list(rng.choice(words, rng.integers(4, 20)))
        start = rng.integers(0, len(text) - 2)
        end = rng.integers(start + 1, len(text) + 1)
        part = text if mood == "neutral" else text[start:end]
        rows.append((" ".join(text), " ".join(part)))
    table = pd.DataFrame(rows, columns=["text", "selected_text"])
    table.insert(0, "textID", [f"{value:010x}" for value in rng.permutation(10**6)[:600]])
    card = _card(TWEETS, TargetKind.TEXT, "textID", ("selected_text",))
    return _write(root, table.assign(sentiment=moods), card, "")


def _plants(root: Path, rng: np.random.Generator) -> Card:
    codes = rng.integers(0, 3, 160)
    indicators = pd.DataFrame(np.eye(3, dtype=int)[codes], columns=list(DISEASES))
    sides = [f"Train_{n}" for n in range(80)] + [f"Test_{n}" for n in range(80)]
    indicators.insert(0, "image_id", sides)
    (root / "public/images").mkdir()
    for name, code in zip(sides, codes, strict=True):
        pixels = rng.normal(100 + 20 * code, 40, (24, 24, 3)).clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(root / "public/images" / f"{name}.jpg", quality=80)
    card = _card(PLANTS, TargetKind.CLASSES, "image_id", DISEASES)
    return _write(root, indicators, card, 0.33)


def _leaves(root: Path, rng: np.random.Generator) -> Card:
    species = np.concatenate([rng.permutation(np.repeat(np.arange(60), 6)), rng.permutation(60)])
    middles = rng.normal(size=(60, 30))
    shapes = middles[species] + rng.normal(size=(420, 30))
    table = pd.DataFrame(shapes.round(6), columns=[f"shape{n}" for n in range(30)])
    table.insert(0, "id", rng.permutation(2000)[:420])
    names = pd.DataFrame(np.eye(60, dtype=int)[species], columns=list(SPECIES))
    card = _card(LEAVES, TargetKind.CLASSES, "id", SPECIES)
    return _write(root, table.join(names), card, 1 / 60)


MADE_UP = {TWEETS: _tweets, PLANTS: _plants, LEAVES: _leaves}
