"""The Neuron-style target: ISA text, its reader and printer, and a simulator that reads nothing else (docs/isa.md)."""
