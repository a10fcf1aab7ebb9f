"""The report as Markdown, for pull requests and readers without a browser: the same tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragkit.report import corrected, judged, labels, numbers, parts, plots, rows, step_plots, texts, trajectory
from ragkit.report.data import ListView, QuestionView, ReportData, ScoreView, StepView
from ragkit.report.html import definitions

_ANSWER = 400  # characters of an answer that a table-like line bears
_QUESTIONS = 20  # shown in full here; the page shows more


def render_markdown(data: ReportData) -> str:
    """The whole report as text, to be written as utf-8."""
    made = [
        _head(data), _fix_first(data), _headline(data), _corrected(data), _judged(data), _ranks(data),
        _steps(data), _behaviour(data), _lost(data), _reranker(data), _categories(data), _app(data), _judge(data),
        _questions(data), _failures(data), _notes(data), _definitions(data),
    ]
    return "\n\n".join(line for part in made for line in part if line) + "\n"


def table(head: Sequence[str], body: Iterable[Sequence[str]], text_columns: int = 1) -> str:
    """A Markdown table of finished cells; all but the first `text_columns` are aligned to the right."""
    rule = [":--" if place < text_columns else "--:" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *body))


def _head(data: ReportData) -> list[str]:
    asked = data.summary.get("questions") or {}
    states = [f"{numbers.count(asked.get(state, 0))} {words}" for state, words in labels.STATES.items()]
    facts = [("Questions", f"{numbers.count(asked.get('asked'))} asked: {', '.join(states)}")]
    for key in ("app", "dataset", "judge", "embedder", "started", "label", "git"):
        if data.run.get(key):
            facts.append((key.capitalize(), texts.markdown(numbers.anything(data.run[key]))))
    if parts.labelled(data):
        facts.append(("Gold is about", f"{texts.markdown(data.unit)}s"))
    return [f"# {texts.markdown(data.summary.get('variant') or 'Report')}",
            "\n".join(f"- **{name}:** {value}" for name, value in facts)]


def _fix_first(data: ReportData) -> list[str]:
    found = parts.other_outcomes(data)
    others = ", ".join(f"{count} × {outcome.title}" for count, outcome in found)
    if parts.crossed(data):
        heads, lines = parts.matrix(data)
        body = [[title, *(f"**{count}** ({outcome.owner})" for count, outcome in cells)] for title, cells in lines]
        outcomes = [table(["", *(title for _, title in heads)], body),
                    f"Besides: {texts.markdown(others)}." if others else ""]
    else:
        body = [[texts.markdown(outcome.title), texts.markdown(outcome.owner), f"**{count}**"]
                for count, outcome in found]
        outcomes = [table(["Outcome", "Whose", "Questions"], body, text_columns=2) if body else ""]
    lost = ", ".join(f"{part.count} {part.name}" for part in parts.fate_parts(data.lost_stages))
    return ["## What to fix first", f"**{texts.markdown(data.fix_first)}**",
            *outcomes,
            f"Incomplete and wrong, by where the evidence was lost: {texts.markdown(lost)}." if lost else "",
            texts.markdown(data.rule)]


def _headline(data: ReportData) -> list[str]:
    made = ["## Headline numbers"]
    if data.needs_judge:
        made.append(f"RAGAS metrics: {texts.markdown(data.needs_judge)}")
    for group in rows.metric_groups(data):
        body = [[texts.code(row.name), _mean(row), row.interval, row.scored, row.undefined or "0", row.failed or "0",
                 row.ends, texts.markdown(row.labels), _why(row)] for row in group.rows]
        made += [f"### {group.title}", group.about, table(
            ["Metric", "Mean", "95% interval", "Scored / asked", "Undefined", "Failed", "Worst–best", "Labels",
             "Notes, why not scored"], body)]
    return [*made, "Worst–best stands where scores failed: the mean if every failed one had been the worst or best."]


def _mean(row: rows.MetricRow) -> str:
    return row.mean if row.has_mean else row.state


def _why(row: rows.MetricRow) -> str:
    reasons = ", ".join(f"{times} × {reason}" if times else reason for times, reason in row.reasons)
    return texts.markdown("; ".join(part for part in (row.note, reasons) if part))


def _judged(data: ReportData) -> list[str]:
    if not judged.about(data):
        return []
    made = ["## Judged labels", judged.about(data), "\n".join(f"- **{name.capitalize()}:** {texts.markdown(text)}"
                                                             for name, text in judged.facts(data))]
    body = [[texts.code(own.name), _mean(gold), gold.scored, _mean(own), own.interval, own.scored, own.failed or "0"]
            for gold, own in judged.beside_gold(data)]
    return [*made, table(["Metric", "By gold", "Scored / asked", "By the judge", "95% interval", "Scored / asked",
                          "Failed"], body) if body else ""]


def _corrected(data: ReportData) -> list[str]:
    made, lines, bridge = list[str](), corrected.corrected_rows(data), corrected.bridge_rows(data)
    if lines:
        body = [[texts.code(row.name), f"**{row.mean}**", row.interval, row.raw, row.labels] for row in lines]
        made += [corrected.ABOUT, table(["Metric", "Corrected mean", "95% interval", "Judge’s own", "Labels"], body)]
        made.append("\n".join(
            f"- {texts.code(row.name)}: {texts.markdown(fact)}" for row in lines for fact in row.facts))
    if bridge:
        body = [[texts.code(row.name), f"**{row.offset}**", row.interval, row.old, row.new, row.n,
                 f"{row.kappa} {row.kappa_of}"]
                for row in bridge]
        made += [f"{texts.markdown(corrected.bridge_title(data))}. {corrected.BRIDGE_ABOUT}",
                 table(["Metric", "Offset", "95% interval", "Old", "New", "Answers", "Kappa"], body)]
    return ["## Judge and people", *made] if made else []


def _ranks(data: ReportData) -> list[str]:
    made = _numbers(plots.figures(data).values())
    return [f"## Where the relevant {texts.markdown(data.unit)}s stand", *made] if made else []


def _numbers(figures: Iterable[plots.Figure]) -> list[str]:
    """The numbers of figures, each as a table beneath what it shows."""
    made: list[str] = []
    for figure in figures:
        body = [[texts.markdown(cell) for cell in line] for line in figure.body]
        made += [f"### {texts.markdown(figure.label)}", table(figure.head, body)]
    return made


def _steps(data: ReportData) -> list[str]:
    names, lines = rows.step_rows(data)
    if not lines:
        return []
    body = [[_step(data, line.step), line.reached, *map(_cell, line.cells)] for line in lines]
    made = ["## Step by step", "One search is one step, counted from 0; in brackets n scored / n that reached it.",
            table(["Step", "Reached by", *map(texts.code, names)], body)]
    if trajectory.any_thin(data):
        made.append(f"Few: {labels.THIN_RULE}.")
    spread = step_plots.step_figures(data).get(step_plots.SPREAD)
    made += _numbers([spread] if spread else [])
    turn_names, turns = trajectory.turn_rows(data)
    if turns:
        body = [[texts.markdown(line.step), line.reached, *map(_cell, line.cells)] for line in turns]
        made += ["### Turn by turn", "Searches that ran at once share a turn: what they found together, as a set.",
                 table(["Turn", "Questions", *map(texts.code, turn_names)], body)]
    return made


def _step(data: ReportData, step: str) -> str:
    return texts.markdown(step) + (" (few)" if trajectory.thin(data, step) else "")


def _behaviour(data: ReportData) -> list[str]:
    lines = [f"- **{fact.title}:** {texts.markdown(f'{fact.value} {fact.note}'.rstrip())}"
             for fact in trajectory.behaviour(data)]
    return ["## Retrieval behaviour", "\n".join(lines)] if lines else []


def _cell(row: rows.MetricRow | None) -> str:
    return numbers.NONE if row is None else f"{_mean(row)} ({row.scored})"


def _lost(data: ReportData) -> list[str]:
    found, title = trajectory.funnel(data), "## Where evidence was lost"
    if found is None:
        return []
    lines = zip(found.heads, zip(*(own.segments for own in found.slices), strict=True), strict=True)
    body = [[texts.markdown(head), *(f"{part.count} ({part.share})" if part else "0" for part in line)]
            for head, line in lines]
    body.append(["all", *(own.total for own in found.slices)])
    names = [texts.markdown(own.name) for own in found.slices]
    about = "By the deepest stage that each reached in any step; each column adds up to all of them."
    return [title, f"{about} {trajectory.unknown_contexts(data)}".rstrip(),
            table([texts.markdown(found.noun.capitalize()), *names], body)]


def _reranker(data: ReportData) -> list[str]:
    return _bars("## What the re-ranker did", "Questions", parts.rerank_parts(data))


def _bars(title: str, head: str, bars: Sequence[parts.Part]) -> list[str]:
    return [title, table([head, "Count"], [[texts.markdown(bar.name), bar.count] for bar in bars])] if bars else []


def _categories(data: ReportData) -> list[str]:
    names, lines = rows.category_rows(data)
    if not names:
        return []
    body = [[texts.markdown(line.name), *map(_cell, line.cells)] for line in lines]
    left = ", ".join(map(texts.code, rows.unscored_in_categories(data)))
    return ["## By category", table(["Category", *map(texts.code, names)], body),
            f"Scored in no category: {left}." if left else ""]


def _app(data: ReportData) -> list[str]:
    lines = [f"- **{title}:** " + ", ".join(f"{name} {text}".strip() for name, text in made)
             for title, made in parts.app_facts(data)]
    return ["## The app: time, tokens, cost", "\n".join(lines)]


def _judge(data: ReportData) -> list[str]:
    ledger, lines = parts.ledger(data), parts.ledger_lines(data)
    made = []
    if ledger:
        made.append(table(["Ledger", ""], [[texts.markdown(name), texts.markdown(text)] for name, text in ledger]))
        made += [f"**{head}:** {texts.markdown(text)}" for head, text in lines]
    if data.agreement:
        body = [[texts.markdown(value if isinstance(value, str) else numbers.number(value)) for value in line.values()]
                for line in data.agreement]
        made += ["The keyless judge counts words; it is not faithfulness. Its measured agreement with labels (AUROC, "
                  "0.5 is chance):", table([texts.markdown(head) for head in data.agreement[0]], body)]
    return ["## The judge", *made] if made else []


def _questions(data: ReportData) -> list[str]:
    if not data.worst:
        return []
    cut = len(data.worst) > _QUESTIONS
    more = [f"The page shows {len(data.worst)}, this text the first {_QUESTIONS}."] if cut else []
    return ["## Worst questions", texts.markdown(data.worst_rule), *more,
            *(_question(question) for question in data.worst[:_QUESTIONS])]


def _question(question: QuestionView) -> str:
    name = texts.code(question.id) + (f", repeat {question.repeat}" if question.repeat else "")
    outcome = labels.outcome(question.outcome)
    facts = [labels.STATES.get(question.label_state, question.label_state), question.category or "no category",
             outcome.title]
    lines = [f"### {name}", "", f"**Question:** {_short(question.text)}", "", f"- {texts.markdown(' · '.join(facts))}"]
    if question.error:
        lines.append(f"- **The app failed:** {_short(question.error)}")
    answer = "none" if question.answer is None else _short(question.answer)
    references = " / ".join(_short(reference) for reference in question.references)
    lines += [f"- **Answer:** {answer}", f"- **Reference:** {references or 'none'}"]
    lines += [f"- **Check:** {texts.markdown(flag)}" for flag in question.flags]
    lines += [f"- **Warning:** {texts.markdown(warning)}" for warning in question.warnings]
    for step in question.steps:
        found = _ids(step.lists[0]) if step.lists else "nothing"
        lines.append(f"- **Step {step.index}** ({texts.markdown(trajectory.searches_of_turn(question, step))}): "
                     f"“{_short(step.query)}” → {found}{_brought(step)}")
    if question.outcome != "not_asked":
        known = f" {_ids(question.context)}" if question.context is not None else ""
        missing = ", ".join(map(texts.code, trajectory.left_out(question)))
        lines.append(f"- **Context:** {texts.markdown(trajectory.context_words(question))}{known}"
                     + (f"; found by a step, missing here: {missing}" if missing else ""))
    lines += [f"- **Statement {number} of the reference:** {_short(text)}"
              for number, text in enumerate(question.statements, 1)]
    if question.fates:
        fates = ", ".join(f"{texts.code(id_)} {texts.markdown(labels.fate(fate))}"
                          for id_, fate in question.fates.items())
        lines.append(f"- **Gold:** {fates}")
    scores = [f"{texts.code(score.metric)} {numbers.number(score.value)}" if score.status == "scored" else
              f"{texts.code(score.metric)} {texts.markdown(_state(score))}"
              for score in question.scores if score.step == "final"]
    return "\n".join([*lines, f"- **Scores:** {', '.join(scores)}" if scores else ""]).rstrip()


def _brought(step: StepView) -> str:
    """What a step found first, what it lost and where, the recall after it, and the marks of its query."""
    told = [f"new gold {', '.join(map(texts.code, step.new_gold))}"] if step.new_gold else []
    told += [f"lost at the {texts.markdown(stage)} {', '.join(map(texts.code, ids))}"
             for stage, ids in trajectory.lost_at(step)]
    told += [texts.markdown(words) for words, *_ in trajectory.marks(step)]
    told += [f"{numbers.percent(step.recall)} of the gold so far"] if step.recall is not None else []
    return "".join(f"; {part}" for part in told)


def _state(score: ScoreView) -> str:
    return ": ".join(part for part in labels.state(score.status, score.reason) if part)


def _ids(found: ListView) -> str:
    """The ids of a list, gold in bold."""
    if found.error:
        return f"failed: {texts.markdown(found.error)}"
    return ", ".join(f"**{texts.code(p.id)}**" if p.gold else texts.code(p.id) for p in found.passages) \
        or "nothing came back"


def _short(text: str) -> str:
    return texts.markdown(texts.shortened(text, _ANSWER))


def _failures(data: ReportData) -> list[str]:
    if not data.failures:
        return []
    body = [[texts.code(id_), texts.code(what), texts.markdown(reason)] for id_, what, reason in data.failures]
    return ["## Failures", table(["Question", "What failed", "Why"], body, text_columns=3)]


def _notes(data: ReportData) -> list[str]:
    return ["## Notes", "\n".join(f"- {texts.markdown(note)}" for note in data.notes)] if data.notes else []


def _definitions(data: ReportData) -> list[str]:
    made = []
    for title, about, found in definitions(data):
        lines = [f"- {', '.join(map(texts.code, names))}: {texts.markdown(rows.definition(info))}"
                 for names, info in found]
        made += [f"### {title}", about, "\n".join(lines)]
    guide = "\n".join(f"- **{texts.markdown(name)}**: {texts.markdown(text)}." for name, text in labels.GUIDE)
    return ["## What the numbers mean", *made, "### Which number to read when", guide] if made else []
