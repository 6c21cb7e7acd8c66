"""Shell text → words, in the quoting of three shells; nothing is run or looked up."""

import pytest
from hypothesis import given, strategies as st

from spectui.adapters.shell_words import Style, statements, style_of


def words(text, style=Style.SH, **variables):
    reader = statements(text, style, {name: [value] for name, value in variables.items()})
    return [statement.words for statement in reader]


def codes(text, style=Style.SH):
    reader = statements(text, style, {})
    list(reader)
    return [notice.code for notice in reader.notices]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b  c", [["a", "b", "c"]]),
        ("a 'b c' \"d e\"", [["a", "b c", "d e"]]),
        (r"a b\ c \"d", [["a", "b c", '"d']]),
        ('a "b\\"c" \'d\\e\'', [["a", 'b"c', "d\\e"]]),
        ("a \\\n  b", [["a", "b"]]),
        ("a \\  \n  b", [["a", "b"]]),  # a blank behind the backslash is a slip
        ("a b # why\nc", [["a", "b"], ["c"]]),
        ("a # \\\nb", [["a"], ["b"]]),
        ("a; b && c | d &", [["a"], ["b"], ["c"], ["d"]]),
        ("a > out.txt 2>&1 < in b", [["a", "b"]]),
        ("cat <<EOF\nllama-server\nEOF\na", [["cat"], ["a"]]),
        ("```sh\n$ a b\n```", [["a", "b"]]),
        ("user@box:~/x$ a b", [["a", "b"]]),
        ("(base) user@box:~$ a", [["a"]]),
        ("> --a b", [["--a", "b"]]),
        ("$llama-server -m x", [["llama-server", "-m", "x"]]),
        ("-c $((32 * 1024))", [["-c", "32768"]]),
        ("-c $((1 + $(x)))", [["-c", "$((1 + $(x)))"]]),
        ("-m <MODEL FILE> -c 1", [["-m", "<MODEL FILE>", "-c", "1"]]),
        ("-m $HOME/a ${HOME}/b", [["-m", "~/a", "~/b"]]),
        ("-m ${X:-a.gguf}", [["-m", "a.gguf"]]),
        ("''", [[""]]),
        ("", []),
    ],
)
def test_sh(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a ^\n  "b c" ^\r\n d', [["a", "b c", "d"]]),
        (r"C:\x\a.exe -m D:\m\b.gguf", [["C:\\x\\a.exe", "-m", "D:\\m\\b.gguf"]]),
        (r'a "{\"b\":1}"', [["a", '{"b":1}']]),
        ("a 'b c'", [["a", "'b", "c'"]]),  # cmd knows no single quotes
        ("a & b", [["a"], ["b"]]),
        ("a %HOME%", [["a", "~"]]),
        ("a > log.txt 2>&1", [["a"]]),
    ],
)
def test_cmd(text, expected):
    assert words(text, Style.CMD) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a `\n  -b 'c d' `\n -e", [["a", "-b", "c d", "-e"]]),
        ("PS D:\\x> .\\a.exe `\n>>  -b 1 `\n>>  -c 2", [[".\\a.exe", "-b", "1", "-c", "2"]]),
        ("& 'C:\\a b\\c.exe' -m x", [["C:\\a b\\c.exe", "-m", "x"]]),
        ("a '{\\\"b\\\": 1}'", [["a", '{"b": 1}']]),  # the program takes the backslash off
        ('a "b `"c`""', [["a", 'b "c"']]),
    ],
)
def test_powershell(text, expected):
    assert words(text, Style.POWERSHELL) == expected


def test_variables_that_the_text_sets():
    assert words("a $B ${C}x", B="1 2", C="3") == [["a", "1", "2", "3x"]]
    assert words('a "$B"', B="1 2") == [["a", "1 2"]]
    assert words("A=(1 '2 3')\nx \"${A[@]}\"") == [["x", "1", "2 3"]]
    assert words("A=(1)\nA+=(2)\nx ${A[@]}") == [["x", "1", "2"]]


def test_what_cannot_be_known_stays_and_is_told():
    assert words("a $B $(c d) `e`") == [["a", "$B", "$(c d)", "`e`"]]
    assert codes("a $B $B $(c d)") == ["variable", "substitution"]


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("llama-server -m a \\\n -c 1", Style.SH),
        ("llama-server -m a ^\n -c 1", Style.CMD),
        ("@echo off\nllama-server -m a", Style.CMD),
        ("llama-server -m C:\\a.gguf", Style.CMD),
        ("llama-server -m C:\\a.gguf -ts '3,1'", Style.POWERSHELL),
        ("llama-server `\n -m a", Style.POWERSHELL),
        ("$env:X = 1; llama-server -m a", Style.POWERSHELL),
    ],
)
def test_whose_quoting_it_is(text, style):
    assert style_of(text) is style


@given(st.text(alphabet="ab -\\\"'`$(){}[]<>#;&|^%=\n\r\t:~@", max_size=60), st.sampled_from(Style))
def test_any_text_ends_and_no_character_is_read_twice(text, style):
    found = words(text, style)
    assert sum(len(word) for each in found for word in each) <= len(text) + 4
