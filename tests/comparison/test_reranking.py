"""Re-rankers on frozen candidates: lift, ceiling, depth, what was pushed out, and what is no re-ranking at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import ragkit
from ragkit.comparison.reranking import at_depth
from ragkit.comparison.reranking_lists import Search
from ragkit.evaluation.result import Evaluation
from ragkit.records.questions import Dataset
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory
from tests.support.data import data_folder
from tests.support.variants import dataset, variant


def listed(stage: Any, ids: Sequence[str], ms: float | None = None) -> Retrieval:
    return Retrieval(stage, "query", tuple(Passage(name, f"Text of {name}.") for name in ids), stage, ms=ms)


def reranked(lists: Mapping[str, tuple[str, str]], data: Dataset, answer: str = "This.", **more: Any) -> Evaluation:
    """A run whose steps hold a first stage and what a re-ranker made of it: question -> (before, after), letters."""
    rows = []
    for name, (before, after) in lists.items():
        step = Step(0, (listed("rerank", after, 30.0), listed("retrieve", before, 5.0)))
        context = Retrieval("context", "", step.outermost.passages)
        rows.append(Trajectory(name, data.by_id[name].text, (step,), context, answer, ms=100.0))
    return ragkit.score(rows, data, metrics="mrr,recall@5,exact_match", **more)


def rerankers(*sides: Any, **named: Any) -> Any:
    return ragkit.compare(list(sides) or named).data["rerankers"]


DATA = dataset(4, gold=("a", "b"))
LISTS = {"q0": ("xyab", "abxy"), "q1": ("axyb", "xaby"), "q2": ("abxy", "xyab"), "q3": ("wxyz", "zwxy")}


def test_lift_ceiling_and_headroom_of_a_run() -> None:
    plain = variant({name: [tuple(before)] for name, (before, _) in LISTS.items()}, DATA)
    found = rerankers(plain=plain, new=reranked(LISTS, DATA))
    assert list(found) == ["new"]
    one = found["new"]
    assert (one["source"], one["first_stage"], one["reranker"]) == ("run", "retrieve", "rerank")
    assert (one["n"], one["kept"]) == (4, 4)
    mrr = one["metrics"]["mrr@4"]
    assert mrr["before"] == pytest.approx((1 / 3 + 1 + 1 + 0) / 4)
    assert mrr["after"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 0) / 4)
    assert mrr["ceiling"] == pytest.approx(3 / 4), "no order finds what is not among the candidates"
    assert mrr["lift"]["difference"] == pytest.approx(mrr["after"] - mrr["before"])
    assert (mrr["lift"]["wins"], mrr["lift"]["losses"]) == (1, 2)
    share = (mrr["after"] - mrr["before"]) / (mrr["ceiling"] - mrr["before"])
    assert mrr["headroom"]["share"] == pytest.approx(share) and share < 0


def test_headroom_of_candidates_in_their_best_order_is_undefined_not_nothing() -> None:
    lists = {"q0": ("abxy", "abyx"), "q1": ("baxy", "baxy")}
    data = dataset(2, gold=("a", "b"))
    found = rerankers(one=reranked(lists, data, variant="one"), two=reranked(lists, data, variant="two"))
    room = found["one"]["metrics"]["ndcg@4"]["headroom"]
    assert room["share"] is None and room["reason"] == "the candidates stand in their best order"


def test_depth_keeps_the_rest_in_the_first_stages_order() -> None:
    search = Search("q", tuple("abcdef"), tuple("fbad"))
    assert at_depth(search, 3) == tuple("bacdef"), "c was among the first three and not given back: behind those"
    assert at_depth(search, 6) == tuple("fbadce")
    assert at_depth(search, 1) == tuple("abcdef")


def test_the_depth_curve_says_where_it_is_not_known_exactly() -> None:
    """Gold stands 12th; only the whole list lets the re-ranker see it. Of the first ten it gave back one, asked for
    three."""
    letters = "cdefghijklmaopqr"
    data = dataset(2, gold=("a",))
    lists = {f"q{n}": (letters, "acr") for n in range(2)}
    one = rerankers(x=reranked(lists, data), y=reranked({"q0": ("abc", "cab"), "q1": ("abc", "cab")}, data))["x"]
    assert [entry["depth"] for entry in one["depths"]] == [10, 16]
    ten, whole = (entry["metrics"]["hit@1"]["mean"] for entry in one["depths"])
    assert (ten, whole) == (0, 1)
    assert [entry["exact"] for entry in one["depths"]] == [0, 2] and one["depths"][0]["of"] == 2


def test_gold_pushed_out_of_the_cut_is_counted_and_named() -> None:
    lists = {"q0": ("axyzwvb", "xyzwvab"), "q1": ("xyzwvab", "abxyzwv")}
    data = dataset(2, gold=("a", "b"))
    out = rerankers(one=reranked(lists, data, variant="one"), two=reranked(lists, data, variant="two"))["one"]
    assert out["pushed_out"]["5"] == {"passages": 1, "questions": 1, "pulled_in": 2, "examples": [
        {"question": "q0", "passage": "a", "from": 1, "to": 6}]}


def test_time_is_the_re_rankers_own_and_the_questions_is_held_against_the_variant_without() -> None:
    plain = variant({name: [tuple(before)] for name, (before, _) in LISTS.items()}, DATA, metrics="mrr,exact_match")
    one = rerankers(plain=plain, new=reranked(LISTS, DATA, "That."))["new"]
    assert (one["ms"]["median"], one["ms"]["n"]) == (30, 4)
    assert one["without"] == "plain"
    assert one["answers"]["exact_match"]["difference"] == -1 and one["answers"]["exact_match"]["losses"] == 4
    assert one["question_ms"] is None, "nobody recorded the time of the other"


def test_another_first_stage_or_an_agent_is_not_what_it_was_without_the_re_ranker() -> None:
    other = variant({name: [tuple(reversed(before))] for name, (before, _) in LISTS.items()}, DATA)
    assert rerankers(other=other, new=reranked(LISTS, DATA))["new"]["without"] is None
    rows = [Trajectory(name, DATA.by_id[name].text, tuple(Step(n, (listed("retrieve", before),)) for n in range(2)),
                       answer="This.") for name, (before, _) in LISTS.items()]
    agent = ragkit.score(rows, DATA, metrics="mrr,recall@5,exact_match")
    assert rerankers(agent=agent, new=reranked(LISTS, DATA))["new"]["without"] is None


def test_what_came_from_elsewhere_is_left_out_and_failed_steps_too() -> None:
    one = rerankers(x=reranked({**LISTS, "q1": ("axyb", "axyq")}, DATA), y=reranked(LISTS, DATA))["x"]
    assert (one["left_out"], one["n"]) == (1, 3)


def run_file(path: Path, lists: Mapping[str, str]) -> str:
    path.write_text("".join(f"{question} Q0 {name} {rank} {-rank} t\n" for question, ids in lists.items()
                            for rank, name in enumerate(ids, 1)), encoding="utf-8")
    return str(path)


def of_files(folder: Path, **runs: Mapping[str, str]) -> Any:
    (folder / "qrels").write_text("q1 0 a 1\nq2 0 b 1\n", encoding="utf-8")
    named = {name: run_file(folder / name, lists) for name, lists in runs.items()}
    return ragkit.compare(named, qrels=folder / "qrels", metrics="mrr").data["rerankers"]


def test_run_files_of_the_same_candidates_are_a_re_ranking(tmp_path: Path) -> None:
    first = {"q1": "xyab", "q2": "wbcv"}
    found = of_files(tmp_path, first=first, new={"q1": "axyb", "q2": "cbwv"})
    assert found["new"]["first_stage"] == "first" and found["new"]["source"] == "variant"
    assert found["new"]["metrics"]["mrr@4"]["before"] == pytest.approx((1 / 3 + 1 / 2) / 2)
    cut = of_files(tmp_path, cut={"q1": "ax", "q2": "bw"}, first=first)
    assert list(cut) == ["cut"] and cut["cut"]["candidates"]["max"] == 4, "what is shorter re-ranks what is longer"
    top = of_files(tmp_path, first={"q1": "xaby", "q2": "wbcv"}, new={"q1": "ax", "q2": "bw"})
    assert top["new"]["candidates"]["max"] == 2, "a permutation of the top two had no other candidates"


@pytest.mark.parametrize("new", [
    {"q1": "axyq", "q2": "cbwv"},  # one passage from elsewhere
    {"q1": "xyab", "q2": "wbcv"},  # nothing moved
    {"q1": "xy", "q2": "wb"},  # only cut
])
def test_other_run_files_are_none(tmp_path: Path, new: dict[str, str]) -> None:
    assert of_files(tmp_path, first={"q1": "xyab", "q2": "wbcv"}, new=new) is None


def test_two_searches_through_a_whole_small_collection_are_no_re_ranking(tmp_path: Path) -> None:
    assert of_files(tmp_path, first={"q1": "xyab", "q2": "abxy"}, new={"q1": "axyb", "q2": "yxab"}) is None


@pytest.mark.data
def test_hotpotqas_re_ranker_is_one_of_the_dense_lists() -> None:
    """Its 50 results are the dense run's 50 on each of the 500 questions. Full@5 as published: .502 and .654."""
    folder = data_folder("hotpotqa_val500_runs")
    runs = {name: folder / f"run.{name}.trec.gz" for name in ("bm25", "dense", "rerank")}
    found = ragkit.compare(runs, qrels=folder / "qrels.trec", metrics="allhit@5").data["rerankers"]
    assert list(found) == ["rerank"] and found["rerank"]["first_stage"] == "dense"
    one = found["rerank"]["metrics"]["allhit@5"]
    assert (one["before"], one["after"], one["ceiling"]) == (0.502, 0.654, 0.848)
    assert found["rerank"]["depths"][-1]["metrics"]["allhit@5"]["mean"] == 0.654
    out = found["rerank"]["pushed_out"]["5"]
    lift = found["rerank"]["metrics"]["recall@5"]["lift"]["difference"]
    assert (out["pulled_in"] - out["passages"]) / 1000 == pytest.approx(lift)
