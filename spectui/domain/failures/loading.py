"""What is said while models are loaded, or when memory and GPU fail later."""

from __future__ import annotations

from spectui.domain.failures.kinds import FailureClass, Remedy, patterns

_GPU = r"(?:CUDA|ROCm|HIP|MUSA|Vulkan|SYCL|Metal|CANN|OpenCL)(?!\w{0,8}_Host)\w{0,16}"
_FILE = r"'(?P<file>[^']{0,400})'"

LOADING: tuple[FailureClass, ...] = (
    FailureClass(
        "port-in-use",
        patterns(
            r"couldn't bind (?:HTTP|to) server socket(?:, hostname: (?P<host>[^,\s]{1,200}))?"
            r"(?:,? ?port: (?P<port>\d{1,5}))?",
            r"couldn't bind to server socket: hostname=(?P<host>\S{1,200}) port=(?P<port>\d{1,5})",
            r"couldn't start HTTP listener",
            r"address already in use",
            r"only one usage of each socket address",
        ),
        "the server could not listen on {host}, port {port}: something else does, or the address is"
        " not one of this machine",
        "stop what listens there (`ss -ltnp`), take another port, or correct --host",
        loading=True,
        remedies=(Remedy.ANOTHER_PORT,),
    ),
    FailureClass(
        "out-of-memory-gpu",
        patterns(
            r"allocating (?P<mib>[\d.]{1,20}) MiB on device (?P<device>\d{1,3}): "
            r"\w{1,40} failed: out of memory",
            r"(?:cudaMalloc|hipMalloc)\w{0,20} failed: out of memory",
            r"\.cu:\d{1,6}: out of memory",
            r"\b(?:CUDA|ROCm|HIP|MUSA|cuBLAS)(?: error)?(?: \d{1,4})?(?: at \S{1,300})?:? ?"
            r"out of memory",
            r"ErrorOutOfDeviceMemory|VK_ERROR_OUT_OF_DEVICE_MEMORY|OutOfDeviceMemoryError",
            r"ggml_vulkan: (?:Device|Failed to allocate) .{0,80}(?:failed|memory)",
            r"ErrorCallback.{0,4}OutOfMemory|CallbackErrorOutOfMemory",
            r"hipErrorOutOfMemory|CUDA_ERROR_OUT_OF_MEMORY|(?:CU|HIP)BLAS_STATUS_ALLOC_FAILED",
            r"UR_RESULT_ERROR_OUT_OF_(?:DEVICE|RESOURCES)",
            rf"unable to allocate (?P<buffer>{_GPU}) buffer",
            r"unable to allocate backend buffer",
            rf"failed to allocate (?P<buffer>{_GPU}) buffer of size (?P<bytes>\d{{1,20}})",
            r"ggml_metal\w{0,60}: error: (?:failed to allocate buffer|buffer is nil)",
            r"not enough memory for command submission",  # of Mesa's RADV; then the device is lost
        ),
        "the GPU has too little free memory for the weights, the KV cache and the work buffers of"
        " both models",
        "take a smaller context or a smaller KV cache type, put fewer layers on the GPU, keep the"
        " draft model on the CPU, or free memory (`nvidia-smi`, `rocm-smi`)",
        loading=True,
        remedies=(
            Remedy.SMALLER_CONTEXT,
            Remedy.FEWER_LAYERS,
            Remedy.DRAFT_ON_CPU,
            Remedy.SMALLER_CACHE,
        ),
    ),
    FailureClass(
        "out-of-memory-host",
        patterns(
            r"insufficient memory \(attempted to allocate +(?P<mib>[\d.]{1,20}) MB\)",
            r"failed to allocate (?P<buffer>[\w]{0,30}) ?buffer of size"
            r" (?P<bytes>\d{1,20})",
            r"unable to allocate (?P<buffer>\w{1,30}) buffer",
            r"failed to allocate (?:compute (?:\w{2} )?buffers|buffer for \w{1,20} cache)",
            r"failed to allocate +[\d.]{1,20} MB",
            r"std::bad_alloc",
            r"cannot allocate memory",
            r"posix_memalign failed",
            r"out of memory: killed process|memory cgroup out of memory|oom[-_]kill|OOMKilled"
            r"|killed by the OOM killer",
        ),
        "this machine has too little free memory for the models and the context",
        "take a smaller context, a smaller KV cache type or a smaller model; a container or a"
        " service may have a limit of its own",
        loading=True,
        remedies=(Remedy.SMALLER_CONTEXT, Remedy.SMALLER_CACHE),
    ),
    FailureClass(
        "gpu-error",
        patterns(
            r"\b(?:CUDA|ROCm|HIP|MUSA|SYCL|cuBLAS) error(?: \d{1,4})?(?: at \S{1,300})?"
            r":? ?(?P<reason>.{0,120})",
            r"DeviceLost|VK_ERROR_DEVICE_LOST|vk::\w{1,60}Error|device lost on",
            r"command buffer \d{1,4} failed with status",
            r"no kernel image is available",
            r"memory access fault by GPU|GPU hang|NVRM: Xid",
        ),
        "the GPU or its driver failed",
        "look whether the build fits this GPU and the driver fits the build; restart the driver or"
        " the machine if it worked before; GGML_CUDA_DISABLE_GRAPHS=1 or -fa off can help",
        remedies=(Remedy.FEWER_LAYERS,),
    ),
    FailureClass(
        "cache-type-invalid",
        patterns(
            r"quantized V cache (?:was requested|requires)",
            r"cache type \w{1,20} with block size",
            r"does not support different K .{0,40}cache types",
        ),
        "the KV cache cannot have these types with this model and these settings",
        "use f16 or q8_0 for both, and leave flash attention on",
        loading=True,
        remedies=(Remedy.PLAIN_CACHE,),
    ),
    FailureClass(
        "mtp-missing",
        patterns(
            r"context type MTP requested but model doesn't contain MTP layers",
            r"failed to create MTP context",
        ),
        "the target model has no MTP layers, so draft-mtp has nothing to draft with",
        "take a file of this model that was converted with its MTP layers, name an MTP sidecar as"
        " the draft model, or choose another type",
        loading=True,
        remedies=(Remedy.FROM_TEXT, Remedy.NO_SPECULATION),
    ),
    FailureClass(
        "synthetic-invalid",
        patterns(r"synthetic acceptance (?:rates must|length must|length and rates are|requires)"),
        "the made-up acceptance does not fit: one rate for each position of the draft is needed",
        "give --spec-synth-rates as many values as the draft is long, none above the one before, or"
        " leave it out: its text is meaningless anyway",
        loading=True,
        remedies=(Remedy.NO_SYNTHETIC,),
    ),
    FailureClass(
        "draft-load-failed",
        patterns(rf"failed to load draft model(?:,? {_FILE})?", r"failed to create draft context"),
        "the draft model {file} could not be loaded",
        "look at the reason above that line and at the path of the draft; the target alone runs"
        " without it",
        loading=True,
        remedies=(Remedy.FROM_TEXT, Remedy.NO_SPECULATION),
    ),
    FailureClass(
        "mmproj-failed",
        patterns(
            rf"failed to load multimodal model(?:,? {_FILE})?",
            r"failed to load CLIP model(?: from (?P<file>\S{1,400}))?",
            rf"clip_init: failed to load model {_FILE}",
            r"clip_model_load\w{0,20}: .{0,80}(?:fail|don't support projector)",
            r"unknown projector type",
            r"mismatch between (?:text model|vision).{0,80}mmproj",
        ),
        "the multimodal projector {file} could not be loaded",
        "take the mmproj file that belongs to this model, and a build that knows its projector; or"
        " run without --mmproj",
        loading=True,
        remedies=(Remedy.NO_PROJECTOR,),
    ),
    FailureClass(
        "architecture-unknown",
        patterns(
            r"(?:unknown|unsupported) model architecture: '(?P<architecture>[^']{0,80})'",
            r"unknown pre-tokenizer type: '(?P<architecture>[^']{0,80})'",
            r"unknown tokenizer: '(?P<architecture>[^']{0,80})'",
        ),
        "this llama-server does not know the model's architecture or tokenizer, {architecture}",
        "update llama.cpp; if the name looks wrong, the file was made by a fork, or is damaged",
        loading=True,
    ),
    FailureClass(
        "tensor-missing",
        patterns(
            r"missing tensor(?: info mapping for)? '?(?P<tensor>[\w.]{1,120})",
            r"tensor '(?P<tensor>[^']{1,120})' (?:not found|is missing|has wrong shape)",
            r"(?:wrong number of|too many) tensors",
        ),
        "the model file lacks {tensor}, or has it in a shape that llama-server does not expect",
        "update llama.cpp, or take another conversion of the model: the two do not fit each other",
        loading=True,
    ),
    FailureClass(
        "model-part",
        patterns(r"illegal split file.{0,600}must be loaded with the first split"),
        "the file is not the first part of its model",
        "name the first part, the one with -00001-of- in its name; the others are found beside it",
        loading=True,
    ),
    FailureClass(
        "model-truncated",
        patterns(
            r"data is not within the file bounds",
            r"failed to read (?:key-value pairs|tensor (?:info|data))",
            r"this GGUF file is version (?P<version>\d{1,10}) but",
            r"GGUF file version \d{1,10} is extremely large",
            r"string length \d{1,20} exceeds (?:remaining|maximum)",
            r"unexpectedly reached end of file",
            r"failed to load GGUF split|invalid split (?:count|file)|key \S{1,120} in GGUF split",
            r"found tensors with invalid data",
            r"\d{1,6} tensors expected but \d{1,6} found",
            r"tensor '[^']{1,120}' has invalid data",
        ),
        "the model file is cut short or damaged",
        "compare its size with the source's and download it again; of a split model every part must"
        " lie in the same folder",
        loading=True,
    ),
    FailureClass(
        "model-invalid",
        patterns(
            r"invalid magic (?:characters|number)",
            r"failed to read magic",
            r"bad GGUF version|GGUFv1 is no longer supported",
            r"is this really a GGML file",
            r"is a directory",
            r"(?:array )?key not found in model: (?P<key>\S{1,120})",
            r"key '?\S{1,120} has (?:wrong|invalid)",
            r"error loading model (?:hyperparameters|vocabulary)",
            r"cannot find tokenizer",
            r"number of (?:tensors|key value pairs) is -?\d{1,20} but must be",
            r"tensor '[^']{1,120}' (?:has invalid|has offset|of type|is duplicated)",
            r"duplicate (?:key|tensor name)",
        ),
        "the file is not a model that llama.cpp can read",
        "give a GGUF file: not a folder, a web page saved under its name, a Git LFS pointer, or a"
        " model of another format",
        loading=True,
    ),
    FailureClass(
        "permission-denied",
        patterns(
            rf"failed to open (?:GGUF file )?{_FILE}.{{0,20}}permission denied",
            r"failed to open (?P<file>\S{1,400}): permission denied",
            r"permission denied \[(?P<file>\S{1,300})\]",
            r"permission denied",
        ),
        "the file {file} may not be read by the user that runs the server",
        "correct its permissions, or those of the folders above it; in a container, mount it"
        " readable",
        loading=True,
    ),
    FailureClass(
        "model-missing",
        patterns(
            rf"failed to open GGUF file {_FILE}(?: \(No such file or directory\))?",
            r"failed to open (?P<file>\S{1,400}): No such file or directory",
            r"error: failed to open (?:model )?file '(?P<file>[^']{0,400})'",
        ),
        "there is no file {file}",
        "correct the path of the model; in a container it is the path inside",
        loading=True,
    ),
    FailureClass(
        "backend-missing",
        patterns(r"no CPU backend found", r"no backends are loaded"),
        "llama-server has nothing to compute with: it found no library of a backend, libggml-cpu"
        " or another",
        "leave the files libggml-* (ggml-*.dll) in the program's folder, or take a build for this"
        " processor",
        loading=True,
    ),
    FailureClass(
        "template-invalid",
        patterns(
            r"chat template parsing error",
            r"the supplied chat template is not supported",
            r"failed to parse chat template",
        ),
        "the chat template, the model's own or the one given, cannot be used",
        "give another with --chat-template (chatml fits most), or update llama.cpp",
        loading=True,
    ),
    FailureClass(
        "download-failed",
        patterns(
            r"failed to download (?:model|file|manifest)",
            r"curl_easy_perform\(\) failed|HTTPLIB failed",
            r"(?:error from HF API|HEAD failed|failed to get manifest)",
            r"HTTPS (?:is not supported|requested but)",
        ),
        "the model could not be downloaded",
        "look at the name of the repository, the network and the access token; or download the file"
        " yourself and name it with -m",
        loading=True,
    ),
    FailureClass(
        "disk-full",
        patterns(r"no space left on device"),
        "the disk is full",
        "free space, or point the model's cache elsewhere (LLAMA_CACHE)",
    ),
)
"""Said while the models are loaded, or when memory and GPU fail later."""
