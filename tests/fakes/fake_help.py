"""What ``--help`` of llama-server looks like, by time and fork. Standard library only."""

from __future__ import annotations

TYPES = (
    "none,draft-simple,draft-eagle3,draft-mtp,draft-dflash,draft-dspark,"
    "ngram-simple,ngram-map-k,ngram-map-k4v,ngram-mod,ngram-cache"
)

TODAY = f"""\
----- common params -----

-h,    --help, --usage                  print usage and exit
-ngl,  --gpu-layers, --n-gpu-layers N   layers to keep in VRAM, a number,
                                        'auto', or 'all' (default: auto)
--host HOST                             address to listen on
--port PORT                             port to listen on
--metrics                               an endpoint with metrics
--slots, --no-slots                     an endpoint with the slots
--spec-draft-model, -md, --model-draft FNAME
                                        a draft model
--spec-draft-ngl, -ngld N               layers of it to keep in VRAM
--spec-draft-device, -devd DEV          devices of it
--spec-draft-type-k, -ctkd TYPE         its KV cache
--spec-draft-type-v, -ctvd TYPE         its KV cache
--spec-type {TYPES}
                                        comma-separated list of types
--spec-draft-n-max N                    tokens to draft
--spec-draft-n-min N                    fewest tokens
--spec-draft-p-min P                    least confidence
--spec-ngram-mod-n-max N                tokens to draft
--spec-ngram-mod-n-min N                fewest tokens
--spec-ngram-mod-n-match N              tokens to look up
--spec-ngram-simple-size-n N            tokens to look up
--spec-ngram-simple-size-m N            tokens to draft
--spec-ngram-map-k-size-n N             tokens to look up
--spec-ngram-map-k-size-m N             tokens to draft
--spec-ngram-map-k4v-size-n N           tokens to look up
--spec-ngram-map-k4v-size-m N           tokens to draft
--spec-ngram-map-k4v-min-hits N         fewest hits
--draft, --draft-n, --draft-max N       the argument has been removed. use --spec-draft-n-max
"""

OF_2024 = """\
----- common params -----

-h,    --help, --usage                  print usage and exit
-ngl,  --gpu-layers, --n-gpu-layers N   number of layers to store in VRAM
--host HOST                             ip address to listen (default: 127.0.0.1)
--port PORT                             port to listen (default: 8080)
--metrics                               enable prometheus compatible metrics endpoint
--slots                                 enable slots monitoring endpoint (default: disabled)
-md,   --model-draft FNAME              draft model for speculative decoding (default: unused)
-ngld, --gpu-layers-draft N             number of layers of it to store in VRAM
-devd, --device-draft <dev1,dev2,..>    devices of the draft model
--draft-max, --draft, --draft-n N       number of tokens to draft (default: 16)
--draft-min, --draft-n-min N            minimum number of draft tokens (default: 5)
--draft-p-min P                         minimum probability (greedy) (default: 0.9)
-cd,   --ctx-size-draft N               size of the prompt context for the draft model
"""

OF_EARLY_2026 = """\
----- common params -----

-h,    --help, --usage                  print usage and exit
-ngl,  --gpu-layers, --n-gpu-layers N   max. number of layers to store in VRAM, a number,
                                        'auto', or 'all' (default: auto)
--port PORT                             port to listen (default: 8080)
--metrics                               enable prometheus compatible metrics endpoint
--slots, --no-slots                     expose slots monitoring endpoint (default: enabled)
-md,   --model-draft FNAME              draft model for speculative decoding (default: unused)
-ngld, --gpu-layers-draft N             number of layers of it to store in VRAM
-devd, --device-draft <dev1,dev2,..>    devices of the draft model
-ctkd, --cache-type-k-draft TYPE        its KV cache
-ctvd, --cache-type-v-draft TYPE        its KV cache
--draft, --draft-n, --draft-max N       number of tokens to draft (default: 16)
--draft-min, --draft-n-min N            minimum number of draft tokens (default: 0)
--draft-p-min P                         minimum probability (greedy) (default: 0.75)
--spec-type [none|ngram-cache|ngram-simple|ngram-map-k|ngram-map-k4v|ngram-mod]
                                        type to use when no draft model is provided
                                        (default: none)
--spec-ngram-size-n N                   length of lookup n-gram (default: 12)
--spec-ngram-size-m N                   length of draft m-gram (default: 48)
--spec-ngram-min-hits N                 minimum hits for ngram-map (default: 1)
"""

IK = """\
usage: llama-server [options]

  -h,    --help, --usage          print usage and exit
  -ngl,  --gpu-layers N           layers to store in VRAM
         --host HOST              ip address to listen (default: 127.0.0.1)
         --port PORT              port to listen (default: 8080)
         --metrics                enable prometheus compatible metrics endpoint
  -md,   --model-draft FNAME      draft model for speculative decoding
  -ngld, --gpu-layers-draft N     layers of it to store in VRAM
  -ctkd, --cache-type-k-draft TYPE   its KV cache
  --draft-max, --draft, --draft-n N  number of tokens to draft (default: 16)
  --spec-type SPEC[:k=v,...]      a stage of speculation; repeat for a chain of two.
                                  types: none, draft, dflash, dspark, mtp, ngram-cache, \
ngram-simple, ngram-map-k, ngram-map-k4v, ngram-mod, suffix
                                  examples: --spec-type mtp:n_max=1,p_min=0.0
                                            --model-draft draft.gguf --spec-type dflash:n_max=4
  --spec-autotune                 tune speculative params by itself
"""
