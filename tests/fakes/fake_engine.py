"""What the stand-in for llama-server simulates: flags, drafts, speeds, counters and pages.

The options are described in fake_llama_server.py, which serves all this.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORDS = (
    *("the", "a", "model", "token", "drafts", "text", "while", "it"),
    *("reads", "and", "then", "writes", "what", "comes", "next", "."),
)
RATES = (0.95, 0.915, 0.88, 0.835, 0.79, 0.767, 0.743, 0.72)
LENGTHS = {
    "draft": ("--spec-draft-n-max", 3),
    "ngram-simple": ("--spec-ngram-simple-size-m", 48),
    "ngram-map-k": ("--spec-ngram-map-k-size-m", 48),
    "ngram-map-k4v": ("--spec-ngram-map-k4v-size-m", 48),
    "ngram-mod": ("--spec-ngram-mod-n-max", 64),
    "ngram-cache": ("", 8),
}
ALIASES = {
    "--model": "-m",
    "--model-draft": "-md",
    "--spec-draft-model": "-md",
    "--parallel": "-np",
}
PARAMS = {
    "seed": 4294967295, "temperature": 0.0, "top_k": 40, "max_tokens": -1, "n_predict": -1,
    "stream": True, "speculative.types": "none", "timings_per_token": True, "lora": [],
}  # fmt: skip
HELP = {
    "prompt_tokens_total": "Number of prompt tokens processed, excluding cached tokens",
    "prompt_tokens_cached_total": "Number of prompt tokens reused from the cache",
    "prompt_seconds_total": "Total time spent processing prompts",
    "tokens_predicted_total": "Number of generation tokens processed",
    "tokens_predicted_seconds_total": "Total time spent generating tokens",
    "n_decode_total": "Total number of llama_decode() calls, excluding speculative decoding and"
    " multimodal decoding",
    "n_tokens_max": "Largest observed sequence length (prompt + generation)",
    "spec_decode_num_draft_tokens_total": "Speculative: Total draft tokens generated",
    "spec_decode_num_accepted_tokens_total": "Speculative: Total draft tokens accepted by the"
    " target model",
    "spec_decode_num_drafts_total": "Speculative: Total speculative decoding verification steps",
    "prompt_tokens_seconds": "Average prompt throughput in tokens/s",
    "predicted_tokens_seconds": "Average generation throughput in tokens/s",
    "requests_processing": "Number of requests processing",
    "requests_deferred": "Number of requests deferred",
    "n_busy_slots_per_decode": "Average number of busy slots per llama_decode() call",
    "spec_decode_num_accepted_tokens_per_pos_total": "Accepted tokens per draft position",
}
GAUGES = ("tokens_seconds", "requests_processing", "requests_deferred", "n_busy_slots_per_decode")


class Flags:
    """A command line, read loosely: every option may have one value; repeats keep the last."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        self.values: dict[str, str] = {}
        self.types: list[str] = []
        self.fake: dict[str, Any] = {}
        rest = list(argv)
        while rest:
            name = rest.pop(0)
            name = ALIASES.get(name, name)
            takes = rest and (not rest[0].startswith("-") or rest[0][1:2].isdigit())
            value = rest.pop(0) if takes and name.startswith("-") else ""
            self.values[name] = value
            if name == "--spec-type":
                self.types += [one for one in value.split(",") if one != "none"]
            if name == "--fake":
                key, _, text = value.partition("=")
                self.fake[key] = _json_or_text(text)

    def number(self, name: str, default: int) -> int:
        return int(self.values.get(name) or default)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def limit_of(body: dict[str, Any]) -> int:
    """Return the most tokens a request asks for, -1 for no limit."""
    return int(body.get("max_tokens", body.get("n_predict", -1)))


@dataclass
class Slot:
    """One slot; ``task`` None until its first request."""

    id: int
    task: int | None = None
    busy: bool = False
    prompt_n: int = 0
    decoded: int = 0
    max_tokens: int = -1


@dataclass
class Totals:
    """What /metrics counts, by the names of Counters' fields where it has them."""

    predicted: float = 0
    predicted_seconds: float = 0
    prompt: float = 0
    prompt_seconds: float = 0
    drafted: float = 0
    accepted: float = 0
    drafts: float = 0
    accepted_at: list[int] = field(default_factory=list)
    calls: int = 0
    longest: int = 0
    # what the gauges of speed cover: tokens and seconds since they were last read
    fresh: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass
class Answer:
    """One request as it goes: times in milliseconds of the simulation."""

    number: int
    prompt_n: int
    prompt_ms: float
    max_tokens: int
    texts: random.Random
    draws: random.Random
    slow: float  # factor on the time of every step
    tokens: int = 0
    ms: float = 0.0
    steps: int = 0
    drafted: int = 0
    accepted: int = 0
    drafts: int = 0
    accepted_at: list[int] = field(default_factory=list)

    def timings(self) -> dict[str, Any]:
        """Return the object as the server sends it: draft counts are absent while they are 0."""
        rest = self.tokens - 1  # the first token comes out of the prompt's own pass
        made = {
            "cache_n": 0,
            "prompt_n": self.prompt_n,
            "prompt_ms": round(self.prompt_ms, 3),
            "prompt_per_token_ms": self.prompt_ms / self.prompt_n,
            "prompt_per_second": self.prompt_n / self.prompt_ms * 1000,
            "predicted_n": self.tokens,
            "predicted_ms": round(max(self.ms, 0.001), 3),
            "predicted_per_token_ms": self.ms / rest if rest > 0 else 0.0,
            "predicted_per_second": rest / self.ms * 1000 if rest > 0 and self.ms else 0.0,
        }
        if self.drafted:
            made |= {"draft_n": self.drafted, "draft_n_accepted": self.accepted}
        return made


class Engine:
    """Everything but the network: draws answers, counts, and says what the pages say.

    Counts of requests by path are in ``asked``, bodies of chat requests in ``bodies``. Whoever
    counts or reads holds ``lock``.
    """

    def __init__(self, *argv: str, **options: Any) -> None:
        self.flags = Flags(argv)
        kinds = self.flags.types
        flag, default = LENGTHS.get(kinds[0], LENGTHS["draft"]) if kinds else ("", 0)
        self.length = self.flags.number(flag, default) if kinds else 0
        options = {**options, **self.flags.fake}
        options |= options.get("if_speculative" if kinds else "if_baseline", {})
        options |= options.get("if_length", {}).get(str(self.length), {})
        self.launch = 1
        probe = {"--version", "--help", "-h"} & self.flags.values.keys()
        if "launches_file" in options and not probe:
            count = Path(options["launches_file"])
            self.launch = int(count.read_text() if count.exists() else 0) + 1
            count.write_text(str(self.launch))
            options |= options.get("if_launch", {}).get(str(self.launch), {})
        self.options = options
        silent = self.get("not_speculating", False)
        self.draft_length = int(self.get("baseline_drafts", 0)) if not kinds else self.length
        self.draft_length = 0 if silent else self.draft_length
        self.speculative = bool(kinds) and not silent
        self.rates = self._rates()
        self.loading = True
        self.totals = Totals(**self.get("start", {}))
        slots = self.flags.number("-np", 4)
        self.slots = [Slot(i) for i in range(slots)]
        self.free = threading.Semaphore(slots)
        self.lock = threading.Lock()
        self.waiting = 0
        self.task = -1
        self.chats = 0
        self.asked: dict[str, int] = {}
        self.bodies: list[dict[str, Any]] = []

    def get(self, name: str, default: Any = None) -> Any:
        return self.options.get(name, default)

    def _rates(self) -> list[float]:
        given = self.flags.values.get("--spec-synth-rates")
        rates = [float(r) for r in (given.split(",") if given else self.get("rates", RATES))]
        ratio = rates[-1] / rates[-2] if len(rates) > 1 and rates[-2] else rates[-1]
        while len(rates) < self.draft_length:
            rates.append(rates[-1] * ratio)
        return rates[: self.draft_length]

    # --- one answer

    def draw(self, body: dict[str, Any]) -> Answer:
        """Return an answer that has not begun; its draws depend on seed, prompt, arm, launch."""
        prompt = json.dumps(body.get("messages", body.get("prompt", "")))
        seed = self.get("seed", 1)
        arm = f"{prompt}{self.draft_length},{self.launch}"
        by_prompt = random.Random(hashlib.sha256(f"{seed}{prompt}".encode()).digest())
        draws = random.Random(hashlib.sha256(f"{seed}{arm}".encode()).digest())
        spread = by_prompt.gauss(0, 1) * self.get("prompt_spread", 0)
        noise = draws.gauss(0, 1) * self.get("noise", 0)
        size = max(1, len(prompt) // 4)
        most = limit_of(body)
        most = min(most if most >= 0 else 128, int(self.get("answer_tokens", 1 << 30)))
        return Answer(
            self.chats,
            size,
            size / self.get("prompt_tps", 500) * 1000,
            most,
            texts=by_prompt,
            draws=draws,
            slow=math.exp(spread + noise),
            accepted_at=[0] * self.draft_length,
        )

    def step_cost(self, drafted: int) -> float:
        """Return the time of one step in plain steps."""
        if not drafted:
            return 1.0
        gain = self.get("speedup")
        if gain is not None:
            expected = 1 + sum(self.rates)
            return expected / (gain if isinstance(gain, int | float) else self._between(gain))
        own = 0.0 if self.flags.types and self.flags.types[0].startswith("ngram") else 0.2
        each = self.get("draft_cost", own) + self.get("verify_cost", 0.1)
        return float(1 + self.get("overhead", 0.05) + drafted * each)

    def _between(self, gains: dict[str, float]) -> float:
        known = sorted((int(length), gain) for length, gain in gains.items())
        low = max((k for k in known if k[0] <= self.draft_length), default=known[0])
        high = min((k for k in known if k[0] >= self.draft_length), default=known[-1])
        share = (self.draft_length - low[0]) / (high[0] - low[0]) if high[0] > low[0] else 0
        return low[1] + share * (high[1] - low[1])

    def step(self, answer: Answer) -> list[str]:
        """Make one step and return its tokens' texts; they all share the time of the step."""
        if not answer.tokens:
            answer.tokens = 1
            return [self.text(answer, 1)]
        left = answer.max_tokens - answer.tokens
        k = min(self.draft_length, left - 1)
        if k <= 0 or answer.draws.random() >= self.get("draft_chance", 1.0):
            k = 0
        luck = answer.draws.random()
        hit = 0
        while hit < k and luck < self.rates[hit]:
            answer.accepted_at[hit] += 1
            hit += 1
        answer.steps += 1
        answer.drafted += k
        answer.accepted += hit
        answer.drafts += k > 0
        answer.ms += 1000 / self.get("tps", 50) * answer.slow * self.step_cost(k)
        answer.tokens += hit + 1
        return [self.text(answer, n) for n in range(answer.tokens - hit, answer.tokens + 1)]

    def text(self, answer: Answer, n: int) -> str:
        pieces = self.get("pieces")
        if pieces:
            return str(pieces[(n - 1) % len(pieces)])
        word = answer.texts.choice(WORDS)
        split = self.get("diverge_at")
        return " " + (word.upper() if split and self.draft_length and n >= split else word)

    def book_prompt(self, answer: Answer) -> None:
        """Prompt tokens are counted as soon as the prompt is done."""
        t = self.totals
        t.prompt += answer.prompt_n
        t.prompt_seconds += answer.prompt_ms / 1000
        t.calls += 1
        n, s = t.fresh.get("prompt", (0, 0))
        t.fresh["prompt"] = (n + answer.prompt_n, s + answer.prompt_ms / 1000)

    def book(self, answer: Answer) -> None:
        """Everything else is counted when the request ends, however it ends."""
        t = self.totals
        t.predicted += answer.tokens
        t.predicted_seconds += answer.ms / 1000
        t.drafted += answer.drafted
        t.accepted += answer.accepted
        t.drafts += answer.drafts
        n, s = t.fresh.get("predicted", (0, 0))
        t.fresh["predicted"] = (n + max(0, answer.tokens - 1), s + answer.ms / 1000)
        if answer.drafts:
            t.accepted_at += [0] * (self.draft_length - len(t.accepted_at))
            for i, count in enumerate(answer.accepted_at):
                t.accepted_at[i] += count

    # --- pages

    def metrics(self) -> str:
        """Return the page in the server's order; reading it resets the gauges of speed."""
        t = self.totals
        busy = sum(slot.busy for slot in self.slots)
        fresh, t.fresh = t.fresh, {}
        speed = {name: n / s if s else 0 for name, (n, s) in fresh.items()}
        values = (
            t.prompt, 0, t.prompt_seconds, t.predicted, t.predicted_seconds, t.calls, t.longest,
            t.drafted, t.accepted, t.drafts, speed.get("prompt", 0), speed.get("predicted", 0),
            busy, self.waiting, int(t.calls > 0),
        )  # fmt: skip
        page = []
        per_pos = list(HELP)[-1]
        for name, value in zip(HELP, values, strict=False):
            page += self._lines(name, [f" {value:g}"])
        if t.accepted_at:
            rows = [f'{{position="{i}"}} {n}' for i, n in enumerate(t.accepted_at)]
            page += self._lines(per_pos, rows)
        return "".join(page)

    def _lines(self, name: str, rows: list[str]) -> list[str]:
        kind = "gauge" if name.endswith(GAUGES) else "counter"
        full = f"llamacpp:{name}"
        if name.startswith("spec_decode"):
            if not self.get("spec_counters", True):
                return []
            if not self.get("spec_total", True):
                full = full.removesuffix("_total")
        return [
            f"# HELP {full} {HELP[name]}\n# TYPE {full} {kind}\n",
            *(f"{full}{row}\n" for row in rows),
        ]

    def slots_page(self) -> list[dict[str, Any]]:
        rows = []
        older = self.get("slots_old") or self.get("slots_ik")
        for slot in self.slots:
            row: dict[str, Any] = {"id": slot.id, "n_ctx": 2048}
            if self.get("slots_ik"):
                row["state"] = int(slot.busy)
            else:
                row |= {"speculative": self.speculative, "is_processing": slot.busy}
            if slot.task is not None:
                types = ",".join(["none", *self.flags.types])
                left = {"max_tokens": slot.max_tokens, "n_predict": slot.max_tokens}
                token = {
                    "has_next_token": slot.busy,
                    "has_new_line": slot.busy,
                    "n_remain": slot.max_tokens - slot.decoded if slot.busy else -1,
                    "n_decoded": slot.decoded if slot.busy else 0,
                }
                row |= {
                    "id_task": slot.task,
                    "n_prompt_tokens": slot.prompt_n + max(0, slot.decoded - 1),
                    "n_prompt_tokens_processed": slot.prompt_n if slot.busy else 0,
                    "n_prompt_tokens_cache": 0,
                    "params": {**PARAMS, **left, "speculative.types": types},
                    "next_token": token if older else [token],
                }
            rows.append(row)
        return rows

    def props(self) -> dict[str, Any]:
        path = self.flags.values.get("-m", "")
        return {
            "default_generation_settings": {"params": PARAMS, "n_ctx": 2048},
            "total_slots": len(self.slots),
            "model_alias": Path(path).name,
            "model_path": path,
            "endpoint_slots": "--no-slots" not in self.flags.values,
            "endpoint_props": False,
            "endpoint_metrics": "--metrics" in self.flags.values,
            "build_info": self.get("build", "b11434-fake"),
            "is_sleeping": False,
        }
