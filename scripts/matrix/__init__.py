"""The matrix of toolchains that `scripts/toolchains` runs: what a row is, the folder it works in, and the rows by subject."""
