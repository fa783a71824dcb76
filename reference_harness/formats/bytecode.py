"""Compiled modules that Python cannot read: a full disk or a copy that ended early leaves them."""


def damaged_bytecode(error: BaseException) -> str:
    """Return the compiled file whose reading raised an error, or ""."""
    name, trace = "", error.__traceback__
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_code.co_filename == "<frozen importlib._bootstrap_external>":
            name = str(frame.f_locals.get("bytecode_path") or name)
    return name if isinstance(error, EOFError | ValueError) else ""


def interrupting_error(error: BaseException) -> EOFError | None:
    """Return the error for which click says "aborted" though nobody interrupted the command."""
    cause = error.__cause__
    return cause if isinstance(cause, EOFError) else None
