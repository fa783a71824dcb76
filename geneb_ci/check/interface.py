"""Checks, from the source alone, that the harness can call the methods of an extractor."""

import ast
import inspect
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from reference_harness.formats.text import quoted

EMBED_METHOD = "extract_embeddings"
"""Method of an extractor that the harness calls."""
EMBED_SIGNATURE = f"def {EMBED_METHOD}(self, sequences, batch_size=1):"
"""First line of that method, for messages."""
PARSED_BYTES_MAX = 1 << 18
"""Larger modules are not parsed: a syntax tree takes a hundred times the memory of its text."""


class InterfaceFault(NamedTuple):
    """Why the harness cannot call an extractor class, and the line of code that shows this."""

    line: int
    message: str
    is_certain: bool = False
    """Whether the call fails in every case; False if code may create the method while the module is
    loaded, or if a newer Python may be able to parse the module."""


def interface_fault(raw: bytes, class_name: str) -> InterfaceFault | None:
    """Return why the harness cannot call a class of a module; None if its source gives no reason.

    Classes that are imported or computed, methods that are inherited or decorated, and modules of
    more than `PARSED_BYTES_MAX` bytes are not judged.
    """
    if len(raw) > PARSED_BYTES_MAX:
        return None
    try:
        tree = _syntax_tree(raw)
    except SyntaxError as error:
        return InterfaceFault(error.lineno or 1, f"the file is not valid Python: {error.msg}")
    except (ValueError, RecursionError, MemoryError):
        return InterfaceFault(1, "the file cannot be parsed as Python")
    extractor_class = next(
        (node for node in _module_classes(tree) if node.name == class_name), None
    )
    if extractor_class is not None:
        return _class_fault(extractor_class)
    if not class_name or {class_name, "*"} & _assigned_names(tree):
        return None
    return InterfaceFault(1, f"the module has no class {quoted(class_name)[1:-1]}")


def _class_fault(class_def: ast.ClassDef) -> InterfaceFault | None:
    """Return why the harness cannot call this class; None if its source gives no reason."""
    method = _embed_method(class_def)
    if method is None:
        may_have_method = (
            class_def.bases
            or class_def.keywords
            or class_def.decorator_list
            or EMBED_METHOD in _assigned_names(class_def)
        )
        message = f"{class_def.name} has no method {EMBED_METHOD}"
        return None if may_have_method else InterfaceFault(class_def.lineno, message)
    signature = _signature(method.args)
    try:
        signature.bind(None, [], batch_size=1)
    except TypeError:
        parameters = ", ".join(map(str, signature.parameters.values())).replace("=Ellipsis", "=...")
        call = f"{EMBED_METHOD}(sequences, batch_size=...)"
        message = f"{EMBED_METHOD}({parameters}) cannot be called as {call}"
        return InterfaceFault(method.lineno, message, is_certain=True)
    return None


def extractor_class(raw: bytes) -> str:
    """Return the name of the first class with an extractor's method; "" without one."""
    try:
        tree = _syntax_tree(raw)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return next(
        (node.name for node in _module_classes(tree) if EMBED_METHOD in _assigned_names(node)), ""
    )


def _syntax_tree(raw: bytes) -> ast.Module:
    """Return the syntax tree of a module, without printing warnings of the parser."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as invalid escapes in strings
        return ast.parse(raw)


def _module_classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """Return the classes that a module defines outside of functions and other classes."""
    return (node for node in tree.body if isinstance(node, ast.ClassDef))


def _embed_method(class_def: ast.ClassDef) -> ast.FunctionDef | None:
    """Return the extractor's method of a class; None if the method is missing or decorated."""
    methods = (node for node in class_def.body if isinstance(node, ast.FunctionDef))
    embed_methods = [node for node in methods if node.name == EMBED_METHOD]
    return embed_methods[-1] if embed_methods and not embed_methods[-1].decorator_list else None


def _assigned_names(tree: ast.Module | ast.ClassDef) -> frozenset[str]:
    """Return the names that code defines, imports or assigns; `*` stands for a star import."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return frozenset(names)


def _signature(arguments: ast.arguments) -> inspect.Signature:
    """Return the signature of a function in the source; each default value is an ellipsis."""
    parameters = [
        inspect.Parameter(argument.arg, kind)
        for kind, arguments_of_kind in (
            (inspect.Parameter.POSITIONAL_ONLY, arguments.posonlyargs),
            (inspect.Parameter.POSITIONAL_OR_KEYWORD, arguments.args),
        )
        for argument in arguments_of_kind
    ]
    for index in range(1, len(arguments.defaults) + 1):
        parameters[-index] = parameters[-index].replace(default=...)
    if arguments.vararg is not None:
        parameters.append(inspect.Parameter(arguments.vararg.arg, inspect.Parameter.VAR_POSITIONAL))
    for argument, default_value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        default = inspect.Parameter.empty if default_value is None else ...
        parameters.append(
            inspect.Parameter(argument.arg, inspect.Parameter.KEYWORD_ONLY, default=default)
        )
    if arguments.kwarg is not None:
        parameters.append(inspect.Parameter(arguments.kwarg.arg, inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)
