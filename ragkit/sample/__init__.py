"""The built-in sample: the handbook of an invented library that lends by boat, with questions and graded labels.

The folder is a dataset in BEIR's form: corpus.jsonl (67 passages), queries.jsonl (30 questions with reference answers,
categories and four declared unanswerable) and qrels.tsv. Grades: 3 holds the answer, 2 holds a necessary part of it,
1 is related and useful. The multi-hop questions name their two passages in metadata "hops"; the second one shares no
content word with its question, so that it is found through the first one or not at all.

Every text was written for this project; lake, boats and people are invented and mean nobody. Licence: Apache-2.0,
as the rest of the project. Nothing is computed or loaded here: reading the folder is the readers' work.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

__all__ = ["sample_folder"]


def sample_folder() -> Path:
    """The folder of the sample's three files, inside the installed package.

    >>> sorted(path.name for path in sample_folder().iterdir())
    ['corpus.jsonl', 'qrels.tsv', 'queries.jsonl']
    """
    return Path(str(files(__name__))) / "floating_library"
