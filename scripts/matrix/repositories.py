"""Rows of git: where the repository lies, large files, and signed commits."""

ME = "git -c user.name=u -c user.email=u@example.org"
EDIT = "date +%N > changed"
CHANGE = "git add -A && git commit -q -m work"

ROWS = [
    {"name": "git, linked worktree", "needs": "git",
     "workspace": ["git init -q repo", f"cd repo && echo work > README && git add -A && {ME} commit -q -m first && git worktree add -q ../work -b side",
                   "git -C repo config user.name u && git -C repo config user.email u@example.org"],
     "edit": EDIT, "lines": [CHANGE]},
    {"name": "git, submodule", "needs": "git",
     "workspace": ["git init -q part && git -C part config user.name u && git -C part config user.email u@example.org"
                   " && git -C part commit -q --allow-empty -m first",
                   "git init -q work && cd work && git config user.name u && git config user.email u@example.org"
                   " && git -c protocol.file.allow=always submodule --quiet add \"file://$PWD/../part\" part && git commit -q -m first",
                   "git -C work/part config user.name u && git -C work/part config user.email u@example.org"],
     "edit": "date +%N > part/changed",
     "lines": ["cd part && git add -A && git commit -q -m inside && cd .. && git add -A && git commit -q -m work"]},
    {"name": "git, a submodule as workspace", "needs": "git",
     "workspace": ["git init -q part && git -C part config user.name u && git -C part config user.email u@example.org"
                   " && git -C part commit -q --allow-empty -m first",
                   "git init -q whole && cd whole && git config user.name u && git config user.email u@example.org"
                   " && git -c protocol.file.allow=always submodule --quiet add \"file://$PWD/../part\" part && git commit -q -m first",
                   "git -C whole/part config user.name u && git -C whole/part config user.email u@example.org && ln -s whole/part work"],
     "in": "whole/part", "edit": EDIT, "lines": [CHANGE]},
    {"name": "git LFS", "needs": "git-lfs", "apt": "git-lfs", "files": {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"},
     "first": ["git lfs install --local"],
     "edit": "date +%N > large.bin",
     "lines": [CHANGE, "git lfs ls-files | grep -q large.bin", "git show HEAD:large.bin | grep -q git-lfs"]},
    {"name": "git, signed by an SSH key file", "needs": "ssh-keygen",
     "workspace": ["git init -q work && ssh-keygen -q -t ed25519 -N '' -f key && cd work && git config user.name u && git config user.email u@example.org"
                   " && git config gpg.format ssh && git config user.signingKey \"$PWD/../key\" && git config commit.gpgSign true"
                   " && (printf 'u@example.org '; cat ../key.pub) > signers && git config gpg.ssh.allowedSignersFile \"$PWD/signers\""],
     "sandbox": {"read": ["{base}/key"]}, "edit": EDIT, "lines": [CHANGE, "git verify-commit HEAD"]},
    {"name": "git, signed by GnuPG", "needs": "gpg", "apt": "gnupg", "env": {"GNUPGHOME": "{base}/keys"},
     "workspace": ["mkdir -m 700 keys; export GNUPGHOME=$PWD/keys; gpg -q --batch --passphrase '' --quick-generate-key 'u <u@example.org>'"
                   " && gpgconf --kill all",
                   "git init -q work && cd work && git config user.name u && git config user.email u@example.org && git config commit.gpgSign true"],
     "sandbox": {"write": ["{base}/keys"]}, "edit": EDIT, "lines": [CHANGE, "git verify-commit HEAD"]},
]
