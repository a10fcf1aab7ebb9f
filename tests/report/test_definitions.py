"""The page of definitions is the registry's: run this file as a script to write it again."""

from pathlib import Path

from ragkit.metrics.registry import definitions
from ragkit.report.definitions import metrics_page

PAGE = Path(__file__).parents[2] / "ragkit" / "docs" / "metrics.md"


def test_the_page_is_what_the_registry_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == metrics_page()


def test_every_metric_stands_on_it_once() -> None:
    page = metrics_page()
    for definition in definitions():
        names = (f"**`{definition.name}{cut}`**" for cut in ("", "@k", "[@k]"))
        assert sum(page.count(name) for name in names) == 1


if __name__ == "__main__":
    PAGE.write_text(metrics_page(), encoding="utf-8")
