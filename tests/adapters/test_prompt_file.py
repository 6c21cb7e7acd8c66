"""Reading the user's prompts: plain text and JSONL, and everything that can be wrong with them."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from spectui.adapters import prompt_file
from spectui.adapters.prompt_file import (
    Workload,
    digest,
    interleave,
    load_prompts,
    load_workload,
)
from spectui.domain.errors import WorkloadError
from spectui.domain.runs import Prompt


def write(folder: Path, text: str | bytes, name: str = "prompts.jsonl") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def message(path: Path, tasks: list[str] | None = None) -> str:
    with pytest.raises(WorkloadError) as caught:
        load_prompts(path, tasks)
    return str(caught.value)


def texts(prompts: tuple[Prompt, ...]) -> list[str]:
    return [prompt.messages[-1][1] for prompt in prompts]


# plain text


def test_plain_text_is_one_prompt_a_line_without_blanks_and_comments(tmp_path: Path) -> None:
    path = write(tmp_path, "# mine\n\nWhy is snow white?\n  Name three rivers.  \n#x\n", "p.txt")
    assert load_prompts(path) == (
        Prompt("own-1", "own", (("user", "Why is snow white?"),)),
        Prompt("own-2", "own", (("user", "Name three rivers."),)),
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_endings_of_any_system_and_a_bom_leave_no_trace(tmp_path: Path, end: str) -> None:
    path = write(tmp_path, b"\xef\xbb\xbf" + f"# x{end}one{end}{end}two{end}".encode(), "p.txt")
    assert texts(load_prompts(path)) == ["one", "two"]


def test_a_line_separator_inside_a_prompt_does_not_split_it(tmp_path: Path) -> None:
    path = write(tmp_path, "first\u2028half\x0cand more\nsecond\n", "p.txt")
    assert texts(load_prompts(path)) == ["first\u2028half\x0cand more", "second"]


def test_a_huge_line_is_one_prompt(tmp_path: Path) -> None:
    path = write(tmp_path, "word " * 400_000 + "\n" + "short", "p.txt")
    found = load_prompts(path)
    assert [len(text) for text in texts(found)] == [1_999_999, 5]


# JSONL


def test_jsonl_takes_prompts_messages_tasks_and_ids(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi?"}]
    rows = [
        {"prompt": "two\nlines", "task": "code", "id": "mine"},
        {"messages": chat},
        {"prompt": "x", "task": None, "id": None, "source": "somebody's extra key"},
    ]
    path = write(tmp_path, "\r\n\r\n".join(map(json.dumps, rows)))
    assert load_prompts(path) == (
        Prompt("mine", "code", (("user", "two\nlines"),)),
        Prompt("own-1", "own", (("system", "Be brief."), ("user", "Hi?"))),
        Prompt("own-2", "own", (("user", "x"),)),
    )


def test_a_first_line_with_a_brace_is_jsonl_whatever_the_name(tmp_path: Path) -> None:
    path = write(tmp_path, '\n\ufeff{"prompt": "a"}\n'.replace("\ufeff", ""), "p.txt")
    assert texts(load_prompts(path)) == ["a"]


def test_made_up_ids_keep_clear_of_given_ones(tmp_path: Path) -> None:
    path = write(tmp_path, '{"prompt": "a"}\n{"prompt": "b", "id": "own-1"}\n{"prompt": "c"}')
    assert [prompt.id for prompt in load_prompts(path)] == ["own-2", "own-1", "own-3"]


def test_a_text_that_comes_twice_is_kept_once_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "a\nb\na\nc\nb\na\n", "p.txt")
    found = load_workload(path)
    assert isinstance(found, Workload)
    assert texts(found.prompts) == ["a", "b", "c"]
    assert found.duplicates == 3
    assert load_prompts(path) == found.prompts


def test_the_same_words_in_another_role_are_another_prompt(tmp_path: Path) -> None:
    system = {"messages": [{"role": r, "content": "x"} for r in ("system", "user")]}
    path = write(tmp_path, f'{{"prompt": "x"}}\n{json.dumps(system)}')
    assert load_workload(path).duplicates == 0


def test_only_the_named_tasks_are_kept_in_the_order_of_the_file(tmp_path: Path) -> None:
    rows = ((text, task) for text, task in zip("abcd", ("x", "y", "z", "x"), strict=True))
    path = write(tmp_path, "\n".join(json.dumps({"prompt": p, "task": t}) for p, t in rows))
    assert texts(load_prompts(path, ["z", "x"])) == ["a", "c", "d"]


# what is refused


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"prompt": ', "not valid JSON (Expecting value at column 11)"),
        ("plain words", "not valid JSON"),
        ("[1, 2]", "a list, not an object"),
        ("null", "null, not an object"),
        ("[" * 100_000, "JSON that cannot be read"),
        ('{"prompt": ' + "9" * 10_000 + "}", "JSON that cannot be read"),
        ("{}", "neither prompt nor messages: give one of them"),
        ('{"promt": "a"}', "unknown key 'promt': did you mean prompt?"),
        ('{"prompt": "a", "messages": []}', "both prompt and messages"),
        ('{"prompt": 5}', "prompt is a number: it must be text"),
        ('{"prompt": true}', "prompt is true or false"),
        ('{"prompt": "  "}', "prompt is empty"),
        ('{"prompt": "\\ud800"}', "half a surrogate pair"),
        ('{"prompt": "a", "task": ["code"]}', "task is a list"),
        ('{"prompt": "a", "id": 7}', "id is a number: id must be text, or left out"),
        ('{"prompt": "a", "id": ""}', "id is empty text"),
        ('{"prompt": "a", "id": "a\\u001b[31mb"}', "holds control characters"),
        ('{"prompt": "a", "task": "' + "t" * 65 + '"}', "too long"),
        ('{"messages": []}', "messages is an empty list"),
        ('{"messages": {"role": "user"}}', "messages is an object"),
        ('{"messages": ["hello"]}', "message 1 is text"),
        ('{"messages": [{"role": "usr", "content": "a"}]}', "allowed are system, user, assistant"),
        ('{"messages": [{"role": [1], "content": "a"}]}', "the role of message 1 is a list"),
        ('{"messages": [{"content": "a"}]}', "the role of message 1 is null"),
        ('{"messages": [{"role": "user"}]}', "the content of message 1 is null"),
        ('{"messages": [{"role": "user", "content": [{"type": "text"}]}]}', "is a list"),
        ('{"messages": [{"role": "assistant", "content": "a"}]}', "the last one must be user's"),
    ],
)
def test_a_bad_line_is_refused_with_file_line_and_reason(
    tmp_path: Path, line: str, expected: str
) -> None:
    path = write(tmp_path, f'{{"prompt": "fine"}}\n\n{line}\n')
    said = message(path)
    assert said.startswith(f"{path}, line 3: ")
    assert expected in said
    assert len(said) < len(str(path)) + 300


def test_an_id_given_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    path = write(tmp_path, '{"prompt": "a", "id": "x"}\n\n{"prompt": "b", "id": "x"}')
    assert "line 3: the id 'x' is that of line 1" in message(path)


def test_an_unknown_task_names_the_nearest_and_the_known_ones(tmp_path: Path) -> None:
    path = write(tmp_path, '{"prompt": "a", "task": "code"}\n{"prompt": "b", "task": "law"}')
    assert message(path, ["cod"]).endswith("has no task 'cod': did you mean code? it has code, law")
    assert "did you mean" not in message(path, ["qqqq"])


def test_an_empty_choice_of_tasks_is_refused(tmp_path: Path) -> None:
    assert "no task is chosen" in message(write(tmp_path, "a", "p.txt"), [])


@pytest.mark.parametrize("text", ["", "\n \r\n", "# only a comment\n", "\ufeff"])
def test_a_file_without_a_prompt_is_refused(tmp_path: Path, text: str) -> None:
    assert "holds no prompt" in message(write(tmp_path, text, "p.txt"))


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path: Path) -> None:
    assert f"{tmp_path / 'none.txt'} does not exist" in message(tmp_path / "none.txt")
    assert f"{tmp_path} is a folder" in message(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in message(tmp_path / "pipe")
    assert "cannot be read" in message(tmp_path / "a\0b")
    assert "cannot be read" in message(tmp_path / ("x" * 5000))


def test_an_escape_sequence_in_a_name_is_not_shown(tmp_path: Path) -> None:
    said = message(tmp_path / "a\x1b[2Jb\n.txt")
    assert said.startswith(f"{tmp_path}/ab .txt does not exist")


def test_text_in_another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    assert "line 2: not UTF-8 text" in message(write(tmp_path, b"a\ncaf\xe9\n", "p.txt"))
    assert "save it as UTF-8" in message(write(tmp_path, "hello".encode("utf-16-le"), "p.txt"))
    assert "not UTF-8 text" in message(write(tmp_path, "\u0101\u0102".encode("utf-16"), "p.txt"))


def test_a_file_beyond_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_file, "MAX_BYTES", 1024 * 1024)
    path = write(tmp_path, b"a" * (1024 * 1024 + 1), "p.txt")
    assert "is larger than 1 MB" in message(path)
    assert len(load_prompts(write(tmp_path, b"a" * (1024 * 1024), "p.txt"))) == 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["prompt", "messages", "role", "content"]), inner)
    ),
    max_leaves=8,
)
RECORDS = st.lists(
    st.dictionaries(st.sampled_from(["prompt", "messages", "task", "id", "x\x1b[1m"]), VALUES),
    max_size=3,
).map(lambda rows: "\n".join(map(json.dumps, rows)).encode())


@given(st.binary(max_size=300) | RECORDS, st.sampled_from(["p.txt", "p.jsonl"]))
def test_whatever_a_file_holds_it_loads_or_gives_one_printable_line(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str
) -> None:
    path = write(tmp_path_factory.getbasetemp(), data, name)
    said = ""
    found: tuple[Prompt, ...] = ()
    try:
        found = load_prompts(path)
    except WorkloadError as error:
        said = str(error)
    assert bool(found) != bool(said)
    assert said.isprintable()
    assert len({prompt.id for prompt in found}) == len(found)
    assert len({prompt.messages for prompt in found}) == len(found)


# interleave and digest

TASKED = st.lists(st.sampled_from("xyz"), max_size=40).map(
    lambda tasks: tuple(Prompt(str(n), t, (("user", str(n)),)) for n, t in enumerate(tasks))
)


@given(TASKED)
def test_interleaving_loses_nothing_and_keeps_each_tasks_order(prompts: tuple[Prompt, ...]) -> None:
    mixed = interleave(prompts, None)
    assert Counter(mixed) == Counter(prompts)
    for task in "xyz":
        assert [p for p in mixed if p.task == task] == [p for p in prompts if p.task == task]


@given(TASKED, st.integers(0, 8))
def test_each_task_gets_its_first_prompts_up_to_the_limit(
    prompts: tuple[Prompt, ...], limit: int
) -> None:
    mixed = interleave(prompts, limit)
    for task in "xyz":
        assert [p for p in mixed if p.task == task] == [p for p in prompts if p.task == task][
            :limit
        ]


@given(TASKED, st.integers(0, 40))
def test_wherever_a_run_is_stopped_the_tasks_had_equal_shares(
    prompts: tuple[Prompt, ...], stop: int
) -> None:
    mixed = interleave(prompts)
    sent, total = Counter(p.task for p in mixed[:stop]), Counter(p.task for p in prompts)
    # a task with prompts left is at most one turn behind any other
    left = [sent[task] for task in total if sent[task] < total[task]]
    assert all(max(sent.values(), default=0) - count <= 1 for count in left)


def test_the_digest_moves_with_ids_tasks_messages_and_order() -> None:
    a, b = Prompt("1", "x", (("user", "a"),)), Prompt("2", "x", (("user", "b"),))
    others = (
        (a,),
        (b, a),
        (Prompt("3", "x", a.messages), b),
        (Prompt("1", "y", a.messages), b),
        (Prompt("1", "x", (("system", "a"),)), b),
        (Prompt("1", "x", (("user", "a "),)), b),
        (),
    )
    digests = [digest((a, b)), *map(digest, others)]
    assert len(set(digests)) == len(digests)
    assert digests[0] == digest([a, b])
    assert all(len(found) == 16 and int(found, 16) >= 0 for found in digests)


def test_the_digest_is_the_same_in_every_version() -> None:
    assert digest([Prompt("é", "x", (("user", "Où ?"),))]) == "a83906f598162da5"
