"""Writes docs/python-api.md: what the package has, from its sources and docstrings alone.

Run it after a change of the package: python3 python/tools/reference.py. A test holds the page to the sources.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/python-api.md"
PACKAGE = ROOT / "python/tacit"

HEAD = """# Python: reference

Made of the docstrings by `python3 python/tools/reference.py`; a test holds it to them. By example:
[python.md](python.md).
"""


def page() -> str:
    """The page."""
    init = ast.parse((PACKAGE / "__init__.py").read_text())
    modules = {
        alias.name: node.module
        for node in ast.walk(init)
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "_tacit"
        for alias in node.names
    }
    found: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": []}
    for name in sorted(modules):
        node = _definition(_parsed(modules[name]), name)
        if isinstance(node, ast.ClassDef):
            found["Errors" if name.endswith("Error") else "Classes"] += _class(node)
        elif isinstance(node, ast.FunctionDef):
            found["Functions"] += _function(node, f"tacit.{name}", "###")
    for node in _parsed("generate").body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found["Functions"] += _function(node, f"tacit.generate.{node.name}", "###")
    lines = [HEAD]
    for title, own in found.items():
        lines += [f"## {title}\n", *own]
    return "\n".join(lines).rstrip() + "\n"


def _parsed(module: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{module}.py").read_text())


def _definition(module: ast.Module, name: str) -> ast.stmt | None:
    named = (ast.ClassDef, ast.FunctionDef)
    return next((node for node in module.body if isinstance(node, named) and node.name == name), None)


def _text(doc: str | None) -> list[str]:
    """A docstring as Markdown: double backticks are single ones there."""
    return [f"{doc.replace('``', '`')}\n"] if doc else []


def _function(node: ast.FunctionDef, name: str, mark: str) -> list[str]:
    arguments = ast.unparse(node.args).removeprefix("self, ").removeprefix("self")
    arguments = "" if arguments == "/" else arguments
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    decorators = {ast.unparse(one) for one in node.decorator_list}
    if "property" in decorators:
        return [f"{mark} `{name}`: `{returns.removeprefix(' -> ')}`\n", *_text(ast.get_docstring(node))]
    signature = _wrapped(name.split(".")[-1], arguments, returns)
    return [f"{mark} `{name}`\n", f"```python\n{signature}\n```\n", *_text(ast.get_docstring(node))]


def _wrapped(name: str, arguments: str, returns: str) -> str:
    """A signature, with an argument a line where it is long."""
    line = f"{name}({arguments}){returns}"
    if len(line) <= 100:
        return line
    parts, depth, start, quote = [], 0, 0, ""
    for at, letter in enumerate(arguments):
        if letter in "\"'" and quote in ("", letter):
            quote = "" if quote else letter
        if quote:
            continue
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(arguments[start:at].strip())
            start = at + 1
    parts.append(arguments[start:].strip())
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def _class(node: ast.ClassDef) -> list[str]:
    name = f"tacit.{node.name}"
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    lines = [f"### `{name}`{f': `{bases}`' if bases else ''}\n", *_text(ast.get_docstring(node))]
    fields = []
    for this, following in zip(node.body, [*node.body[1:], None]):
        if isinstance(this, ast.AnnAssign) and isinstance(this.target, ast.Name):
            own = this.target.id
            doc = following.value if isinstance(following, ast.Expr) else None
            told = doc.value if isinstance(doc, ast.Constant) and isinstance(doc.value, str) else ""
            if not own.startswith("_"):
                default = f" = {ast.unparse(this.value)}" if this.value else ""
                line = f"* `{own}: {ast.unparse(this.annotation)}{default}`"
                fields.append(f"{line}: {' '.join(told.replace('``', '`').split())}" if told else line)
    lines += ["\n".join(fields) + "\n"] if fields else []
    for this in node.body:
        if not isinstance(this, ast.FunctionDef):
            continue
        if this.name == "__init__":
            arguments = ast.unparse(this.args).removeprefix("self, ").removeprefix("self")
            signature = _wrapped(node.name, arguments, "")
            lines += [f"```python\n{signature}\n```\n", *_text(ast.get_docstring(this))]
        elif not this.name.startswith("_"):
            lines += _function(this, f"{node.name}.{this.name}", "####")
    return lines


if __name__ == "__main__":
    PAGE.write_text(page())
