"""What the report shows, as plain data: histograms, the worst questions with their steps, notes. Renders nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ragkit.evaluation.score import Scorer
from ragkit.evaluation.scoring import FinalList, Scoring, final_list, passage_text
from ragkit.evaluation.suspects import passage_hint, suspect_warnings
from ragkit.evaluation.table import FINAL, ScoreRow
from ragkit.evaluation.trajectory_summary import repeats
from ragkit.metrics.fates import fates
from ragkit.metrics.registry import Metric, parse
from ragkit.metrics.sessions import query_drift
from ragkit.metrics.trajectory import EvidencePath, score_path
from ragkit.records.judgements import Judgement, Score
from ragkit.records.trajectory import Passage, Retrieval, Trajectory
from ragkit.report.data import ListView, MetricInfo, PassageView, QuestionView, ScoreView, StepView

WORST_RULE = ("{shown} of {all} trajectories: failed first, then wrong with incomplete evidence, then wrong, by "
              "rising recall and NDCG.")
_GROUPS = {"ranking": "rank", "trajectory": "trajectory", "judged": "judged", "answer": "answer"}
_BADNESS = {"failed": 0, "incomplete_wrong": 1, "complete_wrong": 2, "unanswerable_answered": 3, "unlabelled_wrong": 4,
            "incomplete_unchecked": 5, "incomplete_right": 6}


def metric_infos(metrics: Sequence[Metric]) -> dict[str, MetricInfo]:
    """What each metric's number means, from the registry."""
    infos = {}
    for metric in metrics:
        d = metric.definition
        group = "answer" if d.name.startswith("id_context") else _GROUPS[d.kind]
        infos[metric.name] = MetricInfo(metric.name, d.summary, d.range, d.direction, d.undefined, d.source, group,
                                        d.formula)
    return infos


def rank_histogram(scoring: Scoring) -> dict[str, int]:
    """At which rank of the final list the relevant things stand, over all trajectories; "missed" is the rest."""
    counts: Counter[str] = Counter()
    for trajectory in scoring.trajectories:
        grades = scoring.projection.qrels.get(trajectory.question_id, {})
        relevant = {name for name, grade in grades.items() if grade >= scoring.level}
        end = final_list(trajectory)
        names = scoring.projection.names(trajectory.question_id, end.passages)
        ranks = {name: rank for rank, name in reversed(list(enumerate(names, 1)))}
        for name in relevant:
            rank = ranks.get(name)
            known = end.ranked and end.cuttable
            counts["missed" if rank is None else _bin(rank) if known else "found, no order"] += 1
    order = [*map(str, range(1, 11)), "11-20", "21-50", "51+", "found, no order", "missed"]
    last = max((i for i, name in enumerate(order[:13]) if counts[name]), default=-1)
    return {name: counts[name] for i, name in enumerate(order) if i <= last or name == "missed" or counts[name]}


def _bin(rank: int) -> str:
    if rank <= 10:
        return str(rank)
    return "11-20" if rank <= 20 else "21-50" if rank <= 50 else "51+"


def rerank_counts(paths: Mapping[tuple[str, int], EvidencePath]) -> dict[str, int]:
    """How many questions the re-ranker helped, hurt, or left as they were, by NDCG@5; empty where there is none."""
    lifts: dict[str, list[float]] = defaultdict(list)
    lift = parse("rerank_lift@5")
    for (question_id, _), path in paths.items():
        score = score_path(path, [lift])[lift.name]
        if isinstance(score, Score) and score.value is not None:
            lifts[question_id].append(score.value)
    if not lifts:
        return {}
    means = [sum(values) / len(values) for values in lifts.values()]
    helped, hurt = sum(mean > 1e-12 for mean in means), sum(mean < -1e-12 for mean in means)
    return {"helped": helped, "hurt": hurt, "unchanged": len(means) - helped - hurt}


def step_reach(trajectories: Sequence[Trajectory]) -> dict[str, int]:
    counts = Counter(str(step.index) for trajectory in trajectories for step in trajectory.steps)
    return {step: counts[step] for step in sorted(counts, key=int)}


def _made_from(lists: Sequence[Retrieval], place: int) -> Sequence[Retrieval]:
    """What stands beneath a list. Behind a retriever that is itself beneath one stand its siblings: it lost none of
    their gold."""
    return () if place and lists[place].stage == "retrieve" else lists[place + 1:]


class QuestionViews:
    """Builds the view of one trajectory with its lists, gold, scores and verdicts."""

    def __init__(
        self,
        scoring: Scoring,
        scorer: Scorer,
        rows: Sequence[ScoreRow],
        outcomes: Mapping[tuple[str, int], str],
        judgements: Mapping[tuple[tuple[Any, ...], str], Judgement] | None,
    ) -> None:
        self._scoring, self._scorer, self._outcomes = scoring, scorer, outcomes
        self._judgements = judgements or {}
        self._rows: dict[tuple[str, int], list[ScoreRow]] = defaultdict(list)
        for row in rows:
            self._rows[row.question_id, row.repeat].append(row)
        self._states = scoring.dataset.label_states()

    def worst(self, most: int) -> tuple[QuestionView, ...]:
        """The questions to look at first: by outcome, then by recall and NDCG at the end."""
        ordered = sorted(self._scoring.trajectories, key=self._badness)
        return tuple(self.view(trajectory) for trajectory in ordered[:most])

    def _badness(self, trajectory: Trajectory) -> tuple[int, float, float, str]:
        values = {r.metric: r.value for r in self._rows[trajectory.key] if r.step == FINAL and r.value is not None}
        rank = _BADNESS.get(self._outcomes[trajectory.key], 9)
        ndcg = next((value for name, value in values.items() if name.startswith("ndcg")), 1.0)
        return rank, values.get("recall", 1.0), ndcg, trajectory.question_id

    def view(self, trajectory: Trajectory) -> QuestionView:
        question = self._scoring.dataset.by_id[trajectory.question_id]
        path = self._scorer.paths[trajectory.key]
        end = final_list(trajectory)
        return QuestionView(
            id=trajectory.question_id,
            text=question.text,
            repeat=trajectory.repeat,
            category=question.category,
            label_state=self._states[trajectory.question_id],
            outcome=self._outcomes[trajectory.key],
            answer=trajectory.answer,
            references=question.answers,
            error=trajectory.error,
            steps=self._steps(trajectory, path),
            context=self._context(trajectory, end),
            scores=tuple(self._score(row) for row in self._rows[trajectory.key]
                         if row.step == FINAL or row.stage == "judge"),
            fates=fates(path) if path.label_state == "labelled" else {},
            warnings=(*(str(warning) for warning in trajectory.meta.get("warnings", ())),
                      *suspect_warnings(trajectory, self._scoring.dataset)),
            flags=self._flags(trajectory),
            ms=trajectory.ms,
        )

    def _steps(self, trajectory: Trajectory, path: EvidencePath) -> tuple[StepView, ...]:
        seen, found, views = set[str](), frozenset[str](), []
        labelled = path.label_state == "labelled" and bool(path.relevant) and trajectory.key not in self._scorer.unsure
        again, drifts = repeats(trajectory.steps), query_drift(path)
        for place, step in enumerate(trajectory.steps):
            lists = tuple(self._list(trajectory, r, seen, _made_from(step.retrievals, i)) for i, r in
                          enumerate(step.retrievals))
            here = path.relevant & set(path.steps[place])
            beneath = {name for listed in path.lists(place)[1:] for name in listed.ids} & path.relevant
            views.append(StepView(
                step.index, step.turn, step.outermost.query, lists, step.ms, tuple(sorted(here - found)),
                tuple(sorted(beneath - here)), path.shares[place] if labelled else None, again[place],
                drifts[place].value, step.outermost.error))
            seen |= set(self._scoring.projection.names(trajectory.question_id, step.outermost.passages))
            found |= here
        return tuple(views)

    def _context(self, trajectory: Trajectory, end: FinalList) -> ListView:
        known = trajectory.context
        name = "fused by reciprocal rank" if end.fused else ""
        found = known if known is not None else Retrieval("union", name, passages=end.passages, ranked=end.cuttable)
        return self._list(trajectory, found, set(), ())

    def _list(
        self, trajectory: Trajectory, found: Retrieval, seen: set[str], beneath: Sequence[Retrieval]
    ) -> ListView:
        name, question_id = self._scoring.projection.name, trajectory.question_id
        relevant = {g for g, grade in self._scoring.projection.qrels.get(question_id, {}).items()
                    if grade >= self._scoring.level}
        views, here = [], set[str]()
        for rank, passage in enumerate(found.passages, 1):
            unit = name(question_id, passage)
            views.append(self._passage(question_id, passage, rank, unit, relevant, (unit not in seen, unit in here)))
            here.add(unit)
        below = {name(question_id, p) for r in beneath for p in r.passages}
        return ListView(found.stage, found.name, found.ranked, found.score_kind, tuple(views), found.error,
                        tuple(sorted((below & relevant) - here)))

    def _passage(
        self, question_id: str, passage: Passage, rank: int, unit: str, relevant: set[str], marks: tuple[bool, bool]
    ) -> PassageView:
        new, copy = marks
        text = passage_text(passage, self._scoring.dataset)
        return PassageView(passage.id, rank, text, passage.doc_id, passage.score,
                           self._scoring.projection.grade(question_id, passage), unit in relevant, new, copy,
                           passage_hint(text), passage.truncated)

    def _score(self, row: ScoreRow) -> ScoreView:
        key = (row.question_id, row.repeat) if row.step == FINAL else (row.question_id, row.repeat, row.step)
        judgement = self._judgements.get((key, row.metric))
        verdicts = tuple((v.subject, v.value, "; ".join(filter(None, (", ".join(v.flags), v.reason))))
                         for v in judgement.verdicts) if judgement else ()
        raw = judgement.raw if judgement else None
        return ScoreView(row.metric, row.step, row.value, row.status, row.reason, row.judge, verdicts, raw)

    def _flags(self, trajectory: Trajectory) -> tuple[str, ...]:
        """Numbers and names of the answer that no passage holds, as the keyless judge marked them."""
        judgement = self._scorer.offline.get((trajectory.key, "lexical_support"))
        verdicts = judgement.verdicts if judgement is not None else ()
        return tuple(dict.fromkeys(flag for verdict in verdicts for flag in verdict.flags))
