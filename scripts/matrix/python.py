"""Rows of Python: installers, test runners, numpy, linters, and pre-commit."""

SIX = "import unittest, six\nclass T(unittest.TestCase):\n    def test(self): self.assertTrue(six.PY3)\n"
NUMPY = "import numpy\n\ndef test_sum():\n    assert numpy.arange(10_000).reshape(100, 100).sum() == 49995000\n\ndef test_solve():\n    assert (numpy.linalg.inv(numpy.eye(50)) == numpy.eye(50)).all()\n"
VENV = "python3 -m venv .venv && .venv/bin/pip install -q"

ROWS = [
    {"name": "pip", "needs": "python3", "registry": "pypi", "files": {"requirements.txt": "six==1.16.0\n", "test_work.py": SIX},
     "lines": [f"{VENV} -r requirements.txt", ".venv/bin/python -m unittest -q"]},
    {"name": "uv", "needs": "uv", "pip": "uv", "registry": "pypi",
     "files": {"pyproject.toml": '[project]\nname = "work"\nversion = "1.0.0"\nrequires-python = ">=3.9"\ndependencies = ["six"]\n',
               "test_work.py": SIX},
     "lines": ["uv sync -q", "uv run -q python -m unittest -q"]},
    {"name": "poetry", "needs": "poetry", "pip": "poetry", "registry": "pypi",
     "files": {"pyproject.toml": '[project]\nname = "work"\nversion = "1.0.0"\nrequires-python = ">=3.9"\n[tool.poetry]\npackage-mode = false\n'
               '[[tool.poetry.source]]\nname = "simple"\nurl = "{registry}"\npriority = "primary"\n',
               "test_work.py": SIX, "poetry.toml": "[virtualenvs]\nin-project = true\n"},
     "first": ["poetry add six@1.16.0"], "lines": ["poetry install -q", "poetry run python -m unittest -q"]},
    {"name": "pytest-xdist, numpy", "needs": "python3", "registry": "pypi", "files": {"test_work.py": NUMPY},
     "first": [f"{VENV} pytest pytest-xdist numpy"], "lines": [".venv/bin/pytest -q -n 2"]},
    {"name": "ruff, mypy", "needs": "python3", "registry": "pypi",
     "files": {"work.py": "def double(number: int) -> int:\n    return number * 2\n", ".gitignore": ".venv/\n.ruff_cache/\n.mypy_cache/\n"},
     "first": [f"{VENV} ruff mypy"], "lines": [".venv/bin/ruff check .", ".venv/bin/ruff format --check .", ".venv/bin/mypy work.py"]},
    {"name": "pre-commit", "needs": "pre-commit", "pip": "pre-commit", "registry": "pypi",
     "files": {"work.py": "a = 1\n", ".pre-commit-config.yaml":
               "repos:\n- repo: local\n  hooks:\n  - {id: compiles, name: compiles, language: system, entry: python3 -m py_compile, types: [python]}\n"},
     "first": ["git add -A && pre-commit install"],
     "edit": "echo \"b = $(date +%s)\" > work.py", "lines": ["pre-commit run --all-files", "git add -A && git commit -q -m work"]},
]
