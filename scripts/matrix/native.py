"""Rows of compiled languages: Rust, Go, C and C++, with sanitizers and debuggers."""

from pathlib import Path

C = "#include <stdio.h>\nint sum(int a, int b) { return a + b; }\nint main(void) { printf(\"%d\\n\", sum(1, 2)); return 0; }\n"
THREADS = ("#include <thread>\n#include <atomic>\n#include <vector>\nint main() {\n  std::atomic<int> sum{0};\n  std::vector<std::thread> all;\n"
           "  for (int i = 0; i < 4; i++) all.emplace_back([&] { sum++; });\n  for (auto &one : all) one.join();\n  return sum == 4 ? 0 : 1;\n}\n")
LEAK = "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(100); p = 0; return 0; }\n"
FNV = "#[test]\nfn works() {\n    let mut map = fnv::FnvHashMap::default();\n    map.insert(1, 2);\n    assert_eq!(map[&1], 2);\n}\n"
CARGO = '[package]\nname = "work"\nversion = "0.1.0"\nedition = "2021"\n'
FOUND = "2>&1 | grep -q 'LeakSanitizer: detected memory leaks'"


def module(base):
    """Writes a module as go's proxy has it; returns the hosts to serve."""
    import zipfile
    at = Path(base) / "served/proxy.golang.org/example.org/answer/@v"
    at.mkdir(parents=True)
    mod = "module example.org/answer\n\ngo 1.18\n"
    info = '{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}'
    for name, text in {"list": "v1.0.0\n", "v1.0.0.info": info, "v1.0.0.mod": mod}.items():
        (at / name).write_text(text)
    with zipfile.ZipFile(at / "v1.0.0.zip", "w") as archive:
        archive.writestr("example.org/answer@v1.0.0/go.mod", mod)
        archive.writestr("example.org/answer@v1.0.0/answer.go", "package answer\n\n// Whole is the answer.\nfunc Whole() int { return 42 }\n")
    return {"proxy.golang.org": Path(base) / "served/proxy.golang.org"}


ROWS = [
    # A command sees a copy of the user's own cache, which may contain the dependency already.
    {"name": "cargo", "needs": "cargo", "registry": "crates", "env": {"CARGO_HOME": "{work}/.cargo-home"},
     "files": {"Cargo.toml": CARGO + '[dependencies]\nfnv = "1"\n', "src/lib.rs": FNV}, "lines": ["cargo build -q", "cargo test -q"]},
    {"name": "cargo, AddressSanitizer", "needs": "cargo", "files": {"Cargo.toml": CARGO, "src/lib.rs": "#[test]\nfn works() {\n    assert_eq!(vec![1, 2].len(), 2);\n}\n"},
     "env": {"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": "-Zsanitizer=address"},
     "lines": ["cargo test -q --lib --target \"$(rustc -vV | sed -n 's/host: //p')\""]},
    {"name": "go", "needs": "go", "serve": module, "note": "its module from loopback",
     "env": {"GOPROXY": "http://proxy.golang.org", "GONOSUMDB": "*", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"},
     "files": {"go.mod": "module example.org/work\n\ngo 1.18\n",
               "work.go": "package work\n\nimport \"example.org/answer\"\n\n// Half of it.\nfunc Half() int { return answer.Whole() / 2 }\n",
               "work_test.go": "package work\n\nimport \"testing\"\n\nfunc Test(t *testing.T) {\n\tif Half() != 21 {\n\t\tt.Fail()\n\t}\n}\n"},
     "lines": ["go mod tidy", "go build ./...", "go test ./..."]},
    {"name": "gcc, sanitizers", "needs": "gcc", "files": {"work.c": C, "leak.c": LEAK, ".gitignore": "a.out\nleak\n"},
     "lines": ["gcc -g -fsanitize=address,undefined work.c && ./a.out", f"gcc -g -fsanitize=leak leak.c -o leak && ./leak {FOUND}"]},
    {"name": "g++, ThreadSanitizer", "needs": "g++", "files": {"work.cc": THREADS, ".gitignore": "a.out\n"},
     "lines": ["g++ -g -pthread -fsanitize=thread work.cc && ./a.out"]},
    {"name": "gdb", "needs": "gdb", "files": {"work.c": C, ".gitignore": "a.out\n"},
     "lines": ["gcc -g work.c && gdb -q -batch -ex 'break sum' -ex run -ex bt -ex 'print a + b' ./a.out | grep -q '= 3'"]},
    {"name": "valgrind", "needs": "valgrind", "files": {"leak.c": LEAK, ".gitignore": "leak\n"},
     "lines": ["gcc -g leak.c -o leak && valgrind --leak-check=full ./leak 2>&1 | grep -q 'definitely lost: 100 bytes'"]},
]
