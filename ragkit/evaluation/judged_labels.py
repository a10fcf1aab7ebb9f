"""Score rows from judged labels: grades for rank metrics, statements of the reference answer for recall and over steps.

A pair that was not judged is no 0: what becomes of a score that depends on one is in judged_bounds.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ragkit.evaluation.funnel import evidence_complete
from ragkit.evaluation.judged_bounds import Unjudged
from ragkit.evaluation.judged_rows import NO_JUDGE
from ragkit.evaluation.relevance import NO_TEXT, JudgedLabels, unjudged
from ragkit.evaluation.score import evidence_path, placed_rows
from ragkit.evaluation.scoring import ScoredList, Scoring, all_lists, scored_lists
from ragkit.evaluation.table import ScoreRow
from ragkit.judge.relevance import BEST, Pool
from ragkit.metrics.ranking import NO_CUT, NO_ORDER, RankedIds, build_batch, score_batch
from ragkit.metrics.registry import Metric
from ragkit.metrics.trajectory import EvidencePath, score_path
from ragkit.records.judgements import Score
from ragkit.records.trajectory import Passage, Trajectory

NO_FULL_R: Final = "judged labels give no full R"
NO_STATEMENT: Final = "no statement in the reference answer"
JUDGED: Final = "judged"
_BY_STATEMENTS = {"recall", "allhit"}  # of the rank metrics; of the others over steps all but these:
_BY_GRADES = {"rerank_lift", "rerank_lift_mrr", "novelty", "redundancy", "sdcg", "nsdcg"}
_BY_GAIN = {"dcg", "ndcg", "ndcg_exp", "ndcg_returned", "query_ndcg", "rerank_lift", "sdcg", "nsdcg"}  # of all grades
_BY_IDS = {"id_context_recall"}
_UNSEEN = "\0not found"  # stands for what answers the question, where nothing in the pool does


@dataclass(frozen=True)
class _Case:
    """A list, and what it is held against: a pool of grades, or the reason why there is none."""

    pool: Pool | None
    withheld: str | None
    found: ScoredList
    names: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)  # why passages have no grade, by name


class JudgedScorer:
    """Scores one variant with judged labels. `right` says whether an answer is right.

    `paths` are in statements of the reference answer, without labels where these are not known; `graded` in passages.
    `unsure` are the trajectories whose path could be another one, had all of it been judged.
    """

    def __init__(self, scoring: Scoring, labels: JudgedLabels, right: Callable[[Trajectory], bool | None]) -> None:
        self._scoring, self._labels, self._right = scoring, labels, right
        self._states = scoring.dataset.label_states()
        self._grades = {id(pool): labels.grades(pool) for pool in labels.pools}
        self.unsure = set[tuple[str, int]]()
        self.paths = {trajectory.key: self._outcome_path(trajectory) for trajectory in scoring.trajectories}
        self.graded = {trajectory.key: self._graded_path(trajectory, False, labels.level)
                       for trajectory in scoring.trajectories}

    def rows(self) -> list[ScoreRow]:
        """Rank metrics of every step's list and of the list at the end, and the metrics over all steps."""
        scoring = self._scoring
        lists = [(t, self._case(self._pool(t), self._withheld(t), found)) for t in scoring.trajectories
                 for found in scored_lists(t)]
        rows = self._list_rows(lists, scoring.of_kind("ranking"))
        for trajectory in scoring.trajectories:
            outcomes = self._path_scores(trajectory, scoring.of_kind("trajectory"))
            rows += placed_rows(scoring, trajectory, outcomes, labels=JUDGED, judge=self._labels.judge)
        return rows

    def query_rows(self) -> list[ScoreRow]:
        """Each step's list against the step's own query."""
        lists = []
        for trajectory in self._scoring.trajectories:
            for found in scored_lists(trajectory)[:-1]:
                pool = self._labels.queries.get(found.query)
                reason = NO_JUDGE if pool is None else None
                reason = reason if found.query.strip() else "no query"
                lists.append((trajectory, self._case(pool, reason, found)))
        return self._list_rows(lists, self._scoring.query_metrics)

    def _case(self, pool: Pool | None, withheld: str | None, found: ScoredList) -> _Case:
        names = tuple(map(self._labels.names.name, found.passages))
        return _Case(pool, withheld, found, names, {} if withheld else self._missing(pool, found.passages))

    def _list_rows(self, lists: Sequence[tuple[Trajectory, _Case]], metrics: Sequence[Metric]) -> list[ScoreRow]:
        scores, rows = self._rank_scores([case for _, case in lists], metrics), list[ScoreRow]()
        for place, (trajectory, case) in enumerate(lists):
            for metric in metrics:
                failed = case.found.failed
                score = scores[metric.name][place] if failed is None else Score.failed(failed)
                rows.append(self._scoring.row(trajectory, case.found.step, case.found.stage, metric.name, score,
                                              labels=JUDGED, judge=self._labels.judge))
        return rows

    def after_the_end(self, trajectory: Trajectory) -> Score | None:
        """Cumulative recall at a step that was not taken; None where the last step's value holds on."""
        if trajectory.error is not None:
            return Score.failed(f"app failed: {trajectory.error}")
        reason = self._withheld(trajectory) or self._no_statements(self._pool(trajectory))
        if reason is not None:
            return Score.undefined(reason)
        return None if trajectory.steps else Score.scored(0.0)

    def _pool(self, trajectory: Trajectory) -> Pool | None:
        return self._labels.questions.get(trajectory.question_id)

    def _withheld(self, trajectory: Trajectory) -> str | None:
        return "declared unanswerable" if self._pool(trajectory) is None else None

    def _rank_scores(self, cases: Sequence[_Case], metrics: Sequence[Metric]) -> dict[str, list[Score]]:
        found: dict[str, list[Score]] = {}
        groups: dict[tuple[str, float | None], list[Metric]] = {}
        for metric in metrics:
            name = metric.definition.name
            if name in _BY_IDS:
                found[metric.name] = [Score.undefined(case.withheld or NO_FULL_R) for case in cases]
            elif name in _BY_STATEMENTS:
                groups.setdefault(("statements", metric.k), []).append(metric)
            else:
                groups.setdefault(("grades", _least(metric, self._labels.level)), []).append(metric)
        for (kind, cut), own in groups.items():
            made = self._by_statements(cases, own) if kind == "statements" else self._by_grades(cases, own, cut or 0.0)
            for place, metric in enumerate(own):
                found[metric.name] = [line[place] for line in made]
        return found

    def _by_grades(self, cases: Sequence[_Case], metrics: Sequence[Metric], least: float) -> list[list[Score]]:
        def scored(places: Sequence[int], high: bool) -> list[list[Score]]:
            qrels, rankings = dict[str, Mapping[str, float]](), list[RankedIds]()
            for place in places:
                case = cases[place]
                key = str(place) if high else str(id(case.pool))
                if key not in qrels:
                    qrels[key] = self._gold(case.pool, dict.fromkeys(case.missing, float(BEST)) if high else {}, least)
                found = case.found
                rankings.append(RankedIds(key, case.names, found.ranked, found.cuttable, case.withheld))
            return score_batch(build_batch(rankings, qrels, level=self._labels.level), metrics)

        return self._between(cases, metrics, scored)

    def _by_statements(self, cases: Sequence[_Case], metrics: Sequence[Metric]) -> list[list[Score]]:
        """Of metrics with one and the same cut: it counts passages, so it is made before they become statements."""
        cut, uncut = metrics[0].k, [Metric(metric.definition) for metric in metrics]

        def scored(places: Sequence[int], high: bool) -> list[list[Score]]:
            qrels, rankings = dict[str, Mapping[str, float]](), list[RankedIds]()
            for place in places:
                case = cases[place]
                reason = case.withheld or self._no_statements(case.pool)
                if cut is not None:
                    reason = reason or (None if case.found.ranked else NO_ORDER) or (
                        None if case.found.cuttable else NO_CUT)
                key = str(id(case.pool))
                qrels[key] = dict.fromkeys(_units(case.pool), 1.0)
                carried = self._carried(case.pool, case.found.passages[:cut], high)
                rankings.append(RankedIds(key, carried, unlabelled_reason=reason))
            return score_batch(build_batch(rankings, qrels), uncut)

        return self._between(cases, metrics, scored)

    def _between(self, cases: Sequence[_Case], metrics: Sequence[Metric],
                 scored: Callable[[Sequence[int], bool], list[list[Score]]]) -> list[list[Score]]:
        """The scores, but for those that depend on what was not judged; `judged` tells how much was."""
        found = scored(range(len(cases)), False)
        pools = {id(case.pool): unjudged(case.pool) for case in cases
                 if case.withheld is None and case.pool is not None}
        unsure = [place for place, case in enumerate(cases)
                  if case.missing or (case.withheld is None and pools[id(case.pool)])]
        for place, best in zip(unsure, scored(unsure, True) if unsure else (), strict=True):
            case = cases[place]
            left = Unjudged(case.missing, len(case.names), pools.get(id(case.pool), {}))
            found[place] = [left.sure(metric.name, low, high)
                            for metric, low, high in zip(metrics, found[place], best, strict=True)]
        return found

    def _path_scores(self, trajectory: Trajectory, metrics: Sequence[Metric]) -> dict[str, Score | list[Score]]:
        pool, withheld = self._pool(trajectory), self._withheld(trajectory)
        passages = [passage for found in all_lists(trajectory) for passage in found.passages]
        left = Unjudged(self._missing(pool, passages), len({*map(self._labels.names.name, passages)}),
                        {} if pool is None else unjudged(pool))
        found: dict[str, Score | list[Score]] = {}
        groups: dict[float | None, list[Metric]] = {}
        for metric in metrics:
            by_grades = metric.definition.name in _BY_GRADES
            reason = withheld or (None if by_grades else self._no_statements(pool))
            reason = reason if metric.definition.needs_gold else None
            if reason is None:
                groups.setdefault(_least(metric, self._labels.level) if by_grades else None, []).append(metric)
            else:
                undefined = Score.undefined(reason)
                found[metric.name] = [undefined] * len(trajectory.steps) if metric.definition.series else undefined
        for least, own in groups.items():
            low, high = (score_path(self._stated_path(trajectory, best) if least is None else
                                    self._graded_path(trajectory, best, least), own) if not best or left else {}
                         for best in (False, True))
            for name, score in low.items():
                found[name] = left.sure_path(name, score, high[name]) if left else score
        return {metric.name: found[metric.name] for metric in metrics}

    def _outcome_path(self, trajectory: Trajectory) -> EvidencePath:
        """The path for evidence x answer; without labels where nobody can tell whether the evidence is complete."""
        if self._withheld(trajectory) is not None:
            return evidence_path(trajectory, lambda _: (), {}, answer_right=self._right(trajectory),
                                 label_state=self._states[trajectory.question_id])
        low, high = self._stated_path(trajectory, False), self._stated_path(trajectory, True)
        if low != high:
            self.unsure.add(trajectory.key)
        if self._no_statements(self._pool(trajectory)) is None and evidence_complete(low) == evidence_complete(high):
            return low
        return evidence_path(trajectory, lambda _: (), {}, answer_right=self._right(trajectory),
                             label_state="unlabelled")

    def _stated_path(self, trajectory: Trajectory, high: bool) -> EvidencePath:
        pool = self._pool(trajectory)
        return evidence_path(trajectory, lambda passages: self._carried(pool, passages, high),
                             dict.fromkeys(_units(pool), 1.0), answer_right=self._right(trajectory))

    def _graded_path(self, trajectory: Trajectory, high: bool, least: float) -> EvidencePath:
        pool = self._pool(trajectory)
        every = [p for step in trajectory.steps for r in step.retrievals for p in r.passages]
        best = dict.fromkeys(self._missing(pool, every), float(BEST)) if high else {}
        return evidence_path(trajectory, lambda passages: tuple(map(self._labels.names.name, passages)),
                             self._gold(pool, best, least), level=self._labels.level,
                             label_state="unanswerable" if pool is None else "labelled")

    def _gold(self, pool: Pool | None, more: Mapping[str, float], least: float) -> dict[str, float]:
        """The grades of a pool. A question that nobody declared unanswerable has an answer: where no grade reaches
        `least`, it was not found, and stands in the labels as such."""
        if pool is None:
            return {}
        grades = {**self._grades[id(pool)], **more}
        if not any(grade >= least for grade in grades.values()):
            grades[_UNSEEN] = self._labels.level
        return grades

    def _carried(self, pool: Pool | None, passages: Sequence[Passage], high: bool) -> tuple[str, ...]:
        """The statements that passages carry, in their order; an unjudged one carries none, or all where `high`."""
        if pool is None:
            return ()
        units, found = _units(pool), list[str]()
        for passage in passages:
            text = self._labels.names.hash(passage)
            grade = None if text is None else pool.grades.get(text)
            if grade is not None:
                found += [units[number - 1] for number in grade.carries]
            elif high:
                found += units
        return tuple(found)

    def _missing(self, pool: Pool | None, passages: Iterable[Passage]) -> dict[str, str]:
        """Why passages have no grade, by their names."""
        found: dict[str, str] = {}
        if pool is None:
            return found
        for passage in passages:
            text = self._labels.names.hash(passage)
            reason = NO_TEXT if text is None else pool.reason(text)
            if reason is not None:
                found[self._labels.names.name(passage)] = reason
        return found

    def _no_statements(self, pool: Pool | None) -> str | None:
        if pool is None or _units(pool) or pool.error is not None:
            return None
        return NO_STATEMENT if pool.asked.reference else NO_FULL_R


def _units(pool: Pool | None) -> list[str]:
    """The statements of a reference answer as what is to be found; one unknown one where nothing was retrieved."""
    if pool is None:
        return []
    unknown = bool(pool.asked.reference) and (not pool.asked.passages or pool.error is not None)
    return [f"statement {number}" for number in range(1, (len(pool.statements) or int(unknown)) + 1)]


def _least(metric: Metric, level: float) -> float:
    """The grade from which a passage gains something."""
    return 1e-9 if metric.definition.name in _BY_GAIN else level
