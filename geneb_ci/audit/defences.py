"""The defences of an audit: the attack that each detects, its inputs, and its code by sample.

Where a sample does not use a defence, the reason is given instead of the code.
`tests/audit/test_defences.py` tests that every function and every attack named here exists.
"""

from dataclasses import dataclass

from geneb_ci.audit.compare.outcome import (
    DECOYS,
    FRESH,
    JOINT,
    ORDER,
    OTHER_DRAWS,
    SUPPORT,
    TEST_DRAWS,
    TOLERANCE,
    VARIANTS,
)

_ALL_SCORED_REASON = "every sequence is scored again"
"""Why an audit of tasks needs no defence against altered parts of a receipt."""


@dataclass(frozen=True)
class DefenceUse:
    """The code of a defence, in audits of tasks or in audits by receipt, and a test of it."""

    function: str
    """The function that implements the defence, as `module:name`."""
    test: str
    """A test that performs the attack, as `file::name`."""


@dataclass(frozen=True, kw_only=True)
class Defence:
    """One defence of an audit against an attack, and its use for each kind of sample."""

    name: str
    attack: str
    """The attack that the defence detects."""
    needs: str
    """The inputs without which the defence cannot work."""
    tasks: DefenceUse | str
    """The use in an audit of tasks, or the reason why there is none."""
    embeddings: DefenceUse | str
    """The use in an audit by receipt, or the reason why there is none."""


_OUTCOME_MODULE = "geneb_ci.audit.compare.outcome"
_EMBEDDING_OUTCOME_MODULE = "geneb_ci.audit.compare.embedding_outcome"
_ATTACK_TESTS = "tests/adversary/test_attacks.py"
_EMBEDDING_AUDIT_TESTS = "tests/audit/test_embedding_audit.py"
_RECEIPT_ATTACK_TEST = (
    "tests/adversary/test_receipt_embeddings.py"
    "::test_each_attack_passes_without_its_defence_and_is_found_by_it"
)
_MEMORY_TESTS = "tests/adversary/test_receipt_memory.py"
_ORDER_TEST = (
    "tests/audit/test_decoys.py"
    "::test_an_extractor_is_run_on_the_whole_list_then_on_the_repeated_ones_in_order"
)
_LOOK_UP_TEST = "tests/audit/test_decoys.py::test_a_look_up_is_seen_under_every_dtype"
_TASK_REFIT_USE = DefenceUse(
    "geneb_ci.audit.rerun.few_shot:few_shot_result",
    "tests/adversary/test_memorised.py::test_moved_training_rows_are_found_whatever_the_key",
)
_RECEIPT_REFIT_USE = DefenceUse(
    "geneb_ci.audit.rerun.receipt_variants:receipt_few_shot_result",
    f"{_MEMORY_TESTS}::test_moved_training_sequences_are_found_whatever_the_key",
)
"""The code that fits probes again on varied training sequences, in audits by receipt."""

DEFENCES = (
    Defence(
        name=TOLERANCE,
        attack="claimed scores that do not follow from the embeddings of the extractor",
        needs="the extractor, its weights and the task data",
        tasks=DefenceUse(
            f"{_OUTCOME_MODULE}:task_verdict",
            "tests/audit/test_rerun.py::test_a_consistent_forgery_is_disputed",
        ),
        embeddings=DefenceUse(
            f"{_EMBEDDING_OUTCOME_MODULE}:reasons_of",
            f"{_EMBEDDING_AUDIT_TESTS}::test_an_altered_test_row_disputes_the_row",
        ),
    ),
    Defence(
        name="recomputed cells",
        attack="claimed scores that do not follow from the published embeddings",
        needs="the files of the receipt",
        tasks="no embeddings are published; every drawn cell is scored again",
        embeddings=DefenceUse(
            "geneb_ci.audit.compare.embeddings:compared_cells",
            f"{_EMBEDDING_AUDIT_TESTS}::test_a_claim_that_the_rows_do_not_give_differs",
        ),
    ),
    Defence(
        name=JOINT,
        attack="many scores raised slightly, each within its tolerance",
        needs="the comparisons of all drawn cells",
        tasks=DefenceUse(
            f"{_OUTCOME_MODULE}:mean_biases",
            "tests/adversary/test_forger.py::test_a_raise_is_divided_within_the_tolerances",
        ),
        embeddings="cells are compared exactly, so that no raise can pass",
    ),
    Defence(
        name="direction of the labels",
        attack="embeddings altered within the tolerance of an embedding, towards their labels",
        needs="drawn embeddings outside of the support sets",
        tasks=_ALL_SCORED_REASON,
        embeddings=DefenceUse(
            "geneb_ci.receipt.direction:direction_test",
            f"{_EMBEDDING_AUDIT_TESTS}::test_what_moves_within_the_tolerance_is_found_by_its_direction",
        ),
    ),
    Defence(
        name="tolerance of each column",
        attack="a column of large values that widens the tolerance of other columns",
        needs="several drawn embeddings of a task",
        tasks=_ALL_SCORED_REASON,
        embeddings=DefenceUse(
            "geneb_ci.receipt.column_rule:coordinate_tolerances", _RECEIPT_ATTACK_TEST
        ),
    ),
    Defence(
        name="pooled rounding",
        attack="features between two numbers of float16, so that many may be rounded either way",
        needs="all drawn embeddings together",
        tasks=_ALL_SCORED_REASON,
        embeddings=DefenceUse(
            "geneb_ci.receipt.embeddings:pooled_mismatch_limit", _RECEIPT_ATTACK_TEST
        ),
    ),
    Defence(
        name="rare rescue",
        attack="altered embeddings that the extractor only returns when it computes in float64",
        needs="failed sequences, each embedded again alone",
        tasks="task audits compare scores, so no failed embedding is embedded again",
        embeddings=DefenceUse("geneb_ci.receipt.embeddings:rescued_limit", _RECEIPT_ATTACK_TEST),
    ),
    Defence(
        name="effect on the loss",
        attack="training embeddings altered within their tolerance so that the test loss falls",
        needs="the probe of the full regime",
        tasks=_ALL_SCORED_REASON,
        embeddings=DefenceUse("geneb_ci.receipt.influence:influence_on_loss", _RECEIPT_ATTACK_TEST),
    ),
    Defence(
        name=ORDER,
        attack="embeddings that depend on the other sequences of a batch or on their order",
        needs="a second run of some sequences",
        tasks=DefenceUse("geneb_ci.audit.rerun.decoys:embed_among_decoys", _ORDER_TEST),
        embeddings=DefenceUse("geneb_ci.audit.rerun.decoys:with_decoys", _ORDER_TEST),
    ),
    Defence(
        name=DECOYS,
        attack="a table from which the embeddings of published sequences are looked up",
        needs="new sequences that look like published ones",
        tasks=DefenceUse("geneb_ci.audit.rerun.decoys:embed_among_decoys", _LOOK_UP_TEST),
        embeddings=DefenceUse("geneb_ci.audit.rerun.decoys:with_decoys", _LOOK_UP_TEST),
    ),
    Defence(
        name=VARIANTS,
        attack="labels of the published test sequences, memorised and looked up by a feature that "
        "a small change breaks",
        needs="a secret that decides which sequences are changed, and how",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.tasks:memorisation_results",
            f"{_ATTACK_TESTS}::test_labels_memorised_by_a_prefix_differ_by_variants_and_by_a_fresh_set",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.rerun.receipt_variants:receipt_variant_result",
            f"{_MEMORY_TESTS}::test_labels_by_a_key_that_three_letters_break_are_found",
        ),
    ),
    Defence(
        name="variants of training sequences",
        attack="training embeddings altered by a feature of the sequence, so that the probe learns "
        "that feature",
        needs="a refit of the probe with the variants",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.tasks:memorisation_results",
            "tests/adversary/test_memorised.py"
            "::test_moved_training_rows_are_found_whatever_the_key",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.rerun.receipt_variants:refit_on_variants",
            f"{_MEMORY_TESTS}"
            "::test_moved_training_sequences_are_found_whatever_the_key",
        ),
    ),
    Defence(
        name=OTHER_DRAWS,
        attack="an extractor that alters the embeddings of few-shot probes, however it recognises "
        "them",
        needs="the embeddings of all training sequences",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.few_shot:few_shot_result",
            "tests/adversary/test_memorised.py"
            "::test_moved_rows_of_few_shot_probes_are_found_by_other_draws_whatever_the_key",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.rerun.receipt_variants:receipt_few_shot_result",
            f"{_MEMORY_TESTS}"
            "::test_moved_sequences_of_few_shot_probes_are_found_by_other_draws_whatever_the_key",
        ),
    ),
    Defence(
        name=SUPPORT,
        attack="training embeddings of few tasks, or of few-shot probes alone, altered by a "
        "feature of the sequence",
        needs="a refit of each few-shot probe with variants of its sequences",
        tasks=_TASK_REFIT_USE,
        embeddings=_RECEIPT_REFIT_USE,
    ),
    Defence(
        name=TEST_DRAWS,
        attack="an extractor that alters all training embeddings of a task, however it recognises "
        "them",
        needs="seven test sequences of each class for each one that is drawn to fit a probe",
        tasks=_TASK_REFIT_USE,
        embeddings=_RECEIPT_REFIT_USE,
    ),
    Defence(
        name="decisions of every probe",
        attack="labels in a column that the canonical probe ignores and the probe of record uses",
        needs="the weights of the probes of record",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.tasks:memorisation_results",
            "tests/adversary/test_memorised.py"
            "::test_labels_that_the_probe_of_all_rows_ignores_are_found_by_the_one_that_uses_them",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.rerun.receipt_variants:decision_changes",
            f"{_MEMORY_TESTS}::test_labels_that_the_probe_of_record_alone_uses_are_found_by_it",
        ),
    ),
    Defence(
        name="strongest training embeddings",
        attack="few altered training embeddings of a receipt that have a large effect on the probe",
        needs="the probe of the full regime and every training embedding",
        tasks=_ALL_SCORED_REASON,
        embeddings=DefenceUse(
            "geneb_ci.receipt.influence:strongest_embeddings",
            "tests/adversary/test_receipt_embeddings.py"
            "::test_few_rows_that_move_the_probe_pass_a_draw_and_are_found_by_their_strength",
        ),
    ),
    Defence(
        name=FRESH,
        attack="labels of the published sequences, memorised and looked up by any feature of the "
        "sequence",
        needs="labelled sequences that nobody has seen",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.honesty:fresh_result",
            f"{_ATTACK_TESTS}::test_labels_memorised_by_a_prefix_differ_by_variants_and_by_a_fresh_set",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.rerun.honesty:fresh_result",
            f"{_MEMORY_TESTS}::test_labels_by_a_key_that_variants_keep_are_found_by_a_fresh_set_alone",
        ),
    ),
    Defence(
        name="measured precision",
        attack="a coarse dtype that is declared to obtain its wide tolerance",
        needs="sequences that are embedded twice",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.honesty:precision_of",
            f"{_ATTACK_TESTS}::test_a_coarse_dtype_without_need_has_the_tolerance_of_float32",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.sampling.embedding_draw:weakness_of",
            f"{_EMBEDDING_AUDIT_TESTS}::test_a_receipt_in_bfloat16_is_never_drawn_from",
        ),
    ),
    Defence(
        name="one draw of a commitment",
        attack="drawing repeatedly until the sample is favourable",
        needs="the records of the repository",
        tasks=DefenceUse(
            "geneb_ci.audit.sampling.task_draw:require_one_draw",
            "tests/audit/test_verify.py::test_one_commitment_has_one_draw",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.sampling.task_draw:require_one_draw",
            f"{_EMBEDDING_AUDIT_TESTS}::test_a_second_draw_of_one_commitment_is_refused",
        ),
    ),
    Defence(
        name="earlier draws count again",
        attack="a new name or version of a submission to obtain another draw",
        needs="the records of the repository",
        tasks=DefenceUse(
            "geneb_ci.audit.sampling.task_draw:earlier_draws",
            "tests/audit/test_identity.py::test_sixteen_names_for_one_method_share_one_draw",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.sampling.embedding_draw:earlier_embedding_draws",
            "tests/audit/test_embedding_verify.py::test_earlier_draws_of_a_method_count_under_another_name",
        ),
    ),
    Defence(
        name="near claims and receipts",
        attack="a copy under another name, with one changed weight",
        needs="the claims, or the receipts, of earlier audits",
        tasks=DefenceUse(
            "geneb_ci.audit.commitment:same_method_reason",
            "tests/audit/test_identity.py::test_one_changed_weight_and_another_name_do_not_hide_the_claims",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.compare.embeddings:near_receipt_roots",
            "tests/audit/test_near_receipts.py::test_a_near_receipt_inherits_the_rows_drawn_before",
        ),
    ),
    Defence(
        name="signed starts and aborts",
        attack="ending a run whose result will be unfavourable",
        needs="a maintainer who commits the signed files",
        tasks=DefenceUse(
            "geneb_ci.audit.record.signing:Signing.sign_abort",
            "tests/audit/test_rerun_faults.py::test_a_run_that_the_extractor_ends_is_signed_as_aborted",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.record.signing:Signing.sign_abort",
            "tests/audit/test_embedding_evidence.py::test_one_between_aborts_does_not_end_their_row",
        ),
    ),
)  # fmt: skip
