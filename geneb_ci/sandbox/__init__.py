"""Runs an untrusted extractor, and accepts nothing from it but a matrix of numbers.

    with open_sandbox(level=2) as sandbox:                      # works here, or SandboxUnavailable
        escapes = probe_suite(sandbox)                    # 26 attempts to get out
        refuse_leaks(sandbox, escapes)                    # SandboxLeaks if one succeeded
        spec = ExtractorSpec("MyExtractor", module=Path("submissions/extractors/mine.py"))
        values = embed_in_sandbox(sequences, spec, sandbox, Limits(seconds=600))
        facts = sandbox_facts(sandbox, escapes, Limits(seconds=600), 2048)

`README.md` beside this file says what each level promises, what it does not, and where each limit
is; `docs/sandbox.md` has the reasons and the measurements.
"""
