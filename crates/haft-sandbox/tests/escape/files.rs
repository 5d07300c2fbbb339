//! Rows 1 to 16: files of the host, of other commands, and protected ones.
#![expect(unsafe_code, reason = "attempts are raw system calls")]

use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use haft_sandbox::CommandSpec;

use crate::runner::Test;
use crate::{Attempt, Outcome, Stage, binary, fails_with, refused, stopped};

pub(crate) const TESTS: &[Test] = &[
    ("fs_01_the_hosts_users_are_not_read", || {
        stopped("users", &[]);
    }),
    ("fs_02_no_home_is_listed", || {
        let home = std::env::var("HOME").unwrap_or("/root".into());
        stopped(
            "homes",
            &[&home, &std::env::temp_dir().display().to_string()],
        );
    }),
    ("fs_03_the_root_holds_only_the_list", || {
        stopped("root", &[]);
    }),
    ("fs_04_the_system_is_not_written", || stopped("system", &[])),
    ("fs_05_no_device_is_opened_or_made", || {
        stopped("devices", &[]);
    }),
    ("fs_06_neither_dots_nor_links_lead_out", links_lead_nowhere),
    ("fs_07_nothing_is_linked_or_renamed_across_the_bind", || {
        stopped("across", &[]);
    }),
    ("fs_08_proc_leads_nowhere", || stopped("proc_links", &[])),
    ("fs_09_no_descriptor_leaks_in", no_descriptor_leaks),
    ("fs_10_no_socket_to_the_host_is_at_hand", || {
        stopped("own_sockets", &[]);
    }),
    ("fs_11_no_file_is_opened_by_handle", || {
        stopped("handles", &[]);
    }),
    ("fs_12_no_mount_is_made_or_moved", || stopped("mounts", &[])),
    (
        "fs_13_no_file_of_an_earlier_command_or_the_hosts_tmp_is_seen",
        tmp_is_private,
    ),
    ("fs_14_protected_paths_stay_as_they_are", protected_stays),
    ("fs_16_j5_no_file_becomes_set_user_id", set_user_id),
];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("users", |_| {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        for line in users.lines() {
            if !["root", "nobody", "user"].contains(&line.split(':').next().unwrap_or("")) {
                return Err(line.into());
            }
        }
        refused("/etc/shadow", fs::read("/etc/shadow"))?;
        refused("/etc/machine-id", fs::read("/etc/machine-id"))
    }),
    ("homes", |words| {
        for folder in ["/root", "/home", "/home/user", "/var", "/srv", "/mnt"] {
            only(folder, &[])?;
        }
        // It leads to the private folder.
        only("/run", &["screen"])?;
        only("/sys", &["devices", "fs"])?;
        only("/sys/devices/system", &["cpu"])?;
        only("/sys/fs", &["cgroup"])?;
        // Only the folders on the way to the workspace and to this binary.
        let way: Vec<_> = words.iter().map(String::as_str).collect();
        way.iter()
            .filter(|folder| **folder != "/tmp")
            .try_for_each(|folder| only(folder, &[]))
    }),
    ("root", |_| {
        let known = [
            "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr",
            "nix", "gnu", "run", "sys",
        ];
        only("/", &known)?;
        let known = [
            "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout",
            "tty", "urandom", "zero",
        ];
        only("/dev", &known)
    }),
    ("system", |_| {
        for folder in [
            "/",
            "/usr",
            "/usr/bin",
            "/etc",
            "/bin",
            "/lib",
            "/dev",
            "/proc",
            "/proc/sys",
            "/sys",
        ] {
            let file = Path::new(folder).join("made");
            refused(&file.display().to_string(), fs::write(&file, "x"))?;
            refused(&file.display().to_string(), fs::create_dir(&file))?;
        }
        refused(
            "/etc/passwd",
            fs::OpenOptions::new().append(true).open("/etc/passwd"),
        )?;
        refused("remove", fs::remove_file("/usr/bin/env"))?;
        refused(
            "chmod",
            fs::set_permissions("/usr", fs::Permissions::from_mode(0o777)),
        )
    }),
    ("devices", |_| {
        for name in [
            "kvm", "mem", "kmsg", "sda", "vda", "loop0", "fuse", "net/tun", "tty", "tty0",
            "console",
        ] {
            refused(name, fs::File::open(Path::new("/dev").join(name)))?;
        }
        for (name, number) in [
            ("null2", libc::makedev(1, 3)),
            ("disk", libc::makedev(253, 0)),
        ] {
            for folder in [".", "/tmp"] {
                let path = std::ffi::CString::new(format!("{folder}/{name}")).unwrap();
                // SAFETY: the path is a C string that outlives the call.
                let made = unsafe { libc::mknod(path.as_ptr(), libc::S_IFBLK | 0o600, number) };
                fails_with(name, libc::EPERM, made.into())
                    .or_else(|_| refused(name, fs::File::open(format!("{folder}/{name}"))))?;
            }
        }
        Ok(())
    }),
    ("links", |words| {
        for secret in words {
            refused(secret, fs::read(secret))?;
            let dots = format!("{}{}", "../".repeat(40), secret.trim_start_matches('/'));
            refused(&dots, fs::read(&dots))?;
            for link in ["/tmp/link", "link"] {
                let _ = fs::remove_file(link);
                symlink(secret, link).unwrap();
                refused(link, fs::read(link))?;
            }
        }
        Ok(())
    }),
    ("across", |_| {
        refused("link in", fs::hard_link("/usr/bin/env", "linked"))?;
        refused("link to tmp", fs::hard_link("/usr/bin/env", "/tmp/linked"))?;
        refused("rename", fs::rename("/usr/bin/env", "renamed"))?;
        fs::write("own", "x").unwrap();
        refused("rename out", fs::rename("own", "/usr/own"))?;
        refused("link out", fs::hard_link("own", "/usr/own"))
    }),
    ("proc_links", |_| {
        for path in [
            "/proc/1/root",
            "/proc/1/cwd",
            "/proc/1/fd",
            "/proc/1/exe",
            "/proc/1/ns/mnt",
        ] {
            refused(path, fs::read_link(path).and_then(|_| fs::metadata(path)))
                .or_else(|_| refused(path, fs::read_dir(path)))?;
        }
        refused("/proc/1/environ", fs::read("/proc/1/environ"))?;
        only("/proc/self/root/root", &[])?;
        let own = std::process::id();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<u32>().ok());
            if number.is_some_and(|number| number > 1 && number != own) {
                return Err(format!("another process: {number:?}"));
            }
        }
        Ok(())
    }),
    ("descriptors", |_| {
        for number in 3..4096 {
            // SAFETY: only reads the flags of a descriptor that nothing here owns.
            if unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0 {
                return Err(format!("descriptor {number}"));
            }
        }
        Ok(())
    }),
    ("own_sockets", |_| {
        for number in 0..3 {
            // SAFETY: the file is forgotten before it could close a descriptor that it does not own.
            let file = unsafe { fs::File::from_raw_fd(number) };
            let kind = file.metadata().unwrap().file_type();
            std::mem::forget(file);
            if std::os::unix::fs::FileTypeExt::is_socket(&kind) {
                return Err(format!("descriptor {number} is a socket"));
            }
        }
        Ok(())
    }),
    ("handles", |_| {
        let root = fs::File::open("/").unwrap();
        let mut handle = [0_u32; 8];
        handle[0] = 8;
        handle[2] = 2;
        // SAFETY: the handle is as long as it states.
        let done = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                root.as_raw_fd(),
                handle.as_ptr(),
                libc::O_RDONLY,
            )
        };
        fails_with("open_by_handle_at", libc::EPERM, done)
    }),
    ("mounts", mounts),
    ("tmp", |words| {
        only(
            "/tmp",
            &words.iter().map(String::as_str).collect::<Vec<_>>(),
        )?;
        fs::write("/tmp/left-behind", "x").map_err(|error| error.to_string())
    }),
    ("set_id", |_| {
        fs::write("own", "x").unwrap();
        for mode in [0o4755, 0o2755, 0o6755] {
            refused(
                "chmod",
                fs::set_permissions("own", fs::Permissions::from_mode(mode)),
            )?;
        }
        set_id_calls()?;
        // Such a file created by root outside has no effect here.
        let stat = rustix::fs::statvfs(".").unwrap();
        let wanted = rustix::fs::StatVfsMountFlags::NOSUID | rustix::fs::StatVfsMountFlags::NODEV;
        if stat.f_flag.contains(wanted) {
            Ok(())
        } else {
            Err("no nosuid".into())
        }
    }),
];

/// Tries every call that could set the bits, with all flags: a file without a name may get one later.
fn set_id_calls() -> Outcome {
    let (here, made) = (c".".as_ptr() as i64, c"made".as_ptr() as i64);
    let create = i64::from(libc::O_CREAT | libc::O_WRONLY);
    let unnamed = i64::from(libc::O_TMPFILE | libc::O_RDWR);
    let plain = i64::from(libc::O_RDWR);
    let at = i64::from(libc::AT_FDCWD);
    for bits in [0o4000, 0o2000, 0o6000] {
        let mode = bits | 0o755;
        let file = i64::from(libc::S_IFREG) | mode;
        let calls: [(&str, i64, [i64; 4]); 14] = [
            ("open", libc::SYS_open, [made, create, mode, 0]),
            ("open unnamed", libc::SYS_open, [here, unnamed, mode, 0]),
            ("open plain", libc::SYS_open, [made, plain, mode, 0]),
            ("openat", libc::SYS_openat, [at, made, create, mode]),
            (
                "openat unnamed",
                libc::SYS_openat,
                [at, here, unnamed, mode],
            ),
            ("openat plain", libc::SYS_openat, [at, made, plain, mode]),
            ("creat", libc::SYS_creat, [made, mode, 0, 0]),
            ("mkdir", libc::SYS_mkdir, [made, mode, 0, 0]),
            ("mkdirat", libc::SYS_mkdirat, [at, made, mode, 0]),
            ("mknod", libc::SYS_mknod, [made, file, 0, 0]),
            ("mknodat", libc::SYS_mknodat, [at, made, file, 0]),
            ("chmod", libc::SYS_chmod, [made, mode, 0, 0]),
            ("fchmodat", libc::SYS_fchmodat, [at, made, mode, 0]),
            ("fchmodat2", libc::SYS_fchmodat2, [at, made, mode, 0]),
        ];
        for (name, call, [a, b, c, d]) in calls {
            // SAFETY: pointers are to C strings; the call is refused before it reads them.
            let done = unsafe { libc::syscall(call, a, b, c, d) };
            fails_with(name, libc::EPERM, done)?;
        }
    }
    Ok(())
}

fn mounts(_: &[String]) -> Outcome {
    let (path, none) = (c"/tmp".as_ptr(), std::ptr::null::<u8>());
    let calls: [(&str, i64, [i64; 5]); 12] = [
        (
            "mount",
            libc::SYS_mount,
            [none as i64, path as i64, c"tmpfs".as_ptr() as i64, 0, 0],
        ),
        (
            "bind",
            libc::SYS_mount,
            [path as i64, path as i64, 0, libc::MS_BIND.cast_signed(), 0],
        ),
        ("umount2", libc::SYS_umount2, [path as i64, 2, 0, 0, 0]),
        ("chroot", libc::SYS_chroot, [path as i64, 0, 0, 0, 0]),
        (
            "pivot_root",
            libc::SYS_pivot_root,
            [path as i64, path as i64, 0, 0, 0],
        ),
        (
            "move_mount",
            libc::SYS_move_mount,
            [-100, path as i64, -100, path as i64, 0],
        ),
        (
            "open_tree",
            libc::SYS_open_tree,
            [-100, path as i64, 1, 0, 0],
        ),
        (
            "fsopen",
            libc::SYS_fsopen,
            [c"tmpfs".as_ptr() as i64, 0, 0, 0, 0],
        ),
        ("fspick", libc::SYS_fspick, [-100, path as i64, 0, 0, 0]),
        ("fsmount", libc::SYS_fsmount, [-1, 0, 0, 0, 0]),
        (
            "mount_setattr",
            libc::SYS_mount_setattr,
            [-100, path as i64, 0, 0, 0],
        ),
        ("open_tree_attr", 467, [-100, path as i64, 1, 0, 0]),
    ];
    for (name, call, [a, b, c, d, e]) in calls {
        // SAFETY: pointers are to C strings or null; the call is refused before it reads them.
        let done = unsafe { libc::syscall(call, a, b, c, d, e) };
        fails_with(name, libc::EPERM, done)?;
    }
    Ok(())
}

/// The folder is absent, or contains only these names and those on the way to the workspace.
fn only(folder: &str, known: &[&str]) -> Outcome {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(()),
        Err(error) => return Err(format!("{folder}: {error}")),
    };
    let here = std::env::current_dir().unwrap();
    let own = std::env::current_exe().unwrap();
    for entry in entries.flatten() {
        let path = entry.path();
        let on_the_way = here.starts_with(&path) || own.starts_with(&path);
        if !on_the_way && !known.contains(&entry.file_name().to_str().unwrap_or("?")) {
            return Err(path.display().to_string());
        }
    }
    Ok(())
}

fn links_lead_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let stage = Stage::new();
    symlink(&secret, stage.path().join("made-outside")).unwrap();
    let own = stage.path().join("made-outside").display().to_string();
    let seen = stage.attempt("links", &[&secret.display().to_string(), &own]);
    assert!(seen.exit.success(), "{}", seen.err);
}

/// Not even one that the host opened without close-on-exec by mistake.
fn no_descriptor_leaks() {
    let file = tempfile::tempfile().unwrap();
    // SAFETY: duplicates an open descriptor; the number is closed below.
    let leaked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD, 300) };
    assert!(leaked >= 300);
    stopped("descriptors", &[]);
    // SAFETY: created above and owned by nothing else.
    unsafe { libc::close(leaked) };
}

fn tmp_is_private() {
    let marker = std::env::temp_dir().join(format!("haft-marker-{}", std::process::id()));
    fs::write(&marker, "x").unwrap();
    for _ in 0..2 {
        stopped("tmp", &[]);
    }
    fs::remove_file(marker).unwrap();
    assert!(!Path::new("/tmp/left-behind").exists());
}

fn protected_stays() {
    let stage = Stage::new();
    let git = stage.path().join(".git");
    fs::create_dir_all(git.join("hooks")).unwrap();
    fs::write(git.join("config"), "before").unwrap();
    fs::create_dir_all(stage.path().join("sub/.git")).unwrap();
    symlink(".git", stage.path().join("alias")).unwrap();
    let script = "echo x > .git/hooks/pre-commit; echo x > .git/config; echo x > alias/config; \
                  mv .git moved; rm -rf .git; mkdir -p .git/hooks; ln -sfn /tmp .git; \
                  ln .git/config hard && echo x > hard; mv sub sub2; echo x > sub/.git/config; \
                  echo x > sub2/.git/config; rmdir sub/.git; true";
    stage.run(CommandSpec::line(script, stage.path()));
    assert_eq!(fs::read_to_string(git.join("config")).unwrap(), "before");
    assert_eq!(fs::read_dir(git.join("hooks")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(&git).unwrap().count(), 2);
    let nested = fs::read_dir(stage.path().join("sub/.git")).unwrap();
    assert_eq!(nested.count(), 0);
    assert!(!stage.path().join("sub2").exists());
    // The same without an existing folder: nothing is created, and no placeholder is left.
    let stage = Stage::new();
    stage.run(CommandSpec::line(
        "mkdir -p .git/hooks; echo x > .git/config; ls -la",
        stage.path(),
    ));
    assert!(fs::symlink_metadata(stage.path().join(".git")).is_err());
}

fn set_user_id() {
    let stage = Stage::new();
    let seen = stage.attempt("set_id", &[]);
    assert!(seen.exit.success(), "{}", seen.err);
    for entry in fs::read_dir(stage.path()).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o6000, 0);
    }
    assert!(binary().exists());
}
