"""What a few dozen questions are answered today, as hashes: a change that is to alter no plan is held to them.

`python -m tests.recorded` asks all of them and compares; `python -m tests.recorded --write` records them anew, which a
change that alters plans on purpose says in its commit. The quick ones are asked by `make test` as well.
"""
