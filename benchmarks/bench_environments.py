"""Rows of format 1.0 under real, different packages, audited by one queue.

Each row is a small model with random weights, written from its configuration by the packages of a
lock in `leaderboard/policy/environments`, and run by the harness under them: classes of three
versions of transformers, code of a repository that version 5 does not load, the OLMo code of its
package, and the Enformer of its package. `audit queue` then audits all of them, one after another,
each in its environment. The last column is what becomes of the same model without it. The packages
come from the package index that uv is set up for. The test of the same, with a package of ours from
an index on this machine, is `tests/audit/test_queue_environments.py`.
`python -m benchmarks.bench_environments [KIND]...`.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bench_families import FamilyRepository, family_repository
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from geneb_ci.audit.rerun.fetching import entry_lock, install_lock
from geneb_ci.models.entry import Environment
from tests.audit.file_place import GO
from tests.audit.test_by_entry import FORMAT_1_0, table
from tests.harness.extractors.models import MAX_LENGTH
from tools.demo_audit import ROOT

POLICY = ROOT / "leaderboard/policy"
BASE_OPTIONS = {"pooling": "mean", "dtype": "float32"}
TRUNCATED_OPTIONS = BASE_OPTIONS | {"max_length": str(MAX_LENGTH - 2), "truncation": "right"}
REMOTE_CODE_OPTIONS = TRUNCATED_OPTIONS | {"trust_remote_code": "true"}
SCRIPT_START = """
import json, shutil, sys
from pathlib import Path
import torch
from tests.harness.extractors.models import VOCABULARY, save, tokenizer
folder = Path(sys.argv[1])
torch.manual_seed(7)
def mapped(**auto_map):
    place = folder / "config.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), "auto_map": auto_map}))
"""
OLD_MODEL_CODE = """
from torch import nn
from transformers import BertConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput
from transformers.pytorch_utils import find_pruneable_heads_and_indices  # gone in version 5


class OldModel(PreTrainedModel):
    config_class = BertConfig

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layer = nn.TransformerEncoderLayer(config.hidden_size, 2, 32, batch_first=True)
        self.post_init()

    def forward(self, input_ids, attention_mask):
        masked = self.get_extended_attention_mask(attention_mask, input_ids.shape)  # gone, too
        self.get_head_mask(None, 1)
        hidden = self.layer(self.embeddings(input_ids), src_key_padding_mask=masked[:, 0, 0] < 0)
        return BaseModelOutput(last_hidden_state=hidden)
"""


@dataclass(frozen=True)
class ModelScript:
    """A model: the code that writes it, and its description in an entry."""

    lock: str
    """Name of the lock, without its ending."""
    script: str
    """Python that writes the folder, under the packages of the lock."""
    options: dict[str, str] = field(default_factory=lambda: TRUNCATED_OPTIONS)


MODELS = {
    kind: ModelScript(f"transformers-{version}", f'save("{kind}", folder)')
    for kind, version in {"bert": "4.28.0", "esm": "4.38.1", "llama": "4.57.3"}.items()
} | {
    "old-code": ModelScript(
        "transformers-4.45.2",
        f"""
(folder / "old.py").write_text({OLD_MODEL_CODE!r})
sys.path.insert(0, str(folder))
import old
from transformers import BertConfig
old.OldModel(BertConfig(vocab_size=len(VOCABULARY), hidden_size=32)).save_pretrained(folder)
tokenizer().save_pretrained(folder)
mapped(AutoModel="old.OldModel")
""",
        REMOTE_CODE_OPTIONS,
    ),
    "olmo": ModelScript(
        "ai2-olmo-0.6.0",
        """
import hf_olmo
sizes = dict(d_model=32, n_layers=2, n_heads=2, mlp_hidden_size=64, vocab_size=len(VOCABULARY))
config = hf_olmo.OLMoConfig(
    **sizes, embedding_size=len(VOCABULARY), max_sequence_length=64, rope=True, init_device="cpu",
    weight_tying=True, pad_token_id=0, eos_token_id=2, include_bias=False,
)
hf_olmo.OLMoForCausalLM(config).save_pretrained(folder, safe_serialization=False)
tokenizer(decoder=True).save_pretrained(folder)
for name in ("configuration_olmo.py", "modeling_olmo.py"):
    shutil.copy(Path(hf_olmo.__file__).with_name(name), folder)
mapped(
    AutoConfig="configuration_olmo.OLMoConfig", AutoModelForCausalLM="modeling_olmo.OLMoForCausalLM"
)
""",
        REMOTE_CODE_OPTIONS | {"auto_class": "AutoModelForCausalLM"},
    ),
    "enformer": ModelScript(
        "enformer-pytorch-0.8.8",
        """
from enformer_pytorch import Enformer
sizes = dict(dim=24, depth=1, heads=2, attn_dim_key=8, num_downsamples=3, dim_divisible_by=4)
heads = dict(human=3, mouse=2)
Enformer.from_hparams(**sizes, target_length=-1, output_heads=heads).save_pretrained(folder)
""",
        BASE_OPTIONS
        | {
            "auto_class": "package:enformer_pytorch.Enformer",
            "config_arguments": '{"use_tf_gamma": false}',
            "input": "one_hot_letters",
            "fixed_letters": "256",
            "truncation": "right",
            "padding": "right",
            "output": "item:1",
            "model_arguments": '{"return_embeddings": true}',
        },
    ),
}


def environment(lock: str) -> Environment:
    """Return the environment of an entry of the model registry, which names a lock."""
    raw = (POLICY / "environments" / f"{lock}.txt").read_bytes()
    return Environment(lock=f"{lock}.txt", sha256=hashlib.sha256(raw).hexdigest())


def add_row(repository: FamilyRepository, kind: str) -> str:
    """Write the model, run it and describe it by an entry.

    Return the last line of a run without its environment; "" if that succeeds.
    """
    model = MODELS[kind]
    environment_entry = environment(model.lock)
    packages_folder = install_lock(entry_lock(environment_entry, POLICY), print).folder
    folder = repository.root.parent / kind
    folder.mkdir()
    script_run = subprocess.run(
        [sys.executable, "-c", SCRIPT_START + model.script, str(folder)],
        env=repository.environment | {"PYTHONPATH": f"{packages_folder}:{ROOT}"},
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert script_run.returncode == 0, script_run.stderr
    option_arguments = [
        word
        for key, option_value in model.options.items()
        for word in ("--option", f"{key}={option_value}")
    ]
    file = repository.root / "submissions" / f"{kind}.json"
    run = (
        *("reference_harness", "run", "--extractor", "huggingface", "--model", str(folder)),
        *option_arguments,
        "--quiet",
    )
    trial_options = ("--tasks", "mini_splice", "--limit", "64", "--output", f"{kind}.trial.json")
    trial = repository.run(*run, *trial_options, check=False)
    path = repository.environment["PYTHONPATH"]
    repository.environment["PYTHONPATH"] = f"{path}:{packages_folder}"
    repository.run(
        *run,
        *("--output", f"{kind}.record.json", "--model-id", kind),
        *("--submission", str(file), "--submitted-by", "a bench"),
    )
    repository.environment["PYTHONPATH"] = path
    document = json.loads(file.read_bytes())
    old_document = {key: document[key] for key in FORMAT_1_0} | {"schema_version": "1.0"}
    file.write_text(json.dumps(old_document), encoding="utf-8")
    digests = {
        option_value.name: hashlib.sha256(option_value.read_bytes()).hexdigest()
        for option_value in sorted(folder.iterdir())
        if option_value.is_file()
    }
    (repository.root / f"leaderboard/policy/models/{kind}.toml").write_text(
        'schema_version = "1.0"\n'
        + table("weights", {"kind": "url", "location": f"https://example.org/{kind}"})
        + table("weights.files", digests)
        + table("run", {"extractor": "builtin:huggingface", "dtype": "float32"})
        + table(
            "run.environment", {"lock": environment_entry.lock, "sha256": environment_entry.sha256}
        )
        + table("run.options", model.options),
        encoding="utf-8",
    )
    return trial.stderr.strip().splitlines()[-1] if trial.returncode else ""


def main() -> None:
    """Print a line for each row."""
    kinds = sys.argv[1:] or list(MODELS)
    with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as name:
        repository = family_repository(Path(name))
        locks = repository.root / "leaderboard/policy/environments"
        locks.symlink_to(POLICY / "environments")
        errors_without_environment = {kind: add_row(repository, kind) for kind in kinds}
        audit = f'[[audit]]\ncommitted-at = "{GO[1]}"\nbeacon-file = "round.json"\n'
        (repository.root / "list.toml").write_text(
            "".join(
                f'{audit}file = "submissions/{kind}.json"\n'
                f'weights = "{repository.root.parent / kind}"\n'
                for kind in kinds
            ),
            encoding="utf-8",
        )
        queue_run = repository.run(
            *("geneb_ci", "audit", "queue", "--from", "list.toml", "--key", "key.pem"), check=False
        )
        print(queue_run.stdout, queue_run.stderr)
        print("| model | lock | embedded with | audit | without its environment |")
        print("|---|---|---|---|---|")
        for path in record_files(repository.root / "leaderboard/audits"):
            kind = path.parent.name
            predicate = json.loads(parse_envelope(path.read_bytes()).payload)["predicate"]
            (environment_note,) = [
                note for note in predicate["notes"] if note.startswith("environment: ")
            ]
            packages_text = re.sub(r".*it embedded with |; `packages`.*", "", environment_note)
            verdict, end_without_environment = (
                predicate["verdict"],
                errors_without_environment[kind] or "runs",
            )
            print(
                f"| {kind} | {MODELS[kind].lock} | {packages_text} | {verdict} | "
                f"{end_without_environment} |"
            )


if __name__ == "__main__":
    main()
