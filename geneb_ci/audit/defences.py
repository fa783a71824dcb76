"""Defences of an audit: what each is against, what it needs, and where each sample runs it.

A sample that cannot run a defence says why. `tests/audit/test_defences.py` holds that every
function and every attack that is named here exists, and that each sample answers for each defence.
"""

from dataclasses import dataclass

from geneb_ci.audit.compare.outcome import DECOYS, FRESH, JOINT, ORDER, TOLERANCE, VARIANTS

_WHOLE = "every sequence is scored again"


@dataclass(frozen=True)
class DefenceUse:
    """A defence at work in an audit of one kind of sample."""

    by: str
    """The function that carries it out, as `module:name`."""
    attack: str
    """A test that carries the attack out, as `file::name`."""


@dataclass(frozen=True)
class DefenceUnused:
    """Why a sample runs without a defence."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Defence:
    """One defence, and how each kind of sample uses it."""

    name: str
    attack: str
    """The attack, in words."""
    needs: str
    """The input that it depends on."""
    tasks: DefenceUse | DefenceUnused
    embeddings: DefenceUse | DefenceUnused


_OUTCOME = "geneb_ci.audit.compare.outcome"
_EMBEDDINGS = "geneb_ci.audit.compare.embedding_outcome"
_ATTACKS = "tests/adversary/test_attacks.py"
_EMBEDDING_AUDIT = "tests/audit/test_embedding_audit.py"
_EMBEDDING_ATTACKS = (
    "tests/adversary/test_receipt_embeddings.py"
    "::test_each_attack_passes_without_its_defence_and_is_found_by_it"
)
_MEMORY = "tests/adversary/test_receipt_memory.py"

DEFENCES = (
    Defence(
        name=TOLERANCE,
        attack="scores that the embeddings of the extractor do not give",
        needs="the extractor, its weights and the task data",
        tasks=DefenceUse(
            f"{_OUTCOME}:task_verdict",
            "tests/audit/test_rerun.py::test_a_consistent_forgery_is_disputed",
        ),
        embeddings=DefenceUse(
            f"{_EMBEDDINGS}:reasons_of",
            f"{_EMBEDDING_AUDIT}::test_an_altered_test_row_disputes_the_row",
        ),
    ),
    Defence(
        name="recomputed cells",
        attack="scores that the published embeddings do not give",
        needs="the files of the receipt",
        tasks=DefenceUnused("no embeddings are published; every drawn cell is scored again"),
        embeddings=DefenceUse(
            "geneb_ci.audit.compare.embeddings:compared_cells",
            f"{_EMBEDDING_AUDIT}::test_a_claim_that_the_rows_do_not_give_differs",
        ),
    ),
    Defence(
        name=JOINT,
        attack="small raises of many cells, each within its tolerance",
        needs="as many compared cells as are drawn",
        tasks=DefenceUse(
            f"{_OUTCOME}:mean_biases",
            "tests/adversary/test_forger.py::test_a_raise_is_divided_within_the_tolerances",
        ),
        embeddings=DefenceUnused("cells are compared exactly, so none has room to be raised in"),
    ),
    Defence(
        name="direction of the labels",
        attack="embeddings altered within the tolerance of an embedding, towards their labels",
        needs="drawn embeddings outside of the support sets",
        tasks=DefenceUnused(_WHOLE),
        embeddings=DefenceUse(
            "geneb_ci.receipt.direction:direction_test",
            f"{_EMBEDDING_AUDIT}::test_what_moves_within_the_tolerance_is_found_by_its_direction",
        ),
    ),
    Defence(
        name="tolerance of each column",
        attack="a column of large values that makes room for changes elsewhere",
        needs="several drawn embeddings of a task",
        tasks=DefenceUnused(_WHOLE),
        embeddings=DefenceUse("geneb_ci.receipt.column_rule:tolerances", _EMBEDDING_ATTACKS),
    ),
    Defence(
        name="pooled rounding",
        attack="features on the borders of float16, so that many coordinates may round otherwise",
        needs="all drawn embeddings together",
        tasks=DefenceUnused(_WHOLE),
        embeddings=DefenceUse("geneb_ci.receipt.embeddings:allowed_pooled", _EMBEDDING_ATTACKS),
    ),
    Defence(
        name="rare rescue",
        attack="altered embeddings that the contributor's own code gives in float64",
        needs="failed sequences that are embedded again, alone",
        tasks=DefenceUnused("no embedding is compared, so none can be rescued"),
        embeddings=DefenceUse("geneb_ci.receipt.embeddings:allowed_rescued", _EMBEDDING_ATTACKS),
    ),
    Defence(
        name="effect on the loss",
        attack="training and support embeddings altered within their tolerance so that it pays",
        needs="the probe of the full regime",
        tasks=DefenceUnused(_WHOLE),
        embeddings=DefenceUse("geneb_ci.receipt.influence:influence_on_loss", _EMBEDDING_ATTACKS),
    ),
    Defence(
        name=ORDER,
        attack="embeddings that depend on the other sequences of a batch or on their order",
        needs="a second run of some sequences",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.decoys:embed_among_decoys",
            "tests/audit/test_decoys.py"
            "::test_an_extractor_is_run_on_the_whole_list_then_on_the_repeated_ones_in_order",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.rerun.decoys:with_decoys",
            "tests/audit/test_decoys.py"
            "::test_an_extractor_is_run_on_the_whole_list_then_on_the_repeated_ones_in_order",
        ),
    ),
    Defence(
        name=DECOYS,
        attack="published sequences that are looked up in a table",
        needs="new sequences that look like published ones",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.decoys:embed_among_decoys",
            "tests/audit/test_decoys.py::test_a_look_up_is_seen_under_every_dtype",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.rerun.decoys:with_decoys",
            "tests/audit/test_decoys.py::test_a_look_up_is_seen_under_every_dtype",
        ),
    ),
    Defence(
        name=VARIANTS,
        attack="labels of published test sequences, known by a key that a small change breaks",
        needs="a secret that decides sequences and changes",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.tasks:memorisation_results",
            f"{_ATTACKS}::test_labels_memorised_by_a_prefix_differ_by_variants_and_by_a_fresh_set",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.rerun.receipt_variants:receipt_variant_result",
            f"{_MEMORY}::test_labels_by_a_key_that_three_letters_break_are_found",
        ),
    ),
    Defence(
        name="variants of training sequences",
        attack="training embeddings moved by a key, so that the probe learns what is not there",
        needs="a refit of the probe with the variants",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.tasks:memorisation_results",
            "tests/adversary/test_memorised.py"
            "::test_moved_training_rows_are_found_where_a_small_change_breaks_their_key",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.rerun.receipt_variants:refit",
            f"{_MEMORY}"
            "::test_moved_training_sequences_are_found_where_a_small_change_breaks_their_key",
        ),
    ),
    Defence(
        name="decisions of every probe",
        attack="labels in a column that the optimum ignores and the probe of record uses",
        needs="the weights of the probes of record",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.tasks:memorisation_results",
            "tests/adversary/test_memorised.py"
            "::test_labels_that_the_probe_of_all_rows_ignores_are_found_by_the_one_that_uses_them",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.rerun.receipt_variants:decision_changes",
            f"{_MEMORY}::test_labels_that_the_probe_of_record_alone_uses_are_found_by_it",
        ),
    ),
    Defence(
        name="strongest training embeddings",
        attack="few training embeddings of a receipt that are altered so that the probe moves",
        needs="the probe of the full regime and every training embedding",
        tasks=DefenceUnused(_WHOLE),
        embeddings=DefenceUse(
            "geneb_ci.receipt.influence:strongest_embeddings",
            "tests/adversary/test_receipt_embeddings.py"
            "::test_few_rows_that_move_the_probe_pass_a_draw_and_are_found_by_their_strength",
        ),
    ),
    Defence(
        name=FRESH,
        attack="labels of published sequences, known by any key",
        needs="labelled sequences that nobody has seen",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.honesty:fresh_result",
            f"{_ATTACKS}::test_labels_memorised_by_a_prefix_differ_by_variants_and_by_a_fresh_set",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.rerun.honesty:fresh_result",
            f"{_MEMORY}::test_labels_by_a_key_that_variants_keep_are_found_by_a_fresh_set_alone",
        ),
    ),
    Defence(
        name="measured precision",
        attack="a coarse dtype that is declared for the sake of its tolerance",
        needs="sequences that are embedded twice",
        tasks=DefenceUse(
            "geneb_ci.audit.rerun.honesty:precision_of",
            f"{_ATTACKS}::test_a_coarse_dtype_without_need_has_the_tolerance_of_float32",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.sampling.embedding_draw:weakness_of",
            f"{_EMBEDDING_AUDIT}::test_a_receipt_in_bfloat16_is_never_drawn_from",
        ),
    ),
    Defence(
        name="one draw of a commitment",
        attack="drawing again until the sample suits",
        needs="the records of the repository",
        tasks=DefenceUse(
            "geneb_ci.audit.sampling.task_draw:require_one_draw",
            "tests/audit/test_verify.py::test_one_commitment_has_one_draw",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.sampling.task_draw:require_one_draw",
            f"{_EMBEDDING_AUDIT}::test_a_second_draw_of_one_commitment_is_refused",
        ),
    ),
    Defence(
        name="earlier draws count again",
        attack="another name or another version of a submission for the sake of another draw",
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
        attack="a copy with one touched weight under another name",
        needs="the claims, or the receipts, of earlier audits",
        tasks=DefenceUse(
            "geneb_ci.audit.commitment:same_method_reason",
            "tests/audit/test_identity.py::test_one_changed_weight_and_another_name_do_not_hide_the_claims",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.compare.embeddings:near_roots",
            "tests/audit/test_near_receipts.py::test_a_near_receipt_inherits_the_rows_drawn_before",
        ),
    ),
    Defence(
        name="signed starts and aborts",
        attack="runs that are ended because they go badly",
        needs="a maintainer who commits what is written",
        tasks=DefenceUse(
            "geneb_ci.audit.record.signing:sign_abort",
            "tests/audit/test_rerun_faults.py::test_a_run_that_the_extractor_ends_is_signed_as_aborted",
        ),
        embeddings=DefenceUse(
            "geneb_ci.audit.record.signing:sign_abort",
            "tests/audit/test_embedding_evidence.py::test_one_between_aborts_does_not_end_their_row",
        ),
    ),
)  # fmt: skip
