"""What the layout promises: heavy packages in one place each and only when asked for, short files, few parameters."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ragkit"
HOMES = {  # package -> the only files that may import it
    "ragas": {"judge/ragas_scores.py"},
    "chromadb": {"pipeline/chroma.py"},
    "sentence_transformers": {"models/local.py"},
    "polars": set(),
    "plotly": {"report/page.py"},
    "mlflow": {"comparison/exports_mlflow.py"},
    "langgraph": {"pipeline/agent.py"},
    "langchain": {"models/chat.py", "models/embeddings.py", "pipeline/agent.py"},
    "langchain_core": {"recording/langchain.py", "models/chat.py", "pipeline/generate.py", "pipeline/agent.py"},
    "torch": {"pipeline/rerank.py", "models/local.py"},
}
LONGEST, WIDEST = 300, 8


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imports(tree: ast.AST) -> list[str]:
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return [name.split(".")[0] for name in names]


def test_heavy_packages_are_imported_in_one_place_each() -> None:
    wrong = [
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in sources()
        for name in imports(ast.parse(path.read_text(encoding="utf-8")))
        if name in HOMES and path.relative_to(PACKAGE).as_posix() not in HOMES[name]
    ]
    assert wrong == []


def test_heavy_packages_are_imported_only_when_asked_for() -> None:
    wrong = []
    for path in sources():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        at_the_top = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
        wrong += [(path.name, name) for name in imports(at_the_top) if name in HOMES]
    assert wrong == []


def test_files_are_short_and_open_with_what_lives_in_them() -> None:
    for path in sources():
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= LONGEST, path
        assert not text.strip() or ast.get_docstring(ast.parse(text)), path


def test_calls_have_few_parameters() -> None:
    wide = []
    for path in sources():
        if "cli" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = len([argument for argument in named if argument.arg not in ("self", "cls")])
                if count > WIDEST:
                    wide.append((path.name, node.name, count))
    assert wide == []
