"""What `arcfleet bench` runs: the AFA paper's workloads on the native engine, beside loops written by hand.

Needs the packages of `arcfleet[bench]`, and a C compiler for the loops. `bench/README.md` says what each row is.
"""
