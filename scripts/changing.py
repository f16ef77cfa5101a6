"""Every version of a module in which one thing is changed."""

from __future__ import annotations

import ast
import copy
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq, ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "argmin": "argmax", "ceil": "floor", "floor": "ceil"}
SILENT = {"strict", "dtype", "copy", "kind", "frozen", "eq", "match", "side"}
"""Arguments whose change is not worth a test: types, and redundant safeguards."""

EFFORT = re.compile(r"MOST_\w+|ROUNDS")
"""Names of limits of effort: a slightly larger or smaller one is as good."""

TOLERANCE = 1e-5
"""Floats below this are tolerances: one half larger again is as good."""


def changes_of(source: str) -> Iterator[tuple[str, int, str]]:
    """Yield the name of each change, its line, and the changed module.

    The name has the function and the change, ``Rule.satisfied: a >= b -> a > b``, and no line number, so that it stays
    the same while other lines move.
    """
    tree = ast.parse(source)
    seen = Counter[str]()
    for where, node, changed in _changes(tree):
        name = f"{where}: {_text(node)} -> {_text(changed)}"
        seen[name] += 1
        label = name if seen[name] == 1 else f"{name} ({seen[name]})"
        yield label, getattr(node, "lineno", 0), _replaced(tree, node, changed)


def _changes(tree: ast.Module) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """Yield the function, the node and the changed node of every possible change."""

    def walk(node: ast.AST, where: str) -> Iterator[tuple[str, ast.AST, ast.AST]]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            where = f"{where}.{node.name}".lstrip(".")
            if node.name == "__repr__":
                return
        for changed in _versions(node):
            yield where or "module", node, changed
        for child in _children(node):
            yield from walk(child, where)

    return walk(tree, "")


def _children(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node that run: no annotations, decorators, docstrings, messages or limits of effort."""
    if isinstance(node, ast.Assign) and _is_effort(node.targets[0]):
        return []
    if isinstance(node, ast.Raise | ast.ImportFrom | ast.Import | ast.JoinedStr):
        return []
    if isinstance(node, ast.FunctionDef):
        return [*node.args.defaults, *(each for each in node.args.kw_defaults if each), *_body(node.body)]
    if isinstance(node, ast.ClassDef | ast.Module):
        return list(_body(node.body))
    if isinstance(node, ast.AnnAssign):
        return [node.value] if node.value else []
    if isinstance(node, ast.keyword) and node.arg in SILENT:
        return []
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return []
    if isinstance(node, ast.Assert):
        return []
    return list(ast.iter_child_nodes(node))


def _body(statements: list[ast.stmt]) -> list[ast.stmt]:
    return [each for each in statements if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]


def _versions(node: ast.AST) -> list[ast.AST]:
    """Return the changed versions of a node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        if _is_effort(node.comparators[0]):
            return [ast.Compare(node.left, [COMPARED[type(node.ops[0])][-1]()], node.comparators)]
        if isinstance(node.ops[0], ast.NotEq) and isinstance(getattr(node.comparators[0], "value", None), str):
            return [ast.Compare(node.left, [ast.Eq()], node.comparators)]  # texts have no order that matters
        return [ast.Compare(node.left, [other()], node.comparators) for other in COMPARED[type(node.ops[0])]]
    if isinstance(node, ast.BoolOp):
        return [ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATED and not _is_text(node):
        return [ast.BinOp(node.left, OPERATED[type(node.op)](), node.right)]
    if isinstance(node, ast.AugAssign) and type(node.op) in OPERATED:
        return [ast.AugAssign(node.target, OPERATED[type(node.op)](), node.value)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        return [node.operand]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [ast.Constant(not node.value)]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        if isinstance(node.value, float) and 0 < node.value < TOLERANCE:
            return []
        return [ast.Constant(node.value + 1 if isinstance(node.value, int) or not node.value else node.value * 1.5)]
    if isinstance(node, ast.Raise):
        return [ast.Pass()]
    return _other_call(node)


def _is_effort(node: ast.AST) -> bool:
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return EFFORT.fullmatch(name) is not None


def _other_call(node: ast.AST) -> list[ast.AST]:
    if not isinstance(node, ast.Call):
        return []
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name not in CALLED:
        return []
    changed = copy.deepcopy(node)
    if isinstance(changed.func, ast.Name):
        changed.func.id = CALLED[name]
    elif isinstance(changed.func, ast.Attribute):
        changed.func.attr = CALLED[name]
    return [changed]


def _is_text(node: ast.BinOp) -> bool:
    """Return whether a sum is one of texts or types, which another operator only breaks."""
    parts = [each for each in ast.walk(node) if isinstance(each, ast.JoinedStr | ast.Constant)]
    return any(isinstance(each, ast.JoinedStr) or isinstance(each.value, str | None) for each in parts)


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else f"{text[:60]} ... {text[-25:]}"


def _replaced(tree: ast.Module, node: ast.AST, changed: ast.AST) -> str:
    class Replace(ast.NodeTransformer):
        def visit(self, each: ast.AST) -> Any:
            return ast.copy_location(copy.deepcopy(changed), each) if each is node else self.generic_visit(each)

    # Transformers work in place, so that the nodes of a copy are matched by their place in the walk.
    position = next(number for number, each in enumerate(ast.walk(tree)) if each is node)
    whole = copy.deepcopy(tree)
    node = next(each for number, each in enumerate(ast.walk(whole)) if number == position)
    return ast.unparse(ast.fix_missing_locations(Replace().visit(whole)))
