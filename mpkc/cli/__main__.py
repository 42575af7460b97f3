from mpkc.cli import main

main()
