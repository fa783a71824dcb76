"""Code as model repositories bring it: small models, each with one habit that a loader must meet.

Test folders copy this file beside their configuration, and transformers runs it from there.
"""

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizer
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput


class StubConfig(PretrainedConfig):
    model_type = "geneb_stub"

    def __init__(self, rows=12, d_model=16, layers=2, limit=None, **others):
        self.rows, self.d_model, self.layers = rows, d_model, layers
        if limit is not None:
            self.max_position_embeddings = limit
        super().__init__(**others)


class Stub(PreTrainedModel):
    config_class = StubConfig
    base_model_prefix = ""

    def _init_weights(self, module):
        if isinstance(module, nn.Linear | nn.Embedding | nn.Conv1d):
            nn.init.normal_(module.weight, std=0.4)


class Attention(nn.Module):
    """Layers of attention under a mask, and a norm."""

    def __init__(self, config):
        super().__init__()
        size = config.d_model
        self.qkv = nn.ModuleList(nn.Linear(size, 3 * size) for _ in range(config.layers))
        self.norm = nn.LayerNorm(size)
        # Not saved, as in models that bias attention by distance.
        self.register_buffer("slope", torch.tensor(0.3), persistent=False)
        self.scale = torch.tensor(0.7)

    def forward(self, x, mask):
        places = torch.arange(x.shape[1], device=x.device)
        bias = -self.slope * (places[None] - places[:, None]).abs().to(x.dtype)
        for layer in self.qkv:
            q, k, v = layer(x).chunk(3, dim=-1)
            scores = q @ k.transpose(1, 2) * self.scale + bias
            if mask is not None:
                scores = scores.masked_fill(mask[:, None, :] == 0, torch.finfo(x.dtype).min)
            x = x + scores.softmax(dim=-1) @ v
        return self.norm(x)


class Convolution(nn.Module):
    """Layers of convolution; `causal` ones read what stands before a position alone."""

    def __init__(self, config, causal):
        super().__init__()
        size, self.causal = config.d_model, causal
        self.mix = nn.ModuleList(nn.Conv1d(size, size, 5) for _ in range(config.layers))
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        states = []
        for layer in self.mix:
            states.append(x)
            around = (4, 0) if self.causal else (2, 2)
            x = x + torch.tanh(layer(nn.functional.pad(x.transpose(1, 2), around))).transpose(1, 2)
        return [*states, self.norm(x)]


class TupleModel(Stub):
    """As DNABERT: a tuple of hidden states and a pooled vector, whatever is asked."""

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.rows, config.d_model)
        self.encoder = Attention(config)
        self.post_init()

    def forward(self, input_ids, token_type_ids=None, attention_mask=None, **kwargs):
        hidden = self.encoder(self.embeddings(input_ids), attention_mask)
        return hidden, hidden[:, 0]


class Backbone(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embeddings = nn.Embedding(config.rows, config.d_model)
        self.encoder = Attention(config)

    def forward(self, input_ids, attention_mask=None):
        hidden = self.encoder(self.embeddings(input_ids), attention_mask)
        return BaseModelOutput(last_hidden_state=hidden)


class HeadModel(Stub):
    """As GENA: AutoModel gives a model with a head, and the backbone is its `bert`."""

    def __init__(self, config):
        super().__init__(config)
        self.bert = Backbone(config)
        self.cls = nn.Linear(config.d_model, config.rows)
        self.post_init()

    def forward(self, input_ids, attention_mask=None):
        return (self.cls(self.bert(input_ids, attention_mask).last_hidden_state),)


class OneHotModel(Stub):
    """As MutBERT: rows of probabilities in place of ids."""

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Linear(config.vocab_size, config.d_model, bias=False)
        self.encoder = Attention(config)
        self.post_init()

    def forward(self, input_ids, attention_mask=None):
        hidden = self.encoder(self.embeddings(input_ids), attention_mask)
        return BaseModelOutput(last_hidden_state=hidden)


class CausalModel(Stub):
    """As HyenaDNA: no mask argument, `d_model`, one state more than layers say."""

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.rows, config.d_model)
        self.backbone = Convolution(config, causal=True)
        self.post_init()

    def forward(self, input_ids, inputs_embeds=None, output_hidden_states=None, return_dict=None):
        states = self.backbone(self.embeddings(input_ids))
        listed = tuple(states) if output_hidden_states else None
        return BaseModelOutput(last_hidden_state=states[-1], hidden_states=listed)


class TwoStrandModel(Stub):
    """As Caduceus: both directions side by side, so twice `d_model` wide, and no mask argument."""

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.rows, config.d_model)
        self.backbone = Convolution(config, causal=True)
        self.post_init()

    def forward(self, input_ids, inputs_embeds=None, output_hidden_states=None, return_dict=None):
        there = self.backbone(self.embeddings(input_ids))
        back = self.backbone(self.embeddings(input_ids.flip(1)))
        states = [torch.cat([x, y.flip(1)], dim=-1) for x, y in zip(there, back, strict=True)]
        listed = tuple(states) if output_hidden_states else None
        return BaseModelOutput(last_hidden_state=states[-1], hidden_states=listed)


class TensorStatesModel(Stub):
    """As eccDNAMamba: `hidden_states` is one tensor, and the mask is required."""

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.rows, config.d_model)
        self.backbone = Convolution(config, causal=False)
        self.head = nn.Linear(config.d_model, config.rows)
        self.post_init()

    def forward(self, input_ids, attention_mask, **kwargs):
        x = self.embeddings(input_ids) * attention_mask.unsqueeze(-1)
        hidden = self.backbone(x)[-1] * attention_mask.unsqueeze(-1)
        return CausalLMOutput(logits=self.head(hidden), hidden_states=hidden)


class LogitsModel(Stub):
    """As Evo: (logits, cache); it takes a mask and does not use it."""

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.rows, config.d_model)
        self.backbone = Convolution(config, causal=False)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, use_cache=None):
        hidden = self.backbone(self.embeddings(input_ids))[-1]
        return hidden @ self.embeddings.weight.T, None


class BinsModel(Stub):
    """As Enformer and SPACE: letters as floats, bins out, embeddings second in a tuple."""

    def __init__(self, config):
        super().__init__(config)
        self.stem = nn.Linear(4, config.d_model)
        self.trunk = Convolution(config, causal=False)
        self.heads = nn.Linear(config.d_model, 3)
        self.post_init()

    def forward(self, x, return_embeddings=False):
        bins = self.trunk(self.stem(x))[-1].unflatten(1, (-1, 8)).mean(dim=2)
        return (self.heads(bins), bins) if return_embeddings else self.heads(bins)


class ArgumentsModel(Stub):
    """As LucaOne: built and run with arguments of its own."""

    def __init__(self, config):
        super().__init__(config)
        if getattr(config, "task_level", None) != "token_level":
            raise ValueError("task_level has to be token_level")
        self.embeddings = nn.Embedding(config.rows, config.d_model)
        self.encoder = Attention(config)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, *, scale):
        hidden = self.encoder(self.embeddings(input_ids) * scale, attention_mask)
        return BaseModelOutput(last_hidden_state=hidden)


class TiedModel(Stub):
    """As Omni-DNA: the head shares the embeddings' numbers, and the file holds them once."""

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.rows, config.d_model)
        self.encoder = Attention(config)
        self.head = nn.Linear(config.d_model, config.rows, bias=False)
        self.post_init()

    def tie_weights(self, *args, **kwargs):
        self.head.weight = self.embeddings.weight

    def forward(self, input_ids, attention_mask=None, output_hidden_states=False):
        hidden = self.encoder(self.embeddings(input_ids), attention_mask)
        states = (self.embeddings(input_ids), hidden) if output_hidden_states else None
        return CausalLMOutput(logits=self.head(hidden), hidden_states=states)


class KmerLogitsModel(Stub):
    """As DNA-GPT: logits alone, ids under another name, and no mask."""

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.rows, config.d_model)
        self.blocks = Convolution(config, causal=True)
        self.ln_f = nn.LayerNorm(config.d_model)
        self.post_init()

    def forward(self, idx, max_len=None):
        return self.ln_f(self.blocks(self.embeddings(idx))[-2]) @ self.embeddings.weight.T


class WordTokenizer(PreTrainedTokenizer):
    """A slow tokenizer: words of k letters, ids alone."""

    model_input_names = ["input_ids"]

    def __init__(self, words=(), k=1, begin="", end="", **others):
        self.words, self.k, self.begin, self.end = list(words), k, begin, end
        super().__init__(words=self.words, k=k, begin=begin, end=end, **others)

    @property
    def vocab_size(self):
        return len(self.words)

    def get_vocab(self):
        return {**{word: i for i, word in enumerate(self.words)}, **self.added_tokens_encoder}

    def _tokenize(self, text, **kwargs):
        return [text[i : i + self.k] for i in range(0, len(text), self.k)]

    def _convert_token_to_id(self, token):
        return self.words.index(token) if token in self.words else self.words.index("<unk>")

    def _convert_id_to_token(self, index):
        return self.words[index]

    def build_inputs_with_special_tokens(self, token_ids_0, token_ids_1=None):
        before = [self.words.index(self.begin)] if self.begin else []
        after = [self.words.index(self.end)] if self.end else []
        return [*before, *token_ids_0, *after]


class TypedTokenizer(WordTokenizer):
    """Wants to be told what kind of sequence it is given."""

    def __call__(self, text, *, seq_type, **others):
        if seq_type != "gene":
            raise ValueError("seq_type has to be gene")
        return super().__call__(text, **others)
