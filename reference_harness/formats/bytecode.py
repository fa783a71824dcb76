"""Find compiled modules that Python cannot read, as after a full disk or an incomplete copy."""


def damaged_bytecode(error: BaseException) -> str:
    """Return the path of the compiled file that could not be read, by the error; "" if none."""
    file, trace = "", error.__traceback__
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_code.co_filename == "<frozen importlib._bootstrap_external>":
            file = str(frame.f_locals.get("bytecode_path") or file)
    return file if isinstance(error, EOFError | ValueError) else ""


def interrupting_error(error: BaseException) -> EOFError | None:
    """Return the EOFError that click reports as if by Ctrl-C; None for another error."""
    cause = error.__cause__
    return cause if isinstance(cause, EOFError) else None
