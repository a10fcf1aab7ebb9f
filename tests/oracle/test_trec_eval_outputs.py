"""trec_eval's own test outputs: every line of them about a metric or a count that we have, to the four decimals given.

Left out, because no metric of ours is meant: Rprec, Rprec_mult, bpref, gm_map, gm_bpref, infAP, iprec_at_recall,
11pt_avg, G, binG, Rndcg, ndcg_rel, ndcg with other gains (ndcg_1=3,...), rbp, rbp_resid, relative_P, set_F, set_map,
set_relative_P, utility, relstring and runid; and the outputs of z-scores and of preference judgements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ragkit.metrics.batch import RankBatch, batch_of_run
from ragkit.metrics.ranking import score_arrays
from ragkit.metrics.registry import parse
from ragkit.records.questions import Qrels
from ragkit.records.readers.runfiles import read_judged_run
from ragkit.records.readers.trec import read_qrels
from ragkit.records.runs import JudgedRun
from tests.support.data import data_folder

pytestmark = pytest.mark.data

OURS = {"map": "map", "map_cut": "map", "ndcg": "ndcg", "ndcg_cut": "ndcg", "P": "precision", "recall": "recall",
        "success": "hit", "recip_rank": "mrr", "set_P": "precision_set", "set_recall": "recall"}
COUNTS: dict[str, Callable[[RankBatch], np.ndarray]] = {
    "num_q": lambda batch: np.ones(len(batch)),
    "num_ret": lambda batch: batch.lengths,
    "num_rel": lambda batch: batch.n_relevant,
    "num_rel_ret": lambda batch: batch.hits(),
    "num_nonrel_judged_ret": lambda batch: share(batch, "judged") * batch.lengths - batch.hits()}
LEFT_OUT = {"Rprec", "Rprec_mult", "bpref", "gm_map", "gm_bpref", "infAP", "iprec_at_recall", "11pt_avg", "G", "binG",
            "Rndcg", "ndcg_rel", "ndcg_1=3,2=9,4=4.5", "rbp", "rbp_resid", "relative_P", "set_F", "set_map",
            "set_relative_P", "utility", "relstring", "runid", "utility_2,-1,0,0", "11pt_avg_.25,.5,.75"}
FILES = {  # output -> qrels, run, level, lines that concern us
    "out.test": ("qrels.test", "results.test", 1, 15),
    "out.test.a": ("qrels.test", "results.test", 1, 52),
    "out.test.aq": ("qrels.test", "results.test", 1, 205),
    "out.test.aqc": ("qrels.test", "results.trunc", 1, 205),
    "out.test.aqcM": ("qrels.test", "results.trunc", 1, 205),
    "out.test.aql": ("qrels.rel_level", "results.test", 2, 205),
    "out.test.meas_params": ("qrels.test", "results.test", 1, 44)}


@pytest.mark.parametrize("output", FILES)
def test_every_line_that_concerns_a_metric_of_ours(output: str, tmp_path: Path) -> None:
    folder = data_folder("trec_eval_tests") / "original"
    qrels_name, run_name, level, lines = FILES[output]
    qrels = read_qrels(folder / qrels_name)
    # To trec_eval a grade below 0 is a mark for "not judged": that shows in the counts of judged documents alone.
    judged = {topic: {document: grade for document, grade in row.items() if grade >= 0} for topic, row in qrels.items()}
    runs = [read_run(folder / run_name, labels, tmp_path, cut=output.endswith("M")) for labels in (qrels, judged)]
    batches = [batch_of_run(run, labels, level=level) for run, labels in zip(runs, (qrels, judged), strict=True)]
    topics = list(runs[0].questions)
    compared = 0
    for line in (folder / output).read_text(encoding="utf-8").splitlines():
        name, topic, printed = line.split(None, 2)
        ours = values(batches[name.startswith(("unj", "num_nonrel"))], name)
        if ours is None:
            continue
        total = np.sum if name.startswith("num") else np.mean
        found = float(total(ours) if topic == "all" else ours[topics.index(topic)])
        assert found == pytest.approx(float(printed), abs=0.5e-4 + 1e-9), line
        compared += 1
    assert compared == lines


def test_comments_in_qrels() -> None:
    """A line that starts with # is a comment; # inside an id is part of it."""
    folder = data_folder("trec_eval_tests") / "original"
    plain, commented = read_qrels(folder / "qrels.test"), read_qrels(folder / "qrels.test.with-comments")
    row = plain["301"]
    assert row.pop("CR93E-1860") == commented["301"].pop("CR#93E-1860") == 0
    assert commented == plain


def values(batch: RankBatch, name: str) -> np.ndarray | None:
    """Ours, a value a question, for a measure as trec_eval prints it; 0 where undefined. None: no metric of ours."""
    base, cut = re.fullmatch(r"(.+?)(?:_(\d+))?", name).groups()
    if name in COUNTS:
        return COUNTS[name](batch)
    if base == "unj":
        return np.minimum(batch.lengths, int(cut)) * (1 - share(batch, f"judged@{cut}")) / int(cut)
    if base not in OURS:
        assert base in LEFT_OUT or name in LEFT_OUT or re.fullmatch(r"(iprec_at_recall|Rprec_mult)_[\d.]+", name), name
        return None
    return share(batch, OURS[base] if cut is None else f"{OURS[base]}@{cut}")


def share(batch: RankBatch, name: str) -> np.ndarray:
    return np.nan_to_num(score_arrays(batch, [parse(name)])[:, 0])


def read_run(path: Path, qrels: Qrels, folder: Path, cut: bool) -> JudgedRun:
    """The run; `cut`: the best hundred of each topic, as with trec_eval's -M100."""
    if not cut:
        return read_judged_run(path, qrels)
    rows = sorted((line.split() for line in path.read_text(encoding="utf-8").splitlines()),
                  key=lambda row: (float(row[4]), row[2].encode()), reverse=True)
    best = [row for topic in qrels for row in [row for row in rows if row[0] == topic][:100]]
    copy = folder / path.name
    copy.write_text("".join("\t".join(row) + "\n" for row in best), encoding="utf-8")
    return read_judged_run(copy, qrels)
