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

from benchmarks.bench_families import OwnPlace, place_of
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from geneb_ci.audit.rerun.fetching import entry_lock, install_lock
from geneb_ci.models.entry import Environment
from tests.audit.file_place import GO
from tests.audit.test_by_entry import FORMAT_1_0, table
from tests.harness.extractors.models import MAX_LENGTH
from tools.demo_audit import ROOT

POLICY = ROOT / "leaderboard/policy"
PLAIN = {"pooling": "mean", "dtype": "float32"}
CUT = PLAIN | {"max_length": str(MAX_LENGTH - 2), "truncation": "right"}
REMOTE = CUT | {"trust_remote_code": "true"}
START = """
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
OLD = """
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
class Model:
    """A model: the code that writes it, and its description in an entry."""

    lock: str
    """Name of the lock, without its ending."""
    write: str
    """Python that writes the folder, under the packages of the lock."""
    options: dict[str, str] = field(default_factory=lambda: CUT)


MODELS = {
    kind: Model(f"transformers-{version}", f'save("{kind}", folder)')
    for kind, version in {"bert": "4.28.0", "esm": "4.38.1", "llama": "4.57.3"}.items()
} | {
    "old-code": Model(
        "transformers-4.45.2",
        f"""
(folder / "old.py").write_text({OLD!r})
sys.path.insert(0, str(folder))
import old
from transformers import BertConfig
old.OldModel(BertConfig(vocab_size=len(VOCABULARY), hidden_size=32)).save_pretrained(folder)
tokenizer().save_pretrained(folder)
mapped(AutoModel="old.OldModel")
""",
        REMOTE,
    ),
    "olmo": Model(
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
        REMOTE | {"auto_class": "AutoModelForCausalLM"},
    ),
    "enformer": Model(
        "enformer-pytorch-0.8.8",
        """
from enformer_pytorch import Enformer
sizes = dict(dim=24, depth=1, heads=2, attn_dim_key=8, num_downsamples=3, dim_divisible_by=4)
heads = dict(human=3, mouse=2)
Enformer.from_hparams(**sizes, target_length=-1, output_heads=heads).save_pretrained(folder)
""",
        PLAIN
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
    """Return the part of an entry that names a lock."""
    raw = (POLICY / "environments" / f"{lock}.txt").read_bytes()
    return Environment(lock=f"{lock}.txt", sha256=hashlib.sha256(raw).hexdigest())


def row(place: OwnPlace, kind: str) -> str:
    """Write the model, run it and describe it by an entry.

    Return the last line of a run without its environment; "" if that succeeds.
    """
    model = MODELS[kind]
    wanted = environment(model.lock)
    site = install_lock(entry_lock(wanted, POLICY), print).folder
    folder = place.root.parent / kind
    folder.mkdir()
    written = subprocess.run(
        [sys.executable, "-c", START + model.write, str(folder)],
        env=place.environment | {"PYTHONPATH": f"{site}:{ROOT}"},
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert written.returncode == 0, written.stderr
    words = [word for key, one in model.options.items() for word in ("--option", f"{key}={one}")]
    file = place.root / "submissions" / f"{kind}.json"
    run = (
        *("reference_harness", "run", "--extractor", "huggingface", "--model", str(folder)),
        *words,
        *("--quiet"),
    )
    trial = ("--tasks", "mini_splice", "--limit", "64", "--output", f"{kind}.trial.json")
    without = place.run(*run, *trial, check=False)
    path = place.environment["PYTHONPATH"]
    place.environment["PYTHONPATH"] = f"{path}:{site}"
    place.run(
        *run,
        *("--output", f"{kind}.record.json", "--model-id", kind),
        *("--submission", str(file), "--submitted-by", "a bench"),
    )
    place.environment["PYTHONPATH"] = path
    document = json.loads(file.read_bytes())
    old = {key: document[key] for key in FORMAT_1_0} | {"schema_version": "1.0"}
    file.write_text(json.dumps(old), encoding="utf-8")
    digests = {
        one.name: hashlib.sha256(one.read_bytes()).hexdigest()
        for one in sorted(folder.iterdir())
        if one.is_file()
    }
    (place.root / f"leaderboard/policy/models/{kind}.toml").write_text(
        'schema_version = "1.0"\n'
        + table("weights", {"kind": "url", "location": f"https://example.org/{kind}"})
        + table("weights.files", digests)
        + table("run", {"extractor": "builtin:huggingface", "dtype": "float32"})
        + table("run.environment", {"lock": wanted.lock, "sha256": wanted.sha256})
        + table("run.options", model.options),
        encoding="utf-8",
    )
    return without.stderr.strip().splitlines()[-1] if without.returncode else ""


def main() -> None:
    """Print a line for each row."""
    kinds = sys.argv[1:] or list(MODELS)
    with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as name:
        place = place_of(Path(name))
        locks = place.root / "leaderboard/policy/environments"
        locks.symlink_to(POLICY / "environments")
        without = {kind: row(place, kind) for kind in kinds}
        audit = f'[[audit]]\ncommitted-at = "{GO[1]}"\nbeacon-file = "round.json"\n'
        (place.root / "list.toml").write_text(
            "".join(
                f'{audit}file = "submissions/{kind}.json"\nweights = "{place.root.parent / kind}"\n'
                for kind in kinds
            ),
            encoding="utf-8",
        )
        done = place.run(
            *("geneb_ci", "audit", "queue", "--from", "list.toml", "--key", "key.pem"), check=False
        )
        print(done.stdout, done.stderr)
        print("| model | lock | embedded with | audit | without its environment |")
        print("|---|---|---|---|---|")
        for path in record_files(place.root / "leaderboard/audits"):
            kind = path.parent.name
            predicate = json.loads(parse_envelope(path.read_bytes()).payload)["predicate"]
            (lock,) = [note for note in predicate["notes"] if note.startswith("environment: ")]
            used = re.sub(r".*it embedded with |; `packages`.*", "", lock)
            verdict, other = predicate["verdict"], without[kind] or "runs"
            print(f"| {kind} | {MODELS[kind].lock} | {used} | {verdict} | {other} |")


if __name__ == "__main__":
    main()
