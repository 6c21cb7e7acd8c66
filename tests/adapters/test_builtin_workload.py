"""The prompts that come with spectui."""

from __future__ import annotations

from collections import Counter

import pytest

from spectui.adapters.prompt_file import interleave, load_prompts, load_workload
from spectui.domain.errors import WorkloadError
from spectui.domain.profile import BUILTIN, TASKS

EACH = 7


def test_every_task_has_seven_prompts_and_none_comes_twice() -> None:
    found = load_workload(BUILTIN)
    assert Counter(prompt.task for prompt in found.prompts) == dict.fromkeys(TASKS, EACH)
    assert found.duplicates == 0


def test_ids_are_the_task_and_a_number() -> None:
    wanted = [f"{task}-{number}" for task in TASKS for number in range(1, EACH + 1)]
    assert [prompt.id for prompt in load_prompts(BUILTIN)] == wanted


def test_every_prompt_is_one_printable_message_of_a_person() -> None:
    for prompt in load_prompts(BUILTIN):
        ((role, text),) = prompt.messages
        assert role == "user"
        assert text == text.strip()
        assert text.replace("\n", "").replace("\t", "").isprintable(), prompt.id
        assert 60 < len(text) < 1600, prompt.id


def test_no_two_prompts_share_a_long_passage() -> None:
    # a pool of n-grams that lives as long as the server must not profit from another prompt
    seen: dict[tuple[str, ...], str] = {}
    for prompt in load_prompts(BUILTIN):
        words = prompt.messages[0][1].split()
        for start in range(len(words) - 19):
            passage = tuple(words[start : start + 20])
            assert seen.setdefault(passage, prompt.id) == prompt.id


def test_a_rewrite_prompt_carries_what_is_to_be_copied() -> None:
    for prompt in load_prompts(BUILTIN, ["rewrite"]):
        text = prompt.messages[0][1]
        if "```" in text:
            _, code, _ = text.split("```")
            assert 15 <= len(code.strip().splitlines()) - 1 <= 35, prompt.id
        else:
            assert len(text.split()) > 120, prompt.id


def test_tasks_can_be_chosen_and_take_turns() -> None:
    chosen = interleave(load_prompts(BUILTIN, ["rewrite", "code"]), 2)
    assert [prompt.id for prompt in chosen] == ["code-1", "rewrite-1", "code-2", "rewrite-2"]


def test_an_unknown_task_is_refused_with_the_known_ones() -> None:
    with pytest.raises(WorkloadError, match=r"did you mean math\?.*math, code.*rewrite"):
        load_prompts(BUILTIN, ["maths"])
