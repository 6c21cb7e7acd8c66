"""What is said before anything is loaded, and as the program dies."""

from __future__ import annotations

from spectui.domain.failures.kinds import FailureClass, Remedy, patterns, windows

START: tuple[FailureClass, ...] = (
    FailureClass(
        "library-missing",
        patterns(
            r"error while loading shared libraries: (?P<library>[^:\s]{1,200})",
            r"version .?(?P<library>(?:GLIBC|GLIBCXX|CXXABI)_[\d.]{1,12}).? not found",
            r"Library not loaded: (?P<library>\S{1,300})",
            r"\b(?P<library>\w[\w.-]{1,80}\.dll) was not found",
        ),
        "the program needs {library}, which this machine does not have",
        "install the package with that library, add its folder to LD_LIBRARY_PATH, or take a build"
        " made for this system; libcuda.so.1 comes with the NVIDIA driver, in a container with"
        " --gpus all",
        # of Windows: no such library, no such function in it, its start failed
        exits=(127, *windows(0xC0000135, 0xC0000139, 0xC0000142)),
        first=True,
    ),
    FailureClass(
        "program-missing",
        patterns(
            r"llama-server(?:\.exe)?['\"]?: (?:command )?not found",
            r"command not found",
            r"exec:? \S{0,300}llama-server\S{0,60} .{0,200}no such file",
            r"exec \S{0,300}llama-server: no such file",
            r"exec: .{0,200}executable file not found",
            r"^[\w-]{1,20}: (?:line )?(?:\d{1,6}: )?(?:exec: )?\S{0,300}llama-server\S{0,20}: "
            r"(?:no such file or directory|not found)",
            r"no such file or directory: \S{0,300}llama-server",
            r"unknown command:? \S{0,300}llama-server",
            r"FileNotFoundError: \[Errno 2\]",
            r"^.{0,600}llama-server.{0,3000}no such file or directory \(os error 2\)",
        ),
        "there is no program of that name",
        "give the whole path of llama-server, and look whether it is there",
        first=True,
    ),
    FailureClass(
        "not-executable",
        patterns(
            r"exec format error|bad CPU type in executable",
            r"is an incompatible architecture \(have",
            r"cannot execute(?: binary file|: required file)",
            r"not a valid Win32 application",
            r"OSError: \[Errno 8\]",
            r"PermissionError: \[Errno 13\].{0,200}llama",
            r"^.{0,600}llama-server.{0,3000}permission denied \(os error 13\)",
            r"(?:sh: |exec:? ).{0,300}permission denied",
            r"^\S{0,300}llama-server: Permission denied",
        ),
        "the program cannot be executed: not marked as a program, or made for another processor",
        "run chmod +x on it, and compare `file llama-server` with `uname -m`",
        exits=(126,),
        first=True,
    ),
    FailureClass(
        "argument-removed",
        patterns(
            r"error while handling (?P<kind>argument|environment variable) \"(?P<flag>[^\"]{1,100})"
            r"\": the argument has been removed\.?(?: use (?P<successor>.{1,160}))?"
        ),
        "this llama-server no longer has {flag}",
        "use {successor} instead, or leave it out; a build from before its removal still takes it",
        first=True,
        remedies=(Remedy.TRANSLATED_FLAG, Remedy.REMOVED_FLAG),
    ),
    FailureClass(
        "argument-unknown",
        patterns(r"error: (?:invalid|unknown|unrecognized) argument: (?P<flag>\S{1,100})"),
        "this llama-server has no argument {flag}",
        "look it up in `llama-server --help`: it was renamed, mistyped, or this build is too old or"
        " too new for it",
        first=True,
        remedies=(Remedy.TRANSLATED_FLAG, Remedy.REMOVED_FLAG),
    ),
    FailureClass(
        "argument-invalid",
        patterns(
            r"error while handling (?P<kind>argument|environment variable) \"(?P<flag>[^\"]{1,100})"
            r"\": (?P<reason>.{1,200})",
            r"error: unknown value for (?P<flag>-[\w-]{1,60}): (?P<reason>.{1,200})",
            r"(?P<reason>unknown speculative type: \S{1,80})",
            r"error: invalid parameter for argument: (?P<flag>\S{1,100})",
            r"error: invalid value for (?:argument )?(?P<flag>\S{1,100})",
            r"error: --(?P<flag>model) is required",
        ),
        "the value of {flag} is not one that llama-server takes",
        "correct it; the usage printed below the error lists what is allowed, and a flag without"
        " its value swallows the next word",
        first=True,
        remedies=(Remedy.TYPE, Remedy.REMOVED_FLAG),
    ),
)
"""Said before anything is loaded."""

CRASH: tuple[FailureClass, ...] = (
    FailureClass(
        "draft-wrong-kind",
        patterns(
            r"draft model is not (?P<kind>\w{1,20})",
            r"\b(?P<kind>\w{1,20}) (?:model|draft) has no target_layer_ids",
            r"(?P<kind>EAGLE3|DFlash|DSpark): target layer",
            r"n_embd == llama_model_n_embd_out",
            r"layer input tensor is null",
            r"set_token_embd: embedding size mismatch",
        ),
        "the draft model is not of the kind that the chosen type needs, or was made for another"
        " target",
        "use draft-simple with a plain small model, or take the {kind} draft that was made for this"
        " very target",
        remedies=(Remedy.TYPE, Remedy.NO_SPECULATION),
    ),
    FailureClass(
        "assertion",
        patterns(
            r"GGML_ASSERT\(|GGML_ABORT",
            r"^\S{1,300}\.(?:cpp|cc|c|cu|cuh|m|h|hpp):\d{1,6}: .{1,200}",
            r"terminate called|libc\+\+abi: terminating",
            r"^Aborted\b|\bAborted(?: +\(core dumped\)|$)|signal: abort",
            r"assertion .{0,200} failed",
            r"^(?:(?:free|malloc|realloc|munmap_chunk)\(\): |corrupted size vs|double free or)",
        ),
        "llama-server stopped itself: a check of its own failed",
        "search llama.cpp's issues for that line; a newer build, another type or draft, or fewer"
        " options often avoid it",
        exits=(-6, 134, 3, *windows(0xC0000409)),
        remedies=(Remedy.NO_SPECULATION,),
    ),
    FailureClass(
        "illegal-instruction",
        patterns(r"illegal instruction", r"invalid opcode", r"\bSIGILL\b|signal=ILL\b"),
        "the program uses instructions that this processor does not have",
        "take or build llama.cpp for this processor (GGML_NATIVE=OFF, no AVX-512 or AVX2)",
        exits=(-4, 132, *windows(0xC000001D)),
    ),
    FailureClass(
        "segfault",
        patterns(r"segmentation fault", r"segfault at", r"\bSIGSEGV\b|signal=SEGV\b"),
        "llama-server crashed with an invalid memory access",
        "try without speculation and with a newer build; if only this setting crashes, report it to"
        " llama.cpp",
        exits=(-11, 139, *windows(0xC0000005)),
        remedies=(Remedy.NO_SPECULATION,),
    ),
    FailureClass(
        "crashed",
        patterns(
            r"\bSIGBUS\b|^Bus error|signal=BUS\b",
            r"\bSIGFPE\b|^Floating point exception|signal=FPE\b",
        ),
        "llama-server crashed",
        "after a bus error, look whether the model file changed or its disk failed while it ran;"
        " otherwise try without speculation and with a newer build",
        exits=(-7, 135, -8, 136, -5, 133, -31, 159),
        remedies=(Remedy.NO_SPECULATION,),
    ),
    FailureClass(
        "killed",
        patterns(
            r"signal: killed",
            r"(?:^|\s)Killed$|^\S{0,200} ?line \d{1,6}: +\d{1,10} Killed\b",
            r"\bSIGKILL\b|signal=KILL\b",
        ),
        "llama-server was killed from outside, often by the kernel because memory ran out",
        'look into `dmesg` for "Out of memory"; a smaller context or model, or a higher limit of'
        " the container, helps",
        exits=(-9, 137),
        remedies=(Remedy.SMALLER_CONTEXT, Remedy.SMALLER_CACHE),
    ),
)
"""Said by the program or its surroundings as it dies."""
