"""Single-step mutations of an answer: each is a program that a learner might have written by mistake.

A mutation replaces one node of the syntax tree. It is named by what it replaces, "grad.detach() => grad", so that a
reviewed survivor can be recognised in every answer that holds the same code.
"""

import ast
import copy
from collections.abc import Iterator
from typing import NamedTuple

Replacement = ast.AST | list[ast.stmt] | None  # None drops a statement


class Mutant(NamedTuple):
    """A mutated program.

    Attributes
    ----------
    source : str
        The whole cell.
    change : str
        "old => new", each in one line.
    """

    source: str
    change: str


_COMPARE = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt,),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt,),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
# Another norm, another reduction, the hook of another kind, only the nearest modules.
_NAMES = {
    "mean": ("sum",),
    "sum": ("mean",),
    "max": ("min",),
    "min": ("max",),
    "amax": ("amin",),
    "argmax": ("argmin",),
    "all": ("any",),
    "any": ("all",),
    "isnan": ("isfinite", "isinf"),
    "isfinite": ("isnan",),
    "abs": ("square", "relu"),
    "relu": ("abs",),
    "sqrt": ("square",),
    "append": ("extend",),
    "modules": ("children",),
    "named_modules": ("named_children",),
    "children": ("modules",),
    "named_children": ("named_modules",),
    "eval": ("train",),
    "train": ("eval",),
    "no_grad": ("enable_grad",),
    "register_forward_hook": ("register_forward_pre_hook",),
    "register_forward_pre_hook": ("register_forward_hook",),
    "register_full_backward_hook": ("register_full_backward_pre_hook", "register_backward_hook"),
    "register_full_backward_pre_hook": ("register_full_backward_hook",),
    "register_post_accumulate_grad_hook": ("register_hook",),
}
# Methods that can be left out: `x.detach()` becomes `x`.
_METHODS = frozenset(
    "detach clone item abs copy mean sum norm max min squeeze unsqueeze view reshape flatten float tolist t "
    "requires_grad_ retain_grad named_modules items values keys sort square sqrt cpu numpy clamp relu".split()
)
_WRAPPERS = frozenset(
    "list tuple dict set sorted reversed abs float int bool str sum max min partial enumerate suppress".split()
)


class Step(NamedTuple):
    """A node of a program and what may stand in its place."""

    tree: ast.Module
    path: "Path"
    node: ast.AST
    replacement: Replacement

    def taken(self) -> Mutant | None:
        """Return the mutant, or None if it is no program."""
        mutated = _replace(self.tree, self.path, self.replacement)
        try:
            text = ast.unparse(mutated)
            compile(text, "<mutant>", "exec")
        except (SyntaxError, ValueError, TypeError, AttributeError):
            return None
        return Mutant(text, f"{_line(self.node)} => {_line(self.replacement)}")


def steps(source: str) -> list[Step]:
    """Return all single steps away from a cell, several of which may lead to the same program."""
    tree = ast.parse(source)
    return [
        Step(tree, path, node, replacement)
        for path, node in _nodes(tree)
        for replacement in _replacements(node)
    ]


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a cell, each program once. Imports and docstrings stay as they are."""
    seen = {ast.unparse(ast.parse(source))}
    for step in steps(source):
        mutant = step.taken()
        if mutant and mutant.source not in seen:
            seen.add(mutant.source)
            yield mutant


Path = tuple[tuple[str, int | None], ...]  # fields, each with a place if it is a list


def _nodes(node: ast.AST, path: Path = ()) -> Iterator[tuple[Path, ast.AST]]:
    for field, value in ast.iter_fields(node):
        for n, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.Import | ast.ImportFrom) or not isinstance(child, ast.AST):
                continue
            docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if docstring or field in ("annotation", "returns", "decorator_list"):
                continue
            here = (*path, (field, n))
            yield here, child
            yield from _nodes(child, here)


def _replace(tree: ast.Module, path: Path, replacement: Replacement) -> ast.Module:
    """Return the tree with another node at the end of a path; all that lies beside the path is shared."""
    root = changed = copy.copy(tree)
    for field, n in path[:-1]:
        value = getattr(changed, field)
        child = copy.copy(value if n is None else value[n])
        setattr(changed, field, child if n is None else [*value[:n], child, *value[n + 1 :]])
        changed = child
    new = replacement if isinstance(replacement, list) else [replacement] if replacement else []
    for node in new:
        ast.fix_missing_locations(node)  # `unparse` asks for lines
    field, n = path[-1]
    value = getattr(changed, field)
    if n is None:
        setattr(changed, field, replacement)
    else:
        rest = [*value[:n], *new, *value[n + 1 :]]
        setattr(changed, field, rest or ([ast.Pass()] if field == "body" else []))
    return root


def _replacements(node: ast.AST) -> Iterator[Replacement]:
    """Yield what may stand in place of a node."""
    match node:
        case ast.FunctionDef() | ast.Lambda():
            yield from _of_function(node)
        case ast.ClassDef() | ast.Pass():
            pass
        case ast.stmt():
            yield from _of_statement(node)
        case ast.Call():
            yield from _of_call(node)
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp() | ast.BinOp() | ast.Constant():
            yield from _of_operation(node)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield from (ast.IfExp(test, orelse, body), body, orelse)
        case ast.Subscript(value=value, ctx=ast.Load()):
            yield value
        case ast.comprehension(target=target, iter=iterated, ifs=ifs) if ifs:
            for n in range(len(ifs)):
                yield ast.comprehension(target, iterated, ifs[:n] + ifs[n + 1 :], 0)
        case ast.Dict(keys=keys, values=values) if len(keys) > 1:
            yield ast.Dict(keys[1:], values[1:])
        case ast.Tuple(elts=elts, ctx=ast.Load()) if len(elts) == 2:
            yield ast.Tuple(elts[::-1], ast.Load())


def _of_operation(node: ast.expr) -> Iterator[Replacement]:
    match node:
        case ast.Compare(ops=[op], left=left, comparators=[right]):
            for other in _COMPARE.get(type(op), ()):
                yield ast.Compare(left, [other()], [right])
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            yield from values
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=op, right=right):
            for other in _ARITHMETIC.get(type(op), ()):
                yield ast.BinOp(left, other(), right)
            yield from (left, right)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))


def _of_function(node: ast.FunctionDef | ast.Lambda) -> Iterator[Replacement]:
    args = node.args
    # Late binding: a name that was fixed as a default is looked up when the function runs.
    for n, default in enumerate(args.defaults):
        place = len(args.args) - len(args.defaults) + n
        if isinstance(default, ast.Name) and args.args[place].arg == default.id:
            bare = copy.deepcopy(node)
            del bare.args.defaults[n], bare.args.args[place]
            yield bare
    # State that outlives the call: `seen = {}` becomes a default argument.
    if isinstance(node, ast.FunctionDef) and not args.kwonlyargs:
        for n, statement in enumerate(node.body):
            match statement:
                case ast.Assign(
                    targets=[ast.Name(id=name)], value=ast.List() | ast.Dict() | ast.Set() as value
                ):
                    kept = copy.deepcopy(node)
                    del kept.body[n]
                    kept.body = kept.body or [ast.Pass()]
                    kept.args.kwonlyargs, kept.args.kw_defaults = [ast.arg(name)], [value]
                    yield kept


def _of_statement(node: ast.stmt) -> Iterator[Replacement]:
    yield None
    match node:
        case ast.If(test=test, body=body, orelse=orelse):
            yield body
            yield orelse or None
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.With(body=body, items=items):
            yield body
            for n in range(len(items)) if len(items) > 1 else ():
                yield ast.With(items[:n] + items[n + 1 :], body)
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
            yield body + orelse
            if finalbody:
                yield body + orelse + finalbody
            if handlers and finalbody:
                yield ast.Try(body, [], [], finalbody)
        case ast.For(target=target, iter=iterated, body=body):
            yield ast.For(target, iterated, [*body, ast.Break()], [])
            rest = ast.Subscript(
                ast.Call(ast.Name("list", ast.Load()), [iterated], []), ast.Slice(ast.Constant(1)), ast.Load()
            )
            yield ast.For(target, rest, body, [])
        case ast.Return(value=ast.Name() as value):
            shallow = ast.Attribute(
                ast.Call(ast.Name("__import__", ast.Load()), [ast.Constant("copy")], []), "copy", ast.Load()
            )
            yield ast.Return(ast.Call(shallow, [value], []))
        case ast.AugAssign(target=target, op=op, value=value):
            yield ast.Assign([target], value)
            for other in _ARITHMETIC.get(type(op), ()):
                yield ast.AugAssign(target, other(), value)
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()
        case ast.Expr(value=ast.Yield(value=ast.expr())):
            yield ast.Expr(ast.Yield(None))


def _of_call(node: ast.Call) -> Iterator[Replacement]:
    function, args, keywords = node.func, node.args, node.keywords
    for n in range(len(args) - 1):
        yield ast.Call(function, [*args[:n], args[n + 1], args[n], *args[n + 2 :]], keywords)
    for n in range(len(args)):
        if len(args) + len(keywords) > 1:
            yield ast.Call(function, args[:n] + args[n + 1 :], keywords)
    for n in range(len(keywords)):
        yield ast.Call(function, args, keywords[:n] + keywords[n + 1 :])
    match function:
        case ast.Attribute(value=value, attr=attr, ctx=ctx):
            if attr in _METHODS:
                yield value
            if attr == "norm" and not args:
                yield ast.Call(function, [ast.Constant(1)], keywords)
            for other in _NAMES.get(attr, ()):
                yield ast.Call(ast.Attribute(value, other, ctx), args, keywords)
        case ast.Name(id=name):
            if name in _WRAPPERS and args:
                yield args[0]
            for other in _NAMES.get(name, ()) if name not in ("abs", "append") else ():
                yield ast.Call(ast.Name(other, ast.Load()), args, keywords)


def _line(node: Replacement) -> str:
    if not node:
        return "nothing"
    text = (
        "; ".join(map(_line, node))
        if isinstance(node, list)
        else ast.unparse(ast.fix_missing_locations(node))
    )
    text = " ".join(text.split())
    return text if len(text) <= 90 else text[:60] + " … " + text[-27:]
