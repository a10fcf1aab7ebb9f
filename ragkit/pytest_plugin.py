"""Rules of `ragkit gate` as tests: a mark that makes one test a rule, a fixture that checks rules inside a test.

pytest loads this file in every suite where ragkit is installed. It imports nothing of ragkit until a rule is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from ragkit.comparison.gate import Gate
    from ragkit.comparison.sides import Side

MARK = "ragkit_gate"
_RULE = "ragkit_rule"
_UNDECIDED = ("fail", "skip", "xfail", "pass", "warn")
_MARK_ARGUMENTS = ("run", "targets", "baseline", "margin", "metrics", "min_scored", "undecided", "frozen", "labels")

_sides_key = pytest.StashKey[dict[str, "Side"]]()

Check = Callable[..., "Gate"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options; each has a setting of the same name in pytest's ini file, with _ for -."""
    group = parser.getgroup("ragkit", "rules of ragkit gate as tests")
    for name, text in (("run", "RUN_DIR that rules are checked on, unless a test names another"),
                       ("baseline", "RUN_DIR that the run must not be worse than"),
                       ("margin", "how much worse is still the same: 0.02, or METRIC=0.05; several with commas (0.02)"),
                       ("min-scored", "least share of the questions that must be scored (0.9)"),
                       ("undecided", f"what an undecided rule is: {', '.join(_UNDECIDED)} (fail)"),
                       ("frozen", "yes: what nobody judged is a hole with bounds")):
        key = f"ragkit_{name.replace('-', '_')}"
        more: dict[str, Any] = {"action": "store_const", "const": "yes"} if name == "frozen" else {}
        group.addoption(f"--ragkit-{name}", dest=key, default=None, help=text, **more)
        parser.addini(key, text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}(*rules, run=None, targets=(), baseline=None, margin=None, "
                            "metrics=None, min_scored=0.9, undecided='fail', frozen=False, labels=None): each rule, "
                            "such as \"mrr>=0.7\", and each metric held against the baseline becomes a test of its "
                            "own, run before the test's own body")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A marked test becomes one a rule, and one a metric of the baseline."""
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None:
        return
    unknown = sorted(set(mark.kwargs) - set(_MARK_ARGUMENTS))
    if unknown:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: {MARK}: unknown argument {unknown[0]}; expected "
                                f"{', '.join(_MARK_ARGUMENTS)}")
    rules = [*map(str, mark.args), *_targets(metafunc.definition.nodeid, _listed(mark.kwargs.get("targets")))]
    checks: list[tuple[str, dict[str, Any]]] = [(rule, {"rules": [rule]}) for rule in rules]
    if mark.kwargs.get("baseline") or _option(metafunc.config, "baseline"):
        named = _listed(mark.kwargs.get("metrics"))
        checks += [(f"{metric} against the baseline", {"metrics": [metric]}) for metric in named] or \
            [("against the baseline", {"metrics_of": rules})]
    if not checks:
        raise pytest.UsageError(f'{metafunc.definition.nodeid}: {MARK}: expected rules, such as "mrr>=0.7", targets or '
                                "a baseline")
    if _RULE not in metafunc.fixturenames:
        metafunc.fixturenames.append(_RULE)
    metafunc.parametrize(_RULE, [check for _, check in checks], ids=[name for name, _ in checks], indirect=True)


def _targets(where: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    from ragkit.comparison.rules import TARGETS

    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        raise pytest.UsageError(f"{where}: {MARK}: targets: expected {', '.join(TARGETS)}, got {unknown[0]}")
    return [rule for name in names for rule in TARGETS[name]]


@pytest.fixture
def ragkit_rule(request: pytest.FixtureRequest) -> Any:
    """What a marked test checks: {"rules": […]}, or the metrics that are held against the baseline."""
    return request.param


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """The rule of a marked test is checked in its call, so that one that fails is a failure, and no error."""
    mark = item.get_closest_marker(MARK)
    if mark is not None and hasattr(item, "callspec"):
        shared = {"run", "min_scored", "undecided", "frozen", "labels"}
        asked: dict[str, Any] = dict(item.callspec.params[_RULE])
        rules = asked.pop("rules", ())
        if rules:
            asked["baseline"] = ""
        else:
            shared |= {"baseline", "margin"}
        _check(item, rules, **{name: value for name, value in mark.kwargs.items() if name in shared}, **asked)
    return (yield)


@pytest.fixture
def ragkit_gate(request: pytest.FixtureRequest) -> Check:
    """A function that checks rules in a test: ragkit_gate("mrr>=0.7", run="runs/now", baseline=…, margin=0.05).

    Its arguments are those of the mark; what is not given comes from the options. It fails the test where a rule
    fails, and returns what was found.
    """
    def check(*rules: str, **arguments: Any) -> Gate:
        unknown = sorted(set(arguments) - set(_MARK_ARGUMENTS))
        if unknown:
            raise TypeError(f"ragkit_gate: unknown argument {unknown[0]}; expected {', '.join(_MARK_ARGUMENTS)}")
        return _check(request.node, rules, **arguments)

    return check


def _check(item: pytest.Item, rules: Sequence[str], **given: Any) -> Gate:
    """Check rules, and fail, skip or xfail the test as they come out; a rule that cannot be checked fails it."""
    from ragkit.errors import RagkitError

    __tracebackhide__ = True
    undecided = given.get("undecided") or _option(item.config, "undecided") or "fail"
    if undecided not in _UNDECIDED:
        _fail(f"undecided: expected one of {', '.join(_UNDECIDED)}, got {undecided!r}")
    found: Gate | str
    try:
        found = _gate(item.config, rules, given)
    except (RagkitError, ValueError) as error:
        found = str(error)
    if isinstance(found, str):  # outside of the except, which would show the error twice
        _fail(found)
    for check in found.checks:
        name = check.get("rule") or f"{check['metric']} against the baseline"
        item.user_properties.append((f"ragkit {name}", _figure(check)))
    if found.outcome != "pass":
        _leave(found, "fail" if found.outcome == "fail" else undecided)
    return found


def _gate(config: pytest.Config, rules: Sequence[str], given: dict[str, Any]) -> Gate:
    """What is given in a test goes before the options; a baseline of "" is none."""
    from ragkit.comparison.gate import MIN_SCORED, Settings, gate
    from ragkit.comparison.gate_baseline import parse_margins
    from ragkit.comparison.rules import parse_rule
    from ragkit.errors import DataError

    def value(name: str) -> Any:
        return given[name] if given.get(name) is not None else _option(config, name)

    run, base, share = value("run"), value("baseline"), value("min_scored")
    if not run:
        raise DataError("no run folder: expected run=… in the test, or --ragkit-run RUN_DIR")
    settings = Settings(MIN_SCORED if share is None else float(share), frozen=value("frozen") in (True, "yes"),
                        labels=given.get("labels"))
    if not base:
        return gate(_side(config, run), rules, targets=_listed(given.get("targets")), settings=settings)
    metrics = given.get("metrics") or [parse_rule(rule).metric.name for rule in given.get("metrics_of", ())] or None
    return gate(_side(config, run), rules, targets=_listed(given.get("targets")), baseline=_side(config, base),
                margins=parse_margins(_listed(value("margin"))), metrics=metrics, settings=settings)


def _leave(found: Gate, how: str) -> None:
    """End the test as an outcome that is no pass says."""
    from ragkit.comparison.gate_words import gate_lines

    __tracebackhide__ = True
    told = "\n".join(gate_lines(found.data))
    if how == "skip":
        pytest.skip(told)
    if how == "xfail":
        pytest.xfail(told)
    if how == "fail":
        _fail(told)
    if how == "warn":
        import warnings

        warnings.warn(pytest.PytestWarning(told), stacklevel=2)


def _fail(told: str) -> NoReturn:
    __tracebackhide__ = True
    pytest.fail(told, pytrace=False)


def _figure(check: dict[str, Any]) -> str:
    from ragkit.comparison.gate_words import figures

    return f"{check['outcome']}: {figures(check)}"


def _side(config: pytest.Config, path: str | Path) -> Side:
    """A run folder, read once a process; a path is taken from where pytest was started, else from its root folder."""
    from ragkit.comparison.sides import side_of_folder

    known = config.stash.setdefault(_sides_key, {})
    folder = Path(path)
    if not folder.is_absolute() and not folder.exists() and (config.rootpath / folder).exists():
        folder = config.rootpath / folder
    key = str(folder.resolve())
    if key not in known:
        known[key] = side_of_folder(folder)
    return known[key]


def _option(config: pytest.Config, name: str) -> str | None:
    """What the command line says, else the ini file."""
    given: str | None = config.getoption(f"ragkit_{name}") or config.getini(f"ragkit_{name}") or None
    return given


def _listed(value: Any) -> list[str]:
    """One text (several with commas), a number, or a list of them."""
    if value is None:
        return []
    if isinstance(value, (str, int, float)):
        return [part.strip() for part in str(value).split(",") if part.strip()]
    return [str(part) for part in value]
