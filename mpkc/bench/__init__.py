"""What `mpkc bench` measures: one module a benchmark."""
