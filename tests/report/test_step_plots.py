"""The plots of steps: a panel a metric, its interval and its hollow points; the spread of what was gathered."""

from __future__ import annotations

from dataclasses import replace

from ragkit.report.html import render_html, sections
from ragkit.report.plots import figures
from ragkit.report.step_plots import recall_spread, step_figures, step_panels
from tests.support.report_data import report_data
from tests.support.trajectory_data import figures as metric_figures


def _with(per_step, **more):
    return report_data(summary={**report_data().summary, "per_step": per_step, **more})


def _points(figure):
    return figure.spec["data"][-1]


def test_figures_are_valid_plotly_and_draw_no_markup_of_the_data():
    import plotly.graph_objects as go

    hostile = _with({"<b>%{x}": {"recall": metric_figures(0.5, 3)}, "1": {"recall": metric_figures(None, 0)}})
    hostile = replace(hostile, step_reach={"<b>%{x}": 3}, hit_curve={"hit@1": 0.0}, rank_histogram={"missed": 1})
    for data, panels in ((report_data(), 3), (hostile, 2)):
        made = figures(data) | step_figures(data)
        assert len(made) == 2 + panels
        for figure in made.values():
            go.Figure(dict(figure.spec))  # raises for any name that plotly does not know
            written = "".join(figure.spec["layout"]["xaxis"].get("ticktext", ()))
            assert "<b>" not in written and "%{" not in written


def test_a_panel_has_the_mean_its_interval_and_how_many_reached_each_step():
    panels = step_panels(report_data())
    assert [figure.label for figure in panels] == ["recall", "ndcg@10"]
    band, points = panels[0].spec["data"]
    assert points["x"] == ["0", "1", "2"] and points["y"] == [0.521, 0.382, 0.25]
    assert band["x"] == ["0", "1", "2", "2", "1", "0"] and band["y"][0] > 0.521 > band["y"][-1]
    assert panels[0].spec["layout"]["xaxis"]["ticktext"] == ["0<br>24", "1<br>16", "2<br>5"]
    assert panels[0].body[1] == ("1", "16", "0.382", "0.212–0.535", "16 / 16")


def test_a_step_that_few_reached_is_hollow():
    assert _points(step_panels(report_data())[0])["marker"]["symbol"] == ["circle", "circle", "circle-open"]
    many = replace(report_data(), step_reach={"0": 400, "1": 40, "2": 39})
    assert _points(step_panels(many)[0])["marker"]["symbol"] == ["circle", "circle", "circle-open"]
    assert step_panels(many)[0].body[2][0] == "2, few reached it"


def test_an_undefined_step_leaves_a_hole_in_line_and_band():
    data = _with({"10": {"recall": metric_figures(0.5, 3)}, "2": {"recall": metric_figures(0.3, 3)},
                  "3": {"recall": metric_figures(None, 0)}, "11": {"recall": metric_figures(0.4, 3)}})
    before, after, points = step_panels(data)[0].spec["data"]
    assert points["x"] == ["2", "3", "10", "11"] and points["y"] == [0.3, None, 0.5, 0.4]
    assert before["x"] == ["2", "2"] and before["line"]["width"] > 0  # a step by itself has a bar
    assert after["x"] == ["10", "11", "11", "10"] and after["line"]["width"] == 0


def test_metrics_of_equal_means_share_a_panel():
    data = _with({str(step): {
        "recall": metric_figures(0.5, 3), "ndcg@10": metric_figures(0.1 + 0.2 if step else 0.7, 3),
        "ndcg@5": metric_figures(0.3 if step else 0.7, 3), "ndcg": metric_figures(None, 0)} for step in (0, 1)})
    assert [(figure.label, _points(figure)["y"]) for figure in step_panels(data)] == [
        ("recall", [0.5, 0.5]), ("ndcg@5 = ndcg@10", [0.7, 0.3])]


def test_what_was_gathered_is_shown_with_its_spread():
    figure = recall_spread(report_data())
    assert figure is not None and figure.label.endswith("over 24 trajectories")
    wide, narrow, median, mean = figure.spec["data"]
    assert wide["y"] == [1.0, 1.0, 1.0, 0.333, 0.0, 0.0] and narrow["y"] == [0.5, 1.0, 1.0, 0.5, 0.5, 0.5]
    assert median["y"] == [0.5, 0.5, 1.0] and mean["y"] == [0.521, 0.646, 0.722]
    assert figure.body[2] == ("2", "0.722", "0.333", "0.500", "1.000", "1.000", "1.000", "24")


def test_a_summary_without_the_spread_has_a_panel_for_it():
    names = list(step_figures(report_data(summary={**report_data().summary, "recall_spread": {}})))
    assert names == ["step-recall", "step-ndcg@10", "step-cumulative_recall"]


def test_many_steps_do_not_crowd_the_axis():
    data = _with({str(step): {"recall": metric_figures(0.5, 30)} for step in range(40)})
    axis = step_panels(data)[0].spec["layout"]["xaxis"]
    assert len(axis["tickvals"]) == 8 and axis["categoryarray"] == [str(step) for step in range(40)]


def test_an_app_that_searches_once_has_no_plots_of_steps():
    data = _with({"0": {"recall": metric_figures(0.5, 30), "cumulative_recall": metric_figures(0.5, 30)}})
    assert step_figures(data) == {} and "steps" in [name for name, _ in sections(data)]
    page = render_html(data)
    assert "Each step by itself" not in page and "All steps together" not in page
