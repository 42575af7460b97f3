"""Models from files to tops programs: GGUF, Hugging Face checkpoints, tokenizers, the weight cache."""
