"""Comments, essays and tweets: their split, their grading's quirks, what their twins reward."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline, make_union

from reward_server.errors import SetupError
from reward_server.tasks.folders import find_folders, read_card
from reward_server.tasks.preparation.prepare import prepare_task
from reward_server.tasks.sdk.modules import load_module
from reward_server.tasks.sdk.tables import parse_csv

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = find_folders()
INSULTS, ESSAYS, TWEETS = (
    "detecting-insults-in-social-commentary",
    "learning-agency-lab-automated-essay-scoring-2",
    "tweet-sentiment-extraction",
)
SEEDS = (21, 22, 23)


def read(path: Path) -> pd.DataFrame:
    return parse_csv(path.read_bytes())


def make_raw(task_id: str, tmp_path: Path, seed: int = 5, rows: int | None = None) -> Path:
    twin = read_card(FOLDERS[task_id]).twin
    assert twin is not None
    raw = tmp_path / "raw"
    raw.mkdir()
    load_module(FOLDERS[task_id] / "twin.py").generate(raw, seed=seed, rows=rows or twin.small)
    return raw


def prepare(task_id: str, raw: Path) -> tuple[Path, Path]:
    prepare_task(FOLDERS[task_id], raw.parent / "data", raw=raw)
    prepared = raw.parent / "data" / task_id / "prepared"
    return prepared / "public", prepared / "private"


def grade(task_id: str, submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Grade a table as it is read after it was written."""
    grader = load_module(FOLDERS[task_id] / "grade.py")
    written = parse_csv(submission.to_csv(index=False).encode())
    return float(grader.score(*grader.align(written, answers)))


def test_comments_keep_kaggles_split_byte_for_byte(tmp_path: Path) -> None:
    raw = make_raw(INSULTS, tmp_path, rows=90)
    public, private = prepare(INSULTS, raw)
    solutions = (raw / "test_with_solutions.csv").read_bytes()
    assert (public / "train.csv").read_bytes() == (raw / "train.csv").read_bytes()
    assert (private / "test.csv").read_bytes() == solutions
    truth = parse_csv(solutions)
    pd.testing.assert_frame_equal(read(public / "test.csv"), truth[["Date", "Comment"]])
    gold, sample = (private / "gold_submission.csv"), (public / "sample_submission_null.csv")
    pd.testing.assert_frame_equal(read(gold), truth[["Insult", "Date", "Comment"]])
    pd.testing.assert_frame_equal(read(sample), read(gold).assign(Insult=0))
    assert (len(read(public / "train.csv")), len(truth)) == (90, 60)


def test_essays_are_split_as_mle_bench_splits_them(tmp_path: Path) -> None:
    raw = make_raw(ESSAYS, tmp_path, rows=61)
    public, private = prepare(ESSAYS, raw)
    train, test = train_test_split(read(raw / "train.csv"), test_size=0.1, random_state=0)
    assert len(test) == math.ceil(6.1)
    pd.testing.assert_frame_equal(read(public / "train.csv"), train.reset_index(drop=True))
    pd.testing.assert_frame_equal(read(private / "answers.csv"), test.reset_index(drop=True))
    assert list(read(public / "test.csv").columns) == ["essay_id", "full_text"]
    sample = read(public / "sample_submission.csv")
    assert sample["essay_id"].tolist() == test["essay_id"].tolist()
    assert sample["score"].tolist() == [4, 5, 3, 5, 5, 2, 3]  # of every split of this size


def test_tweets_are_split_as_mle_bench_splits_them(tmp_path: Path) -> None:
    raw = make_raw(TWEETS, tmp_path, rows=61)
    public, private = prepare(TWEETS, raw)
    train, test = train_test_split(read(raw / "train.csv"), test_size=0.1, random_state=0)
    pd.testing.assert_frame_equal(read(public / "train.csv"), train.reset_index(drop=True))
    pd.testing.assert_frame_equal(read(private / "test.csv"), test.reset_index(drop=True))
    assert list(read(public / "test.csv").columns) == ["textID", "text", "sentiment"]
    lines = (public / "sample_submission.csv").read_text().splitlines()
    assert lines == ["textID,selected_text", *(f"{text_id}," for text_id in test["textID"])]


@pytest.mark.parametrize(
    ("task_id", "file", "column"),
    [
        (INSULTS, "train.csv", "Comment"),
        (INSULTS, "test_with_solutions.csv", "Usage"),
        (ESSAYS, "train.csv", "full_text"),
        (TWEETS, "train.csv", "selected_text"),
    ],
)
def test_the_fault_of_a_raw_file_is_named(
    tmp_path: Path, task_id: str, file: str, column: str
) -> None:
    raw = make_raw(task_id, tmp_path, rows=50)
    table = read(raw / file)
    table.drop(columns=column).to_csv(raw / file, index=False)
    with pytest.raises(SetupError, match=rf"{file} has no column {column}"):
        prepare(task_id, raw)
    table.iloc[:1].to_csv(raw / file, index=False)
    with pytest.raises(SetupError, match=rf"{file} has less than two rows"):
        prepare(task_id, raw)
    (raw / file).write_bytes(b'a,b\n"')
    with pytest.raises(SetupError, match=rf"{file} is not a readable table"):
        prepare(task_id, raw)
    (raw / file).write_bytes(b"a,b\n\xff,1\n")
    with pytest.raises(SetupError, match=rf"{file} is not a readable table"):
        prepare(task_id, raw)
    (raw / file).unlink()
    with pytest.raises(SetupError, match=rf"{file} is missing"):
        prepare(task_id, raw)


def test_repeated_comments_in_the_order_of_the_test_set_are_paired_in_order() -> None:
    """Sorted by key alone the pairs must not cross, whatever the sort does with equal keys."""
    rng = np.random.default_rng(0)
    comments = [f'"comment {number}"' for number in rng.integers(0, 30, 200)]
    answers = pd.DataFrame({"Insult": rng.integers(0, 2, 200), "Comment": comments})
    assert grade(INSULTS, answers, answers) == 1.0


@pytest.mark.parametrize(
    ("predicted", "score"),
    [
        (["1", "3", "5"], 1.0),
        (["1", "3", "7"], 1 - 3 / 21),
        (["1", "3", "1000"], 1 - 3 / 21),
        (["1", "1", "5"], 1 - 3 / 15),
    ],
)
def test_a_score_weighs_by_its_rank_among_the_labels_that_occur(
    predicted: list[str], score: float
) -> None:
    answers = pd.DataFrame({"essay_id": ["a", "b", "c"], "score": [1, 3, 5]})
    submission = answers.assign(score=predicted)
    assert grade(ESSAYS, submission, answers) == pytest.approx(score, abs=1e-12)


def test_one_label_throughout_has_no_kappa() -> None:
    answers = pd.DataFrame({"essay_id": ["a", "b"], "score": [3, 3]})
    assert math.isnan(grade(ESSAYS, answers, answers))


def tweets(*selected: str) -> pd.DataFrame:
    ids = [f"id{number}" for number in range(len(selected))]
    return pd.DataFrame({"textID": ids, "selected_text": list(selected)})


@pytest.mark.parametrize(
    ("selected", "score"),
    [
        (["one two", "1", "1.50"], (1 / 2 + 1 + 0) / 3),  # one is no number, so all stay as written
        (["1", "1", "1"], (0 + 1 + 0) / 3),
        (["2", "1", "1.50"], (0 + 0 + 1) / 3),  # all are numbers: 1 is read as 1.0, 1.50 as 1.5
        (["", "1", "2"], 0),  # with a gap whole numbers are read as 1.0 and 2.0
        (["ONE  one", "NA", "null"], 1 / 3),
        (["True", "", "False"], 0),
    ],
)
def test_selected_texts_count_as_pandas_reads_them(selected: list[str], score: float) -> None:
    truth = tweets("one", "1", "1.5")
    assert grade(TWEETS, tweets(*selected), truth) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize("nothing", ["", "NA", " ", "null"])
def test_an_empty_selection_of_an_empty_text_is_refused(nothing: str) -> None:
    truth = parse_csv(b"textID,selected_text\nid0,good\nid1,\n")
    assert grade(TWEETS, tweets("good", "x"), truth) == 0.5
    with pytest.raises(Exception, match="empty"):
        grade(TWEETS, tweets("good", nothing), truth)


@pytest.mark.parametrize("seed", SEEDS)
def test_comments_reward_parts_and_order_of_words_over_words_over_a_guess(
    seed: int, tmp_path: Path
) -> None:
    public, private = prepare(INSULTS, make_raw(INSULTS, tmp_path, seed))
    train, answers = read(public / "train.csv"), read(private / "test.csv")
    sample = read(public / "sample_submission_null.csv")

    def score_of(features: object, strength: float) -> float:
        model = make_pipeline(features, LogisticRegression(C=strength, solver="liblinear"))
        model.fit(train["Comment"], train["Insult"])
        chance = model.predict_proba(sample["Comment"])[:, 1]
        return grade(INSULTS, sample.assign(Insult=chance), answers)

    guess, words = grade(INSULTS, sample, answers), score_of(CountVectorizer(), 0.1)
    closer = make_union(
        TfidfVectorizer(ngram_range=(1, 3), min_df=3),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=5),
    )
    assert guess == 0.5
    assert guess + 0.1 < words < score_of(closer, 4) - 0.08
    assert set(train["Comment"]).isdisjoint(sample["Comment"])
    assert train["Comment"].str.fullmatch(r'"[^\n]+"').all()
    assert 0.1 < train["Date"].isna().mean() < 0.3


@pytest.mark.parametrize("seed", SEEDS)
def test_essays_of_a_better_score_are_longer_and_slip_less(seed: int, tmp_path: Path) -> None:
    essays = read(make_raw(ESSAYS, tmp_path, seed) / "train.csv")
    shares = essays["score"].value_counts(normalize=True).sort_index()
    assert shares.index.tolist() == [1, 2, 3, 4, 5, 6]
    words = essays["full_text"].str.lower().str.findall(r"[a-z']+")
    known = words.explode().value_counts()
    slips = words.map(lambda found: np.mean([known[word] < 20 for word in found]))
    assert 0.3 < essays["full_text"].str.len().corr(essays["score"], method="spearman") < 0.75
    assert -0.75 < slips.corr(essays["score"], method="spearman") < -0.15


@pytest.mark.parametrize("seed", SEEDS)
def test_selected_texts_are_parts_of_their_tweets(seed: int, tmp_path: Path) -> None:
    public, private = prepare(TWEETS, make_raw(TWEETS, tmp_path, seed))
    train, test = read(public / "train.csv"), read(private / "test.csv")
    assert train["text"].isna().sum() == train["selected_text"].isna().sum() == 1
    assert not test.isna().any(axis=None)
    assert all(part in text for part, text in zip(test["selected_text"], test["text"], strict=True))
    whole = test.assign(selected_text=test["text"])
    is_neutral = test["sentiment"] == "neutral"
    assert grade(TWEETS, whole[is_neutral], test[is_neutral]) == 1.0
    assert 0.05 < grade(TWEETS, whole[~is_neutral], test[~is_neutral]) < 0.4
    assert not test["text"].isin(train["text"]).any()
