"""What `mpkc run` does for each kind of program: tensor operators, tile programs, multi-engine programs."""
