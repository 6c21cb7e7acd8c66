"""llama-server's flags on the xllamacpp engine: ``python -m spectui.embedded``."""
