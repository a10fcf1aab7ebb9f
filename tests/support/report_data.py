"""A report's data as a real run gives it: three steps, categories, fates, failed scores, hostile texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ragkit.report.data import ListView, MetricInfo, PassageView, QuestionView, ReportData, ScoreView, StepView
from tests.support.trajectory_data import figures, one_search, per_step, searches

HOSTILE = (  # the first four are the texts of a public report of stored scripting in an evaluation page
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "a & b < c",
    "&lt;already&gt;",
    "</script><script>window.pwned=1</script>",
    '"><svg onload=alert(3)><a href="javascript:alert(4)">x</a>',
    '<iframe src="data:text/html,<script>alert(5)</script>"></iframe>',
    "<style>body{display:none}</style><link rel=stylesheet href=https://evil.example/a.css>",
    "pay \u202eeslaf\u202c now\u200b, line\u2028break \x1b[31mred\x00 lone \ud800 tag \U000e0041",
    "{{ 7 * 7 }} {% raw %} ${x} %{y}",
    "![a](https://evil.example/a.png) | [b](javascript:alert(6)) `c` @everyone",
)
NEEDS = "needs a judge: add --judge openai:gpt-5-mini, or --judge-url http://localhost:8000/v1"

_RANK: dict[str, tuple[str, float]] = {
    "hit@1": ("1 if a relevant passage stands in the top k, else 0.", 0.542),
    "hit@3": ("1 if a relevant passage stands in the top k, else 0.", 0.708),
    "hit@5": ("1 if a relevant passage stands in the top k, else 0.", 0.792),
    "precision@5": ("Relevant passages in the top k divided by k.", 0.267),
    "recall": ("Relevant passages in the list divided by all relevant ones.", 0.701),
    "recall@5": ("Relevant passages in the top k divided by all relevant ones.", 0.646),
    "recall@10": ("Relevant passages in the top k divided by all relevant ones.", 0.701),
    "allhit": ("1 if all relevant passages are in the list.", 0.5),
    "precision_set": ("Relevant passages divided by the passages returned.", 0.221),
    "mrr": ("1 / rank of the first relevant passage, 0 where there is none.", 0.631),
    "map": ("Mean precision at the ranks of the relevant passages, divided by all relevant ones.", 0.552),
    "ndcg@5": ("Discounted gain of the top k divided by that of the ideal order (linear gain).", 0.604),
    "ndcg@10": ("Discounted gain of the top k divided by that of the ideal order (linear gain).", 0.633),
}
_TRAJECTORY: dict[str, tuple[str, float]] = {
    "aucr@5": ("Area under the curve of cumulative recall over the first B steps.", 0.668),
    "steps_to_evidence": ("The first step after which all relevant passages were seen.", 1.583),
    "step_efficiency": ("Share of the steps that found something new and relevant.", 0.611),
    "redundancy": ("Share of the returned passages that had been returned before.", 0.287),
    "survival": ("Relevant passages in the final context divided by those found in any step.", 0.854),
    "rerank_lift@10": ("NDCG after the re-ranker minus NDCG before it.", 0.041),
}
_JUDGED = {
    "faithfulness": "Statements of the answer that the context supports, divided by all statements.",
    "answer_relevancy": "Mean cosine of the question and questions made from the answer.",
    "context_precision": "Average precision over the retrieved useful passages.",
    "context_recall": "Statements of the reference that the context carries, divided by all.",
}
_ANSWER: dict[str, tuple[str, float]] = {
    "id_context_precision": ("Relevant passages in the context divided by its distinct ids.", 0.221),
    "id_context_recall": ("Relevant passages in the context divided by all relevant ones.", 0.701),
    "lexical_support": ("ROUGE-L precision of the answer in the joined context.", 0.812),
    "lexical_coverage": ("Share of the answer's words, weighted by rarity, that the context holds.", 0.784),
    "answer_f1": ("Word overlap of the answer with the best reference.", 0.417),
    "exact_match": ("1 if the answer equals a reference after normalising.", 0.125),
}


def _metrics(judge: bool) -> dict[str, Any]:
    gold = {"declared unanswerable": 4, "unlabelled": 2}
    metrics = {name: figures(mean, 24, reasons=gold) for name, (_, mean) in {**_RANK, **_TRAJECTORY}.items()}
    metrics["steps_to_evidence"] = figures(
        1.583, 17, share={"mean": 0.708, "low": 0.5, "high": 0.875}, median=1.0, low=1.2, high=1.9,
        reasons={**gold, "not reached": 7})
    if judge:
        metrics["faithfulness"] = figures(
            0.9, 21, failed=5, worst=0.727, best=0.917, labels="judged",
            reasons={"unparsed reply": 3, "timed out": 2, "answer refused": 4})
        metrics["answer_relevancy"] = figures(0.742, 30, labels="judged")
        metrics["context_precision"] = figures(0.655, 28, labels="judged", reasons={"no context": 2})
        metrics["context_recall"] = figures(None, 0, labels="judged", reasons={"no reference answer": 30})
    else:
        metrics.update({name: figures(None, 0, labels="none", reasons={"needs a judge": 30})
                        for name in _JUDGED})
    metrics.update({name: figures(mean, 24, reasons={"no context": 6}) for name, (_, mean) in _ANSWER.items()})
    return metrics


def _infos() -> dict[str, MetricInfo]:
    def info(name: str, summary: str, group: str, **more: Any) -> MetricInfo:
        fields: dict[str, Any] = {"range": (0.0, 1.0), "direction": "higher", "undefined": "the question has no gold",
                                  "source": ""} | more
        return MetricInfo(name=name, summary=summary, group=group, **fields)

    infos = {name: info(name, summary, "rank", source="trec_eval") for name, (summary, _) in _RANK.items()}
    infos |= {name: info(name, summary, "trajectory") for name, (summary, _) in _TRAJECTORY.items()}
    infos |= {name: info(name, summary, "answer") for name, (summary, _) in _ANSWER.items()}
    infos |= {name: info(name, summary, "judged", source="ragas 0.4.3", undefined="nothing to judge")
              for name, summary in _JUDGED.items()}
    infos["steps_to_evidence"] = replace(infos["steps_to_evidence"], direction="lower", range=(1.0, None))
    infos["rerank_lift@10"] = replace(infos["rerank_lift@10"], range=(-1.0, 1.0))
    infos["answer_relevancy"] = replace(infos["answer_relevancy"], range=(-1.0, 1.0))
    infos |= {name: info(name, f"{name} of one step's list, or up to it.", "trajectory")
              for name in ("ndcg", "cumulative_recall", "marginal_recall", "novelty")}
    return infos


def passage(identifier: str, rank: int, text: str, **more: Any) -> PassageView:
    return PassageView(identifier, rank, text, identifier.partition("#")[0], **more)


LONG = ("The tide mill at Brandt Quay grinds on the ebb alone. The pond fills through the seaward gate while the sea "
        "rises, the gate falls shut by its own weight at high water, and the miller waits until the tailrace has "
        "dropped below the wheel. On a spring tide that leaves about five hours of work, on a neap tide barely three; "
        "in frost the gate is propped open, because ice carried into the pond has twice broken the float boards. "
        ) * 2 + "So the log says."


def _steps() -> tuple[StepView, ...]:
    base = (
        passage("mill-007#1", 1, LONG, score=0.8123, grade=2.0, gold=True, new=True),
        passage("mill-012#0", 2, HOSTILE[0] + " " + HOSTILE[1], score=0.7011, new=True),
        passage("mill-012#0", 3, HOSTILE[0] + " " + HOSTILE[1], score=0.7011, copy=True),
        passage("mill-031#2", 4, "The museum opens at ten.", score=0.5508, grade=0.0, new=True),
    )
    beneath = (*base[:2], passage("mill-019#0", 3, "The sluice was rebuilt in 1911.", score=0.44, grade=1.0, gold=True))
    first = StepView(0, 0, "How long can the tide mill work on a neap tide?", (
        ListView("rerank", "maxsim", True, "similarity", base, lost=("mill-019#0",)),
        ListView("retrieve", "chroma · minilm", True, "distance", beneath),
    ), 182.4, new_gold=("mill-007#1",), lost_gold=("mill-019#0",), recall=1 / 3, drift=0.0)
    second = StepView(1, 1, "neap tide sluice rebuilt " + HOSTILE[8], (
        ListView("fuse", "rrf", True, "similarity", (
            passage("mill-007#1", 1, LONG, score=0.0331, grade=2.0, gold=True),
            passage("mill-044#0", 2, HOSTILE[5], score=0.0164, new=True))),
        ListView("retrieve", "bm25", True, "similarity", (), error="the index is locked by another process"),
    ), 96.0, recall=1 / 3, repeated=True, drift=0.846)
    third = StepView(2, 1, "潮汐磨坊 小潮", (ListView("retrieve", "bm25", True, "unknown", ()),), None, recall=1 / 3,
                     drift=1.0)
    return first, second, third


def question(number: int, **more: Any) -> QuestionView:
    """One worst question; the first has everything that can go wrong in it."""
    context = ListView("context", "last prompt", False, "unknown", (
        passage("mill-007#1", 1, LONG, grade=2.0, gold=True), passage("mill-044#0", 2, HOSTILE[5], truncated=True)))
    scores = (
        ScoreView("recall", "final", 0.5, "scored"), ScoreView("ndcg@10", "final", 0.6131, "scored"),
        ScoreView("recall@5", "final", None, "undefined", "no order"),
        ScoreView("faithfulness", "final", 0.5, "scored", judge="openai:gpt-5-mini", verdicts=(
            ("On a neap tide the mill works three hours.", 1.0, "The first passage says barely three."),
            ("It works at night too.", 0.0, "No passage says so. " + HOSTILE[2]))),
        ScoreView("context_recall", "final", None, "failed", "unparsed reply", judge="openai:gpt-5-mini",
                  raw="I'm sorry, I can't assess this. " + HOSTILE[4]),
        ScoreView("lexical_support", "final", 0.71, "scored"), ScoreView("recall", "0", 0.5, "scored"),
        ScoreView("recall", "1", 0.5, "scored"), ScoreView("recall", "2", 0.0, "scored"),
    )
    fields: dict[str, Any] = {
        "id": f"q{number:03d}", "text": "How long can the tide mill work on a neap tide, and who rebuilt its sluice?",
        "repeat": 0, "category": "multi-hop", "label_state": "labelled", "outcome": "incomplete_wrong",
        "answer": "On a neap tide the mill works three hours. It works at night too, since 1874.",
        "references": ("Barely three hours; the Harlow brothers rebuilt the sluice in 1911.",), "error": None,
        "steps": _steps(), "context": context, "scores": scores,
        "fates": {"mill-007#1": "in_context", "mill-019#0": "lost_at_rerank", "mill-050#0": "lost_at_cut"},
        "warnings": ("the context was found in the last prompt; one passage was cut",),
        "flags": ("no passage holds the number 1874",), "ms": 1240.0,
    } | more
    return QuestionView(**fields)


def _worst() -> tuple[QuestionView, ...]:
    return (
        question(1),
        question(2, id=HOSTILE[0], text=HOSTILE[1] + " " + HOSTILE[8], category=HOSTILE[5], answer=HOSTILE[6],
                 references=(HOSTILE[3],), warnings=(HOSTILE[7],), outcome="complete_wrong", repeat=1),
        question(3, text="What does a family ticket cost?", category=None, answer=None, references=(), context=None,
                 error="TimeoutError: no answer within 60 s", steps=(), fates={}, outcome="failed", scores=(
                     ScoreView("recall", "final", 0.0, "scored"),), warnings=(), flags=(), ms=None),
        question(4, text="Is the miller's house haunted?", category="out of scope", label_state="unanswerable",
                 outcome="unanswerable_answered", answer="Yes, by the second miller.", fates={}, flags=(), scores=(
                     ScoreView("recall", "final", None, "undefined", "declared unanswerable"),)),
        question(5, text="Which gate falls shut by its own weight?", category="factual", outcome="complete_wrong"),
        question(6, text="Compare the work on a spring tide with that on a neap tide.", category="comparison"),
    )


def _categories() -> dict[str, Any]:
    base = {"factual": (0.88, 9), "comparison": (0.64, 6), "how-to": (0.71, 5), "multi-hop": (0.42, 4),
            HOSTILE[5]: (0.3, 1), "": (0.5, 1)}
    found = {name: {metric: figures(mean - shift, asked, asked) for shift, metric in enumerate_tenths(
        "recall", "mrr", "ndcg@10", "lexical_support", "answer_f1")} for name, (mean, asked) in base.items()}
    found["out of scope"] = {"recall": figures(None, 0, 4, reasons={"declared unanswerable": 4})}
    return found


def enumerate_tenths(*names: str) -> list[tuple[float, str]]:
    return [(place / 20, name) for place, name in enumerate(names)]


def report_data(judge: bool = True, **more: Any) -> ReportData:
    """A whole report; `judge=False` is the run without a key."""
    summary = {
        "schema": "ragkit.summary/1", "variant": "iterative + maxsim", **searches(HOSTILE[5]),
        "questions": {"asked": 30, "labelled": 24, "unanswerable": 4, "unlabelled": 2},
        "metrics": _metrics(judge), "per_step": per_step(), "categories": _categories(),
        "outcomes": {"complete_right": 9, "complete_wrong": 3, "incomplete_wrong": 11, "incomplete_right": 1,
                     "unanswerable_refused": 3, "unanswerable_answered": 1, "unlabelled_right": 1, "failed": 1},
        "app": {"ms": {"mean": 1240.2, "median": 980.0, "p95": 3720.0}, "tokens": {"input": 48210, "output": 3911},
                "cost": None},
        "judge": {"judge": "openai:gpt-5-mini", "endpoint": "https://api.openai.com/v1", "calls": 214, "stored": 12,
                  "pooled": 6, "retried": 3, "failed": 5, "tokens": {"input": 301223, "output": 22871}, "price": None,
                  "cost": None, "metrics": {"faithfulness": {"calls": 58, "failed": 5}, "context_precision":
                  {"calls": 84, "stored": 12}}, "failures": {"unparsed reply": 3, "timed out": 2},
                  "warnings": {}, "dropped_parameters": [], "stopped": None} if judge else {},
    }
    fields: dict[str, Any] = {
        "summary": summary,
        "run": {"app": "iterative agent, built from tide-mill.yaml", "dataset": "tide mill (built-in sample)",
                "judge": "openai:gpt-5-mini" if judge else None, "embedder": "minilm (all-MiniLM-L6-v2)",
                "started": "2026-11-30 14:57 UTC", "git": "c949889", "seeds": {"bootstrap": 0},
                "versions": {"ragkit-eval": "0.1.0", "python": "3.11.9", "numpy": "2.4.6"},
                "fingerprints": {"questions": "a91f02c4de5b7788", "labels": "0b1c2d3e4f506172"},
                "config": {"k": 10, "agent": {"kind": "iterative", "max_steps": 3}, "note": HOSTILE[4]}},
        "fix_first": "Retrieval first: 11 of the 14 wrong answers lacked evidence, and 6 of these had lost it at the "
                     "re-ranker.",
        "rule": "An answer is right where exact_match = 1 or answer_f1 >= 0.5.", "unit": "chunk",
        "metrics": _infos(), "hit_curve": {"hit@1": 0.542, "hit@3": 0.708, "hit@5": 0.792},
        "rank_histogram": {"1": 13, "2": 8, "3": 5, "4": 3, "5": 2, "6": 1, "7": 0, "8": 1, "9": 0, "10": 1, "11-20": 0,
                           "missed": 14},
        "step_reach": {"0": 24, "1": 16, "2": 5},
        "rerank": {"helped": 9, "unchanged": 10, "hurt": 5}, "worst": _worst(),
        "failures": (("q003", "app", "TimeoutError: no answer within 60 s"),
                     ("q001", "context_recall", "unparsed reply"), (HOSTILE[0], "faithfulness", HOSTILE[1])),
        "notes": ("2 questions are unlabelled: label metrics are undefined for them.",
                  "3 later copies of a passage gained nothing.", "judged@10 is 0.41: many passages nobody looked at."),
        "agreement": (
            {"signal": "lexical_support", "q2_wow (600)": 0.723, "begin (1,500)": 0.938, "HaluEval (800)": 0.518},
            {"signal": "lexical_coverage", "q2_wow (600)": 0.726, "begin (1,500)": 0.922, "HaluEval (800)": 0.539}),
        "needs_judge": "" if judge else NEEDS, "lost_stages": {"never_retrieved": 5, "lost_at_rerank": 6},
        "worst_rule": "6 of 30 questions: failed first, then wrong answers by rising recall.",
    } | more
    return ReportData(**fields)


def unlabelled_data() -> ReportData:
    """A report of questions none of which has labels: retrieval metrics are undefined, answers are checked."""
    gold = {"unlabelled": 26, "declared unanswerable": 4}
    summary = dict(report_data(judge=False).summary)
    summary |= {
        "questions": {"asked": 30, "labelled": 0, "unanswerable": 4, "unlabelled": 26},
        "metrics": {name: figures(None, 0, reasons=gold) if name in {**_RANK, **_TRAJECTORY} else own
                    for name, own in summary["metrics"].items()},
        "per_step": {"0": {"recall": figures(None, 0, reasons=gold), "novelty": figures(1.0, 30)}},
        "categories": {"factual": {"recall": figures(None, 0, reasons=gold), "answer_f1": figures(0.4, 12)}},
        **one_search(),
        "outcomes": {"unlabelled_right": 11, "unlabelled_wrong": 14, "unanswerable_unchecked": 2, "not_asked": 1,
                     "failed": 2},
    }
    return report_data(judge=False, summary=summary, hit_curve={}, rank_histogram={"missed": 0}, rerank={},
                       lost_stages={}, worst=())
