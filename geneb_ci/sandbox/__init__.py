"""Runs an extractor that nobody trusts, and takes nothing from it but a matrix of numbers.

    with open_sandbox(level=2) as sandbox:                      # tried out, or SandboxUnavailable
        escapes = probe_suite(sandbox)                    # some thirty ways out
        refuse_leaks(sandbox, escapes)                    # SandboxLeaks if one got out
        spec = ExtractorSpec("MyExtractor", module=Path("submissions/extractors/mine.py"))
        values = embed_in_sandbox(sequences, spec, sandbox, Limits(seconds=600))
        facts = sandbox_facts(sandbox, escapes, Limits(seconds=600))

`docs/sandbox.md` says what is protected at which level and what is not.
"""
