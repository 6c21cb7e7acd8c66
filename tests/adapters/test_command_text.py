"""Commands in a text: scripts, containers, units and configurations."""

import pytest

from spectui.adapters.command_text import LIMIT, commands_of_words, find_commands
from spectui.domain.errors import UsageError


def only(text):
    [command] = find_commands(text)
    return command


def arguments(text):
    return " ".join(only(text).arguments)


SWAP = """\
macros:
  s: llama-server
models:
  x:
    cmd: |
      ${s}
      # why
      -m a.gguf"""


@pytest.mark.parametrize(
    "text",
    [
        "llama-server -m a.gguf",
        "  $ llama-server -m a.gguf",
        "exec llama-server -m a.gguf &",
        "nohup llama-server -m a.gguf > log 2>&1 &",
        "sudo -u me nice -n 5 llama-server -m a.gguf",
        "numactl -N 0 -m 0 llama-server -m a.gguf",
        "taskset -c 0-7 llama-server -m a.gguf",
        "timeout 60 llama-server -m a.gguf",
        "gdb --args llama-server -m a.gguf",
        "bash -c 'llama-server -m a.gguf'",
        'sh -lc "exec llama-server -m a.gguf"',
        "cd /x && llama-server -m a.gguf",
        "if true; then llama-server -m a.gguf; fi",
        "MODEL=a.gguf\nllama-server -m $MODEL",
        'ARGS="-m a.gguf"\nllama-server $ARGS',
        'ARGS=(-m a.gguf)\nllama-server "${ARGS[@]}"',
        "llama-server \\\n  -m a.gguf",
        "llama-server\n  -m a.gguf",  # the continuation got lost
        "llama-server `\n  -m a.gguf",
        "llama-server ^\n  -m a.gguf",
        "@echo off\r\nset MODEL=a.gguf\r\nllama-server -m %MODEL%\r\npause",
        "$m = 'a.gguf'; & llama-server -m $m",
        "```bash\nllama-server -m a.gguf\n```",
        "\ufeffllama-server -m a.gguf",
        "models:\n  x:\n    cmd: llama-server -m a.gguf",
        SWAP,
        "[Service]\nExecStart=llama-server -m a.gguf\n",
        "[Service]\nExecStart=-llama-server \\\n  -m a.gguf\nRestart=always\n",
    ],
)
def test_the_same_command_however_it_is_written(text):
    assert arguments(text) == "-m a.gguf"
    assert only(text).program == "llama-server"


@pytest.mark.parametrize(
    "text",
    [
        "docker run ghcr.io/ggml-org/llama.cpp:server -m /m/a.gguf",
        "sudo docker run --rm -it --gpus all -p 1:2 ghcr.io/ggml-org/llama.cpp:server -m /m/a.gguf",
        "podman run -dp 8080:8080 --name=x llama.cpp:full --server -m /m/a.gguf",
        "docker run --entrypoint /app/llama-server any:image -m /m/a.gguf",
        "docker run any:image /app/llama-server -m /m/a.gguf",
        "docker exec -it box llama-server -m /m/a.gguf",
        "services:\n  x:\n    image: llama.cpp:server\n    command: -m /m/a.gguf",
        "services:\n  x:\n    image: llama.cpp:server\n    command: ['-m', '/m/a.gguf']",
        "services:\n  x:\n    build: .\n    entrypoint: llama-server\n    command: -m /m/a.gguf",
        "[Container]\nImage=llama.cpp:server\nExec=-m /m/a.gguf\n",
    ],
)
def test_the_same_container_however_it_is_written(text):
    command = only(text)
    assert command.container
    assert " ".join(command.arguments) == "-m /m/a.gguf"


def test_what_a_container_is_given():
    command = only(
        "X=1 docker run -e A=b --env=C=d -e HF_TOKEN --env-file f"
        " -v /host:/m:ro -v models:/vol --mount type=bind,src=/h2,dst=/m2"
        " llama.cpp:server -m /m/a.gguf"
    )
    assert dict(command.env) == {"X": "1", "A": "b", "C": "d"}
    assert command.mounts == (("/host", "/m"), ("/h2", "/m2"))
    assert [notice.code for notice in command.notices] == ["variable", "env-file", "path-unmapped"]


def test_a_container_that_starts_the_server_with_a_script():
    command = only(
        "services:\n  x:\n    image: i\n    command: [-m, /m/a.gguf]\n"
        "    entrypoint: [sh, -c, 'exec /app/llama-server \"$$@\"', --]\n"
    )
    assert command.program == "/app/llama-server"
    assert command.arguments == ("-m", "/m/a.gguf")


def test_units_and_compose_files_set_variables():
    unit = 'Environment="A=b c" D=e\nEnvironmentFile=/etc/x\nExecStart=llama-server -m a.gguf'
    command = only(f"[Service]\n{unit}\n")
    assert command.env == (("A", "b c"), ("D", "e"))
    assert [notice.code for notice in command.notices] == ["env-file"]
    compose = "services:\n  x:\n    image: llama.cpp:server\n    environment:\n      A: true\n"
    assert only(f"{compose}      LLAMA_ARG_MODEL: /m/a.gguf\n").env[0] == ("A", "true")


def test_variables_of_the_shell():
    assert only("A=1 B='2 3' llama-server -m a").env == (("A", "1"), ("B", "2 3"))
    assert only("export A=1\nB=2\nllama-server -m a").env == (("A", "1"),)


def test_several_commands_with_their_names():
    found = find_commands(
        "models:\n  big:\n    cmd: llama-server -m a\n  vllm:\n    cmd: vllm serve x\n"
        "  small:\n    cmd: llama-server -m b\n"
    )
    assert [command.name for command in found] == ["big", "small"]
    assert len(find_commands("llama-server -m a\nllama-cli -m b\nllama-server -m c")) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello world",
        "curl http://localhost:8080/health",
        "vllm serve Qwen/Qwen3-8B --port 8000 --max-model-len 4096",
        "python -m vllm.entrypoints.openai.api_server --model x --port 1 --host h --api-key k",
        "docker run vllm/vllm-openai --model x",
        "services:\n  db:\n    image: postgres\n",
        "models: []\n",
        "[Service]\nExecStart=/usr/bin/nginx\n",
        "server -c my.conf",
    ],
)
def test_what_is_none_of_llama_cpp(text):
    assert find_commands(text) == ()


def test_an_unknown_program_that_takes_a_servers_flags():
    text = "my-build -m a.gguf -ngl 9 -c 512 --port 80"
    assert only(text).program == "my-build"


def test_words_that_a_shell_has_split_already():
    [command] = commands_of_words(["A=1", "llama-server", "-m", "a b.gguf"])
    assert command.arguments == ("-m", "a b.gguf")
    [command] = commands_of_words(["llama-server -m 'a b.gguf'"])
    assert command.arguments == ("-m", "a b.gguf")
    [command] = commands_of_words(["bash", "-c", "llama-server -m a.gguf"])
    assert command.arguments == ("-m", "a.gguf")
    [command] = commands_of_words(["-m", "a.gguf"])
    assert (command.program, command.arguments) == ("", ("-m", "a.gguf"))
    assert commands_of_words(["echo", "hello"]) == ()


def test_a_text_that_is_far_too_long_is_refused():
    with pytest.raises(UsageError, match="too long"):
        find_commands("x" * (LIMIT + 1))


def test_a_broken_configuration_is_refused_with_its_line():
    with pytest.raises(UsageError, match=r"not valid YAML \(line 3\)"):
        find_commands("models:\n  x:\n    cmd: 'llama-server\n")


def test_macros_that_hold_each_other_come_to_an_end():
    with pytest.raises(UsageError, match="grow without end"):
        find_commands(
            "macros:\n  a: ${b}${b}${b}${b}${b}${b}${b}${b}\n  b: ${a}${a}${a}${a}${a}${a}${a}\n"
            "models:\n  x:\n    cmd: llama-server -m ${a}\n"
        )


def test_an_alias_bomb_of_yaml_is_no_problem():
    bomb = "".join(f"  k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9)}]\n" for n in range(1, 9))
    text = f"macros:\n  k0: &k0 x\n{bomb}models:\n  x:\n    cmd: llama-server -m a.gguf\n"
    assert arguments(text) == "-m a.gguf"


def test_a_variable_that_powershell_sets_is_no_riddle():
    command = only("$m = 'a.gguf'\n& llama-server -m $m -c $size")
    assert command.arguments == ("-m", "a.gguf", "-c", "$size")
    [notice] = command.notices
    assert notice.message.startswith("$size has no value")
